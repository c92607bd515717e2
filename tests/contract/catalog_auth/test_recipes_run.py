"""A document cannot put a command into a recipe: hostile texts in every place, and real shells and
a real Python that run what comes out, with nothing but harmless tools around them.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.catalog_auth.documents import Json, item, resolved
from tollgate.serve.catalog_auth.resolve.recipes.recipe import Tool, recipes
from tollgate.serve.catalog_auth.resolve.recipes.shell import JOIN

HOSTILE = (
    "$(touch broken)",
    "`touch broken`",
    "';touch broken;'",
    '";touch broken;"',
    "\n touch broken\n",
    "x'\ntouch broken #",
    "'+open('broken','w').name+'",
    "\\'+open('broken','w').name+\\'",
    "@broken",
    "--output broken",
    "{broken,[1-9]}",
    "=touch broken",
    "=ls",
    "~root !! !touch",
    "# `touch broken`",
    "\x1b[201~\ntouch broken\n",
)
# In the place of curl, jq and the rest: they say what they were called with, and give a text.
TOOLS = """
for tool in curl jq gdalinfo openssl; do
    eval "$tool() { printf '%s\\0' \\"\\$@\\" >>calls; echo v; }"
done
read() { eval "$2=v"; }
"""


def document(text: str, is_stored: bool) -> Json:
    """One that can be reached in many ways, with the text in every place that lets it stay so."""
    constant = {"required": True, "schema": {"const": text}}
    parameters: Json = {
        text: {"in": "body", "required": True},
        "a": {"in": "body", **constant},
        "b": {"in": "query", **constant},
    }
    if text.isprintable():
        parameters["c"] = {"in": "header", **constant}
    sign = {
        "method": "POST",
        "authorizationApi": f"https://sign.example.com/{text}",
        "responseField": text,
        "parameters": parameters,
    }
    code = {
        "authorizationUrl": f"https://idp.example.com/{text}",
        "tokenUrl": f"https://idp.example.com/{text}",
        "scopes": {text: ""},
    }
    schemes: Json = {
        "query": {"type": "apiKey", "in": "query", "name": text},
        text: {"type": "http", "scheme": "basic"},
        "signed": {"type": "signedUrl", "flows": {"sign": sign}, "auth:refs": [text]},
        "s3": {"type": "s3"},
        "code": {"type": "oauth2", "client_id": text, "flows": {"authorizationCode": code}},
    }
    if not is_stored:
        return item(schemes, list(schemes), f"https://b.s3.amazonaws.com/{text}?{text}")
    own = {"type": "aws-s3", "platform": f"https://s3.amazonaws.com/{text}", "region": text}
    storage = {"storage:schemes": {"own": own}}
    refs = {"storage:refs": ["own"]}
    return item({"s3": {"type": "s3"}}, ["s3"], f"s3://{text}/{text}", refs, storage)


ASKED = re.compile(r'^held "\$\{(\w+)-\}"', re.MULTILINE)
# The modules that a recipe imports, with nothing in them that opens a file or a socket.
STUBS = """
import sys, types
from unittest.mock import MagicMock
for name in ("requests", "obstore", "obstore.store", "getpass"):
    sys.modules[name] = MagicMock()
sys.modules["getpass"].getpass = lambda asked: "v"
sys.modules["requests"].Session().request().json = lambda: MagicMock(__getitem__=lambda s, k: "v")
__builtins__.input = lambda asked: "v"
"""


def hostile_recipes() -> tuple[list[str], list[str]]:
    """Those for shells, and those in Python."""
    scripts: list[str] = []
    programs: list[str] = []
    for text in HOSTILE:
        for is_stored in (False, True):
            for one in resolved(document(text, is_stored)).alternatives:
                made = {recipe.tool: recipe.text for recipe in recipes(one, None)}
                programs += [made[Tool.PYTHON]] if Tool.PYTHON in made else []
                # (GDAL's differs from curl's in what comes last)
                tools = (Tool.CURL,) if len(one.steps) > 1 and not is_stored else tuple(made)
                scripts += [
                    made[tool] for tool in tools if tool in made and tool is not Tool.PYTHON
                ]
    assert len(programs) > 5 * len(HOSTILE)
    return scripts, programs


SHELLS = {
    "bash": ["bash"],
    "bash -i": ["bash", "--norc", "-i"],
    "dash": ["dash"],
    "zsh": ["zsh", "-f"],
    "zsh -i": ["zsh", "-f", "-i"],
}
each_shell = pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())


@each_shell
def test_no_text_of_a_document_is_run(shell: list[str], tmp_path: Path) -> None:
    """As a program, and as pasted into a terminal: there, comments and `!` mean something else."""
    scripts, _ = hostile_recipes()
    held = "".join(f"{name}=v\n" for name in sorted(set(ASKED.findall("\n".join(scripts)))))
    joined = "".join(f"(\n{script}\n) </dev/null >/dev/null\n" for script in scripts)
    text = f"{TOOLS}{held}{joined}echo went'' on\n"
    is_pasted = "-i" in shell
    done = pasted(shell, text, tmp_path) if is_pasted else run([*shell, "-c", text], tmp_path)
    assert "went on" in done
    assert "not found" not in done
    calls = (tmp_path / "calls").read_text()
    assert calls.count("https://") >= len(scripts)
    assert [path.name for path in tmp_path.iterdir()] == ["calls"]


def test_no_text_of_a_document_is_run_by_python(tmp_path: Path) -> None:
    _, programs = hostile_recipes()
    whole = "\n".join(f"exec({program!r}, {{}})" for program in programs)
    run([sys.executable, "-c", STUBS + whole], tmp_path)
    assert not list(tmp_path.iterdir())


def run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert not done.stderr, done.stderr[-2_000:]
    return done.stdout


@each_shell
def test_a_recipe_that_lacks_something_stops_and_the_shell_goes_on(
    shell: list[str], tmp_path: Path
) -> None:
    """As pasted into a terminal: `: ${X:?}` alone ends a line of an interactive shell, no more."""
    script = curl_recipe_of({"type": "http", "scheme": "bearer"})
    done = pasted(shell, f"curl() {{ echo ca''lled; }}\n{script}echo went'' on\n", tmp_path)
    assert "went on" in done
    assert "called" not in done


@each_shell
def test_no_file_is_written_over(shell: list[str], tmp_path: Path) -> None:
    (tmp_path / "bashrc").write_text("mine")
    script = curl_recipe_of(None, "https://data.example.com/.bashrc")
    done = pasted(shell, f"curl() {{ echo ca''lled; }}\n{script}echo went'' on\n", tmp_path)
    assert "bashrc is there already" in done
    assert "called" not in done


@each_shell
def test_an_endpoint_keeps_its_own_query(shell: list[str], tmp_path: Path) -> None:
    text = f"{JOIN}\njoined 'https://e.org/a?b=c' d=e; joined https://e.org/a d=e\n"
    done = pasted(shell, text, tmp_path)
    assert "https://e.org/a?b=c&d=ehttps://e.org/a?d=e" in done


def curl_recipe_of(scheme: Json | None, href: str = "https://data.example.com/a.tif") -> str:
    root = item(None if scheme is None else {"s": scheme}, ["s"] if scheme else None, href)
    found = resolved(root)
    (one,) = found.alternatives
    made = {recipe.tool: recipe.text for recipe in recipes(one, found.href)}
    return made[Tool.CURL]


def pasted(shell: list[str], text: str, folder: Path) -> str:
    done = subprocess.run(
        shell,
        input=text,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )
    return done.stdout
