"""The context of the routes: options that hold where a call says nothing, and bounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.catalog_auth.api.bodies import LARGE_BYTES
from tollgate.serve.catalog_auth.api.held_bytes import HeldBytes
from tollgate.serve.catalog_auth.api.problems import BusyProblem
from tollgate.serve.catalog_auth.crawl.crawler import CrawlSetup
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.net.work_threads import WorkThreads

if TYPE_CHECKING:
    # (botocore is imported where something is signed, and only there)
    from tollgate.serve.catalog_auth.sign.file import SigningService

# Long calls end when their caller neither sends nor takes anything for so long.
PATIENCE_S = 60.0


class Slots:
    """So many long calls at a time, and no more."""

    def __init__(self, count: int) -> None:
        self._free = count

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds a slot. Raises BusyProblem."""
        if self._free == 0:
            raise BusyProblem("as many bulk calls as are allowed are being answered: call again")
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


def work_threads() -> WorkThreads:
    """The threads for large documents."""
    told = "as many large documents as are allowed wait: call again"
    return WorkThreads("catalog-work", LARGE_BYTES, lambda: BusyProblem(told))


@dataclass(frozen=True, slots=True)
class CatalogContext:
    """`public_url`: the service's address for callers, empty when nobody has told it. Pages of
    `origins` may make the calls that only read, those of `trusted_origins` all. `version`:
    Tollgate's own. `signing` and `crawling` are None where they are switched off. `tallies`: of its
    calls."""

    options: Options
    document_bytes_max: int
    slots: Slots
    public_url: str = ""
    origins: tuple[str, ...] = ()
    trusted_origins: tuple[str, ...] = ()
    version: str = ""
    signing: "SigningService | None" = None
    crawling: CrawlSetup | None = None
    patience_s: float = PATIENCE_S
    threads: WorkThreads = field(default_factory=work_threads)
    held: HeldBytes = field(default_factory=HeldBytes)
    tallies: Tallies = field(default_factory=lambda: Tallies("catalog"))
    clock: Clock = field(default_factory=SystemClock)
