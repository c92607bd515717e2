"""Clients of object stores, set up with nothing but their form of a resolution, read from a real
store that checks signatures: GDAL, obstore and rclone; and none of them with other keys.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
import rasterio
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.support.catalog_auth.documents import Json, item, resolved, ways
from tests.support.servers.object_store import KEY, SECRET, ObjectStore, object_store, rclone
from tollgate.serve.catalog_auth.resolve.wire import resolution_json

NAME = "open/a b's.tif"
HREF = "s3://maps/open/a%20b's.tif"
PIXELS = np.full((1, 4, 4), 7, "uint8")
# A process of its own: GDAL reads its environment when it starts.
GDAL = "import rasterio, sys; print(int(rasterio.open(sys.argv[1]).read().sum()))"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("image") / "a.tif"
    shape = {"height": 4, "width": 4, "count": 1, "dtype": "uint8"}
    corner = rasterio.Affine(1, 0, 10, 0, -1, 50)
    with rasterio.open(path, "w", "GTiff", crs="EPSG:4326", transform=corner, **shape) as written:
        written.write(PIXELS)
    return path.read_bytes()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, image: bytes) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store") / "root") as store:
        store.put("maps", NAME, image)
        yield store


def form(store: ObjectStore, tool: str, secret: str) -> Json:
    """The form for this tool, with the keys in their places."""
    storage = {"store": {"platform": store.url, "region": "us-east-1"}}
    root = item(
        {"s": {"type": "s3"}},
        ["s"],
        HREF,
        {"storage:refs": ["store"]},
        {"storage:schemes": storage},
    )
    (one,) = ways(root)
    keys = {"${environment.access_key_id}": KEY, "${environment.secret_access_key}": secret}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        return keys.get(value, value) if isinstance(value, str) else value

    found: Json = filled(one["steps"][0]["forms"][tool])
    return found


def run(words: list[str], environment: Json, folder: Path) -> subprocess.CompletedProcess[bytes]:
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "GDAL_HTTP_MAX_RETRY": "0"}
    return subprocess.run(
        words, env={**own, **environment}, cwd=folder, capture_output=True, timeout=60, check=False
    )


def test_gdal_reads_with_its_form(store: ObjectStore, tmp_path: Path) -> None:
    told = form(store, "gdal", SECRET)
    words = [sys.executable, "-c", GDAL, told["path"]]
    done = run(words, told["environment"], tmp_path)
    assert done.stdout.split() == [str(PIXELS.sum()).encode()], done.stderr
    refused = run(words, form(store, "gdal", "guessed")["environment"], tmp_path)
    assert b"signature" in refused.stderr


def test_obstore_reads_with_its_form(store: ObjectStore, image: bytes) -> None:
    told = form(store, "obstore", SECRET)
    assert bytes(obstore.get(S3Store(**told["store"]), told["path"]).bytes()) == image
    wrong = S3Store(**form(store, "obstore", "guessed")["store"])
    with pytest.raises(BaseError, match="SignatureDoesNotMatch"):
        obstore.get(wrong, told["path"])


def test_rclone_reads_with_its_form(store: ObjectStore, image: bytes, tmp_path: Path) -> None:
    told = form(store, "rclone", SECRET)
    words = [rclone(), "cat", told["path"], "--config", "/dev/null", "--retries", "1"]
    done = run(words, told["environment"], tmp_path)
    assert done.stdout == image, done.stderr
    refused = run(words, form(store, "rclone", "guessed")["environment"], tmp_path)
    assert not refused.stdout
    assert b"SignatureDoesNotMatch" in refused.stderr


@pytest.mark.parametrize(
    "href", ["s3://b/k", "gs://b/k", "https://acme.blob.core.windows.net/c/k", "http://h.example/k"]
)
def test_gdal_knows_all_variables_that_it_is_told(href: str) -> None:
    """A name that it does not know would be passed over in silence."""
    (library,) = Path(rasterio.__file__).parent.with_name("rasterio.libs").glob("libgdal*")
    known = library.read_bytes()
    root = item({"s": {"type": "s3"}, "b": {"type": "http", "scheme": "digest"}}, ["s", "b"], href)
    told: set[str] = set()
    for one in resolution_json(resolved(root), has_recipes=True)["alternatives"]:
        names = re.findall(r"(?:export|unset) ((?:\w+ ?)+)", one["recipes"].get("gdal", ""))
        told.update(" ".join(names).split())
    assert told, "no recipe for GDAL names a variable"
    assert [name for name in sorted(told) if name.encode() not in known] == []
    assert b"GDAL_NO_SUCH_VARIABLE" not in known
