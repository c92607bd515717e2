"""How many of the calls that wait are decided at once: what takes BUSY_S of a processor.

    few waited                 --> SURE, for nobody knows what many would cost
    SURE or more were decided  --> as many as BUSY_S holds at their price, from SURE to BATCH_MAX

A batch has its answers together, so its first call waits for its last one. New requests cost three
times what known ones do: a batch of 1,024 would keep all of them waiting for 7 to 12 ms. Only our
own work makes batches smaller: while partitions count for us, more calls may as well come along.
"""

from tollgate.serve.ratelimit.fronts.front import BATCH_MAX

BUSY_S = 0.004
SURE = 256


class BatchSize:
    """Belongs to one thread. `calls`: how many to decide next."""

    def __init__(self) -> None:
        self.calls = SURE

    def note(self, calls: int, cpu_s: float) -> None:
        """So many calls took so much of a processor."""
        if calls < SURE or cpu_s <= 0.0:
            self.calls = SURE
        else:
            self.calls = max(SURE, min(BATCH_MAX, int(calls * BUSY_S / cpu_s)))
