"""Rule files on disk, in both layouts of B20 and as a mounted ConfigMap."""

import os
from pathlib import Path

import pytest

from tollgate.actors.ratelimit.rules.builder import RuleFile, RuleFileError, load_rules
from tollgate.actors.ratelimit.rules.rule_file import RULE_FILE_BYTES_MAX
from tollgate.serve.ratelimit.rule_sources import files as rule_files
from tollgate.serve.ratelimit.rule_sources.files import RuleDirectory


def write(path: Path, text: str = "domain: d\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def watching_root(root: Path, *, ignores_dot_files: bool = False) -> RuleDirectory:
    return RuleDirectory(root, "ratelimit", "config", True, ignores_dot_files)


def watching_directory(root: Path, *, ignores_dot_files: bool = False) -> RuleDirectory:
    return RuleDirectory(root, "ratelimit", "config", False, ignores_dot_files)


def names(directory: RuleDirectory) -> list[str]:
    return [file.name for file in directory.read()]


def refusal(directory: RuleDirectory) -> RuleFileError:
    with pytest.raises(RuleFileError) as raised:
        directory.read()
    return raised.value


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    config = tmp_path / "ratelimit" / "config"
    write(config / "b.yaml", "domain: b\n")
    write(config / "a.yml", "domain: a\n")
    write(config / "deep" / "er" / "c.yaml", "domain: c\n")
    write(config / "README.md")
    write(config / "d.yaml.bak")
    write(config / "E.YAML")
    write(tmp_path / "ratelimit" / "other" / "x.yaml")
    write(tmp_path / "ratelimit" / "configured" / "x.yaml")
    write(tmp_path / "ratelimit" / "config.top.yaml", "domain: top\n")
    write(tmp_path / "config" / "x.yaml")
    return tmp_path


def test_watching_the_root(tree: Path) -> None:
    assert watching_root(tree).read() == [
        RuleFile("config.a.yml", b"domain: a\n"),
        RuleFile("config.b.yaml", b"domain: b\n"),
        RuleFile("config.deep.er.c.yaml", b"domain: c\n"),
        RuleFile("config.top.yaml", b"domain: top\n"),
    ]


def test_watching_the_directory(tree: Path) -> None:
    assert names(watching_directory(tree)) == ["a.yml", "b.yaml", "deep.er.c.yaml"]


@pytest.mark.parametrize("watches_root", [True, False])
def test_without_a_subdirectory(tree: Path, watches_root: bool) -> None:
    directory = RuleDirectory(tree, "", "config", watches_root, False)
    assert names(directory) == ["config.x.yaml" if watches_root else "x.yaml"]


def test_an_application_directory_of_several_levels(tree: Path) -> None:
    directory = RuleDirectory(tree, "", "ratelimit/config", True, False)
    assert "ratelimit.config.b.yaml" in names(directory)
    assert "ratelimit.other.x.yaml" not in names(directory)


def test_dot_files_count_unless_they_are_ignored(tmp_path: Path) -> None:
    config = tmp_path / "ratelimit" / "config"
    write(config / ".hidden.yaml")
    write(config / ".hidden" / "a.yaml")
    write(config / "shown.yaml")
    assert names(watching_directory(tmp_path)) == [".hidden.a.yaml", ".hidden.yaml", "shown.yaml"]
    assert names(watching_directory(tmp_path, ignores_dot_files=True)) == ["shown.yaml"]


@pytest.fixture
def config_map(tmp_path: Path) -> Path:
    """As Kubernetes mounts it: real files in a dated folder, a link to it, and links to files."""
    config = tmp_path / "ratelimit" / "config"
    write(config / "..2026_01_01" / "basic.yaml", "domain: basic\n")
    (config / "..data").symlink_to("..2026_01_01")
    (config / "basic.yaml").symlink_to("..data/basic.yaml")
    return tmp_path


@pytest.mark.parametrize("layout", [watching_root, watching_directory])
def test_a_config_map_with_dot_files_is_a_duplicate_domain(
    config_map: Path, layout: type[RuleDirectory]
) -> None:
    with pytest.raises(RuleFileError, match="duplicate domain 'basic' in config file"):
        load_rules(layout(config_map, ignores_dot_files=False).read(), merge_domains=False)


@pytest.mark.parametrize("layout", [watching_root, watching_directory])
def test_a_config_map_without_dot_files_is_fine(
    config_map: Path, layout: type[RuleDirectory]
) -> None:
    files = layout(config_map, ignores_dot_files=True).read()
    assert list(load_rules(files, merge_domains=False).domains) == ["basic"]


def test_linked_directories_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    config = tmp_path / "ratelimit" / "config"
    write(tmp_path / "elsewhere" / "a.yaml")
    config.mkdir(parents=True)
    (config / "link").symlink_to(tmp_path / "elsewhere")
    (config / "up").symlink_to(tmp_path)
    assert names(watching_directory(tmp_path)) == [
        "link.a.yaml",
        "up.elsewhere.a.yaml",
    ]


@pytest.mark.parametrize("layout", [watching_root, watching_directory])
def test_a_directory_that_is_not_there_is_refused_by_name(
    tmp_path: Path, layout: type[RuleDirectory]
) -> None:
    directory = layout(tmp_path, ignores_dot_files=False)
    error = refusal(directory)
    assert error.file == str(directory.base)
    assert error.reason == "cannot be read: No such file or directory"
    with pytest.raises(RuleFileError):
        directory.signature()


def test_no_files_at_all(tmp_path: Path) -> None:
    (tmp_path / "ratelimit").mkdir()
    assert watching_root(tmp_path).read() == []


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    directory = watching_directory(tmp_path)
    write(directory.base / "fine.yaml")
    broken = directory.base / "broken.yaml"
    broken.symlink_to("nowhere")
    assert str(refusal(directory)) == "broken.yaml: cannot be read: No such file or directory"
    broken.unlink()
    broken.symlink_to("broken.yaml")
    assert "cannot be read: Too many levels of symbolic links" in str(refusal(directory))
    broken.unlink()
    os.mkfifo(broken)
    assert str(refusal(directory)) == "broken.yaml: not a regular file"


def test_a_file_that_vanishes_before_it_is_read(tmp_path: Path) -> None:
    directory = watching_directory(tmp_path)
    write(directory.base / "a.yaml")
    (found,) = directory.find()
    found.path.unlink()
    with pytest.raises(RuleFileError, match=r"a\.yaml: cannot be read: No such file"):
        found.read()


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    directory = watching_directory(tmp_path)
    write(directory.base / os.fsdecode(b"\xff.yaml"))
    assert names(directory) == ["�.yaml"]
    directory.signature()


def test_a_file_one_byte_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = watching_directory(tmp_path)
    large = write(directory.base / "large.yaml")
    with large.open("wb") as file:
        file.truncate(RULE_FILE_BYTES_MAX)
    assert names(directory) == ["large.yaml"]
    with large.open("wb") as file:
        file.truncate(RULE_FILE_BYTES_MAX + 1)
    expected = f"large.yaml: the file is larger than {RULE_FILE_BYTES_MAX} bytes"
    assert str(refusal(directory)) == expected
    with large.open("wb") as file:
        file.truncate(rule_files.FILES_BYTES_MAX + 1)
    assert "larger than 67108864 bytes together" in str(refusal(directory))
    large.write_text("domain: d")
    write(directory.base / "other.txt")
    monkeypatch.setattr(rule_files, "ENTRIES_MAX", 2)
    monkeypatch.setattr(rule_files, "FILES_MAX", 1)
    assert names(directory) == ["large.yaml"]
    write(directory.base / "other.txt").rename(directory.base / "other.yaml")
    assert "more than 1 rule files" in str(refusal(directory))
    write(directory.base / "third.txt")
    assert "more than 2 files and directories" in str(refusal(directory))


def test_the_signature_changes_with_the_files_and_with_nothing_else(tree: Path) -> None:
    directory = watching_directory(tree)
    path = directory.base / "b.yaml"
    seen = [directory.signature()]

    def is_new() -> bool:
        signature = directory.signature()
        is_unseen = signature not in seen
        seen.append(signature)
        return is_unseen

    assert not is_new()
    write(directory.base / "notes.txt")
    path.read_text()
    assert not is_new()

    status = path.stat()
    path.write_text("domain: c\n")  # as long as before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert is_new()
    path.chmod(0o600)
    assert is_new()
    path.rename(directory.base / "z.yaml")
    assert is_new()
    write(directory.base / "deep" / "new.yaml")
    assert is_new()
    (directory.base / "a.yml").unlink()
    assert is_new()

    replaced = write(directory.base / "replacement.tmp", "domain: x\n")
    old = (directory.base / "z.yaml").stat()
    os.utime(replaced, ns=(old.st_atime_ns, old.st_mtime_ns))
    replaced.chmod(0o600)
    replaced.rename(directory.base / "z.yaml")  # same name, time, size and mode: another file
    assert is_new()


def test_the_signature_follows_the_root(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        write(tmp_path / version / "ratelimit" / "config" / "a.yaml", f"domain: {version}\n")
    current = tmp_path / "current"
    current.symlink_to("v1")
    directory = watching_root(current)
    before = directory.signature()
    assert [file.text for file in directory.read()] == [b"domain: v1\n"]
    current.unlink()
    current.symlink_to("v2")
    assert directory.signature() != before
    assert [file.text for file in directory.read()] == [b"domain: v2\n"]
