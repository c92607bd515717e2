"""The syntax trees of Python files: each file is parsed once, however many rules look at it."""

import ast
from functools import cache


@cache
def tree(path: str, text: str) -> ast.Module:
    return ast.parse(text, path)
