"""`tollgate check-environment`: what the environment file of the reference means here."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from tollgate.serve.commands.environment.meaning import Fate, Meaning, Understanding, understood
from tollgate.serve.commands.environment.variable_file import read_variables

EXIT_REFUSED = 1
EXIT_USAGE = 2
FILE_BYTES_MAX = 16 * 1024 * 1024
# So that they stand out in a long list, and are found by whoever looks for them.
SHOUTED = {Fate.REFUSED, Fate.UNKNOWN}


@click.command("check-environment")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@click.option(
    "--docker", "is_docker", is_flag=True, help="Read FILE as docker reads an --env-file."
)
@click.option("--json", "is_json", is_flag=True, help="Print a JSON object.")
def check_environment(file: Path, is_docker: bool, is_json: bool) -> None:
    """Say what each variable of an environment file will mean here.

    FILE has a line NAME=VALUE for each, as for a shell, or with --docker as docker takes it; `-` is
    the standard input. Each line is told: the setting and its value as understood, or that it has
    no effect, is unknown, or is refused. Secrets are masked.

    The exit code is 1 when a start with these variables would be refused, 2 when FILE cannot be
    read. Files and ports that they name are looked at by the start itself.
    """
    found = understood(read_variables(_text(file), is_docker=is_docker))
    click.echo(_json(found) if is_json else "\n".join(_report(found)))
    if found.is_refused:
        raise click.exceptions.Exit(EXIT_REFUSED)


def _text(file: Path) -> str:
    try:
        with click.open_file(str(file), "rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise click.UsageError(f"{file}: has more than {FILE_BYTES_MAX} bytes")
        text: str = content.decode()
    except OSError as error:
        click.echo(f"{file}: cannot be read: {error.strerror}", err=True)
        raise click.exceptions.Exit(EXIT_USAGE) from None
    except UnicodeDecodeError:
        click.echo(f"{file}: is no text in UTF-8", err=True)
        raise click.exceptions.Exit(EXIT_USAGE) from None
    return text


def _report(found: Understanding) -> list[str]:
    names = max((len(each.name) for each in found.lines), default=0)
    lines = [_line(each, names) for each in found.lines]
    if found.defaults:
        lines += ["", "Not in the file, and not as in the reference:"]
        lines += [f"  {each}" for each in found.defaults]
    if found.refusals:
        lines += ["", "Refused:"]
        lines += [f"  {each}" for each in found.refusals]
    counts = [(fate, sum(line.fate is fate for line in found.lines)) for fate in Fate]
    told = ", ".join(f"{count} {fate.value}" for fate, count in counts if count)
    verdict = "would be refused" if found.is_refused else "would be taken"
    return [*lines, "", f"{told or 'no variables'}: a start with this file {verdict}"]


def _line(each: Meaning, names: int) -> str:
    fate = each.fate.value.upper() if each.fate in SHOUTED else each.fate.value
    return f"{each.line:>4}  {each.name:<{names}}  {fate:<7}  {each.text}"


def _json(found: Understanding) -> str:
    lines = [asdict(each) | {"fate": each.fate.value} for each in found.lines]
    document = {
        "lines": lines,
        "refusals": found.refusals,
        "defaults": found.defaults,
        "isRefused": found.is_refused,
    }
    return json.dumps(document, indent=2)
