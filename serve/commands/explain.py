"""`tollgate explain`: which rule a descriptor meets, and why."""

from pathlib import Path

import click

from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.descriptors import Entries, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.explanation import explain_match
from tollgate.actors.ratelimit.rules.rule_file import RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.serve.commands.check_config import EXIT_USAGE, fail, rule_directory
from tollgate.serve.ratelimit.rule_sources.files import RuleDirectory
from tollgate.serve.settings import Settings, process_environment

EXIT_NO_LIMIT = 1


@click.command()
@click.argument("domain")
@click.argument("descriptor", metavar="KEY=VALUE[,KEY=VALUE...]")
@click.option(
    "--config",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory with the rule files; without it, where the settings say that rules are.",
)
@click.option(
    "--merge-domain-configs",
    "merges_domains",
    is_flag=True,
    help="Several files may define one domain, as with MERGE_DOMAIN_CONFIG.",
)
def explain(domain: str, descriptor: str, directory: Path | None, merges_domains: bool) -> None:
    """Tell which rule a descriptor of DOMAIN meets, level by level.

    The exit code is 0 when a rule with a limit is met, 1 when none is, 2 when the question or the
    rule files are malformed.
    """
    try:
        entries = parse_entries(descriptor)
        rules = _rules(directory, merges_domains=merges_domains)
    except (ValueError, RuleFileError) as error:
        fail(error.located if isinstance(error, RuleFileError) else str(error), EXIT_USAGE)
    told = explain_match(rules, domain, RateLimitDescriptor(entries))
    for line in told.lines():
        click.echo(line)
    if told.match is None:
        raise click.exceptions.Exit(EXIT_NO_LIMIT)


def _rules(directory: Path | None, *, merges_domains: bool) -> RuleSet:
    if directory is not None:
        return load_rules(rule_directory(directory).read(), merge_domains=merges_domains)
    settings = Settings.from_environment(process_environment()).rules
    merges_domains = merges_domains or settings.merges_domains
    return load_rules(RuleDirectory.of(settings).read(), merge_domains=merges_domains)


def parse_entries(text: str) -> Entries:
    """`key=value,key2=value2`; a value ends at a comma and may hold `=`. ValueError: malformed."""
    entries: list[tuple[str, str]] = []
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise ValueError(f"malformed descriptor entry '{part}': write key=value")
        entries.append((key, value))
    return tuple(entries)
