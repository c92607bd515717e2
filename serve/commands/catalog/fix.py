"""`tollgate catalog fix`: repairs of files, in place."""

import sys
from collections.abc import Iterator
from difflib import unified_diff

import click

from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.positions import repeated_members
from tollgate.serve.catalog_auth.repair.fixes import Fixed, SuggestionChoice
from tollgate.serve.catalog_auth.repair.fixes import fix as fixed
from tollgate.serve.catalog_auth.repair.text_patch import patched_text
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.formats.text import counted, verdict_line
from tollgate.serve.catalog_auth.verdict.judgement import Judged, UnusableDocument
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.commands.catalog.files import CatalogFile, NearbyAncestors, candidates, read
from tollgate.serve.commands.catalog.output import print_unusable, progress


@click.command()
@click.argument("names", nargs=-1, metavar="[FILE...]")
@click.option("--write", "-w", "is_written", is_flag=True, help="Change the files.")
@click.option(
    "--interactive", "-i", "asks", is_flag=True, help="Ask which of the other repairs to make."
)
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in Profile]),
    default=Profile.DEFAULT.value,
)
def fix(names: tuple[str, ...], is_written: bool, asks: bool, profile: str) -> None:
    """Repair what can be repaired mechanically, and show the changes.

    A mechanical repair loses no value and guesses nothing; with --interactive you are asked about
    all others. Without --write no file is changed; with it, a file changes where it is repaired
    and nowhere else. What comes from the standard input goes, repaired, to the standard output.
    The exit code is 0 when all are valid afterwards, 1 when one is not, 2 when one cannot be read.
    """
    found, unusable = candidates(names)
    if asks and any(candidate.path is None for candidate in found):
        raise click.UsageError("--interactive reads answers from the standard input: name a file")
    options = Options(profile=Profile(profile))
    ancestors = NearbyAncestors()
    is_valid = True
    with progress("documents", 0 if asks else len(found)) as step:
        for candidate in found:
            file = read(candidate)
            step()
            if isinstance(file, UnusableDocument):
                unusable.append(file)
            elif file is not None:
                made = fixed(file.root, options, ancestors.of(file))
                if asks:
                    made = _asked(file, made, options, ancestors.of(file))
                is_valid = is_valid and made.verdict.valid
                _put(file, made, is_written=is_written)
    print_unusable(unusable)
    sys.exit(2 if unusable else 0 if is_valid else 1)


def _asked(file: CatalogFile, made: Fixed, options: Options, ancestors: Ancestors) -> Fixed:
    """The document with the suggestions that the person at the terminal picks, one by one."""
    answered: set[tuple[str, str]] = set()
    while True:
        finding = next(
            (
                each
                for each in made.verdict.findings
                if each.suggestions and (each.rule, pointer(each.path)) not in answered
            ),
            None,
        )
        if finding is None:
            return made
        where = pointer(finding.path)
        answered.add((finding.rule, where))
        click.echo(f"{file.name}:{where}: {finding.severity}: {finding.message}", err=True)
        click.echo("  0  leave it as it is", err=True)
        for index, each in enumerate(finding.suggestions, start=1):
            click.echo(f"  {index}  {each.title}", err=True)
        count = len(finding.suggestions)
        picked = click.prompt("repair", type=click.IntRange(0, count), default=0, err=True)
        if picked:
            choice = SuggestionChoice(finding.rule, where, picked - 1)
            made = made.then(fixed(made.document, options, ancestors, None, frozenset({choice})))


def _put(file: CatalogFile, made: Fixed, *, is_written: bool) -> None:
    before = file.raw.decode()
    after = patched_text(before, made.patch) if made.repairs else before
    if file.path is None:
        click.echo(after, nl=False)
    elif made.repairs:
        for line in _difference(before, after, file.name):
            click.echo(line)
        if is_written:
            replace_file(file.path, after.encode(), mode=file.path.stat().st_mode & 0o777)
    for path in repeated_members(file.raw):
        click.echo(
            f"{file.name}: {pointer(path)} stands more than once: the last one counts, and the "
            "others stay in the file",
            err=True,
        )
    click.echo(_told(file, made, is_made=is_written or file.path is None), err=True)


def _told(file: CatalogFile, made: Fixed, *, is_made: bool) -> str:
    """The repairs, made or to be made, and the verdict on what they give."""
    verdict = verdict_line(Judged(file.name, made.verdict, {}))
    open_ = sum(bool(finding.suggestions) for finding in made.verdict.findings)
    hint = f"; {counted(open_, 'finding')} to decide on: --interactive" if open_ else ""
    if not made.repairs:
        return f"{verdict}; nothing to repair{' mechanically' if open_ else ''}{hint}"
    after = verdict.removeprefix(f"{file.name}: ")
    repairs = counted(len(made.repairs), "repair")
    done = f"{repairs} made, now" if is_made else f"{repairs} to be made (with --write), then"
    more = "" if made.is_complete else "; there are more than are made at once: run it again"
    return f"{file.name}: {done} {after}{more}{hint}"


def _difference(before: str, after: str, name: str) -> Iterator[str]:
    """As `diff -u` has it, in colour for people."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    lines = unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
    for line in lines:
        yield click.style(line, fg=colours.get(line[:1]))
