"""Output of `tollgate catalog` for people."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tollgate.serve.catalog_auth.api.rule_descriptions import (
    example_text,
    judged_example,
    rule_in_full,
    rule_members,
)
from tollgate.serve.catalog_auth.rules.findings import Finding, Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule
from tollgate.serve.catalog_auth.verdict.formats.text import (
    block,
    counted,
    left_out_lines,
    total_line,
    verdict_line,
)
from tollgate.serve.catalog_auth.verdict.judgement import Judged, UnusableDocument

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
# A bar for less would only flicker.
DOCUMENTS_MIN = 20


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar while something takes its time, for people only."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty() and total >= DOCUMENTS_MIN
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def print_text(
    judged: Sequence[Judged],
    unusable: Sequence[UnusableDocument],
    passed_over: int,
    *,
    is_quiet: bool,
) -> None:
    """Every finding with its place, reason and repair; then each verdict, and the sum."""
    for each in judged:
        if is_quiet and each.verdict.valid:
            continue
        for finding in each.verdict.findings:
            _print_finding(each, finding)
        for line in left_out_lines(each):
            click.echo(line)
        click.secho(verdict_line(each), fg="green" if each.verdict.valid else "red", bold=True)
        if each.verdict.findings:
            click.echo()
    print_unusable(unusable)
    if len(judged) + len(unusable) != 1:
        others = f" ({counted(passed_over, 'other file')} passed over)" if passed_over else ""
        click.echo(f"{total_line(judged, len(unusable))}{others}")


def print_unusable(unusable: Sequence[UnusableDocument]) -> None:
    """Prints what cannot be judged to the error output."""
    for each in unusable:
        where = f":{each.line}:{each.column}" if each.line else ""
        click.secho(f"{each.name}{where}: {each.reason}", fg="red", bold=True, err=True)


def _print_finding(judged: Judged, finding: Finding) -> None:
    first, *rest = block(judged, finding)
    where, _, what = first.partition(f": {finding.severity}: ")
    severity = click.style(str(finding.severity), fg=COLOURS[finding.severity], bold=True)
    click.echo(f"{click.style(where, bold=True)}: {severity}: {click.style(what, bold=True)}")
    for line in rest:
        label, colon, text = line.partition(": ")
        is_label = colon and label.strip() in ("why", "fix")
        click.echo(f"{click.style(label + colon, dim=True)}{text}" if is_label else line)
    click.echo()


def print_rules(rules: Sequence[CatalogRule], *, as_json: bool) -> None:
    """One line each."""
    if as_json:
        click.echo(json.dumps([rule_members(rule) for rule in rules], indent=2))
        return
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        severity = click.style(f"{rule.severity:<8}", fg=COLOURS[rule.severity])
        off = "" if rule.is_on_by_default else " (off by default)"
        click.echo(f"{rule.id}  {severity} {rule.name:<{width}}  {rule.says}{off}")


def print_rule(rule: CatalogRule, *, as_json: bool) -> None:
    """A rule in full."""
    if as_json:
        click.echo(json.dumps(rule_in_full(rule), indent=2, ensure_ascii=False))
        return
    click.secho(f"{rule.id} {rule.name}", bold=True)
    for name, text in (
        ("severity", _severities(rule)),
        ("says", rule.says),
        ("why", rule.why),
        ("fix", rule.repair),
        ("source", rule.source),
    ):
        click.echo(f"{click.style(f'{name:<9}', dim=True)} {text}")
    click.echo(f"\n{click.style('A document that breaks it:', dim=True)}\n{example_text(rule)}")
    found = judged_example(rule)
    for finding in found.verdict.findings:
        if finding.rule == rule.id:
            click.echo()
            _print_finding(found, finding)


def _severities(rule: CatalogRule) -> str:
    others = [f"{profile}: {severity}" for profile, severity in rule.profiles.items()]
    usual = str(rule.severity) if rule.is_on_by_default else "off"
    return f"{usual} ({', '.join(others)})" if others else usual
