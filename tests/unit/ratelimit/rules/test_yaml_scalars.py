"""The values that YAML scalars have for the reference (docs/ratelimit.md, B1)."""

import math
import re

import pytest

from tollgate.actors.ratelimit.rules.yaml_scalars import plain_value, tagged_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("yes", True),
        ("y", True),
        ("On", True),
        ("true", True),
        ("tRUE", "tRUE"),
        ("N", False),
        ("off", False),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("017", 15),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b101", -5),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551616", 18446744073709551616.0),
        ("-9223372036854775809", -9223372036854775809.0),
        ("08", 8.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("1:30", "1:30"),
        ("2001-12-14", "2001-12-14"),
        ("1.2.3.4", "1.2.3.4"),
        ("-", "-"),
        (".", "."),
        ("0x", "0x"),
        ("0xg", "0xg"),
        ("9" * 400, "9" * 400),
        ("_1", "_1"),
        ("١", "١"),
        ("text", "text"),
    ],
)
def test_plain_scalars_have_the_references_values(text: str, value: object) -> None:
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number() -> None:
    found = plain_value(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("tag:yaml.org,2002:str", "1.5", "1.5"),
        ("tag:yaml.org,2002:int", "5", 5),
        ("tag:yaml.org,2002:float", "5", 5),
        ("tag:yaml.org,2002:bool", "yes", True),
        ("tag:yaml.org,2002:null", "", None),
        ("!ours", "5", "5"),
        ("!", "5", "5"),
    ],
)
def test_tagged_scalars_have_the_references_values(tag: str, text: str, value: object) -> None:
    found = tagged_value(text, tag)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("tag", "text", "problem"),
    [
        ("tag:yaml.org,2002:int", "x", "cannot decode !!str `x` as a !!int"),
        ("tag:yaml.org,2002:int", "true", "cannot decode !!bool `true` as a !!int"),
        ("tag:yaml.org,2002:null", "0", "cannot decode !!int `0` as a !!null"),
        ("tag:yaml.org,2002:binary", "eA==", "tag !!binary is not supported"),
    ],
)
def test_tag_that_does_not_fit(tag: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        tagged_value(text, tag)
