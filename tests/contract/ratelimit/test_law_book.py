"""`docs/ratelimit.md` is true: its examples are run, and its tables are the code's."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.console_blocks import Answer, Story, curl_call, examples
from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.engine import rules_from
from tests.support.ratelimit.grpc_peers import World
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.counting.windows import LENGTH_S, Unit
from tollgate.actors.ratelimit.decision.accounting import judge_count, near_threshold
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.cli import main
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.json_answers import response_to_json
from tollgate.serve.ratelimit.codec.json_requests import request_from_json
from tollgate.serve.ratelimit.fronts.front import DecideBatch, Front
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision, wire_answers
from tollgate.serve.settings.choices import GrpcFront

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "ratelimit.md").read_text(encoding="utf-8")
NOW_S = 1_260 + 5  # 55 seconds before the end of a minute


def section(label: str) -> str:
    """The text under the heading with this label."""
    found = re.search(rf"^## {label}\. .*?\n(.*?)(?=^#)", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found, label
    return found[1]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row in a text, the heads left out."""
    lines = [line.strip() for line in text.splitlines()]
    for before, line in zip(["", *lines], lines, strict=False):
        is_head = not before.startswith("|")
        if line.startswith("|") and not is_head and not line.startswith("|--"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def rules() -> str:
    """The first rule file of the document."""
    found = re.search(r"^```yaml\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture
def decide_batch(rules: str) -> DecideBatch:
    """Decides by these rules, with the defaults, at one moment."""
    decider = Decider(
        policy=Policy(),
        store=LocalCounters(2),
        tallies=Tallies("test"),
        clock=ManualClock(NOW_S),
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
    )
    decider.use_rules(rules_from(rules))
    return wire_answers(decider, is_precise=False)


@pytest.fixture
def address(decide_batch: DecideBatch, tmp_path: Path) -> Iterator[str]:
    """Where a gRPC front gives these decisions."""
    world = World()
    world.decisions.answer = decide_batch
    front: Front = world.front(GrpcFront.GRPCIO, tmp_path)
    front.start()
    yield front.address
    front.drain(0)


def test_the_examples_are_what_is_answered(
    rules: str,
    decide_batch: DecideBatch,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "shop.yaml").write_text(rules)
    monkeypatch.chdir(tmp_path)

    def run(arguments: list[str]) -> Answer:
        program, *arguments = arguments
        if program == "curl":
            body = curl_call(arguments).body or ""
            (payload,) = decide_batch([request_from_json(body.encode())])
            assert isinstance(payload, bytes)
            return Answer(response_to_json(payload).decode())
        assert program == "tollgate", program
        if arguments[0] == "client":
            arguments += ["-dial_string", address]
        return Answer(CliRunner().invoke(main, arguments).output)

    story = Story(run, {})
    found = list(examples(DOCUMENT))
    assert len(found) == 4
    for example in found:
        # What blank lines divide from the next command belongs to neither.
        story.tell(type(example)(example.line, example.command, f"{example.expected.strip()}\n"))


def test_the_counts_are_judged_so() -> None:
    """The table of B7: limit 10, ratio 0.8."""
    judged = 0
    for _, before, addend, answer, statistics in rows(section("B7")):
        added, after = int(addend), int(before) + int(addend)
        is_over, remaining, over, near, within = judge_count(
            after, added, 10, near_threshold(10, 0.8)
        )
        words = ["OVER_LIMIT"] if is_over else ["OK", f"{remaining} remain"]
        counted = {"within": within, "over": over, "near": near}
        assert answer.replace("remains", "remain").split(", ") == words
        assert statistics == ", ".join(
            f"{name} {count}" for name, count in counted.items() if count
        )
        judged += 1
    assert judged == 4
    assert "for 0.7 and L = 90 that is 63" in section("B7").replace("\n", " ")
    assert near_threshold(90, 0.7) == 63


def test_the_windows_are_as_long() -> None:
    """The table of B6."""
    told = {}
    for units, lengths, _ in rows(section("B6")):
        told |= dict(zip(units.split(", "), map(int, lengths.split(", ")), strict=True))
    assert told == {unit.name.lower(): LENGTH_S[unit] for unit in Unit}


def test_every_error_of_a_rule_file_has_this_text() -> None:
    """The tables of B1: what stands between placeholders is in the code, word for word."""
    sources = (ROOT / "actors" / "ratelimit" / "rules").glob("*.py")
    # Texts that are written over several lines, as one.
    code = re.sub(r'"\n\s*f?"', "", "".join(file.read_text() for file in sources))
    texts = [row[-1] for row in rows(section("B1"))]
    assert len(texts) == 13
    for text in texts:
        parts = re.split(r"<[^>]*>", text.strip("`"))
        assert all(part.strip(" '.:") in code for part in parts), text
