"""Random walks: the same as a plain walk in Python, whatever the batch; what they find is so, and they find it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import oracle
import pytest
import toys
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.commands.simulation_report import exit_code, walk
from draincheck.explorer.search.search import compile_check, search
from draincheck.explorer.traces.storage import load
from draincheck.explorer.traces.trace import follow
from draincheck.explorer.verdicts.verify import Verdict
from draincheck.explorer.walks import swarm as module
from draincheck.explorer.walks.swarm import Plan, Scheduler, Sighting, Simulation, simulate
from draincheck.models.small import reference as reference_properties
from draincheck.models.small.reference import reference
from draincheck.properties.case import Question
from draincheck.properties.drain.cases import cases_of
from draincheck.protocol.language import DeclarationError, DomainFault, Faults, State, action, require, upto
from draincheck.protocol.language import field as cell
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Step, Values
from draincheck.protocol.language.property import claim, invariant

OLD, NEWEST = "sglang-0.5.18-mooncake", "sglang-0.5.23-mooncake"


def drain_check(profile: str, scenario: str = "abort", **sizes: int) -> Check:
    (case,) = cases_of(profile, [scenario], timer=False, **sizes)
    return case.untimed.check


def small_reference() -> Check:
    return Check(
        reference(rooms=2, ranks=1, chunks=1, slots=2),
        (reference_properties.no_late_write,),
        (reference_properties.drained_while_held,),
    )


# The plain way: one walk after the other, by direct execution.

WORD = 2**64 - 1


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def draw(key: int, what: int) -> int:
    return mix(key + (what + 1) * 0x9E3779B97F4A7C15 & WORD)


@dataclass
class Plain:
    """What a simulation counts."""

    hits: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    walks: int = 0
    deepest: int = 0


class PlainWalk:
    """One walk from its start."""

    def __init__(self, check: Check, plan: Plan, walker: int, number: int) -> None:
        self.model = check.model
        self.key = draw(draw(mix(plan.seed), walker), number)
        initial = self.model.initial_states()
        self.values = initial[(draw(self.key, 2**32) % 2**32) * len(initial) >> 32]
        self.age = 0
        lanes = list(dict.fromkeys(instance.lane for instance in self.model.instances))
        self.priorities = dict.fromkeys(lanes, 0)
        self.points: list[int] = []
        if plan.scheduler is Scheduler.PRIORITY or (plan.scheduler is Scheduler.MIXED and walker % 2):
            halvings = (draw(self.key, 2**32 + 1) % 2**32) * plan.depth.bit_length() >> 32
            words = [draw(self.key, 2**32 + 2 + n) for n in range(plan.changes + len(lanes))]
            length = plan.depth >> halvings
            self.points = [1 + ((word % 2**32) * length >> 32) for word in words[: plan.changes]]
            for number_of_lane, (lane, word) in enumerate(zip(lanes, words[plan.changes :], strict=True)):
                self.priorities[lane] = ((word | 1 << 63) >> 16 << 16) + number_of_lane

    def step(self) -> Step | None:
        """Takes a step; None if there is none."""
        steps = list(self.model.steps(self.values))
        if not steps:
            return None
        best = max(self.priorities[step.instance.lane] for step in steps)
        options: dict[str, list[Step]] = {}
        for step in steps:
            if self.priorities[step.instance.lane] == best:
                options.setdefault(step.instance.label, []).append(step)
        word = draw(self.key, self.age)
        chosen = list(options.values())[(word >> 32) * len(options) >> 32]
        step = chosen[(word % 2**32) * len(chosen) >> 32]
        self.age += 1
        self.values = step.values
        for number, point in enumerate(self.points, 1):
            if point == self.age:
                self.priorities[step.instance.lane] = number
        return step


def is_stuck(model: Model, values: Values) -> bool:
    return not model.is_terminal(values) and next(model.steps(values), None) is None


def plain_simulation(check: Check, plan: Plan) -> Plain:
    """All walkers, one after the other, each for its turns."""
    assert plan.steps is not None
    result = Plain()
    predicates = {prop.name: prop for prop in check.properties}

    def look(walk: PlainWalk, walker: int, number: int) -> None:
        here = (walk.age, walker, number)
        for name, prop in predicates.items():
            if prop.violation(check.model, walk.values):
                result.counts[name] += 1
                result.seen[name] = min(here, result.seen.get(name, here))
        for probe in check.probes:
            result.counts[probe.name] += probe.holds(check.model, walk.values)

    for walker in range(plan.walks):
        number, last = 0, ""
        current = PlainWalk(check, plan, walker, number)
        look(current, walker, number)
        for _ in range(plan.steps // plan.walks + (walker < plan.steps % plan.walks)):
            step = current.step() if current.age < plan.depth else None
            if step is None:
                if check.deadlock and is_stuck(check.model, current.values):
                    here = (current.age, walker, number)
                    result.seen["deadlock"] = min(here, result.seen.get("deadlock", here))
                number, last = number + 1, ""
                current = PlainWalk(check, plan, walker, number)
            else:
                name = step.instance.action.name
                result.hits[name] += 1
                if last:
                    result.pairs[last, name] += 1
                last = name
                result.deepest = max(result.deepest, current.age)
            look(current, walker, number)
        result.walks += number + 1
    return result


def facts(found: Simulation) -> tuple[object, ...]:
    """All that must not depend on the machine."""
    return (
        found.turns, found.steps, found.walks, found.deepest, found.hits, found.pairs, found.counts, found.violated,
        found.deadlock,
    )  # fmt: skip


CHECKS = [
    toys.ring(),
    toys.ring(Faults(loss=1, duplication=1, reordering=1), nodes=3),
    toys.counter(3),
    toys.arithmetic(),
    toys.door(turns=True),
    small_reference(),
    drain_check(OLD),
    drain_check(NEWEST, "failed-send", chunks=1),
]


def named(check: Check) -> str:
    return check.model.name.replace(" ", "")


@pytest.mark.parametrize("scheduler", list(Scheduler))
@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_a_swarm_does_what_plain_walks_do(check: Check, scheduler: Scheduler) -> None:
    plan = Plan(seed=7, walks=6, depth=23, scheduler=scheduler, changes=2, steps=6 * 60 + 4)
    found, expected = simulate(check, plan, until=(), batch=4), plain_simulation(check, plan)
    assert {name: count for name, count in found.hits.items() if count} == expected.hits
    assert found.pairs == expected.pairs
    assert found.counts == {name: expected.counts[name] for name in found.counts}
    assert (found.turns, found.walks, found.deepest) == (plan.steps, expected.walks, expected.deepest)
    seen = {name: (at.depth, at.walker, at.walk) for name, at in found.violated.items()}
    if found.deadlock:
        seen["deadlock"] = (found.deadlock.depth, found.deadlock.walker, found.deadlock.walk)
    assert seen == expected.seen


@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_what_is_found_depends_on_the_seed_and_not_on_the_batch_or_the_code(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_check(check)
    plan = Plan(seed=1, walks=50, steps=30_000)
    expected = facts(simulate(compiled, plan, until=(), batch=256))
    assert all(facts(simulate(compiled, plan, until=(), batch=batch)) == expected for batch in (1, 7, 50))
    if check.model.name != "counter":  # which leaves nothing to chance but its start
        assert facts(simulate(compiled, Plan(seed=2, walks=50, steps=30_000), until=())) != expected
    monkeypatch.setattr(module, "OPTIMISE_FROM", 0)
    monkeypatch.setattr(module, "TURNS_AT_ONCE", 5_000)
    other = simulate(compiled, plan, until=())
    assert facts(other)[:7] == expected[:7]
    assert other.violated.keys() == simulate(compiled, plan, until=()).violated.keys()


def test_a_run_limited_by_time_is_the_one_with_as_many_steps() -> None:
    compiled = compile_check(small_reference())
    timed = simulate(compiled, Plan(seed=3, seconds=0.05))
    assert timed.stopped == "0.05 s are over"
    assert facts(simulate(compiled, Plan(seed=3, steps=timed.turns))) == facts(timed)


def walks_of(check: Check, plan: Plan, walkers: int, each: int) -> list[list[Values]]:
    """The first walks of the first walkers, to their ends."""
    found = simulate(check, plan, until=())
    lengths: dict[tuple[int, int], int] = {}
    for walker in range(walkers):
        for number in range(each):
            again = PlainWalk(check, plan, walker, number)
            while again.age < plan.depth and again.step():
                pass
            lengths[walker, number] = again.age
    return [found.path_to(Sighting(*which, length)) for which, length in lengths.items()]


@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_walks_are_runs_through_reachable_states(check: Check) -> None:
    found = search(Check(check.model, check.properties, check.probes, deadlock=False), until=())
    for states in walks_of(check, Plan(walks=4, depth=60, steps=4), 4, 3):
        assert len(follow(check.model, states)) == len(states) - 1
        assert all(found.position_of(values) is not None for values in states)


@pytest.mark.parametrize("scheduler", [Scheduler.UNIFORM, Scheduler.MIXED])
@pytest.mark.parametrize("check", [*CHECKS[:3], CHECKS[4], small_reference()], ids=named)
def test_enough_steps_cover_a_small_model(check: Check, scheduler: Scheduler) -> None:
    """Exactly the pairs of actions that are possible, every action, and everything that fails or is reached."""
    steps = oracle.every_step(check)
    possible = {
        (step.instance.action.name, after.instance.action.name)
        for taken in steps.values()
        for step in taken
        for after in steps[step.values]
    }
    found = simulate(check, Plan(scheduler=scheduler, steps=1_000_000), until=())
    assert set(found.pairs) == possible
    expected = oracle.explore(check)
    assert {name for name, count in found.hits.items() if count} == {n for n, count in expected.hits.items() if count}
    assert found.violated.keys() == expected.violated.keys()
    assert {name for name, count in found.counts.items() if count} == {n for n, c in expected.counts.items() if c}
    assert (found.deadlock is not None) == (check.deadlock and expected.deadlocks > 0)


def test_walks_come_to_every_state_of_a_small_model() -> None:
    check = toys.ring(Faults(loss=1))
    visited = {values for states in walks_of(check, Plan(walks=30, steps=30), 30, 20) for values in states}
    assert visited == set(oracle.every_step(check))


def lanes_along(model: Model, states: Sequence[Values]) -> list[tuple[str, set[str]]]:
    """For each step: the lane that took it, and all that could have."""
    return [
        (step.instance.lane, {each.instance.lane for each in model.steps(values)})
        for values, step in zip(states, follow(model, states), strict=False)
    ]


def agrees_with_an_order(turns: Sequence[tuple[str, set[str]]], but_for: str = "") -> bool:
    """Whether some order of the lanes has always the highest enabled one run, a lane left out of account."""
    above = nx.DiGraph()
    for lane, enabled in turns:
        if lane != but_for:
            above.add_edges_from((lane, other) for other in enabled - {lane, but_for})
    return nx.is_directed_acyclic_graph(above)


@pytest.mark.parametrize("check", [small_reference(), drain_check(NEWEST, chunks=1), toys.door(turns=True)], ids=named)
def test_priorities_decide_until_the_one_change(check: Check) -> None:
    """Without changes the lanes keep an order. With one, whoever took the step there comes last from then on."""
    for states in walks_of(check, Plan(scheduler=Scheduler.PRIORITY, changes=0, walks=8, depth=40, steps=8), 8, 2):
        assert agrees_with_an_order(lanes_along(check.model, states))
    changed = 0
    for states in walks_of(check, Plan(scheduler=Scheduler.PRIORITY, changes=1, walks=8, depth=40, steps=8), 8, 2):
        turns = lanes_along(check.model, states)
        if agrees_with_an_order(turns):
            continue
        changed += 1

        def falls(at: int, turns: list[tuple[str, set[str]]] = turns) -> bool:
            fallen = turns[at - 1][0]
            last = all(enabled == {fallen} for lane, enabled in turns[at:] if lane == fallen)
            others = [turn for turn in turns[at:] if turn[0] != fallen]
            before = nx.DiGraph((lane, other) for lane, enabled in turns[:at] for other in enabled - {lane})
            before.add_edges_from((lane, other) for lane, enabled in others for other in enabled - {lane, fallen})
            return last and nx.is_directed_acyclic_graph(before)

        assert any(falls(at) for at in range(1, len(turns) + 1))
    assert changed or check.model.name == "door"


# What is found.


def question_of(check: Check) -> Question:
    return Question(check, (), {})


@pytest.mark.parametrize(
    ("profile", "scenario", "scheduler", "seed"),
    [
        *((OLD, "abort", scheduler, seed) for scheduler in Scheduler for seed in range(3)),
        (OLD, "failed-send", Scheduler.MIXED, 0),
        ("sglang-0.5.20-mooncake", "abort", Scheduler.MIXED, 0),
        ("sglang-0.5.21-mooncake", "failed-send", Scheduler.MIXED, 0),
    ],
)
def test_a_violation_is_found_and_shortened(profile: str, scenario: str, scheduler: Scheduler, seed: int) -> None:
    (case,) = cases_of(profile, [scenario], timer=False)
    exhaustive = search(case.untimed.check, until=())
    plan = Plan(seed=seed, scheduler=scheduler, steps=20_000_000)
    row = walk(case.profile, case.scenario, case.untimed, Verdict.CORRUPTS, plan)
    assert row.findings[0].verdict is Verdict.CORRUPTS and row.subject == "no_late_write"
    assert exit_code([row]) == 1
    for each in (*row.findings, *row.weaknesses):
        shortest = len(exhaustive.path_to(exhaustive.violated[each.subject])) - 1
        assert shortest <= len(each.trace) <= shortest + 4, each.subject
        assert len(each.trace) <= row.simulation.violated[each.subject].depth


@pytest.mark.parametrize("seed", range(3))
def test_what_holds_is_never_reported(seed: int) -> None:
    for check in (toys.ring(), small_reference(), drain_check(NEWEST, "failed-send")):
        found = simulate(check, Plan(seed=seed, steps=500_000))
        assert not found.violated and found.deadlock is None and found.stopped == "500,000 steps taken"
        assert exit_code([walk("p", "s", question_of(check), Verdict.CORRUPTS, found.plan)]) == 3


class Walk(State[None]):
    """A walker."""

    at = cell(upto(9), means="where the walker is")


@action("walker")
def forward(s: Walk) -> None:
    """One step on, up to the seventh."""
    require(s.at < 7)
    s.at += 1


@action("walker")
def leap(s: Walk) -> None:
    """Leaps too far."""
    require(s.at == 5)
    s.at = s.at + 5


def walker(*actions: Any) -> Check:
    return Check(Model(name="walk", state=Walk, actions=actions, sizes={}), ())


def test_a_deadlock_is_found_with_its_way() -> None:
    row = walk("walk", "test", question_of(walker(forward)), Verdict.CORRUPTS, Plan(walks=3, steps=300))
    assert row.stuck is not None and row.stuck.kind == "deadlock" and len(row.stuck) == 7
    assert exit_code([row]) == 3 and row.subject == "no_deadlock"
    assert row.simulation.deadlock == Sighting(0, 0, 7)


def test_a_walk_that_is_cut_off_is_no_deadlock() -> None:
    found = simulate(walker(forward), Plan(walks=3, depth=7, steps=300))
    assert found.deepest == 7 and found.deadlock is not None
    found = simulate(walker(forward), Plan(walks=3, depth=6, steps=300))
    assert found.deepest == 6 and found.deadlock is None


@pytest.mark.parametrize("batch", [1, 256])
def test_a_step_that_breaks_the_rules_is_an_error_with_its_values(batch: int) -> None:
    with pytest.raises(DomainFault, match=r"leap\(\): at may hold 0 \.\. 9; 10 was assigned"):
        simulate(walker(forward, leap), Plan(steps=10_000), batch=batch)


def test_an_initial_state_may_violate_a_property_or_have_no_step() -> None:
    @invariant
    def on_its_way(s: Walk) -> None:
        """The walker has left."""
        claim(s.at > 0, "the walker has left", at=s.at)

    found = simulate(Check(walker(forward).model, (on_its_way,)), Plan(walks=2, steps=10))
    assert (found.violated, found.stopped, found.steps) == ({"on_its_way": Sighting(0, 0, 0)}, "violation found", 0)
    assert found.path_to(found.violated["on_its_way"]) == [(0,)]
    stuck = simulate(walker(leap), Plan(walks=2, steps=10))
    assert (stuck.deadlock, stuck.steps, stuck.walks) == (Sighting(0, 0, 0), 0, 12)


def test_interruption_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(at: Simulation) -> None:
        raise KeyboardInterrupt

    plan = Plan(seconds=60)
    monkeypatch.setattr(module, "PROGRESS_SECONDS", 0.0)
    found = simulate(small_reference(), plan, progress=interrupt)
    assert found.stopped == "interrupted" and found.steps > 0 and found.turns > 0


@pytest.mark.parametrize(
    "wrong",
    [{"seed": -1}, {"seed": 2**64}, {"walks": 0}, {"depth": 0}, {"changes": -1}, {"steps": 0}, {"seconds": 0.0}],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=next(iter(wrong))):
        Plan(**wrong)


# The command.


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", *(str(each) for each in arguments)])


def document(*arguments: object) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    for row in result["rows"]:
        row.pop("seconds")
    return result


@pytest.mark.slow
def test_the_same_seed_and_steps_print_the_same() -> None:
    arguments = (OLD, NEWEST, "--scenario", "abort", "--steps", 300_000)
    first = document(*arguments, "--seed", 4)
    assert first == document(*arguments, "--seed", 4)
    assert first["rows"] != document(*arguments, "--seed", 5)["rows"]
    assert (first["format"], first["version"], first["seed"]) == ("draincheck-simulate", 1, 4)
    assert [row["verdict"] for row in first["rows"]] == ["CORRUPTS", "UNDETERMINED"]


def test_the_documented_fields_are_the_ones_printed() -> None:
    printed = document(OLD, "--scenario", "abort", "--steps", 300_000)
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    section = text.split("draincheck simulate --json")[1].split("\n# ")[0]
    (row,) = printed["rows"]
    for name in (*printed, *row, *row["findings"][0], "seconds"):
        assert f"`{name}`" in section, name


def test_a_failure_is_shown_saved_and_shown_again(tmp_path: Path) -> None:
    result = run(OLD, "--scenario", "abort", "--steps", 300_000, "--save", tmp_path)
    assert result.exit_code == 1
    assert "no_late_write is violated after 17 steps" in result.stdout and "CORRUPTS" in result.stdout
    (path,) = tmp_path.glob("*no_late_write.trace.json")
    assert str(path) in result.stderr and len(load(path)) == 17


def test_nothing_found_decides_nothing() -> None:
    result = run(NEWEST, "--scenario", "failed-send", "--steps", 3_000)
    assert result.exit_code == 3
    assert "nothing found" in result.stdout and "That is no proof" in result.stdout and "SAFE" not in result.stdout
    assert "weaker for it: never happened: " in result.stdout
    assert "the same again: --seed 0 --steps 3000 --scheduler mixed" in result.stdout


def test_the_release_timer_is_asked_for() -> None:
    """Firing at any moment it is why a write is late; in the reference model too."""
    result = run(NEWEST, "--scenario", "abort", "--release-timer", "any", "--steps", 2_000_000)
    assert result.exit_code == 1 and "CONDITIONAL" in result.stdout and "fires at any moment" in result.stdout
    late = run(NEWEST, "--scenario", "abort", "--release-timer", "late", "--steps", 100_000)
    assert late.exit_code == 3 and "fires once the writes of the room are over" in late.stdout
    (row,) = document("reference", "--timer", 1, "--steps", 1_000_000)["rows"]
    assert row["verdict"] == "CONDITIONAL" and row["bounds"]["release timer"] == "1 ticks"
    (row,) = document("reference", "--steps", 100_000)["rows"]
    assert row["verdict"] == "UNDETERMINED" and row["bounds"]["release timer"] == "off"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "no such profile"),
        (("--scenario", "storm"), "no scenario is called storm"),
        (("--steps", "0"), "steps is 0; allowed are whole numbers from 1"),
        (("--steps", "many"), "is not a valid integer"),
        (("--seconds", "0"), "seconds=0.0 must be greater than 0"),
        (("--seconds", "nan"), "seconds=nan must be greater than 0, and finite"),
        (("--seed", "-1"), "seed is -1"),
        (("--walks", "0"), "walks is 0"),
        (("--walks", "2000000"), "walks is 2000000; allowed are whole numbers from 1 to 1048576"),
        (("--depth", "0"), "depth is 0"),
        (("--changes", "65"), "changes is 65"),
        (("--scheduler", "fair"), "'fair' is not one of"),
        (("--timer", "1"), "--timer belongs to the reference model"),
        (("reference", "--release-timer", "any"), "the reference model takes --timer TICKS"),
        (("reference", "--chunks", "2"), "the reference model has fixed sizes"),
        (("--chunks", "0"), "chunks is 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr and "Traceback" not in result.output


def test_interruption_prints_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from draincheck.explorer.commands import simulation_report as report

    first = report.walk
    calls: list[object] = []

    def interrupted(*arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return first(*arguments, **more)

    monkeypatch.setattr(report, "walk", interrupted)
    result = run(NEWEST, "--steps", 1000)
    assert result.exit_code == 130
    assert "nothing found" in result.stdout and "interrupted; 1 rows are not known" in result.stderr
