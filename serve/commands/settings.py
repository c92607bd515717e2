"""`tollgate settings`: every setting with its value, its default and where the value came from."""

import json
import sys
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tollgate.serve.settings import (
    Description,
    Settings,
    SettingsError,
    describe,
    process_environment,
)

COLUMNS = ("NAME", "VALUE", "DEFAULT", "SOURCE", "ALSO CALLED")


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print a JSON list, one object per setting.")
def settings(is_json: bool) -> None:
    """Print every setting with its value, its default and its source.

    Bad values are printed instead, one line for each, and the exit code is 1. Warnings
    are printed to the error output.
    """
    environ = process_environment()
    try:
        checked = Settings.from_environment(environ)
    except SettingsError as error:
        for line in error.errors:
            click.echo(line, err=True)
        raise click.exceptions.Exit(1) from None
    descriptions = describe(environ)
    if is_json:
        click.echo(json.dumps([asdict(item) for item in descriptions], indent=2))
    elif _is_terminal():
        Console().print(_table(descriptions))
    else:
        _print_aligned(descriptions)
    for line in checked.warnings:
        click.echo(line, err=True)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _cells(item: Description) -> tuple[str, ...]:
    cells = (item.name, item.value, item.default, item.source, ", ".join(item.other_names))
    return tuple(map(_on_one_line, cells))


def _on_one_line(value: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in value)


def _table(descriptions: tuple[Description, ...]) -> Table:
    """A section for each feature; other names stand below the first; what is set stands out."""
    table = Table()
    table.add_column(COLUMNS[0], no_wrap=True)
    for column in COLUMNS[1:4]:
        table.add_column(column, overflow="fold")
    feature = descriptions[0].feature
    for item in descriptions:
        if item.feature != feature:
            table.add_section()
            feature = item.feature
        name, *cells, _ = _cells(item)
        names = "\n".join((name, *(f"  {other}" for other in item.other_names)))
        # As `Text`, because a value may hold what rich would take for markup.
        style = "" if item.source == "default" else "bold"
        table.add_row(*map(Text, (names, *cells)), style=style)
    return table


def _print_aligned(descriptions: tuple[Description, ...]) -> None:
    rows = [COLUMNS, *map(_cells, descriptions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
