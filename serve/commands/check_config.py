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
from tollgate.serve.settings import Settings, process_environment

EXIT_REFUSED = 1
EXIT_USAGE = 2


@click.command("check-config")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR", required=False)
@click.option(
    "--control-plane",
    "is_sent",
    is_flag=True,
    help="Check what the control plane of the settings sends now, instead of files.",
)
@click.option(
    "--merge-domain-configs",
    "merges_domains",
    is_flag=True,
    help="Several files may define one domain, as with MERGE_DOMAIN_CONFIG.",
)
@click.option("--strict", "is_strict", is_flag=True, help="Warnings fail the check too.")
def check_config(
    directory: Path | None, is_sent: bool, merges_domains: bool, is_strict: bool
) -> None:
    """Check every rule file below DIR, or what a control plane sends, without serving it.

    Every file is checked, and the first error of each is printed with its line. When there is none,
    warnings follow about what is legal and surely not meant. The exit code is 1 when a file is
    refused, or no control plane answers, and 2 when DIR is not a directory.
    """
    if is_sent == (directory is not None):
        fail("name a directory, or --control-plane", EXIT_USAGE)
    if directory is None:
        drafts, errors = _sent(merges_domains)
    else:
        drafts, errors = _on_disk(directory, merges_domains)
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


def _sent(merges_domains: bool) -> tuple[list[DomainDraft], list[RuleFileError]]:
    """The drafts that a control plane sends, and the first error of each resource."""
    # Imported here: for files nothing of gRPC is needed.
    from tollgate.serve.ratelimit.rule_sources.control_plane import NothingSentError, sent_once
    from tollgate.serve.ratelimit.rule_sources.resources import read_resource

    settings = Settings.from_environment(process_environment())
    try:
        resources = sent_once(settings.control_plane)
    except RuleFileError as error:
        return [], [error]
    except NothingSentError as error:
        fail(f"error: {settings.control_plane.target}: {error}", EXIT_REFUSED)
    builder = RuleSetBuilder(merge_domains=merges_domains)
    drafts: list[DomainDraft] = []
    errors: list[RuleFileError] = []
    for file in sorted(resources, key=lambda file: file.name):
        click.echo(f"checking {file.name}")
        try:
            draft = read_resource(file)
            builder.add(draft)
        except RuleFileError as error:
            errors.append(error)
        else:
            drafts.append(draft)
    return drafts, errors


def _on_disk(
    directory: Path, merges_domains: bool
) -> tuple[list[DomainDraft], list[RuleFileError]]:
    if not directory.is_dir():
        fail(f"{directory}: not a directory", EXIT_USAGE)
    try:
        found = rule_directory(directory).find()
    except RuleFileError as error:
        fail(f"error: {error.located}", EXIT_REFUSED)
    if not found:
        fail(f"{directory}: no rule files (*.yaml, *.yml)", EXIT_REFUSED)
    return _checked(found, merges_domains)


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
