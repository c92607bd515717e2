"""What browsers need of replies: scripts of any origin may read them, and errors have one shape.

    {"code": "TOKEN_INVALID", "message": "…"}\\n     whatever Accept says

No call of theirs has credentials or cookies, so it does not matter whose script makes it (CORS).
"""

from collections.abc import Iterator, Sequence

from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import Rejection
from tollgate.serve.payments.api.replies import Reply, encode_json, headers_of
from tollgate.serve.payments.api.router import Access, Route, Voice
from tollgate.serve.payments.checkout.refusals import word_of

REMEMBERED_S = 86_400
READABLE = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"Retry-After, X-Request-ID"),
)
_ALLOWED = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"Accept-Version, Content-Type, X-Client, X-Request-ID"),
    (b"access-control-max-age", b"%d" % REMEMBERED_S),
)


def browser_error(rejection: Rejection) -> Reply:
    """The reply of a rejection."""
    body = encode_json({"code": word_of(rejection), "message": rejection.message}) + b"\n"
    return Reply(rejection.status, body, headers=headers_of(rejection))


async def allow(context: ApiContext, call: Call) -> Reply:
    """What a browser asks before a script of another origin calls."""
    del context, call
    return Reply(204, headers=_ALLOWED)


def preflights(routes: Sequence[Route[ApiContext]]) -> Iterator[Route[ApiContext]]:
    """A route beside each that browsers call."""
    for route in routes:
        if route.voice is Voice.BROWSERS:
            yield Route(
                "OPTIONS",
                route.path,
                allow,
                route.tag,
                "Whether a script of another origin may call",
                access=Access.NOBODY,
                voice=Voice.BROWSERS,
            )
