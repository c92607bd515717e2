"""`tollgate catalog fix`: mechanical repairs of files."""

import json
import re
import sys
from collections.abc import Iterator
from difflib import unified_diff

import click

from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.repair.fixes import Fixed
from tollgate.serve.catalog_auth.repair.fixes import fix as fixed
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.formats.text import number, verdict_line
from tollgate.serve.catalog_auth.verdict.judgement import Judged, UnusableDocument
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.commands.catalog.files import CatalogFile, NearbyAncestors, candidates, read
from tollgate.serve.commands.catalog.output import print_unusable, progress

_FIRST_INDENT = re.compile(r"[{\[]\r?\n([ \t]+)\S")


@click.command()
@click.argument("names", nargs=-1, metavar="[FILE...]")
@click.option("--write", "-w", "is_written", is_flag=True, help="Change the files.")
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in Profile]),
    default=Profile.DEFAULT.value,
)
def fix(names: tuple[str, ...], is_written: bool, profile: str) -> None:
    """Repair what can be repaired mechanically, and show the changes.

    Without --write no file is changed; with it, a repaired file is written anew, indented as it
    was. What comes from the standard input goes, repaired, to the standard output. The exit code is
    0 when all are valid afterwards, 1 when one is not, 2 when one cannot be read.
    """
    found, unusable = candidates(names)
    options = Options(profile=Profile(profile))
    ancestors = NearbyAncestors()
    is_valid = True
    with progress("documents", len(found)) as step:
        for candidate in found:
            file = read(candidate)
            step()
            if isinstance(file, UnusableDocument):
                unusable.append(file)
            elif file is not None:
                made = fixed(file.root, options, ancestors.of(file))
                is_valid = is_valid and made.verdict.valid
                _put(file, made, is_written=is_written)
    print_unusable(unusable)
    sys.exit(2 if unusable else 0 if is_valid else 1)


def _put(file: CatalogFile, made: Fixed, *, is_written: bool) -> None:
    text = file.raw.decode()
    after = written_like(made.document, text) if made.repairs else text
    if file.path is None:
        click.echo(after, nl=False)
    elif made.repairs:
        # (against itself written anew, so that only the repairs differ)
        for line in _difference(written_like(file.root, text), after, file.name):
            click.echo(line)
        if is_written:
            replace_file(file.path, after.encode(), mode=file.path.stat().st_mode & 0o777)
    told = verdict_line(Judged(file.name, made.verdict, {}))
    done = "made" if is_written or file.path is None else "to be made"
    click.echo(f"{told}; {number(len(made.repairs), 'repair')} {done}", err=True)


def written_like(value: JsonValue, before: str) -> str:
    """The value as JSON with the indentation and the end of the text that it replaces."""
    found = _FIRST_INDENT.search(before)
    indent: str | None = found[1] if found else (None if "\n" not in before.strip() else " " * 2)
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    return text + before[len(before.rstrip()) :]


def _difference(before: str, after: str, name: str) -> Iterator[str]:
    """As `diff -u` has it, in colour for people."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    lines = unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
    for line in lines:
        yield click.style(line, fg=colours.get(line[:1]))
