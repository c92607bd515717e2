"""Who may do more on the debug port than look: whoever has DEBUG_TRACING_KEY."""

from hmac import compare_digest

from starlette.exceptions import HTTPException
from starlette.requests import Request


def require_key(request: Request, key: str, what: str) -> None:
    """Raises HTTPException unless the call carries the key; an empty one lets nobody in."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not key or not compare_digest(given.encode(), key.encode()):
        raise HTTPException(403, f"{what} needs DEBUG_TRACING_KEY\n")
