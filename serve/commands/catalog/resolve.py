"""`tollgate catalog resolve`: how to get at the assets of a file."""

import json
import sys
from collections.abc import Sequence

import click

from tollgate.serve.catalog_auth.document.document import MISSING, Document, HolderKind
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.page.targets import told_in_short, ways_of
from tollgate.serve.catalog_auth.page.view import ShownAlternative
from tollgate.serve.catalog_auth.resolve.available_credentials import (
    AvailableCredential,
    AvailableCredentials,
)
from tollgate.serve.catalog_auth.resolve.resolution import resolve as resolved
from tollgate.serve.catalog_auth.resolve.steps import Resolution
from tollgate.serve.catalog_auth.resolve.target import AccessTarget, By, NoTarget
from tollgate.serve.catalog_auth.resolve.wire import no_target_text, resolution_json
from tollgate.serve.catalog_auth.rules.findings import Finding
from tollgate.serve.catalog_auth.verdict.judgement import UnusableDocument
from tollgate.serve.catalog_auth.verdict.report import verdict_on
from tollgate.serve.commands.catalog.files import (
    STDIN,
    CatalogFile,
    NearbyAncestors,
    candidates,
    read,
)
from tollgate.serve.commands.catalog.output import print_unusable

EXIT_NO_WAY = 1
EXIT_UNUSABLE = 2


@click.command()
@click.argument("name", metavar="FILE")
@click.argument("target", required=False)
@click.option("--have", "held", multiple=True, metavar="NAME", help="What you hold, by name.")
@click.option("--base", metavar="URL", help="Where the document was found.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def resolve(
    name: str, target: str | None, held: tuple[str, ...], base: str | None, form: str
) -> None:
    """Tell how to get at TARGET, a JSON Pointer or an href of FILE; without it, at every asset.

    With lines to copy for curl, Python and GDAL. No secret is asked for. The exit code is 0 when
    there is a way, 1 when a program knows none, 2 when FILE or TARGET is unusable.
    """
    file = _file(name)
    above = NearbyAncestors().of(file)
    document = locate(file.root, above, raw=file.raw)
    findings = verdict_on(document, raw=file.raw).findings
    holdings = AvailableCredentials(tuple(map(AvailableCredential, held)))
    found = [
        _found(document, wanted, holdings, findings, base) for wanted in _wanted(document, target)
    ]
    if form == "json":
        replies = [resolution_json(one, has_recipes=True) for one in found]
        click.echo(json.dumps(replies if target is None else replies[0], indent=2))
    else:
        for one in found:
            _print(one)
        if not found:
            click.echo(
                f"{file.name}: nothing to get at: no assets, no links with auth:refs", err=True
            )
    is_open = all(any(way.is_executable for way in one.alternatives) for one in found)
    sys.exit(0 if is_open else EXIT_NO_WAY)


def _file(name: str) -> CatalogFile:
    found, unusable = candidates([name or STDIN])
    file = read(found[0]) if found else unusable[0]
    if isinstance(file, CatalogFile):
        return file
    print_unusable([file or UnusableDocument(name, "is a folder: name one file")])
    raise click.exceptions.Exit(EXIT_UNUSABLE)


def _wanted(document: Document, target: str | None) -> list[AccessTarget]:
    """The target; or all that has an href and is no mere link to another document."""
    if target is not None:
        is_pointer = target.startswith("/") or not target
        return [AccessTarget(By.POINTER if is_pointer else By.HREF, target)]
    return [
        AccessTarget(By.POINTER, pointer(holder.path))
        for holder in document.holders
        if holder.kind is not HolderKind.LINK or holder.refs is not MISSING
    ]


def _found(
    document: Document,
    target: AccessTarget,
    holdings: AvailableCredentials,
    findings: Sequence[Finding],
    base: str | None,
) -> Resolution:
    found = resolved(document, target, holdings, findings, base)
    if isinstance(found, NoTarget):
        click.echo(f"tollgate: {no_target_text(found)}", err=True)
        raise click.exceptions.Exit(EXIT_UNUSABLE)
    return found


def _print(found: Resolution) -> None:
    told = click.style(told_in_short(found), dim=True)
    click.echo(f"{click.style(found.pointer, bold=True)}  {told}")
    click.echo(f"  {found.href or '(no href)'}\n")
    for way in ways_of(found):
        _print_way(way)
    for told in found.left_out:
        click.echo(f"  left out: {told}\n")


def _print_way(way: ShownAlternative) -> None:
    click.secho(f"  {way.title}", bold=True)
    for note in way.notes:
        click.echo(f"    {note}")
    for recipe in way.recipes:
        click.echo(f"\n    {click.style(recipe.language, fg='cyan')}\n")
        # (flush left: Python takes no lines that are indented without a reason)
        click.echo(recipe.text, nl=False)
    click.echo()
