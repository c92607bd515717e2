"""A real object store on the loopback, which checks every signature: `rclone serve s3`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.waiting import until

KEY = "AKTESTSTORE"
SECRET = "a/secret+of=the store"


@dataclass(frozen=True)
class ObjectStore:
    """`root` has a folder per bucket; `url` is the endpoint."""

    url: str
    root: Path

    def put(self, bucket: str, key: str, content: bytes) -> None:
        path = self.root / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def rclone() -> str:
    """The command, as its package has installed it beside Python."""
    command = Path(sys.executable).parent / "rclone"
    assert command.exists(), f"no rclone at {command}: run scripts/test once"
    return str(command)


@contextmanager
def object_store(root: Path) -> Iterator[ObjectStore]:
    """One at a free port, for as long as the block lasts; buckets are folders of `root`."""
    log = root.with_suffix(".log")
    root.mkdir()
    with log.open("w") as out:
        words = [rclone(), "serve", "s3", str(root), "--addr", "127.0.0.1:0"]
        words += ["--auth-key", f"{KEY},{SECRET}", "--config", "/dev/null"]
        words += ["--log-level", "INFO", "--dir-cache-time", "0s", "--poll-interval", "0s"]
        process = subprocess.Popen(words, stderr=out)
    try:
        yield ObjectStore(until(lambda: _url(log), "the object store listens"), root)
    finally:
        process.terminate()
        process.wait()


def _url(log: Path) -> str:
    """The address that the store says it listens at, once it answers there."""
    _, _, rest = log.read_text().partition("Starting s3 server on [")
    url = rest.partition("]")[0].rstrip("/")
    if not url:
        return ""
    try:
        httpx.get(url, trust_env=False)
    except httpx.TransportError:
        return ""
    return url
