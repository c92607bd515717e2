"""Data files that operators write, in YAML or JSON, read so that every refusal names its line.

A file is read into nodes; whoever wants a value asks its node for it. What is missing, unknown,
repeated or of another kind is refused as `<file>:<line>: <place>: <what is wrong>`. Scalars are
taken as they are written, so that the country NO is no boolean and a rate is no float.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NoReturn

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError, located_text
from tollgate.actors.ratelimit.rules.yaml_document import (
    YamlList,
    YamlMap,
    YamlNode,
    YamlScalar,
    read_yaml,
)

DATA_FILE_BYTES_MAX = 8 * 1024 * 1024
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


class DataFileError(Exception):
    """A data file that cannot be used: `str(error)` is one line for the operator."""


@dataclass(frozen=True, slots=True)
class DataNode:
    """A value of a data file. `place`: its dotted path, empty for the whole."""

    file: str
    place: str
    yaml: YamlNode

    def refuse(self, problem: str) -> NoReturn:
        """Raises DataFileError for this place."""
        where = f"{self.place}: " if self.place else ""
        raise DataFileError(located_text(self.file, self.yaml.line, f"{where}{problem}"))

    @property
    def is_null(self) -> bool:
        return isinstance(self.yaml, YamlScalar) and self.yaml.value is None

    @property
    def is_map(self) -> bool:
        return isinstance(self.yaml, YamlMap)

    def text(self) -> str:
        """The text of a scalar, as it is written."""
        if not isinstance(self.yaml, YamlScalar) or self.is_null:
            self.refuse("is not a text")
        return self.yaml.text

    def integer(self) -> int:
        """A whole number that was written without quotes."""
        if not self._is_plain() or not _INTEGER.fullmatch(self.text()):
            self.refuse("is not a whole number")
        return int(self.text())

    def boolean(self) -> bool:
        if not self._is_plain() or self.text() not in _BOOLEANS:
            self.refuse("is neither true nor false")
        return _BOOLEANS[self.text()]

    def value(self) -> object:
        """The value in JSON; a plain scalar as YAML understands it."""
        if isinstance(self.yaml, YamlMap):
            return {key: node.value() for key, node in self.pairs()}
        if isinstance(self.yaml, YamlList):
            return [node.value() for node in self.items()]
        found = self.yaml.value
        if isinstance(found, float) and not isfinite(found):
            self.refuse("is no number of JSON")
        return found

    def items(self) -> list["DataNode"]:
        """The items of a list."""
        if not isinstance(self.yaml, YamlList):
            self.refuse("is not a list")
        return [
            DataNode(self.file, f"{self.place}[{number}]", item)
            for number, item in enumerate(self.yaml.items)
        ]

    def pairs(self) -> Iterator[tuple[str, "DataNode"]]:
        """The pairs of a mapping whose keys are data."""
        if not isinstance(self.yaml, YamlMap):
            self.refuse("is not a mapping")
        for repeated in self.yaml.repeated:
            DataNode(self.file, self._below(repeated.text), repeated).refuse("is there twice")
        for key, value in self.yaml.pairs:
            if not isinstance(key, YamlScalar):
                DataNode(self.file, self.place, key).refuse("has a key that is not a text")
            yield key.text, DataNode(self.file, self._below(key.text), value)

    def fields(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> "DataFields":
        """The pairs of a mapping whose keys are known."""
        found = dict(self.pairs())
        for name, node in found.items():
            if name not in required and name not in optional:
                node.refuse(f"is unknown; known here: {', '.join((*required, *optional))}")
        for name in required:
            if name not in found:
                self.refuse(f"{name} is missing")
        return DataFields(found)

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _is_plain(self) -> bool:
        return isinstance(self.yaml, YamlScalar) and self.yaml.is_plain


@dataclass(frozen=True, slots=True)
class DataFields:
    """The fields of a mapping by name; a null is as good as none."""

    nodes: dict[str, DataNode]

    def __getitem__(self, name: str) -> DataNode:
        return self.nodes[name]

    def get(self, name: str) -> DataNode | None:
        node = self.nodes.get(name)
        return None if node is None or node.is_null else node

    def text(self, name: str) -> str:
        """The text of a field; empty when it is absent."""
        node = self.get(name)
        return "" if node is None else node.text()

    def integer(self, name: str) -> int:
        """The number of a field; 0 when it is absent."""
        node = self.get(name)
        return 0 if node is None else node.integer()

    def is_set(self, name: str) -> bool:
        """The boolean of a field; false when it is absent."""
        node = self.get(name)
        return node is not None and node.boolean()


def read_data_text(name: str, text: bytes) -> DataNode:
    """The root of a text that is called `name`. Raises DataFileError."""
    try:
        document = read_yaml(RuleFile(name, text))
    except RuleFileError as error:
        said = error.reason.partition("yaml: ")[2] or error.reason
        problem = said.removeprefix(f"line {error.line}: ")
        raise DataFileError(located_text(name, error.line, problem)) from None
    if document.root is None:
        raise DataFileError(f"{name}: is empty")
    root = DataNode(name, "", document.root)
    if document.ignored_document_line is not None:
        root.refuse("holds more than one document")
    return root


def read_data_file(path: Path) -> DataNode:
    """The root of a file. Raises DataFileError: unreadable, too large, no YAML."""
    try:
        with path.open("rb") as file:
            text = file.read(DATA_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(text) > DATA_FILE_BYTES_MAX:
        raise DataFileError(f"{path}: is larger than {DATA_FILE_BYTES_MAX} bytes")
    return read_data_text(str(path), text)
