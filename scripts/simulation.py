"""`scripts/simulate`: more runs of the ledger's simulation than the tests make."""

from collections import Counter

import click
from rich.console import Console
from rich.progress import track

from tests.simulation.ledger.witness import check, judge
from tests.simulation.ledger.world import Testimony, run

CONSOLE = Console(width=120)


@click.command()
@click.option("--seeds", default=10_000, show_default=True, help="How many runs.")
@click.option("--first", default=2_000, show_default=True, help="The first seed of them.")
@click.option("--seed", type=int, help="Only this one, with all that was ordered and told.")
def main(seeds: int, first: int, seed: int | None) -> None:
    """Run the ledger under crashes, lost messages, failing disks and jumping clocks, and audit it.

    Stops at the first run in which something does not hold, and names its seed.
    """
    if seed is not None:
        _tell(run(seed))
        return
    answers: Counter[str] = Counter()
    for each in track(range(first, first + seeds), "simulating", console=CONSOLE):
        try:
            testimony = judge(each)
        except AssertionError as error:
            raise click.ClickException(str(error)) from error
        answers.update(type(deed.answer).__name__ for deed in testimony.deeds)
        answers["entries"] += sum(map(len, testimony.disk.tables.entries.values()))
        answers["shards ended"] += len(testimony.ends)
    CONSOLE.print(f"{seeds:,} runs: " + ", ".join(f"{n:,} {what}" for what, n in answers.items()))


def _tell(testimony: Testimony) -> None:
    for deed in testimony.deeds:
        order = deed.order
        key = f" [{order.idempotency_key}]" if order.idempotency_key else ""
        CONSOLE.print(
            f"{order.operation}{key} at {deed.asked_seq}: {order.command}\n"
            f"    told at {deed.told_seq}: {deed.answer}",
            highlight=False,
            markup=False,
        )
    try:
        check(testimony)
    except AssertionError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
