"""`tollgate catalog`: what the catalog-auth service knows, on files and without a server.

The exit code is 0 when every document is valid, 1 when one is not, 2 when one cannot be judged.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import NoReturn

import click

from tollgate.serve.catalog_auth.api.envelopes import (
    Asked,
    severities_named,
    version_named,
    with_asked,
)
from tollgate.serve.catalog_auth.api.problems import Problem
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.formats.sarif import sarif_log
from tollgate.serve.catalog_auth.verdict.formats.text import (
    as_github,
    total_line,
    unusable_as_github,
)
from tollgate.serve.catalog_auth.verdict.judgement import (
    Judged,
    UnusableDocument,
    judge_value,
    judgement_reply,
)
from tollgate.serve.catalog_auth.verdict.report import DEFAULT_OPTIONS, Options
from tollgate.serve.commands.catalog.files import NearbyAncestors, candidates, read
from tollgate.serve.commands.catalog.fix import fix
from tollgate.serve.commands.catalog.output import print_rule, print_rules, print_text, progress
from tollgate.serve.commands.catalog.resolve import EXIT_UNUSABLE, resolve

EXIT_INVALID = 1
FORMATS = ("text", "json", "sarif", "github")
FILES = click.argument("names", nargs=-1, metavar="[FILE...]")


@click.group()
def catalog() -> None:
    """Catalog documents: validate, resolve, fix; and the rules."""


catalog.add_command(resolve)
catalog.add_command(fix)


@catalog.command()
@FILES
@click.option("--profile", type=click.Choice([profile.value for profile in Profile]))
@click.option("--as", "as_version", metavar="VERSION", help="Judge by v1.1.0, say, in any case.")
@click.option("--fail-on", type=click.Choice([severity.value for severity in Severity]))
@click.option(
    "--rule", "rules", multiple=True, metavar="ID=SEVERITY", help="As R04=off, H04=error."
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--quiet", "is_quiet", is_flag=True, help="Text: say nothing of valid documents.")
def validate(
    names: tuple[str, ...],
    profile: str | None,
    as_version: str | None,
    fail_on: str | None,
    rules: tuple[str, ...],
    form: str,
    is_quiet: bool,
) -> None:
    """Judge documents: files, folders, patterns, or the standard input (-, or nothing).

    What a document's links say is above it is taken into account where it is a file. The exit code
    is 0 when all are valid, 1 when one is not, 2 when one cannot be judged.
    """
    options = _options(profile, as_version, fail_on, rules)
    judged, unusable, passed_over = _judged(names, options)
    match form:
        case "json":
            _print_json(judged, unusable)
        case "sarif":
            click.echo(json.dumps(sarif_log(judged, version("tollgate"), unusable), indent=2))
        case "github":
            _print_github(judged, unusable)
        case _:
            print_text(judged, unusable, passed_over, is_quiet=is_quiet)
    _exit(judged, unusable)


@catalog.command()
@click.argument("rule_id", required=False, metavar="[RULE]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def rules(rule_id: str | None, form: str) -> None:
    """List the rules, or explain one with an example."""
    if rule_id is None:
        print_rules(tuple(RULES.values()), as_json=form == "json")
        return
    rule = RULES.get(rule_id.upper())
    if rule is None:
        _refuse(f"there is no rule {rule_id}: `tollgate catalog rules` lists them")
    print_rule(rule, as_json=form == "json")


def _options(
    profile: str | None, as_version: str | None, fail_on: str | None, rules: Sequence[str]
) -> Options:
    words = dict(rule.partition("=")[::2] for rule in rules)
    try:
        asked = Asked(
            None if profile is None else Profile(profile),
            None if as_version is None else version_named(as_version),
            None if fail_on is None else Severity(fail_on),
            severities_named(words),
        )
    except Problem as problem:
        _refuse("; ".join(cause.detail for cause in problem.causes))
    return with_asked(DEFAULT_OPTIONS, asked)


def _judged(
    names: Sequence[str], options: Options
) -> tuple[list[Judged], list[UnusableDocument], int]:
    """The judgements, what cannot be judged, and how many files were passed over."""
    found, unusable = candidates(names)
    judged: list[Judged] = []
    passed_over = 0
    ancestors = NearbyAncestors()
    with progress("documents", len(found)) as step:
        for candidate in found:
            file = read(candidate)
            if file is None:
                passed_over += 1
            elif isinstance(file, UnusableDocument):
                unusable.append(file)
            else:
                above = ancestors.of(file)
                judged.append(judge_value(file.root, file.raw, file.name, options, above))
            step()
    return judged, unusable, passed_over


def _print_json(judged: Sequence[Judged], unusable: Sequence[UnusableDocument]) -> None:
    """An object per line: of many documents, each can be read by itself."""
    for each in judged:
        click.echo(json.dumps({"file": each.name} | judgement_reply(each), ensure_ascii=False))
    for broken in unusable:
        members: dict[str, object] = {"file": broken.name, "error": broken.reason}
        if broken.line:
            members |= {"line": broken.line, "column": broken.column}
        click.echo(json.dumps(members, ensure_ascii=False))


def _print_github(judged: Sequence[Judged], unusable: Sequence[UnusableDocument]) -> None:
    for line in _github_lines(judged, unusable):
        click.echo(line)
    click.echo(total_line(judged, len(unusable)))


def _github_lines(judged: Sequence[Judged], unusable: Sequence[UnusableDocument]) -> Iterator[str]:
    for each in judged:
        yield from as_github(each)
    yield from map(unusable_as_github, unusable)


def _exit(judged: Sequence[Judged], unusable: Sequence[UnusableDocument]) -> None:
    if unusable:
        sys.exit(EXIT_UNUSABLE)
    if not all(each.verdict.valid for each in judged):
        sys.exit(EXIT_INVALID)


def _refuse(line: str) -> NoReturn:
    click.echo(f"tollgate: {line}", err=True)
    raise click.exceptions.Exit(EXIT_UNUSABLE)
