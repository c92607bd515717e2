"""A rule file's name and text, and the error for one that cannot be used (B1)."""

from dataclasses import dataclass

RULE_FILE_BYTES_MAX = 8 * 1024 * 1024
LOCATED_MAX = 2_000  # characters


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One source of rules. `name` is what operators call it, e.g. `config.basic.yaml`."""

    name: str
    text: bytes | str

    def content(self) -> bytes:
        """The text as bytes; lone surrogates survive, so that every text has a digest."""
        if isinstance(self.text, bytes):
            return self.text
        return self.text.encode("utf-8", "surrogatepass")


class RuleFileError(Exception):
    """A rule file that is refused: `str(error)` is exactly `<file>: <reason>`, as in the reference.

    `line` counts from 1 and is None where no line is to blame.
    """

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file = file
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"

    @property
    def located(self) -> str:
        """The same with the line, for operators: `<file>:<line>: <reason>`."""
        return located_text(self.file, self.line, self.reason)


def located_text(file: str, line: int | None, text: str) -> str:
    """`<file>:<line>: <text>` on one line of bounded length, whatever the text quotes."""
    place = file if line is None else f"{file}:{line}"
    whole = f"{place}: {text}"
    cut = whole if len(whole) <= LOCATED_MAX else f"{whole[:LOCATED_MAX]}…"
    return "".join(map(_printable, cut))


def _printable(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
