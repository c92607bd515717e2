"""Many documents in one call: a line for a line, in any pieces, within bounds, and a summary."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator

import pytest

from tests.support.catalog_auth.api import DANGLING, CatalogApi, item, problem
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.api.bodies import SentCount
from tollgate.serve.catalog_auth.api.bulk import (
    LUMP_BYTES,
    LUMPS_MAX,
    REPLY_BYTES_FREE,
    REPLY_PER_SENT_MAX,
    bulk_results,
)
from tollgate.serve.catalog_auth.api.problems import BadBody

BYTES_MAX = 4_000
api = CatalogApi(CATALOG_DOCUMENT_BYTES_MAX=str(BYTES_MAX))
LINES = [
    json.dumps(item()).encode(),
    json.dumps({"document": DANGLING, "options": {"rules": {"R07": "off"}}}).encode(),
    b'{"type": ',
    b"",
    json.dumps({"document": item(), "options": {"profile": "harsh"}}).encode(),
    b'{"pad": "' + b"x" * BYTES_MAX + b'"}',
    b" " * 3,
    json.dumps(item()).encode() + b"\r",
]
BODY = b"\n".join(LINES) + b"\n"


def check(results: list[Json]) -> None:
    *lines, last = results
    assert [line["line"] for line in lines] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [line.get("valid") for line in lines] == [True, False, *[None] * 5, True]
    kinds = [line["error"]["type"].rpartition(":")[2] for line in lines if "error" in line]
    assert kinds == ["not-json", "not-json", "unprocessable", "too-large", "not-json"]
    assert lines[2]["error"]["column"] == 10
    assert [finding["rule"] for finding in lines[1]["findings"]] == ["R01", "R04"] or [
        finding["rule"] for finding in lines[1]["findings"]
    ] == ["R04", "R01"]
    assert "column" not in lines[1]["findings"][0]
    summary = last["summary"]
    assert {name: summary[name] for name in ("lines", "valid", "invalid", "unusable")} == {
        "lines": 8,
        "valid": 2,
        "invalid": 1,
        "unusable": 5,
    }
    assert summary["schema_valid"] == 3
    assert summary["counts"] == {"info": 0, "warning": 1, "error": 1}
    assert summary["rules"] == {"R01": 1, "R04": 1}
    assert summary["complete"] is True


@pytest.mark.parametrize("size", [1, 7, 1_000, len(BODY)])
def test_a_line_for_a_line_in_pieces_of_any_size(size: int) -> None:
    check(api.bulk([BODY[start : start + size] for start in range(0, len(BODY), size)]))


def test_the_last_line_needs_no_end() -> None:
    check(api.bulk([BODY[:-1]]))


def test_a_compressed_body() -> None:
    halves = gzip.compress(BODY[:3_000]) + gzip.compress(BODY[3_000:])
    headers = {"content-encoding": "gzip"}
    check(api.bulk([halves[:100], halves[100:]], headers=headers))


def test_a_body_that_breaks_off_is_summed_up_and_said_to() -> None:
    cut = gzip.compress(BODY)[:-20]
    *lines, last = api.bulk([cut], headers={"content-encoding": "gzip"})
    assert last["summary"]["complete"] is False
    assert last["summary"]["error"]["type"].endswith(":bad-body")
    assert last["summary"]["lines"] == len(lines)


def test_nothing_is_summed_up_too() -> None:
    (last,) = api.bulk([])
    assert last["summary"]["lines"] == 0


def test_the_reply_is_compressed_for_whoever_takes_it() -> None:
    headers = {"content-type": "application/x-ndjson", "accept-encoding": "gzip"}
    reply = api.call("POST", "/validate/bulk", content=BODY, headers=headers)
    assert reply.headers["content-encoding"] == "gzip"
    plain = api.call(
        "POST", "/validate/bulk", content=BODY, headers=headers | {"accept-encoding": "gzip;q=0"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.text == reply.text


def test_what_is_wrong_with_the_call_itself_is_a_problem() -> None:
    problem(api.post("/validate/bulk", item()), 415, "wrong-media-type")
    headers = {"content-type": "application/x-ndjson"}
    reply = api.call("POST", "/validate/bulk?profile=harsh", content=BODY, headers=headers)
    problem(reply, 422, "unprocessable")


def test_there_are_so_many_calls_at_a_time() -> None:
    busy = CatalogApi(CATALOG_BULK_CALLS_MAX="1")
    with busy.context.slots.one():
        headers = {"content-type": "application/x-ndjson"}
        reply = busy.call("POST", "/validate/bulk", content=BODY, headers=headers)
        problem(reply, 503, "busy")
        assert reply.headers["retry-after"] == "1"
    assert busy.bulk([BODY])


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"1\n"])
def test_a_reply_is_no_longer_than_what_was_sent_allows(line: bytes) -> None:
    """A kilobyte holds a million lines when they are all the same."""
    sent = gzip.compress(line * 20_000)
    headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
    reply = api.call("POST", "/validate/bulk", content=sent, headers=headers)
    assert len(reply.content) < REPLY_BYTES_FREE + REPLY_PER_SENT_MAX * len(sent) + 1_000
    *lines, last = [json.loads(each) for each in reply.text.splitlines()]
    assert 1_000 < len(lines) == last["summary"]["lines"] < 20_000
    assert last["summary"]["complete"] is False
    assert "compress" in last["summary"]["error"]["detail"]
    plain = api.bulk([line * 5_000])
    assert plain[-1]["summary"]["complete"] is True


async def endless(taken: list[int]) -> AsyncGenerator[bytes, None]:
    """Lines without end; `taken` counts them."""
    while True:
        taken.append(1)
        yield b"{}\n" * 100


def much() -> SentCount:
    """As much sent as any reply may be long for."""
    sent = SentCount()
    sent.bytes = 1 << 40
    return sent


async def big(line: bytes) -> Json:
    del line
    return {"valid": True, "schema_valid": None, "counts": {}, "findings": [], "pad": "x" * 5_000}


def test_no_more_is_read_than_a_caller_who_does_not_read_may_leave() -> None:
    """Results wait up to a bound; then the input waits too; and in the end the call ends."""
    taken: list[int] = []

    async def call() -> None:
        results = bulk_results(endless(taken), big, BYTES_MAX, 60, much())
        await anext(results)
        await asyncio.sleep(61)  # (of made-up time, in which the caller does not read)
        async for _ in results:
            pass

    with pytest.raises(TimeoutError):
        VirtualLoop().run(call())
    assert len(taken) * 100 * 5_000 < (LUMPS_MAX + 3) * 8 * LUMP_BYTES


def test_a_caller_who_sends_no_more_is_given_up() -> None:
    async def silent() -> AsyncGenerator[bytes, None]:
        yield b"{}\n"
        await asyncio.Event().wait()

    async def call() -> list[bytes]:
        results = bulk_results(silent(), big, BYTES_MAX, 60, much())
        return [lump async for lump in results]

    last = json.loads(VirtualLoop().run(call())[-1].splitlines()[-1])
    assert last["summary"]["complete"] is False
    assert last["summary"]["error"]["type"].endswith(f":{BadBody.kind}")
