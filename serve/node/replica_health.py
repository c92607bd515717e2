"""The figures by which Serve tells a replica that is gone, or hangs, from one that is busy.

A process that has ended is noticed with the next check. One that hangs is replaced after three
checks without an answer: a busy machine may keep one waiting.
"""

HEALTH_CHECK_PERIOD_S = 1.0
HEALTH_CHECK_TIMEOUT_S = 10.0
