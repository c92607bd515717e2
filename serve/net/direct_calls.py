"""Calls of a command to the Tollgate it belongs to. No proxy of the environment gets between: it
would be told keys, and its loopback is another one."""

from http.client import HTTPResponse
from urllib.request import ProxyHandler, Request, build_opener

_OPENER = build_opener(ProxyHandler({}))


def call_directly(request: Request, within_s: float) -> HTTPResponse:
    """The answer, as `urllib.request.urlopen` gives it and with its errors."""
    answer: HTTPResponse = _OPENER.open(request, timeout=within_s)
    return answer
