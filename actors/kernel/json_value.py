"""Decoded JSON, as the whole house writes its type."""

from typing import Any

# A value whose shape is looked at member by member.
JsonValue = str | int | float | bool | None | list["JsonValue"] | dict[str, "JsonValue"]
# An object that is put together here to be encoded.
Json = dict[str, Any]
