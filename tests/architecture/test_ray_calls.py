"""No wait for Ray is without end: whoever asks an actor says how long it may take."""

import ast

import pytest

from tests.architecture.trees import nodes

ROOMS = ("actors/ratelimit/", "actors/operations/", "serve/ratelimit/", "serve/node/")


def find_endless_waits(path: str, text: str) -> list[str]:
    return [
        f"{path}:{node.lineno}: ray.get without a timeout"
        for node in nodes(path, text)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "ray.get"
        and not any(keyword.arg == "timeout" for keyword in node.keywords)
    ]


def test_every_wait_for_an_actor_has_an_end(modules: dict[str, str]) -> None:
    rooms = {path: text for path, text in modules.items() if path.startswith(ROOMS)}
    assert rooms
    findings = [line for path, text in rooms.items() for line in find_endless_waits(path, text)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("text", "is_found"), [("ray.get(call)", True), ("ray.get(call, timeout=1.0)", False)]
)
def test_an_endless_wait_is_found(text: str, is_found: bool) -> None:
    assert bool(find_endless_waits("serve/node/process.py", text)) is is_found
