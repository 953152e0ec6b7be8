"""The syntax tree of a function as it runs: found by its compiled code, so that a file edited later is noticed."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType

from .errors import DeclarationError

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Place = tuple[int, int]
"""A line and a column."""


@dataclass(frozen=True)
class Syntax:
    """A function's syntax tree, and the file that it stands in."""

    node: FunctionNode
    file: str

    def at(self, node: ast.AST) -> str:
        """`models/lock.py:12`: where a part of the function stands."""
        return f"{shown(self.file)}:{getattr(node, 'lineno', self.node.lineno)}"


def syntax_of(function: FunctionType) -> Syntax:
    """The syntax tree of the code that runs. Raises DeclarationError if its source is not there, or another by now."""
    code = function.__code__
    for fresh in (False, True):
        if fresh:
            linecache.checkcache(code.co_filename)
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        node = _functions(code.co_filename, text).get(code)
        if node is not None:
            return Syntax(node, code.co_filename)
    where = f"{shown(code.co_filename)}:{code.co_firstlineno}"
    if not text:
        raise DeclarationError(f"{where}: the source of {code.co_name} cannot be read; write the model in a file")
    raise DeclarationError(
        f"{where}: the source of {code.co_name} is not what runs; the file has changed since: load it again"
    )


@cache
def _functions(file: str, text: str) -> dict[CodeType, FunctionNode]:
    """The tree of each function of a file, by the code that it compiles to."""
    try:
        tree = ast.parse(text, file)
        module = compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # it was another text when it was loaded
        return {}
    nodes: dict[tuple[int, str], list[FunctionNode]] = {}
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            nodes.setdefault(_first_line_and_name(node), []).append(node)
    found: dict[CodeType, FunctionNode] = {}
    for code in _codes_in(module):
        alike = nodes.get((code.co_firstlineno, code.co_name), [])
        if alike:
            found[code] = alike[0] if len(alike) == 1 else min(alike, key=lambda node: _misfit(node, code))
    return found


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


def _first_line_and_name(node: FunctionNode) -> tuple[int, str]:
    if isinstance(node, ast.Lambda):
        return node.lineno, "<lambda>"
    return min(each.lineno for each in (node, *node.decorator_list)), node.name


def _misfit(node: FunctionNode, code: CodeType) -> tuple[int, Place]:
    """How badly a tree fits to code, of several functions on one line: lambdas, one perhaps within the other."""
    begin, end = _extent(node)
    places = [
        place
        for line, end_line, column, end_column in code.co_positions()
        for place in ((line, column), (end_line, end_column))
        if line and None not in place
    ]
    outside = sum(1 for place in places if not begin <= place <= end)
    return outside, (end[0] - begin[0], end[1] - begin[1])


def _extent(node: FunctionNode) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def shown(file: str) -> str:
    """A path as a reader knows it: from the working folder on, if it lies there."""
    below = os.path.relpath(file) if os.path.isabs(file) else file
    return file if below.startswith("..") else below
