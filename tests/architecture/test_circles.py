"""No module needs itself, however long the way: a circle of modules is one module in several files.

An import counts wherever it stands: in a function or under `TYPE_CHECKING` it puts the loading off,
and what has to be read together stays the same.
"""

import ast
from collections.abc import Iterator, Mapping, Set

from tests.architecture.trees import nodes

Graph = Mapping[str, Set[str]]


def module_name(path: str) -> str:
    return "tollgate." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(path: str, text: str, known: Set[str]) -> Iterator[str]:
    """The modules among `known` that the file at `path` imports anywhere."""
    for node in nodes(path, text):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                inner = [f"{module}.{alias.name}" for alias in names]
                found = [name if name in known else module for name in inner]
            case _:
                continue
        yield from (name for name in found if name in known)


def graph_of(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Which of the files imports which, by the names of modules."""
    known = {module_name(path) for path in files}
    return {
        module_name(path): set(imports_of(path, text, known)) - {module_name(path)}
        for path, text in files.items()
    }


def find_circles(graph: Graph) -> list[list[str]]:
    """The strongly connected parts of more than one module (Tarjan's algorithm)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        open_ones.append(module)
        for other in sorted(graph[module]):
            if other not in numbers:
                visit(other)
            if other in open_ones:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            start = open_ones.index(module)
            part = open_ones[start:]
            del open_ones[start:]
            if len(part) > 1:
                circles.append(sorted(part))

    for module in sorted(graph):
        if module not in numbers:
            visit(module)
    return circles


def test_modules_need_each_other_one_way_only(modules: dict[str, str]) -> None:
    files = {p: t for p, t in modules.items() if p.startswith(("actors/", "serve/"))}
    graph = graph_of(files)
    assert sum(map(len, graph.values())) > len(files), "hardly any import was understood"
    circles = find_circles(graph)
    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_circles_are_found_whatever_their_form() -> None:
    files = {
        "actors/a.py": "from tollgate.actors.b import x",
        "actors/b.py": "def f():\n    from tollgate.actors import c",
        "actors/c.py": "if TYPE_CHECKING:\n    import tollgate.actors.a",
        "actors/d.py": "from tollgate.actors.a import x\nfrom tollgate.serve import e",
        "serve/e/__init__.py": "import ray",
    }
    assert find_circles(graph_of(files)) == [[f"tollgate.actors.{name}" for name in "abc"]]
    assert graph_of(files)["tollgate.actors.d"] == {"tollgate.actors.a", "tollgate.serve.e"}


def test_each_circle_is_found_alone() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}, "e": {"a", "c"}, "f": set[str]()}
    assert find_circles(graph) == [["c", "d"], ["a", "b"]]
    assert find_circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []
