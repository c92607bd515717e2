"""Reads a YAML scalar as the reference does, after YAML 1.1 (B1).

Booleans include `yes`, `on`, `y` and their opposites; `017` is octal; underscores in numbers are
ignored. Unlike in YAML 1.1 there are no sexagesimal numbers and no dates: they are strings. A
number that does not fit 64 bits is a float, and one that does not fit a float is a string.
"""

import math
import re
from typing import TypeAlias

ScalarValue: TypeAlias = str | int | float | bool | None

INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_UINT64_MAX = 2**64 - 1

TAG_PREFIX = "tag:yaml.org,2002:"
_CONSTANTS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True
    ),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# The bounds on digits keep int() cheap: anything longer cannot fit 64 bits.
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)"
    r"(?:0[xX](?P<hex>[0-9a-fA-F]{1,16})|0[bB](?P<binary>[01]{1,64})"
    r"|0[oO]?(?P<octal>[0-7]{1,22})|(?P<decimal>0|[1-9][0-9]{0,19}))"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

_TYPES_OF_TAG: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "null": (type(None),),
}
_TYPE_NAMES = {type(None): "!!null", bool: "!!bool", int: "!!int", float: "!!float", str: "!!str"}


def plain_value(text: str) -> ScalarValue:
    """The value of a scalar without quotes and without a tag."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    integer = _INTEGER.fullmatch(digits)
    if integer is not None:
        assert integer.lastgroup is not None, "one of the alternatives matched"
        number = integer["sign"] + integer[integer.lastgroup]
        value = int(number, _BASES[integer.lastgroup])
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
    if _REAL.fullmatch(digits) is not None:
        real = float(digits)
        if math.isfinite(real):
            return real
    return text


def tagged_value(text: str, tag: str) -> ScalarValue:
    """The value of a scalar with a tag. ValueError: the text is not of that type.

    Unknown tags stand for strings.
    """
    name = tag.removeprefix(TAG_PREFIX)
    if name == "binary":
        raise ValueError("tag !!binary is not supported")
    types = _TYPES_OF_TAG.get(name)
    if types is None:
        return text
    value = plain_value(text)
    if type(value) not in types:
        raise ValueError(f"cannot decode {type_name(value)} `{text}` as a !!{name}")
    return value


def type_name(value: ScalarValue) -> str:
    """The YAML name of a scalar's type."""
    return _TYPE_NAMES[type(value)]
