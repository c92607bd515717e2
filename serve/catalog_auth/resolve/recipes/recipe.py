"""An alternative as something a person can copy: for curl, for Python, and for GDAL.

Every text from a document is quoted for its language, and what a person has to put in is a variable
that the recipe asks for first: a recipe never holds a secret, and a document cannot put a command
into it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote

from tollgate.serve.catalog_auth.resolve.recipes.python import python_recipe
from tollgate.serve.catalog_auth.resolve.recipes.shell import curl_recipe, gdal_recipe
from tollgate.serve.catalog_auth.resolve.steps import Alternative

NAME_LENGTH_MAX = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Tool(Enum):
    """The tools that recipes are for."""

    CURL = "curl"
    PYTHON = "python"
    GDAL = "gdal"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Lines to copy, each ended."""

    tool: Tool
    text: str


def recipes(alternative: Alternative, href: str | None) -> Iterator[Recipe]:
    """One per tool that can do it; none for what only people can. `href` is the target's, which
    gives the downloaded file its name."""
    if not alternative.is_executable:
        return
    made = {
        Tool.CURL: curl_recipe(alternative, safe_file_name(href)),
        Tool.PYTHON: python_recipe(alternative),
        Tool.GDAL: gdal_recipe(alternative),
    }
    for tool, lines in made.items():
        if lines is not None:
            yield Recipe(tool, "".join(f"{line}\n" for line in lines))


def safe_file_name(href: str | None) -> str:
    """A safe name for a file: the last part of the path in letters, digits and `._-`, never one
    that begins with a dot or a dash."""
    path = (href or "").partition("#")[0].partition("?")[0]
    last = unquote(path.rstrip("/").rpartition("/")[2] if "/" in path else "")
    name = _UNSAFE.sub("_", last).lstrip("._-")[-NAME_LENGTH_MAX:].lstrip("._-")
    return name or "download"
