"""Errors of a call itself, as problem documents (RFC 9457).

A document that has findings is no problem: its answer is 200. The kinds are a closed set, each with
one status and a type that is a name, not an address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from msgspec.json import encode
from starlette.responses import Response

PROBLEM_JSON = "application/problem+json"
TYPE = "urn:tollgate:catalog-auth:{kind}"
CAUSES_MAX = 20


@dataclass(frozen=True, slots=True)
class ProblemCause:
    """One thing that is wrong. `where`: a parameter's name, or a JSON Pointer into the body."""

    where: str
    detail: str


class Problem(Exception):  # noqa: N818  (RFC 9457 calls it so)
    """A call that cannot be answered; `kind`, `status` and `title` belong together."""

    kind = "problem"
    status = 500
    title = "Something went wrong"

    def __init__(self, detail: str, causes: Sequence[ProblemCause] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.causes = causes

    def members(self) -> dict[str, object]:
        """The problem document."""
        found: dict[str, object] = {
            "type": TYPE.format(kind=self.kind),
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.causes:
            shown = [*self.causes[:CAUSES_MAX]]
            if (more := len(self.causes) - CAUSES_MAX) > 0:
                shown.append(ProblemCause("", f"and {more:,} more"))
            found["errors"] = [{"where": cause.where, "detail": cause.detail} for cause in shown]
        return found


class NotJson(Problem):
    """`line` and `column` count from 1."""

    kind = "not-json"
    status = 400
    title = "The body is not JSON"

    def __init__(self, detail: str, line: int, column: int) -> None:
        super().__init__(detail)
        self.line = line
        self.column = column

    def members(self) -> dict[str, object]:
        return super().members() | {"line": self.line, "column": self.column}


class BadBody(Problem):
    kind = "bad-body"
    status = 400
    title = "The body cannot be read"


class NotSigned(Problem):
    kind = "not-signed"
    status = 403
    title = "This is not signed"


class UnauthorisedProblem(Problem):
    kind = "unauthorised"
    status = 401
    title = "A key is needed"


class NotFoundProblem(Problem):
    kind = "not-found"
    status = 404
    title = "There is no such thing"


class WrongMethodProblem(Problem):
    """`allowed`: the methods of the path."""

    kind = "wrong-method"
    status = 405
    title = "This path does not take that method"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"this path takes {allowed}")
        self.allowed = allowed


class TooSlow(Problem):
    kind = "too-slow"
    status = 408
    title = "The body did not come in time"


class TooLarge(Problem):
    kind = "too-large"
    status = 413
    title = "The body is too large"


class WrongMediaType(Problem):
    kind = "wrong-media-type"
    status = 415
    title = "The body is of a media type that is not taken here"


class Unprocessable(Problem):
    kind = "unprocessable"
    status = 422
    title = "The call asks for something that cannot be done"


class SwitchedOff(Problem):
    kind = "switched-off"
    status = 403
    title = "This is switched off here"


class NotFetched(Problem):
    kind = "not-fetched"
    status = 422
    title = "The document could not be fetched"


class CrawlEnded(Problem):
    kind = "crawl-ended"
    status = 422
    title = "The crawl met its bound"


class BusyProblem(Problem):
    kind = "busy"
    status = 503
    title = "There are too many of these calls at once"


KINDS: tuple[type[Problem], ...] = (
    NotJson,
    BadBody,
    UnauthorisedProblem,
    SwitchedOff,
    NotSigned,
    NotFoundProblem,
    WrongMethodProblem,
    TooSlow,
    TooLarge,
    WrongMediaType,
    Unprocessable,
    NotFetched,
    CrawlEnded,
    BusyProblem,
)
RETRY_AFTER_S = 1


def problem_response(problem: Problem) -> Response:
    """The problem over HTTP."""
    headers = _headers_of(problem)
    return Response(encode(problem.members()), problem.status, headers, PROBLEM_JSON)


def unforeseen() -> Response:
    """The answer to what nobody foresaw; it says nothing of it."""
    members = {
        "type": "about:blank",
        "title": HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
        "status": 500,
        "detail": "this should not have happened; the request id finds it in the log",
    }
    return Response(encode(members), 500, media_type=PROBLEM_JSON)


def _headers_of(problem: Problem) -> Mapping[str, str]:
    match problem:
        case WrongMethodProblem():
            return {"Allow": problem.allowed}
        case UnauthorisedProblem():
            return {"WWW-Authenticate": 'Bearer realm="Tollgate"'}
        case BusyProblem() | TooSlow():
            return {"Retry-After": str(RETRY_AFTER_S)}
    return {}
