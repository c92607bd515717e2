"""An alternative as something a person can copy: for curl, for Python, and for GDAL.

Every text from a document is quoted for its language, and what a person has to put in is a variable
that the recipe asks for first: a recipe never holds a secret, and a document cannot put a command
into it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tollgate.serve.catalog_auth.resolve.recipes.python import python_recipe
from tollgate.serve.catalog_auth.resolve.recipes.shell import curl_recipe, gdal_recipe
from tollgate.serve.catalog_auth.resolve.steps import Alternative


class Tool(Enum):
    """What a recipe is for."""

    CURL = "curl"
    PYTHON = "python"
    GDAL = "gdal"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Lines to copy, each ended."""

    tool: Tool
    text: str


def recipes(alternative: Alternative) -> Iterator[Recipe]:
    """One per tool that can do it; none for what only people can."""
    if not alternative.is_executable:
        return
    for tool, write in _WRITERS.items():
        lines = write(alternative)
        if lines is not None:
            yield Recipe(tool, "".join(f"{line}\n" for line in lines))


_WRITERS = {Tool.CURL: curl_recipe, Tool.PYTHON: python_recipe, Tool.GDAL: gdal_recipe}
