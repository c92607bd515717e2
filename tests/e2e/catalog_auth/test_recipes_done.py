"""Recipes as a person would run them: with a real shell, curl, jq and openssl, and with Python."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.catalog_auth.documents import Json, item, resolved
from tests.support.servers.file_server import CONTENT, Seen, file_server
from tests.support.servers.identity_provider import identity_provider
from tests.support.servers.object_store import KEY, SECRET, ObjectStore, object_store
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.catalog_auth.resolve.wire import resolution_json
from tollgate.serve.catalog_auth.sign.signer import (
    SignedBucket,
    SignedUrl,
    Signer,
    SigningConfiguration,
    SigningCredentials,
    signed_url_scheme,
)

NAME = "open/x'y$(z) é.tif"
HREF = "s3://maps/open/x'y$(z)%20%C3%A9.tif"
# zsh takes what these two take alike: the recipes are POSIX.
SHELLS = ("bash", "dash")
KEYS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
# What a person types when a recipe in Python asks.
TYPED = """
import getpass, json, os, sys
typed = json.loads(os.environ["TYPED"])
getpass.getpass = lambda asked: typed[json.loads(asked.removesuffix(": "))]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store") / "root") as store:
        store.put("maps", NAME, CONTENT)
        yield store


def recipe(root: Json, tool: str) -> str:
    (one,) = resolution_json(resolved(root), has_recipes=True)["alternatives"]
    text: str = one["recipes"][tool]
    return text


def run(words: list[str], environment: Json, folder: Path) -> subprocess.CompletedProcess[bytes]:
    own = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(
        words, env={**own, **environment}, cwd=folder, capture_output=True, timeout=60, check=False
    )


def in_shell(root: Json, environment: Json, folder: Path) -> bytes | None:
    """What the recipe for curl has written, in each shell; None when it failed."""
    contents = set()
    for shell in SHELLS:
        done = run([shell, "-c", recipe(root, "curl")], environment, folder)
        files = list(folder.iterdir())
        assert bool(files) is (done.returncode == 0), done.stderr
        contents.add(files[0].read_bytes() if files else None)
        for file in files:
            file.unlink()
    (content,) = contents
    return content


def in_python(root: Json, typed: Json, folder: Path) -> bytes | None:
    """The data that the recipe for Python ends with; None when it failed."""
    program = f"{TYPED}\n{recipe(root, 'python')}\nsys.stdout.buffer.write(data)"
    done = run([sys.executable, "-c", program], {"TYPED": json.dumps(typed)}, folder)
    return done.stdout if done.returncode == 0 else None


def catalog(store: ObjectStore, schemes: Json) -> Json:
    storage = {"storage:schemes": {"store": {"type": "custom-s3", "platform": store.url}}}
    return item(schemes, ["s"], HREF, {"storage:refs": ["store"]}, storage)


def test_an_object_is_read_with_keys(store: ObjectStore, tmp_path: Path) -> None:
    root = catalog(store, {"s": {"type": "s3"}})
    assert in_shell(root, KEYS, tmp_path) == CONTENT
    assert in_shell(root, {**KEYS, "AWS_SECRET_ACCESS_KEY": "guessed"}, tmp_path) is None
    typed = {"s.access_key_id": KEY, "s.secret_access_key": SECRET}
    assert in_python(root, typed, tmp_path) == CONTENT
    assert in_python(root, {**typed, "s.secret_access_key": "guessed"}, tmp_path) is None


def test_an_object_is_signed_and_fetched(store: ObjectStore, tmp_path: Path) -> None:
    bucket = SignedBucket("maps", ("open/",), "store", endpoint=store.url)
    keys = {"store": SigningCredentials(KEY, SECRET)}
    signer = Signer(SigningConfiguration((bucket,), keys), SystemClock())

    def sign(seen: Seen) -> tuple[int, dict[str, str]]:
        signed = signer.sign(**json.loads(seen.body))
        if seen.headers.get("authorization") != "Bearer s3cr3t" or not isinstance(
            signed, SignedUrl
        ):
            return 401, {}
        return 200, {"body": json.dumps({"signed_url": signed.url})}

    with file_server(sign) as api:
        flows = signed_url_scheme(api.url)["flows"]
        assert isinstance(flows, dict)
        scheme = {"type": "signedUrl", "flows": {"object": flows["object"]}, "auth:refs": ["b"]}
        root = catalog(store, {"s": scheme, "b": {"type": "http", "scheme": "bearer"}})
        assert in_shell(root, {"SIGN_TOKEN": "s3cr3t"}, tmp_path) == CONTENT
        assert in_shell(root, {"SIGN_TOKEN": "wrong"}, tmp_path) is None
        assert in_python(root, {"b.token": "s3cr3t"}, tmp_path) == CONTENT
        assert in_python(root, {"b.token": "wrong"}, tmp_path) is None


def test_a_machine_gets_in_by_client_credentials(tmp_path: Path) -> None:
    with identity_provider() as provider:

        def gate(seen: Seen) -> tuple[int, dict[str, str]]:
            given = seen.headers.get("authorization")
            return (200 if provider.is_good(given, "client_credentials") else 401), {}

        flow = {"tokenUrl": f"{provider.url}/token", "scopes": {"read": ""}}
        scheme = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        with file_server(gate) as files:
            root = item({"s": scheme}, ["s"], f"{files.url}/a.tif")
            held = {"TOKEN_CLIENT_ID": "machine", "TOKEN_CLIENT_SECRET": "s%cr t:+"}
            assert in_shell(root, held, tmp_path) == CONTENT
            assert in_shell(root, {**held, "TOKEN_CLIENT_SECRET": "wrong"}, tmp_path) is None
            typed = {"s.client_id": "machine", "s.client_secret": "s%cr t:+"}
            assert in_python(root, typed, tmp_path) == CONTENT
            assert in_python(root, {**typed, "s.client_secret": "wrong"}, tmp_path) is None
