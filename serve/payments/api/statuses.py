"""The statuses of HTTP for what a ledger did, part A, "Status codes".

What a ledger refuses becomes a rejection, and those carry theirs (rejections.py). A replay is
answered from the same table as the first time, so it has the same status.
"""

from tollgate.actors.ledger.law.outcomes import DoneKind

STATUS_OF = {
    DoneKind.MADE: 201,
    DoneKind.CHANGED: 204,
    # A failed attempt is stored, and its reply is a processing error (part A, "Errors").
    DoneKind.ATTEMPT_FAILED: 400,
}
