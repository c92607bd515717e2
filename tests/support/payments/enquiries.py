"""Enquiries at card networks, as a worker makes them beside the calls."""

from tests.support.payments.api import REFERENCE, PaymentsApi
from tollgate.actors.ledger.storage.open_intents import SqlOpenIntents
from tollgate.serve.payments.network.enquiries import EnquiryWorker
from tollgate.serve.payments.network.simulator import GENERIC


def enquire(api: PaymentsApi, after_s: float = 3.0) -> None:
    """What a worker does beside the calls, after a while."""
    api.clock.advance(after_s)
    api.runner.run(worker(api).look())


def worker(api: PaymentsApi) -> EnquiryWorker:
    """A worker of a process."""
    return EnquiryWorker(
        SqlOpenIntents(api.database),
        api.context.networks,
        api.context.conclusions,
        api.clock,
        REFERENCE.errors.error(GENERIC),
    )
