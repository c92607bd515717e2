"""`tollgate check-config`: is every rule file fit to be served, and is it what was meant?"""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from tollgate.actors.ratelimit.rules.builder import RuleSetBuilder
from tollgate.actors.ratelimit.rules.draft_reader import read_rule_file
from tollgate.actors.ratelimit.rules.drafts import DomainDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFileError
from tollgate.actors.ratelimit.rules.warnings import find_warnings
from tollgate.serve.ratelimit.rule_sources.files import FoundFile, RuleDirectory

EXIT_REFUSED = 1
EXIT_USAGE = 2


@click.command("check-config")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--merge-domain-configs",
    "merges_domains",
    is_flag=True,
    help="Several files may define one domain, as with MERGE_DOMAIN_CONFIG.",
)
@click.option("--strict", "is_strict", is_flag=True, help="Warnings fail the check too.")
def check_config(directory: Path, merges_domains: bool, is_strict: bool) -> None:
    """Check every rule file below DIR without serving it.

    Every file is checked, and the first error of each is printed with its line. When there is none,
    warnings follow about what is legal and surely not meant. The exit code is 1 when a file is
    refused and 2 when DIR is not a directory.
    """
    if not directory.is_dir():
        fail(f"{directory}: not a directory", EXIT_USAGE)
    try:
        found = rule_directory(directory).find()
    except RuleFileError as error:
        fail(f"error: {error.located}", EXIT_REFUSED)
    if not found:
        fail(f"{directory}: no rule files (*.yaml, *.yml)", EXIT_REFUSED)
    drafts, errors = _checked(found, merges_domains)
    # Some warnings look at all files together, so they wait until all are good.
    warnings = () if errors else find_warnings(drafts)
    for each in errors:
        click.echo(f"error: {each.located}", err=True)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if errors:
        raise click.exceptions.Exit(EXIT_REFUSED)
    if warnings and is_strict:
        fail("error: the files could be served, but --strict allows no warnings", EXIT_REFUSED)
    click.echo("all rate limit configs ok")


def _checked(
    found: list[FoundFile], merges_domains: bool
) -> tuple[list[DomainDraft], list[RuleFileError]]:
    """The drafts of the files that are good together, and the first error of each other file."""
    builder = RuleSetBuilder(merge_domains=merges_domains)
    drafts: list[DomainDraft] = []
    errors: list[RuleFileError] = []
    for file in found:
        # Under its path and not its name in the service, so that editors find the place.
        shown = click.format_filename(file.path)
        click.echo(f"checking {shown}")
        try:
            draft = read_rule_file(replace(file, name=shown).read())
            builder.add(draft)
        except RuleFileError as error:
            errors.append(error)
        else:
            drafts.append(draft)
    return drafts, errors


def rule_directory(directory: Path) -> RuleDirectory:
    """All rule files below a directory."""
    return RuleDirectory(
        root=directory,
        subdirectory="",
        app_directory="",
        watches_root=False,
        ignores_dot_files=False,
    )


def fail(message: str, exit_code: int) -> NoReturn:
    """One line to the error output, and the end."""
    click.echo(message, err=True)
    raise click.exceptions.Exit(exit_code)
