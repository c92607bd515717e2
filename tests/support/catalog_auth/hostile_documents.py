"""Catalog documents made to do harm, by what they are; each of about the size asked for."""

import json
from collections.abc import Callable
from typing import Any

IDENTIFIER = "https://stac-extensions.github.io/authentication/v1.2.0/schema.json"
# As deep as decoding goes, or nearly.
DEPTH = 700


def document(**members: Any) -> bytes:
    """A catalog with these members."""
    catalog = {"type": "Catalog", "stac_extensions": [IDENTIFIER], "links": [], "auth:schemes": {}}
    return json.dumps({**catalog, **members}).encode()


def parameter(schema: Any) -> Any:
    flow = {
        "method": "GET",
        "authorizationApi": "https://sign.example.com/",
        "parameters": {"x": {"in": "query", "required": True, "schema": schema}},
    }
    return {"s": {"type": "signedUrl", "flows": {"a": flow}}}


def nested(inner: str, depth: int, name: str = "a") -> str:
    return f'{{"{name}":' * depth + inner + "}" * depth


def with_text(name: str, text: str) -> bytes:
    return document().replace(b'"links"', f'"{name}": {text}, "links"'.encode())


def strays_in_the_deep(size: int) -> bytes:
    wide = ",".join(f'"auth:{number}":0' for number in range(size // 20))
    return with_text("x", nested(f"{{{wide}}}", DEPTH))


def lists_in_the_deep(size: int) -> bytes:
    return with_text("x", nested("[" + ",".join(["{}"] * (size // 3)) + "]", DEPTH))


def schema_in_the_deep(size: int) -> bytes:
    wide = ",".join(f'"p{number}":{{"type":"x"}}' for number in range(size // 30))
    schema = nested(f'{{"properties":{{{wide}}}}}', DEPTH, "not")
    return document(**{"auth:schemes": parameter("HERE")}).replace(b'"HERE"', schema.encode())


def good_schema_in_the_deep(size: int) -> bytes:
    wide = ",".join(f'"p{number}":{{"pattern":"("}}' for number in range(size // 30))
    schema = nested(f'{{"properties":{{{wide}}}}}', DEPTH, "not")
    return document(**{"auth:schemes": parameter("HERE")}).replace(b'"HERE"', schema.encode())


def dangling_references(size: int) -> bytes:
    schemes = {f"scheme{number}": {"type": "s3"} for number in range(size // 120)}
    refs = [f"schema{number}" for number in range(size // 40)]
    return document(**{"auth:schemes": schemes}, links=[{"href": "s3://b/k", "auth:refs": refs}])


def many_holders(size: int) -> bytes:
    links = [
        {"href": f"https://h{number}.example.com/", "auth:refs": [f"s{number}"]}
        for number in range(size // 75)
    ]
    return document(links=links, **{"auth:schemes": {"s": {"type": "s3"}}})


def long_chain(size: int) -> bytes:
    schemes = {
        f"s{number}": {"type": "oauth2", "flows": {}, "auth:refs": [f"s{number + 1}"]}
        for number in range(size // 70)
    }
    return document(**{"auth:schemes": schemes})


def dense_chains(_: int) -> bytes:
    names = [f"s{number}" for number in range(500)]
    return document(**{"auth:schemes": {name: {"type": "x", "auth:refs": names} for name in names}})


def many_identifiers(size: int) -> bytes:
    wrong = [f"authentication v{number}.0.0" for number in range(size // 30)]
    return document(stac_extensions=[IDENTIFIER, *wrong])


def repeated_members(size: int) -> bytes:
    return b'{"type": "Catalog", "links": [],' + b'"auth:schemes": {},' * (size // 19) + b'"x": 0}'


def deep_collections(_: int) -> bytes:
    return nested("[]", DEPTH, "features").encode()


def many_features(size: int) -> bytes:
    feature = {"type": "Feature", "properties": {"auth:schemes": []}, "assets": {}, "links": []}
    return json.dumps({"type": "FeatureCollection", "features": [feature] * (size // 90)}).encode()


def many_repairs(size: int) -> bytes:
    """One object that all repairs lead through, with other members."""
    assets: dict[str, Any] = {f"{number:x}": 0 for number in range(size // 20)}
    repairs = {f"a{number:x}": {"auth:refs": ["s", "s"]} for number in range(size // 80)}
    return document(assets=assets | repairs, **{"auth:schemes": {"s": {"type": "s3"}}})


def catastrophic_patterns(_: int) -> bytes:
    patterns = ["(a+)+$", "(a|aa)+$", "(.*)*b", "((a{1,100}){1,100}){1,100}", "(?:a?){50}a{50}"]
    schema = {"allOf": [{"type": "string", "pattern": p, "default": "a" * 60} for p in patterns]}
    return document(**{"auth:schemes": parameter(schema)})


def large_texts(size: int) -> bytes:
    scheme = {"type": "http", "scheme": "x" * (size // 5), "description": "<" * (size // 5)}
    link = {"href": "https://" + "a" * (size // 5), "auth:refs": ["y" * (size // 5)]}
    return document(links=[link], **{"auth:schemes": {"z" * (size // 5): scheme}})


DOCUMENTS: dict[str, Callable[[int], bytes]] = {
    make.__name__: make
    for make in (
        strays_in_the_deep,
        lists_in_the_deep,
        schema_in_the_deep,
        good_schema_in_the_deep,
        dangling_references,
        many_holders,
        long_chain,
        dense_chains,
        many_identifiers,
        repeated_members,
        deep_collections,
        many_features,
        catastrophic_patterns,
        large_texts,
    )
}
# Refused before anything is looked at.
UNREADABLE: dict[str, bytes] = {
    "too deep": b'{"a":' * 100_000,
    "too deep, in lists": b"[" * 10_000_000,
    "a number of a million digits": b'{"a": ' + b"9" * 1_000_000 + b"}",
    "a number beyond a double": b'{"a": 1e999}',
    "half a surrogate pair": b'{"a": "\\ud800"}',
    "no UTF-8": b'{"a": "\xff"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "not a number": b'{"a": NaN}',
    "nothing": b"",
    "two documents": b"{} {}",
}
