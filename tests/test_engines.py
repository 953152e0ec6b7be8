"""The compiled engine, the oracle and random direct runs find the same, on every model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import oracle
import pytest
import toys
from draincheck.explorer.search.search import compile_check, search
from draincheck.explorer.traces.trace import follow
from draincheck.models.catalogue.profile import headlines, load_profile
from draincheck.models.drain.scenario import DEFAULT
from draincheck.models.small import reference as reference_properties
from draincheck.models.small.reference import reference
from draincheck.properties.drain.cases import drain_case, scenario_with
from draincheck.protocol.language import Faults
from draincheck.protocol.language.check import Check


def reference_check(timer: int | None = None, **sizes: int) -> Check:
    return Check(
        reference(timer, **sizes),
        (reference_properties.no_late_write,),
        (reference_properties.drained_while_held,),
    )


def drain_checks() -> Iterator[Check]:
    """With one chunk: headline profiles without the release timer, two with it too; one in each small scenario."""
    for name in (*headlines(), "sglang-0.5.21-nixl"):
        whole = name in ("sglang-0.5.23-mooncake", "sglang-0.5.21-nixl")
        for scenario in DEFAULT:
            case = drain_case(load_profile(name), scenario_with(scenario, {"chunks": 1}), timer=whole)
            for question in filter(None, (case.untimed, case.patient, case.timed)):
                yield question.check
    for scenario in SMALL:
        yield drain_case(
            load_profile("sglang-0.5.22-mori"), scenario_with(scenario, {"chunks": 1}), timer=False
        ).untimed.check


SMALL = ("rejected", "offload", "checksum", "timeouts", "router", "metadata", "flush")
"""Scenarios of at most some ten thousand states, which the oracle explores in seconds."""


CHECKS = [
    toys.ring(),
    toys.ring(Faults(loss=1)),
    toys.ring(Faults(duplication=1)),
    toys.ring(Faults(reordering=2)),
    toys.ring(Faults(loss=1, duplication=1, reordering=1), nodes=3),
    toys.counter(1),
    toys.counter(63),
    toys.counter(64),
    toys.arithmetic(),
    reference_check(rooms=1, ranks=1, chunks=2, slots=2),
    reference_check(rooms=2, ranks=1, chunks=1, slots=2),
    reference_check(1, rooms=1, ranks=2, chunks=1, slots=1),
    reference_check(2, rooms=2, ranks=1, chunks=1, slots=1),
    *drain_checks(),
]


LONG = {
    *(f"sglang-0.5.{release} / failed-send" for release in ("21-mooncake", "21-nixl", "22-mooncake", "23-mooncake")),
    *(f"sglang-0.5.{release} / abort" for release in ("21-mooncake", "21-nixl", "22-mooncake")),
    *(f"sglang-0.5.22-mori / {scenario}" for scenario in ("timeouts", "metadata", "flush", "router")),
}
"""Models that take the oracle longest and differ least from those that stay: they are compared on demand."""


def compared(check: Check) -> Any:
    """The comparison with the oracle, marked where it is left for later."""
    return pytest.param(check, marks=pytest.mark.slow if check.model.name in LONG else ())


def name_of(check: Check) -> str:
    return check.model.name.replace(" ", "")


@pytest.mark.parametrize("check", [compared(check) for check in CHECKS], ids=name_of)
def test_compiled_search_equals_oracle(check: Check) -> None:
    expected = oracle.explore(check)
    free = Check(check.model, check.properties, check.probes, deadlock=False)
    compiled = compile_check(free)
    found = search(compiled, until=())
    assert found.complete
    assert (found.states, found.transitions, found.depth) == (
        expected.states,
        expected.transitions,
        expected.depth,
    )
    assert found.counts == expected.counts
    assert found.hits == expected.hits
    lengths = {name: len(found.path_to(at)) - 1 for name, at in (found.violated | found.reached).items()}
    assert lengths == expected.violated | expected.reached
    for position in found.violated.values():
        states = found.path_to(position)
        assert len(follow(check.model, states)) == len(states) - 1

    first = search(compiled)
    if expected.violated:
        assert first.stopped == "violation found"
        shortest = min(len(first.path_to(at)) - 1 for at in first.violated.values())
        assert shortest == min(expected.violated.values())
    stuck = search(check, until=())
    assert (stuck.deadlock is not None) == (expected.deadlocks > 0)


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_random_direct_runs_stay_in_the_explored_states(check: Check) -> None:
    found = search(Check(check.model, check.properties, check.probes, deadlock=False), until=())
    chance = random.Random(20261029)
    for _ in range(8):
        values = chance.choice(check.model.initial_states())
        for _ in range(60):
            position = found.position_of(values)
            assert position is not None and position < found.states
            for prop in check.properties:
                assert prop.violation(check.model, values) is None or prop.name in found.violated
            steps = list(check.model.steps(values))
            if not steps:
                break
            values = chance.choice(steps).values


@pytest.mark.parametrize("check", [*CHECKS, reference_check()], ids=name_of)
def test_constant_cells_change_only_the_cost(check: Check) -> None:
    """The same states in the same order, whether or not cells that never change are left out."""
    plain, short = (compile_check(check, constants=constants) for constants in (False, True))
    expected, found = (search(compiled, until=()) for compiled in (plain, short))
    assert sum(place.bits for place in short.packing.places) <= sum(place.bits for place in plain.packing.places)
    assert found.complete and (found.states, found.transitions) == (expected.states, expected.transitions)
    assert (found.depth, found.counts, found.hits) == (expected.depth, expected.counts, expected.hits)
    assert (found.violated, found.reached, found.deadlock) == (expected.violated, expected.reached, expected.deadlock)
    for position in range(0, found.states, max(1, found.states // 50)):
        assert found.path_to(position) == expected.path_to(position)
        assert found.position_of(found.path_to(position)[-1]) == position


def test_optimised_code_equals_quick_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from draincheck.explorer.search import search as module

    check = reference_check(rooms=2, ranks=1, chunks=2, slots=3)
    quick = search(check, until=())
    monkeypatch.setattr(module, "OPTIMISE_FROM", 0)
    optimised = search(check, until=())
    assert (quick.states, quick.transitions, quick.counts, quick.hits) == (
        optimised.states,
        optimised.transitions,
        optimised.counts,
        optimised.hits,
    )


def test_reference_counts() -> None:
    found = search(reference_check(), until=())
    assert (found.states, found.transitions, found.counts["no_late_write"]) == (581_821, 1_983_016, 0)
    assert found.complete


@pytest.mark.slow
def test_timed_reference_counts() -> None:
    found = search(reference_check(1), until=())
    assert (found.states, found.transitions) == (76_396_202, 449_983_998)
    assert found.counts["no_late_write"] == 34_693_546
    assert found.complete
