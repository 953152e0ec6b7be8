"""The form of the roles on which projection rests: what a loop over prefill ranks may do (docs/proofs.md)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest
from draincheck.models.endless import endless_model
from draincheck.models.profile import load_profile
from draincheck.protocol import roles

RANKS = {"PrefillRank", "partners", "writers"}
"""Who is named where a loop goes over prefill ranks."""

BEHIND_A_RETURN = {"receive_status"}
"""Functions that return before their loop in endless lives."""


def functions() -> dict[str, ast.FunctionDef]:
    """Every function of the roles; names that two modules use are kept apart by the module."""
    found: dict[str, ast.FunctionDef] = {}
    for module in iter_modules(roles.__path__):
        tree = ast.parse(inspect.getsource(import_module(f"{roles.__name__}.{module.name}")))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found[node.name if node.name not in found else f"{module.name}.{node.name}"] = node
    return found


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def reachable() -> Iterator[ast.FunctionDef]:
    """The functions that steps of endless lives run, as far as their names tell."""
    known = functions()
    model = endless_model(load_profile("sglang-0.5.23-mooncake"), late_timer=True)
    waiting = [each.name for each in model.actions]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for full in known:
            if full == name or full.endswith(f".{name}"):
                yield known[full]
                waiting += names_in(known[full]) & {each.split(".")[-1] for each in known}


def rank_loops(function: ast.FunctionDef) -> Iterator[ast.For]:
    for node in ast.walk(function):
        if isinstance(node, ast.For) and names_in(node.iter) & RANKS:
            yield node


def is_ghost(function: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "ghost_code" for each in function.decorator_list)


def complaints(function: ast.FunctionDef, loop: ast.For) -> Iterator[str]:
    """What in a loop is no guard, no change of the rank's own cells, no growing condition, and not local."""
    assert isinstance(loop.target, ast.Name)
    rank, inside = loop.target.id, set(ast.walk(loop))
    for node in (each for statement in loop.body for each in ast.walk(statement)):
        if isinstance(node, ast.Return | ast.Break | ast.Continue | ast.While):
            yield f"{function.name}: {type(node).__name__.lower()} in a loop over ranks"
        carried = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        if carried and not isinstance(node.op, ast.BitOr | ast.BitAnd):
            yield f"{function.name}: {ast.unparse(node.target)} is carried on by something else than |= and &="
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and rank not in names_in(target.slice):
                    yield f"{function.name}: a cell that is not the rank's is written"
                if isinstance(target, ast.Attribute) and (not is_ghost(function) or rank in names_in(node.value)):
                    yield f"{function.name}: {target.attr} is written for every rank"
                if isinstance(target, ast.Name):
                    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id]
                    if any(each not in inside for each in uses):
                        yield f"{function.name}: {target.id} is carried from one rank to the next"


def test_loops_over_ranks_say_for_every_rank_or_for_some_rank() -> None:
    looked_at = 0
    for function in reachable():
        if function.name in BEHIND_A_RETURN:
            continue
        for loop in rank_loops(function):
            looked_at += 1
            assert list(complaints(function, loop)) == []
    assert looked_at > 10


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("s.poll[decode, 0] = 1", "a cell that is not the rank's is written"),
        ("count += s.acked[decode, 0, prefill]", "carried on by something else than |= and &="),
        ("last = prefill", "last is carried from one rank to the next"),
        ("if s.acked[decode, 0, prefill]: return", "return in a loop over ranks"),
        ("s.engine = 1", "engine is written for every rank"),
    ],
)
def test_other_loops_are_seen(body: str, complaint: str) -> None:
    loop = f"    for prefill in s.all(PrefillRank):\n        {body}\n"
    text = f"def step(s, decode):\n    count = last = 0\n{loop}    return last"
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    found = [each for loop in rank_loops(function) for each in complaints(function, loop)]
    assert len(found) == 1 and complaint in found[0]
