"""Garbage collection in the processes that answer calls: the same thresholds for all of them."""

import gc

# Young generations only: what a call leaves behind forms no cycles that live on, and a collection
# of everything would stop all calls meanwhile.
THRESHOLDS = (50_000, 50, 1_000_000)


def spare_what_is_there() -> None:
    """Leaves what the start has made out of all later collections, and makes those rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
