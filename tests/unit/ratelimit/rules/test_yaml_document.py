"""YAML text to a tree: which document, which of equal keys, merges, and every bound."""

import pytest

from tollgate.actors.ratelimit.rules import yaml_document
from tollgate.actors.ratelimit.rules.rule_file import RULE_FILE_BYTES_MAX, RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.yaml_document import (
    NODE_DEPTH_MAX,
    YamlList,
    YamlMap,
    YamlNode,
    YamlScalar,
    read_yaml,
)


def read(text: bytes | str) -> object:
    """The tree as plain Python values, lists and dictionaries."""
    return plain(read_yaml(RuleFile("f.yaml", text)).root)


def plain(node: YamlNode | None) -> object:
    if node is None:
        return "nothing"
    if isinstance(node, YamlScalar):
        return node.value
    if isinstance(node, YamlList):
        return [plain(each) for each in node.items]
    return {plain(key): plain(value) for key, value in node.pairs}


def refusal(text: bytes | str) -> RuleFileError:
    with pytest.raises(RuleFileError) as raised:
        read_yaml(RuleFile("f.yaml", text))
    return raised.value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", "nothing"),
        ("# a remark\n", "nothing"),
        ("---\n", None),
        ("a: 1\nb: [x, 'x', \"1\", 1]\n", {"a": 1, "b": ["x", "x", "1", 1]}),
        ("a: 1\n---\nb: [\n", {"a": 1}),
        ("a: 1\n...\n%\n", {"a": 1}),
        ("{a: 1, b: 2, a: 3}", {"b": 2, "a": 3}),
        ("{1: a, true: b, '1': c}", {1: "b", "1": "c"}),
        ("a: &x [1, 2]\nb: *x\n", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("a: {<<: {b: 1, c: 1}, c: 2}", {"a": {"c": 2, "b": 1}}),
        ("a: {c: 2, <<: {b: 1, c: 1}}", {"a": {"c": 2, "b": 1}}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("{'<<': 1}", {"<<": 1}),
        ("{a: <<}", {"a": "<<"}),
        ("a: !!str 1.5\nb: ! 2\nc: !ours 3\n", {"a": "1.5", "b": "2", "c": "3"}),
        (b"\xef\xbb\xbfa: \xc3\xa9", {"a": "é"}),
    ],
)
def test_documents_are_read_as_the_reference_reads_them(text: bytes | str, tree: object) -> None:
    found = read(text)
    assert found == tree
    assert repr(found) == repr(tree)


def test_every_node_has_its_line_and_scalars_their_text() -> None:
    root = read_yaml(RuleFile("f.yaml", "a: yes\nb:\n  - 0x10\n")).root
    assert root == YamlMap(
        1,
        (
            (YamlScalar(1, "a", "a", True), YamlScalar(1, "yes", True, True)),
            (
                YamlScalar(2, "b", "b", True),
                YamlList(3, (YamlScalar(3, "0x10", 16, True),)),
            ),
        ),
    )


def test_what_is_left_out_is_remembered() -> None:
    document = read_yaml(RuleFile("f.yaml", "a: 1\na: 2\n---\nb: 1\n"))
    assert document.ignored_document_line == 3
    assert isinstance(document.root, YamlMap)
    assert document.root.repeated == (YamlScalar(1, "a", "a", True),)
    assert read_yaml(RuleFile("f.yaml", "a: 1\n")).ignored_document_line is None


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("'''", 1, "line 1: found unexpected end of stream"),
        ("a: 1\nb: c: d\n", 2, "line 2: mapping values are not allowed in this context"),
        ("a:\n\t- b\n", 2, "line 2: found character that cannot start any token"),
        (b"\n\na: \xff", 3, "line 3: invalid leading UTF-8 octet"),
        (b"a: \x00", 1, "line 1: control characters are not allowed"),
        ("a: \ud800", 1, "line 1: invalid Unicode character"),
        (b"!%ED%A0%80 a", None, "a tag is not valid UTF-8"),
        ("a: 1\nb: *x\n", 2, "line 2: unknown anchor 'x' referenced"),
        ("&x [1, *x]", 1, "line 1: anchor 'x' value contains itself"),
        ("&x {a: {b: *x}}", 1, "line 1: anchor 'x' value contains itself"),
        ("\n{<<: 1}", 2, "line 2: map merge requires map or sequence of maps as value"),
        ("{<<: [1]}", 1, "line 1: map merge requires map or sequence of maps as value"),
        ("a: !!int x", 1, "line 1: cannot decode !!str `x` as a !!int"),
        ("[" * 100_000, 1, f"line 1: nested deeper than {NODE_DEPTH_MAX} levels"),
        ("- " * 100_000, 1, f"line 1: nested deeper than {NODE_DEPTH_MAX} levels"),
        ("{a: " * 100_000, 1, f"line 1: nested deeper than {NODE_DEPTH_MAX} levels"),
        (
            b"#" * (RULE_FILE_BYTES_MAX + 1),
            None,
            f"the file is larger than {RULE_FILE_BYTES_MAX} bytes",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, (str, bytes)) else str(value),
)
def test_what_is_no_yaml_is_refused_with_its_line(
    text: bytes | str, line: int | None, problem: str
) -> None:
    error = refusal(text)
    assert str(error) == f"f.yaml: error loading config file: yaml: {problem}"
    assert error.line == line


def test_depth_is_exact() -> None:
    fits = "[" * NODE_DEPTH_MAX + "]" * NODE_DEPTH_MAX
    read(fits)
    assert "nested deeper" in refusal(f"[{fits}]").reason
    assert "nested deeper" in refusal(fits.replace("[]", "[1]")).reason


def test_aliases_do_not_hide_depth() -> None:
    nested = "[" * 50
    closed = "]" * 50
    text = f"a0: &a0 {nested}{closed}\n" + "".join(
        f"a{each}: &a{each} {nested}*a{each - 1}{closed}\n" for each in range(1, 5)
    )
    error = refusal(text)
    assert error.reason.endswith(f"nested deeper than {NODE_DEPTH_MAX} levels")
    assert error.line == 4  # 1 + 50, + 50, + 50, and the fourth does not fit


def test_aliases_count_as_what_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    laughs = "".join(
        f"a{each}: &a{each} [{','.join([f'*a{each - 1}'] * 10)}]\n" for each in range(1, 30)
    )
    error = refusal(f"a0: &a0 x\n{laughs}")
    assert error.reason.endswith("more than 1000000 nodes, with aliases expanded")
    monkeypatch.setattr(yaml_document, "NODES_MAX", 7)
    assert read("[&x [1, 2], *x]") == [[1, 2], [1, 2]]  # 1 + 3 + 3
    assert "more than 7 nodes" in refusal("[&x [1, 2], *x, 1]").reason
