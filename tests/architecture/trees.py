"""The syntax trees of Python files: each file is parsed once, however many rules look at it."""

import ast
import gc
from functools import cache


@cache
def tree(path: str, text: str) -> ast.Module:
    module = ast.parse(text, path)
    # It stays: the garbage collector would go through the nodes of all files again and again.
    gc.freeze()
    return module


@cache
def nodes(path: str, text: str) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree(path, text)))
