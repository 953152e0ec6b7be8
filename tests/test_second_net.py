"""The second net catches whatever compiled code, the tracer or the visited set get wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import toys
from draincheck.explorer.compile.native import Body
from draincheck.explorer.compile.tracer import Answer, Blocked, Command, Decision, Tracer, Tree, Update
from draincheck.explorer.search import kernel, second_net
from draincheck.explorer.search.partition import Partition
from draincheck.explorer.search.search import Exploration, Limits, SearchInterrupted, search
from draincheck.explorer.search.second_net import sample
from draincheck.explorer.walks.swarm import Plan, simulate
from draincheck.protocol.language import DeclarationError, EngineDisagreement, Faults, ModelFault
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.property import Property

RING = toys.ring(Faults(loss=1))
DOOR = toys.door(turns=True)


def explore(check: Check) -> Exploration:
    return search(replace(check, deadlock=check is RING), until=())


@pytest.mark.parametrize("check", [RING, DOOR, toys.counter(64)], ids=lambda each: each.model.name)
def test_all_of_a_small_search_is_executed_directly(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_net, "SECONDS", 600)
    found = search(replace(check, deadlock=False), until=())
    assert found.executed.states == min(found.states, second_net.AT_MOST) and found.executed.seconds > 0


def test_of_a_large_search_a_sample_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_net, "SECONDS", 0)
    monkeypatch.setattr(second_net, "ALWAYS", 5)
    assert explore(RING).executed.states == 5


def test_a_sample_has_each_position_once_and_is_even() -> None:
    for count in (1, 2, 3, 10, 977, 1000):
        assert sorted(sample([count - 1, 0, -1, count], count)) == list(range(count))
    assert list(sample([7, 7, 3], 1000))[:2] == [7, 3]
    first = sorted(list(sample([], 1000))[:20])
    assert max(after - before for before, after in pairwise(first)) < 120
    assert list(sample([-1], 0)) == []


# Each fault below is one that compiled code, the tracer or the visited set could have.

Sabotage = Callable[[pytest.MonkeyPatch], None]


def wrong_operator(patch: pytest.MonkeyPatch) -> None:
    """`<` is emitted as `==`."""
    right = Body._operation

    def operation(body: Body, value: Any, made: Any) -> Any:
        return right(body, replace(value, operation="eq") if value.operation == "lt" else value, made)

    patch.setattr(Body, "_operation", operation)


def flipped(tree: Tree) -> Tree:
    match tree:
        case Decision(condition, then, otherwise):
            return Decision(condition, flipped(then), flipped(otherwise))
        case Answer(value):
            return Answer(not value)
        case _:
            return tree


def flips(method: str) -> Sabotage:
    """The tree of a predicate says the opposite."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        right = getattr(Tracer, method)
        patch.setattr(Tracer, method, lambda *arguments: flipped(right(*arguments)))

    return sabotage


def changed_commands(change: Callable[[Tree], Tree]) -> Sabotage:
    """The tree of one action is another one."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        right = Tracer.command

        def command(tracer: Tracer, instance: Any) -> Command:
            made = right(tracer, instance)
            last = instance.action.name in ("receive", "leave_to_next")
            return replace(made, tree=change(made.tree)) if last else made

        patch.setattr(Tracer, "command", command)

    return sabotage


def without_writes(tree: Tree) -> Tree:
    """No step of the tree writes its first cell."""
    match tree:
        case Decision(condition, then, otherwise):
            return Decision(condition, without_writes(then), without_writes(otherwise))
        case Update(writes):
            return Update(writes[1:])
        case _:
            return replace(tree, options=tuple(map(without_writes, tree.options))) if hasattr(tree, "options") else tree


def never(tree: Tree) -> Tree:
    """The step is never possible: successors are missing."""
    return Blocked()


def unguarded(tree: Tree) -> Tree:
    """The first question is always answered with yes: there are successors too many."""
    return tree.then if isinstance(tree, Decision) else tree


def lost_option(tree: Tree) -> Tree:
    """A choice has one option less."""
    match tree:
        case Decision(condition, then, otherwise):
            return Decision(condition, lost_option(then), lost_option(otherwise))
        case _:
            return replace(tree, options=tree.options[:-1]) if hasattr(tree, "options") else tree


def lost_states(patch: pytest.MonkeyPatch) -> None:
    """The visited set has forgotten some of its states."""
    right = Partition.find

    def find(partition: Partition, words: Any) -> int | None:
        position = right(partition, words)
        return None if position is not None and position % 3 == 1 else position

    patch.setattr(Partition, "find", find)


def wrong_count(of: str) -> Sabotage:
    """The loop has counted wrongly."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        right = kernel.advance

        def advance(*arguments: Any) -> Any:
            reason = right(*arguments)
            hits, numbers = arguments[-2:]
            if of == "hits":
                hits[0] += 1
            else:
                numbers[kernel.STUCK] += 1
            return reason

        patch.setattr(kernel, "advance", advance)

    return sabotage


@pytest.mark.parametrize(
    ("check", "sabotage", "message"),
    [
        (RING, wrong_operator, r"^ring: \S+ differs between direct execution"),
        (toys.arithmetic(), wrong_operator, r"in direct execution|differs between"),
        (RING, flips("fails"), r"property in_order differs .*\(False\) and compiled code \(True\)"),
        (RING, flips("holds"), r"probe second_node_has_three differs"),
        (DOOR, flips("pending"), r"promise process_0_gets_in differs"),
        (RING, flips("terminal"), r"the terminal predicate differs"),
        (RING, changed_commands(without_writes), r"receive\(\) differs"),
        (RING, changed_commands(never), r"receive\(\) differs"),
        (RING, changed_commands(lost_option), r"receive\(\) differs"),
        (DOOR, changed_commands(unguarded), r"leave_to_next\(n=\d\) differs"),
        (DOOR, changed_commands(without_writes), r"leave_to_next\(n=\d\) differs"),
        (RING, lost_states, r"differs .* and compiled code \(never seen\)"),
        (RING, wrong_count("hits"), r"send counts \d+ in direct execution of all states and \d+ in the search"),
        (RING, wrong_count("stuck"), r"stuck states counts"),
    ],
)
def test_each_fault_is_caught(check: Check, sabotage: Sabotage, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_net, "AT_MOST", 500)
    monkeypatch.setattr(second_net, "SECONDS", 600)
    sabotage(monkeypatch)
    with pytest.raises(EngineDisagreement, match=message) as caught:
        explore(check)
    assert caught.value.exit_code == 70
    assert "\n" not in str(caught.value) and "please report this" in str(caught.value)
    assert re.match(r"(ring|door|arithmetic): ", str(caught.value))


def test_a_search_that_was_cut_short_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    flips("fails")(monkeypatch)
    for limits, until in ((Limits(states=3), ()), (Limits(), None)):
        with pytest.raises(EngineDisagreement, match="property in_order"):
            search(RING, limits, until=until)


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), ModelFault("no element"), DeclarationError("no")])
def test_an_exception_in_direct_execution_alone_is_a_difference(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def violation(*_: object) -> None:
        raise error

    monkeypatch.setattr(Property, "violation", violation)
    with pytest.raises(EngineDisagreement, match=rf"property in_order differs .*{type(error).__name__}: {error}"):
        explore(RING)


def test_ctrl_c_ends_it_without_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(second_net, "_compare", interrupt)
    with pytest.raises(SearchInterrupted) as caught:
        explore(RING)
    assert caught.value.found.stopped == "interrupted" and not caught.value.found.complete


def test_walks_are_held_against_direct_execution_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(walks=64, depth=10, steps=640)
    assert simulate(RING, plan, until=()).executed.states >= second_net.ALWAYS
    flips("holds")(monkeypatch)
    with pytest.raises(EngineDisagreement, match="probe second_node_has_three differs"):
        simulate(RING, plan, until=())
