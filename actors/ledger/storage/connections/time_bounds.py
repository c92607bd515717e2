"""The bounds on how long PostgreSQL and we wait for each other.

ordinary statements   60 s here, 50 s there: the server gives up first
locks                 10 s; longer than the server lets a frozen transaction hold one
a shard's transaction that stands still    5 s, then the server ends it: it holds the row of its
                      epoch, and with it every successor (F1). Who thaws finds itself cut off,
                      and what became of its commit is for the journal to tell (F8)
reports and upgrades  an hour: how long they take depends on how much is written
a silent network      25 s, on the server's side
"""

from datetime import timedelta

# A server that has not answered by then is lost, and with it what became of a commit.
COMMAND_TIMEOUT_S = 60.0
REPORT_TIMEOUT_S = timedelta(hours=1).total_seconds()
LOCK_TIMEOUT_S = 10
IDLE_IN_TRANSACTION_S = 5
# The part of a client's time-out after which the server gives up itself.
SERVER_SHARE = 5 / 6
# First probe of a silent connection, then so many more, so far apart.
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVES = 3
UNACKNOWLEDGED_MS = 25_000


def server_settings(command_timeout_s: float) -> dict[str, str]:
    """The session settings of a connection whose statements may take so long."""
    return {
        "statement_timeout": _milliseconds(command_timeout_s * SERVER_SHARE),
        "lock_timeout": _milliseconds(max(LOCK_TIMEOUT_S, command_timeout_s / 6)),
        "tcp_keepalives_idle": str(KEEPALIVE_IDLE_S),
        "tcp_keepalives_interval": str(KEEPALIVE_INTERVAL_S),
        "tcp_keepalives_count": str(KEEPALIVES),
        "tcp_user_timeout": str(UNACKNOWLEDGED_MS),
    }


def without_standstill() -> str:
    """The statement after which the server ends transactions of this session that stand still."""
    allowed = _milliseconds(IDLE_IN_TRANSACTION_S)
    return f"SET idle_in_transaction_session_timeout = '{allowed}'"


def for_a_report() -> str:
    """The statement after which those of this transaction may take as long as a report does."""
    return f"SET LOCAL statement_timeout = '{_milliseconds(REPORT_TIMEOUT_S * SERVER_SHARE)}'"


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
