"""Runs that go wrong, made shorter: still runs, still wrong, nothing left to leave out, and close to the shortest."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import toys
from draincheck.explorer.search.search import search
from draincheck.explorer.traces.trace import ReplayError, rerun
from draincheck.explorer.walks.shorten import _Runner, shorten  # pyright: ignore[reportPrivateUsage]
from draincheck.properties.drain.cases import cases_of
from draincheck.protocol.language import Faults
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Step, Values
from draincheck.protocol.language.property import Property


def failing(check: Check, prop: Property) -> Callable[[Values], bool]:
    return lambda values: prop.violation(check.model, values) is not None


def random_run(model: Model, wrong: Callable[[Values], bool], seed: int, depth: int = 300) -> tuple[Values, list[Step]]:
    """A random run to a state that is wrong: an instance, then an option."""
    chance = random.Random(seed)
    while True:
        values = initial = chance.choice(model.initial_states())
        taken: list[Step] = []
        while len(taken) < depth and not wrong(values):
            options: dict[str, list[Step]] = {}
            for step in model.steps(values):
                options.setdefault(step.instance.label, []).append(step)
            if not options:
                break
            taken.append(chance.choice(chance.choice(list(options.values()))))
            values = taken[-1].values
        if wrong(values):
            return initial, taken


def executed(model: Model, initial: Values, steps: list[Step]) -> list[Values]:
    again = rerun(model, initial, [(step.instance.label, step.chosen) for step in steps])
    assert [step.values for step in again] == [step.values for step in steps]
    return [initial, *(step.values for step in again)]


def without_loops_plainly(initial: Values, run: list[Step]) -> list[Step]:
    kept: dict[Values, list[Step]] = {initial: []}
    steps: list[Step] = []
    for step in run:
        steps = kept.setdefault(step.values, [*steps, step])
    return steps


@pytest.mark.parametrize("seed", range(20))
def test_loops_are_cut_as_the_plain_way_cuts_them(seed: int) -> None:
    model, chance = toys.arithmetic().model, random.Random(seed)
    values = initial = model.initial_states()[0]
    run: list[Step] = []
    for _ in range(80):
        run.append(chance.choice(list(model.steps(values))))
        values = run[-1].values
    short = _Runner(model, initial, lambda values: False).without_loops(run)
    assert short == without_loops_plainly(initial, run) and len(short) < len(run)


def shortest(check: Check, prop: Property) -> int:
    found = search(check, until={prop.name})
    return len(found.path_to(found.violated[prop.name])) - 1


TOYS = [
    (toys.ring(Faults(reordering=2)), "in_order"),
    (toys.ring(Faults(loss=1, duplication=1, reordering=1), nodes=3), "in_order"),
    (toys.arithmetic(), "never_all_six"),
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("check", "name"), TOYS, ids=lambda each: getattr(each, "model", None) and each.model.name)
def test_a_shortened_run_is_a_run_that_goes_wrong_and_needs_each_step(check: Check, name: str, seed: int) -> None:
    (prop,) = (each for each in check.properties if each.name == name)
    wrong = failing(check, prop)
    initial, taken = random_run(check.model, wrong, seed)
    steps = shorten(check.model, initial, taken, wrong)
    states = executed(check.model, initial, steps)
    assert [wrong(values) for values in states] == [False] * len(steps) + [True]
    assert len(set(states)) == len(states)
    assert shortest(check, prop) <= len(steps) <= len(taken)
    for left_out in range(len(steps)):
        kept = [(step.instance.label, step.chosen) for step in (*steps[:left_out], *steps[left_out + 1 :])]
        try:
            less = rerun(check.model, initial, kept)
        except ReplayError:
            continue
        assert not wrong(less[-1].values if less else initial)
    assert shorten(check.model, initial, taken, wrong) == steps
    assert shorten(check.model, initial, steps, wrong) == steps


@pytest.mark.parametrize("scenario", ["abort", "failed-send"])
def test_runs_of_a_release_become_about_as_short_as_the_shortest(scenario: str) -> None:
    (case,) = cases_of("sglang-0.5.18-mooncake", [scenario], timer=False)
    check = case.untimed.check
    (prop,) = (each for each in check.properties if each.name == "no_late_write")
    least = shortest(check, prop)
    for seed in (0, 3):
        initial, taken = random_run(check.model, failing(check, prop), seed)
        steps = shorten(check.model, initial, taken, failing(check, prop))
        assert least <= len(steps) <= least + 3
        executed(check.model, initial, steps)


def test_a_loop_is_cut_and_what_comes_behind_the_failure_too() -> None:
    """Twice round a door, and on after somebody is inside: two steps are enough."""
    check = toys.door(turns=False)
    model = check.model

    def inside(values: Values) -> bool:
        return toys.Stage.INSIDE in values[:2]

    (initial,) = model.initial_states()
    first = ["ask(n=0)", "ask(n=1)", "enter(n=1)", "leave(n=1)", "ask(n=1)", "enter(n=1)"]
    taken = rerun(model, initial, [(label, ()) for label in first])
    assert [step.instance.label for step in shorten(model, initial, taken, inside)] == ["ask(n=1)", "enter(n=1)"]


def test_a_run_of_no_steps_may_go_wrong() -> None:
    check = toys.ring()
    (initial,) = check.model.initial_states()
    taken = [next(check.model.steps(initial))]
    assert shorten(check.model, initial, taken, lambda values: values == initial) == []


def test_a_run_that_does_not_go_wrong_is_refused() -> None:
    check = toys.ring()
    (initial,) = check.model.initial_states()
    with pytest.raises(ReplayError, match="does not go wrong"):
        shorten(check.model, initial, [next(check.model.steps(initial))], lambda values: False)
    sent = next(check.model.steps(initial))
    received = next(step for step in check.model.steps(sent.values) if step.instance.action.name == "receive")
    with pytest.raises(ReplayError, match="or is none"):
        shorten(check.model, initial, [received, sent], lambda values: values == sent.values)
