"""Recipes as a person would run them: with real shells, curl, jq and openssl, and with Python."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.catalog_auth.documents import Json, item, resolved
from tests.support.catalog_auth.signatures import is_signed
from tests.support.servers.file_server import CONTENT, FileServer, Seen, file_server
from tests.support.servers.identity_provider import identity_provider
from tests.support.servers.object_store import KEY, SECRET, ObjectStore, object_store
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.catalog_auth.resolve.recipes.variables import question
from tollgate.serve.catalog_auth.resolve.steps import Need
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
SHELLS = {"bash": ["bash"], "dash": ["dash"], "zsh": ["zsh", "-f"]}
KEYS = {"access_key_id": KEY, "secret_access_key": SECRET}
# What a person types when a recipe in Python asks: by what it asks for.
TYPED = """
import getpass, json, os, sys
typed = json.loads(os.environ["TYPED"])
getpass.getpass = lambda asked: typed[json.loads(asked.partition(" for ")[0])]
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


def held(url: str, scheme: str, **values: str) -> Json:
    """The variables that recipes ask for, with these values for that place."""
    return {question(Need(scheme, name), url).variable: value for name, value in values.items()}


def in_shell(root: Json, environment: Json, folder: Path) -> bytes | None:
    """What the recipe for curl has written, in each shell; None when it failed."""
    contents = set()
    for shell in SHELLS.values():
        done = run([*shell, "-c", recipe(root, "curl")], environment, folder)
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
    keys = held(store.url, "s", **KEYS)
    assert in_shell(root, keys, tmp_path) == CONTENT
    guessed = held(store.url, "s", secret_access_key="guessed")
    assert in_shell(root, {**keys, **guessed}, tmp_path) is None
    typed = {"s.access_key_id": KEY, "s.secret_access_key": SECRET, "s.session_token": ""}
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
        assert in_shell(root, held(api.url, "b", token="s3cr3t"), tmp_path) == CONTENT
        assert in_shell(root, held(api.url, "b", token="wrong"), tmp_path) is None
        assert in_python(root, {"b.token": "s3cr3t"}, tmp_path) == CONTENT
        assert in_python(root, {"b.token": "wrong"}, tmp_path) is None


# Parameters with names that credentials have, or the code itself, or that are written alike.
RIVALS = ("token", "username", "password", "basic", "parameter0", "parameter1", "my key", "x.token")
ALIKE = ("x-key", "x_key", "X_KEY", "X-Key", "a b", "a_b", "parameter-1")


@pytest.mark.parametrize(
    ("chain", "held_of_chain", "authorization"),
    [
        ("bearer", {"token": "chain-t"}, "Bearer chain-t"),
        ("basic", {"username": "chain-u", "password": "chain-p"}, "Basic Y2hhaW4tdTpjaGFpbi1w"),
    ],
)
def test_each_secret_goes_to_its_own_place(
    chain: str, held_of_chain: dict[str, str], authorization: str, tmp_path: Path
) -> None:
    """What is asked for once for each name is what the server gets, in every shell and Python."""
    with file_server(lambda _: (200, {})) as files:

        def sign(_: Seen) -> tuple[int, dict[str, str]]:
            return 200, {"body": json.dumps({"signed_url": f"{files.url}/x"})}

        with file_server(sign) as api:
            in_body = {name: {"in": "body", "required": True} for name in RIVALS}
            in_query = {name: {"in": "query", "required": True} for name in ALIKE}
            flow: Json = {"method": "POST", "authorizationApi": f"{api.url}/v1"}
            flow["parameters"] = {**in_query, **in_body}
            signed = {"type": "signedUrl", "flows": {"sign": flow}, "auth:refs": ["s.x"]}
            schemes = {"s.x": {"type": "http", "scheme": chain}, "s": signed}
            root = item(schemes, ["s"], f"{files.url}/a.tif")
            own = {name: f"own {name} é" for name in (*RIVALS, *ALIKE)}
            environment = held(api.url, "s.x", **held_of_chain) | held(api.url, "s", **own)
            assert in_shell(root, environment, tmp_path) == CONTENT
            typed = {Need("s.x", name).called: value for name, value in held_of_chain.items()}
            typed |= {Need("s", name).called: value for name, value in own.items()}
            assert len(typed) == len(held_of_chain) + len(own)
            assert in_python(root, typed, tmp_path) == CONTENT
            assert len(api.seen) == len(SHELLS) + 1
            for seen in api.seen:
                assert seen.headers["authorization"] == authorization
                assert json.loads(seen.body) == {name: own[name] for name in RIVALS}
                assert seen.query == {name: [own[name]] for name in ALIKE}


def test_a_machine_gets_in_by_client_credentials(tmp_path: Path) -> None:
    with identity_provider() as provider:

        def gate(seen: Seen) -> tuple[int, dict[str, str]]:
            given = seen.headers.get("authorization")
            return (200 if provider.is_good(given, "client_credentials") else 401), {}

        flow = {"tokenUrl": f"{provider.url}/token", "scopes": {"read": ""}}
        scheme = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        with file_server(gate) as files:
            root = item({"s": scheme}, ["s"], f"{files.url}/a.tif")
            own = held(provider.url, "s", client_id="machine", client_secret="s%cr t:+")
            assert in_shell(root, own, tmp_path) == CONTENT
            wrong = held(provider.url, "s", client_secret="wrong")
            assert in_shell(root, {**own, **wrong}, tmp_path) is None
            typed = {"s.client_id": "machine", "s.client_secret": "s%cr t:+"}
            assert in_python(root, typed, tmp_path) == CONTENT
            assert in_python(root, {**typed, "s.client_secret": "wrong"}, tmp_path) is None


@pytest.fixture
def two_hosts() -> Iterator[tuple[FileServer, FileServer]]:
    """Both give what they have to everybody, and remember who sent what."""
    with (
        file_server(lambda _: (200, {})) as one,
        file_server(lambda _: (200, {}), "127.0.0.2") as other,
    ):
        yield one, other


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())
def test_a_key_for_one_host_never_goes_to_the_next_one(
    two_hosts: tuple[FileServer, FileServer], shell: list[str], tmp_path: Path
) -> None:
    """Two recipes in one terminal, alike but for the host."""
    one, other = two_hosts
    scheme = {"s": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    first, second = (
        recipe(item(scheme, ["s"], f"{h.url}/{h.url[-3:]}"), "curl") for h in two_hosts
    )
    exported = "".join(f"export {k}={v}\n" for k, v in held(one.url, "s", key="k3y").items())
    done = run([*shell, "-c", f"{exported}{first}{second}"], {}, tmp_path)
    assert [seen.headers["x-key"] for seen in one.seen] == ["k3y"]
    assert not other.seen
    asked = question(Need("s", "key"), other.url)
    told = f'set {asked.variable} first: your "s.key" for {other.url}\n'
    assert done.stderr.decode() == told


def test_a_token_of_one_recipe_never_goes_to_the_next_one_in_python(
    two_hosts: tuple[FileServer, FileServer], tmp_path: Path
) -> None:
    """Two recipes in one interpreter: the person breaks off when the second asks."""
    one, other = two_hosts
    scheme = {"s": {"type": "http", "scheme": "bearer"}}
    first, second = (recipe(item(scheme, ["s"], host.url), "python") for host in two_hosts)
    text = f"{TYPED}\n{first}\ntyped.clear()\n{second}\n"
    words = [sys.executable, "-i", "-c", ""]
    own = {"TYPED": json.dumps({"s.token": "t0ken"}), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        words, input=text, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "KeyError: 's.token'" in done.stderr
    assert "SyntaxError" not in done.stderr
    assert [seen.headers["authorization"] for seen in one.seen] == ["Bearer t0ken"]
    assert not other.seen


def test_lent_keys_go_with_their_session_token_and_no_other(tmp_path: Path) -> None:
    """What a store gets is signed, token included; the token for a cloud stays where it is."""
    tokens: list[str | None] = []

    def gate(seen: Seen) -> tuple[int, dict[str, str]]:
        tokens.append(seen.headers.get("x-amz-security-token"))
        return (200 if is_signed(seen, KEY, SECRET) else 403), {}

    cloud = {"AWS_ACCESS_KEY_ID": "cloud", "AWS_SESSION_TOKEN": "cloud"}
    typed = {"s.access_key_id": KEY, "s.secret_access_key": SECRET, "s.session_token": ""}
    with file_server(gate) as files:
        storage = {"storage:schemes": {"o": {"type": "custom-s3", "platform": files.url}}}
        root = item({"s": {"type": "s3"}}, ["s"], "s3://b/k", {"storage:refs": ["o"]}, storage)
        keys = held(files.url, "s", **KEYS)
        assert in_shell(root, {**cloud, **keys}, tmp_path) == CONTENT
        assert in_shell(root, {**keys, **held(files.url, "s", session_token="own")}, tmp_path)
        assert tokens == [None] * len(SHELLS) + ["own"] * len(SHELLS)
        tokens.clear()
        for token in ("", "own"):
            environment = {**cloud, "TYPED": json.dumps({**typed, "s.session_token": token})}
            program = f"{TYPED}\n{recipe(root, 'python')}"
            run([sys.executable, "-c", program], environment, tmp_path)
        assert tokens == [None, "own"]
