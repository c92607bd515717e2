"""Reads the `console` blocks of a document, runs their commands, and holds the answers to the text.

    $ curl -s -u :$KEY $PAY/me                a command; `$NAME` is replaced by what was set before
    {"identity":{"id":"69d1…a0",…}}           its answer, up to the next command
    $ APP=69d1…a0                             sets a name; what was left out is known by now

In an expected answer `…` stands for what was left out: inside of a text a part of it, alone all of
it, among members or elements any further ones. A text that was left out in part is the same text
wherever it stands again. A time stands for any time. Expected text that is no JSON is compared line
by line and cell by cell.
"""

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

OMITTED = "…"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SETTING = re.compile(r"([A-Z]+)=(\S+)")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_STATUS = re.compile(r"HTTP/1\.1 (\d{3}) (.+)")


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a document, and the answer that stands under it. `line`: where it begins."""

    line: int
    command: str
    expected: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed. `status`, `headers`: of a call over HTTP, else nothing."""

    text: str
    status: int = 0
    reason: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


Run = Callable[[list[str]], Answer]


@dataclass(frozen=True, slots=True)
class Call:
    """A call over HTTP, as curl would make it."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str | None


def curl_call(arguments: Sequence[str]) -> Call:
    """The call of a command line of curl, for the options that the documents use."""
    given = list(arguments)
    method, url = "", ""
    fields: list[str] = []
    headers = {"accept": "*/*"}
    while given:
        match given.pop(0):
            case "-s" | "-i":
                pass
            case "-X":
                method = given.pop(0)
            case "-u":
                credentials = b64encode(given.pop(0).encode()).decode()
                headers["authorization"] = f"Basic {credentials}"
            case "-H":
                name, _, value = given.pop(0).partition(": ")
                headers[name.lower()] = value
            case "-d" | "--data-binary":
                text = given.pop(0)
                fields.append(Path(text[1:]).read_text() if text.startswith("@") else text)
                headers.setdefault("content-type", "application/x-www-form-urlencoded")
            case address:
                assert not url, f"{address}: a second address"
                url = address
    method = method or ("POST" if fields else "GET")
    return Call(method, url, headers, "&".join(fields) if fields else None)


def examples(document: str) -> Iterator[Example]:
    """All examples of a document, in order."""
    for block in _BLOCK.finditer(document):
        line = document.count("\n", 0, block.start(1)) + 1
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield Example(line, command, expected)
            line += part.count("\n")


class Story:
    """The examples of one document, run one after another."""

    def __init__(self, run: Run, names: Mapping[str, str]) -> None:
        self._run = run
        self._names = dict(names)
        self._left_out: dict[str, str] = {}

    def tell(self, example: Example) -> None:
        """Run a command and hold its answer to the document."""
        if found := _SETTING.fullmatch(example.command):
            self._names[found[1]] = self._whole(found[2])
            return
        command = Template(self._whole(example.command)).substitute(self._names)
        answer = self._run(shlex.split(command))
        expected = example.expected
        if found := _STATUS.match(expected):
            assert (str(answer.status), answer.reason) == (found[1], found[2]), answer
            head, _, expected = expected.partition("\n\n")
            for line in head.splitlines()[1:]:
                name, _, value = line.partition(": ")
                self._match(value.split("="), answer.headers.get(name, "").split("="), line)
        self._compare(expected, answer.text)

    def _whole(self, text: str) -> str:
        """A text with what was left out of it."""
        for short, whole in self._left_out.items():
            text = text.replace(short, whole)
        return text

    def _compare(self, expected: str, actual: str) -> None:
        told, found = expected.splitlines(), actual.splitlines()
        is_lines = len(told) > 1 and all(line.startswith("{") for line in told)
        if expected.startswith(("{", "[")) and not is_lines:
            self._match(json.loads(_as_json(expected)), json.loads(actual), "")
            return
        assert len(told) == len(found), (expected, actual)
        for line, other in zip(told, found, strict=True):
            if line.startswith("{"):
                self._match(json.loads(_as_json(line)), json.loads(other), line)
                continue
            cells, others = re.split(r"([,\s]+)", line), re.split(r"([,\s]+)", other)
            self._match(cells, others, line)

    def _match(self, expected: Any, actual: Any, place: str) -> None:
        if expected == OMITTED:
            return
        match expected:
            case dict():
                assert isinstance(actual, dict), (place, actual)
                names = [name for name in expected if name != OMITTED]
                others = [name for name in actual if name not in names]
                assert OMITTED in expected or not others, (place, others)
                assert names == [name for name in actual if name in names], (place, [*actual])
                for name in names:
                    self._match(expected[name], actual[name], f"{place}/{name}")
            case list():
                is_open = expected[-1:] == [OMITTED]
                told = expected[:-1] if is_open else expected
                assert isinstance(actual, list), (place, actual)
                assert len(told) == len(actual) or is_open, (place, actual)
                for index, each in enumerate(told):
                    self._match(each, actual[index], f"{place}/{index}")
            case str() if _MOMENT.fullmatch(expected):
                assert _MOMENT.fullmatch(actual), (place, actual)
            case str() if OMITTED in expected:
                assert isinstance(actual, str), (place, actual)
                assert self._left_out.setdefault(expected, actual) == actual, (place, expected)
            case _:
                assert (type(expected), expected) == (type(actual), actual), (place, actual)


def _as_json(text: str) -> str:
    """Expected JSON with `…` among members and elements, as JSON."""
    made: list[str] = []
    inside: list[str] = []
    is_text = is_escaped = False
    for each in text:
        if is_text:
            is_text = is_escaped or each != '"'
            is_escaped = each == "\\" and not is_escaped
        elif each == '"':
            is_text = True
        elif each in "{[":
            inside.append(each)
        elif each in "}]":
            inside.pop()
        elif each == OMITTED:
            made.append(f'"{OMITTED}"' if inside[-1] == "[" else f'"{OMITTED}":0')
            continue
        made.append(each)
    return "".join(made)
