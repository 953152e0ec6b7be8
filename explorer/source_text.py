"""The syntax tree of a function, as it runs."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import CodeType

from ..protocol.language import DraincheckError


class Refused(DraincheckError):
    """Code does not meet a condition of the theorem: which one, where, and why."""

    def __init__(self, condition: str, where: str, why: str) -> None:
        super().__init__(f"condition {condition}, at {where}: {why}")
        self.condition = condition


@cache
def _functions_of(file: str) -> Mapping[tuple[str, int], list[ast.FunctionDef | ast.Lambda]]:
    """The functions of a file by name and first line."""
    found: dict[tuple[str, int], list[ast.FunctionDef | ast.Lambda]] = {}
    for each in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(each, ast.FunctionDef):
            found.setdefault((each.name, _first_line(each)), []).append(each)
        elif isinstance(each, ast.Lambda):
            found.setdefault(("<lambda>", each.lineno), []).append(each)
    return found


@cache
def _codes_of(file: str) -> Mapping[tuple[str, int], list[CodeType]]:
    """What Python makes of these functions."""
    found: dict[tuple[str, int], list[CodeType]] = {}

    def look(code: CodeType) -> None:
        for each in code.co_consts:
            if isinstance(each, CodeType):
                found.setdefault((each.co_name, each.co_firstlineno), []).append(each)
                look(each)

    look(compile("".join(linecache.getlines(file)), file, "exec", dont_inherit=True))
    return found


def _is_same(a: CodeType, b: CodeType) -> bool:
    parts = ("co_code", "co_names", "co_varnames", "co_freevars")
    if any(getattr(a, part) != getattr(b, part) for part in parts) or len(a.co_consts) != len(b.co_consts):
        return False
    return all(
        _is_same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else type(x) is type(y) and x == y
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )


@cache
def source_of(code: CodeType) -> tuple[ast.FunctionDef | ast.Lambda, str]:
    """The syntax tree of a function's code, and its file. Raises Refused unless that is what runs."""
    where, name = f"{short_name(code.co_filename)}:{code.co_firstlineno}", code.co_name
    file = inspect.getsourcefile(code)
    if file is None or not linecache.getlines(file):
        raise Refused("form", where, f"the source of {name} is not to be had")
    nodes = _functions_of(file).get((name, code.co_firstlineno), [])
    made = _codes_of(file).get((name, code.co_firstlineno), [])
    if len(nodes) != 1 or len(made) != 1:
        raise Refused("form", where, f"the source of {name} cannot be told from others; give it lines of its own")
    if not _is_same(made[0], code):
        raise Refused("form", where, f"{name} is not what its file says by now; start anew")
    return nodes[0], file


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def short_name(file: str) -> str:
    """A file with its folder: what a reader needs to find it."""
    return "/".join(Path(file).parts[-2:])
