"""One name, one class: who reads `Plan` in a stack trace or looks for it finds one of them."""

import ast
from collections import defaultdict
from collections.abc import Mapping

from tests.architecture.trees import tree

# Classes that occur twice, and why.
SHARED = {
    # Two services refuse what they are asked, each with reasons of its own, and may not know of
    # each other (the import table).
    "Refusal",
    "RefusalReason",
    # The value, and what OpenAPI calls it on the wire.
    "Envelope",
    "Finding",
    "Verdict",
}


def homes_of_classes(files: Mapping[str, str]) -> dict[str, list[str]]:
    """The files that define a public class of each name at their top level."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, text in files.items():
        for node in tree(path, text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    return homes


def shared_names(files: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: homes for name, homes in homes_of_classes(files).items() if len(homes) > 1}


def test_classes_have_names_of_their_own(modules: dict[str, str]) -> None:
    code = {path: text for path, text in modules.items() if path.startswith(("actors/", "serve/"))}
    shared = shared_names(code)
    news = [f"{name}: {', '.join(shared[name])}" for name in sorted(shared.keys() - SHARED)]
    assert not news, "\n".join(news)
    olds = SHARED - shared.keys()
    assert not olds, f"not shared any more: take them off SHARED: {sorted(olds)}"


def test_a_shared_name_is_found() -> None:
    files = {
        "actors/a.py": "class Plan: ...\nclass _Row: ...\ndef f():\n    class Step: ...",
        "serve/b.py": "class Plan: ...\nclass _Row: ...\nclass Step: ...",
    }
    assert shared_names(files) == {"Plan": ["actors/a.py", "serve/b.py"]}
