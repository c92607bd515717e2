"""`scripts/bench`: every benchmark is a command."""

import click

from scripts.benchmarks.catalog import catalog
from scripts.benchmarks.ledger_machine import ledger_machine
from scripts.benchmarks.lending import lending
from scripts.benchmarks.lending_machine import lending_machine
from scripts.benchmarks.memory import memory
from scripts.benchmarks.payments import payments
from scripts.benchmarks.planning import planning
from scripts.benchmarks.ratelimit import envoy, ratelimit
from scripts.benchmarks.recovery import recovery
from scripts.benchmarks.scale import scale
from scripts.benchmarks.soak import soak


@click.group()
def main() -> None:
    """Measure Tollgate on this machine, beside baselines in the same run."""


main.add_command(ratelimit)
main.add_command(planning)
main.add_command(envoy)
main.add_command(lending)
main.add_command(payments)
main.add_command(ledger_machine)
main.add_command(lending_machine)
main.add_command(memory)
main.add_command(catalog)
main.add_command(recovery)
main.add_command(scale)
main.add_command(soak)

if __name__ == "__main__":
    main()
