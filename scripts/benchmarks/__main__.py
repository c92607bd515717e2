"""`scripts/bench`: every benchmark is a command."""

import click

from scripts.benchmarks.ratelimit import ratelimit


@click.group()
def main() -> None:
    """Measure Tollgate on this machine, beside baselines in the same run."""


main.add_command(ratelimit)

if __name__ == "__main__":
    main()
