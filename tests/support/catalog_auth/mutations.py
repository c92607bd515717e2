"""Documents that are wrong in small ways: one or more random changes where authentication is told.

A change is made at the end of a random way from the root, which prefers the members that the
extension knows; its seed makes it again.
"""

from random import Random
from typing import Any

Json = Any


def _words(text: str) -> list[str]:
    return text.split()


FIELDS = _words(
    "type description name in scheme flows openIdConnectUrl auth:refs auth:schemes auth:schemas "
    "authorizationUrl tokenUrl refreshUrl scopes subjectTokenType method authorizationApi "
    "responseField parameters required schema assets item_assets links properties summaries "
    "stac_extensions alternate rel openConnectUrl"
)
FLOW_KEYS = (
    "",
    "implicit",
    "authorizationCode",
    "password",
    "clientCredentials",
    "tokenExchange",
    "implicitimplicit",
    "authorizationCodepassword",
    "tokenExchangetokenExchange",
    "password ",
    "x",
)
TYPES = _words("http s3 signedUrl oauth2 apiKey openIdConnect Feature Collection Catalog custom")
KEYWORDS = _words(
    "type minLength maxLength minItems maxProperties multipleOf maximum exclusiveMinimum pattern "
    "items additionalItems contains required enum const default examples properties definitions "
    "patternProperties additionalProperties dependencies propertyNames if then else not allOf "
    "anyOf oneOf format title $id $ref $comment readOnly writeOnly uniqueItems contentEncoding x"
)
KNOWN = frozenset((*FIELDS, *FLOW_KEYS, *KEYWORDS))


# What the oldest schema has an opinion on, and no other document has.
OLD = (
    {
        "type": "Collection",
        "assets": {"a": {"auth:schemes": {}}, "b": {}},
        "links": [{"rel": "auth", "auth:refs": ["x"]}, {"rel": "self", "auth:refs": 1}],
    },
    {"type": "Collection", "assets": {"a": {"auth:schemes": {"x": 1}}}},
    {"type": "Collection", "item_assets": {"a": {"auth:schemes": {}, "auth:refs": []}, "b": 1}},
    {"type": "Collection", "summaries": {"auth:schemes": []}},
    {
        "type": "Feature",
        "properties": {"auth:schemes": {"type": "x", "description": "x"}},
        "assets": {"a": {"auth:refs": ["x"], "auth:schemes": {"x": {}}}},
        "links": [],
    },
    *(
        {"type": "Collection", "auth:schemes": {"flows": flows}}
        for flows in (
            {"authorizationUrl": "x", "refreshUrl": "x", "authorizationApi": "x"},
            {"scopes": {}, "method": "x", "responseField": "x"},
            {"parameters": {"in": "x", "required": True, "description": "x", "schema": {}}},
        )
    ),
)
# A scheme that needs input of its own.
EXCHANGE = {
    "type": "Catalog",
    "auth:schemes": {
        "a": {
            "type": "oauth2",
            "flows": {"tokenExchange": {"tokenUrl": "x", "scopes": {}}},
            "auth:refs": ["b"],
        }
    },
}


def mutated(document: Json, random: Random) -> Json:
    """The document, changed in place: once, or up to three times."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        document = _changed(document, random)
    return document


def _changed(document: Json, random: Random) -> Json:
    value = document
    for _ in range(random.randrange(8)):
        inner = _way_on(value, random)
        if not isinstance(inner, dict | list) or not inner:
            break
        value = inner
    if isinstance(value, dict):
        _change_object(value, random)
    elif isinstance(value, list):
        _change_list(value, random)
    else:
        return _value(random)
    return document


def _way_on(value: Json, random: Random) -> Json:
    if isinstance(value, list):
        return random.choice(value) if value else None
    if not isinstance(value, dict) or not value:
        return None
    known = [name for name in value if name in KNOWN] if random.random() < 0.7 else []
    return value[random.choice(known or list(value))]


def _change_object(value: dict[str, Json], random: Random) -> None:
    name = random.choice(list(value)) if value else "x"
    change = random.randrange(6)
    if change == 0:
        value.pop(name, None)
    elif change == 1 and name in value:
        value[random.choice((*FIELDS, *FLOW_KEYS))] = value.pop(name)
    elif change == 2:
        value[random.choice(FIELDS)] = _value(random)
    elif change == 3:
        value[random.choice((*FLOW_KEYS, "schema"))] = _value(random)
    elif change == 4:
        value["type"] = random.choice(TYPES)
    else:
        value[name] = _value(random)


def _change_list(value: list[Json], random: Random) -> None:
    change = random.randrange(3)
    if change == 0 and value:
        value.pop(random.randrange(len(value)))
    elif change == 1 and value:
        value[random.randrange(len(value))] = _value(random)
    else:
        value.append(_value(random))


def _value(random: Random) -> Json:
    match random.randrange(10):
        case 0:
            return _scheme(random)
        case 1:
            return {random.choice(FLOW_KEYS): _flow(random)}
        case 2:
            return _flow(random)
        case 3:
            return {"in": "query", "required": random.choice((True, 1)), "schema": schema(random)}
        case 4:
            return schema(random)
        case _:
            return _plain(random)


def _plain(random: Random) -> Json:
    pool: tuple[Json, ...] = (None, True, False, 0, 1.5, "", "x", [], {}, ["x"], [1], {"x": "y"})
    return random.choice((*pool, {"x": 1}, {"x": {}}, [{}], {"auth:refs": ["x"]}, {"rel": "auth"}))


def _scheme(random: Random) -> Json:
    fields = {name: _plain(random) for name in random.sample(FIELDS[:8], random.randrange(4))}
    kind = random.choice(TYPES)
    own: dict[str, Json] = {
        "http": {"scheme": "basic"},
        "apiKey": {"name": "x", "in": "query"},
        "openIdConnect": {"openIdConnectUrl": "x"},
        "oauth2": {"flows": {random.choice(FLOW_KEYS): _flow(random)}},
        "signedUrl": {"flows": {"x": _flow(random)}},
    }
    return {"type": kind, **own.get(kind, {}), **(fields if random.random() < 0.3 else {})}


def _flow(random: Random) -> Json:
    flow: dict[str, Json] = {}
    if random.random() < 0.8:
        flow["scopes"] = random.choice(({}, {"x": "y"}, {"x": "y"}, {"x": 1}, []))
        for name in ("authorizationUrl", "tokenUrl", "refreshUrl", "subjectTokenType"):
            if random.random() < 0.6:
                flow[name] = "x" if random.random() < 0.9 else _plain(random)
    if random.random() < 0.6:
        flow |= {"method": "GET", "authorizationApi": "x"}
        parameter = {"in": "query", "required": True, "schema": schema(random)}
        if random.random() < 0.3:
            parameter["description"] = _plain(random)
        flow["parameters"] = random.choice(({}, {"x": parameter}, {"x": parameter}, _plain(random)))
    if random.random() < 0.2:
        flow[random.choice(FIELDS)] = _plain(random)
    return flow


def schema(random: Random, depth: int = 3) -> Json:
    """Something like a JSON Schema, often a true one."""
    if depth == 0 or random.random() < 0.1:
        return random.choice((True, False, {}, _plain(random)))
    return {
        keyword: _keyword_value(keyword, random, depth - 1)
        for keyword in random.sample(KEYWORDS, random.randrange(4))
    }


def _keyword_value(keyword: str, random: Random, depth: int) -> Json:
    if random.random() < 0.15:
        return _plain(random)
    if keyword in ("properties", "definitions", "patternProperties", "dependencies"):
        if keyword == "dependencies" and random.random() < 0.5:
            return {"x": random.choice((["a"], ["a", "a"], [1], []))}
        return {name: schema(random, depth) for name in random.sample("abc", random.randrange(3))}
    if keyword in ("allOf", "anyOf", "oneOf"):
        return [schema(random, depth) for _ in range(random.randrange(3))]
    if keyword in ("items", "not", "if", "then", "else", "contains", "propertyNames"):
        return schema(random, depth)
    if keyword in ("required", "enum", "examples", "type"):
        pool: tuple[Json, ...] = (["string"], ["string", "string"], [], "string", "url", ["null"])
        return random.choice(pool)
    if keyword.startswith(("min", "max", "multiple", "exclusive")):
        return random.choice((0, 1, 2.0, 2.5, -1, -0.0, True, 10**25))
    return random.choice(("x", True, 1))
