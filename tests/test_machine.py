"""Random runs: the Hypothesis machine, what it finds and how short it gets, long runs, traces as tests, `explore`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import oracle
import pytest
import toys
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.compile.tracer import trace
from draincheck.explorer.search.search import search
from draincheck.explorer.traces.render_pytest import pytest_source
from draincheck.explorer.traces.storage import dump, load
from draincheck.explorer.traces.trace import (
    Trace,
    deadlock_trace,
    follow,
    promise_trace,
    violation_trace,
    witness_trace,
)
from draincheck.explorer.verdicts.verify import verify
from draincheck.explorer.walks.campaign import campaign
from draincheck.explorer.walks.failure import Failure, groups_of
from draincheck.explorer.walks.machine import Failed, state_machine
from draincheck.explorer.walks.pace import DRAWS, Pace, pick_of, possible_steps
from draincheck.explorer.walks.thin import thinned
from draincheck.explorer.walks.walk import Walk
from draincheck.models.drain.scenario import SCENARIOS
from draincheck.models.small import reference as reference_properties
from draincheck.models.small.reference import reference
from draincheck.properties.case import Question
from draincheck.properties.drain.cases import cases_of
from draincheck.properties.drain.given_back import all_given_back
from draincheck.properties.small import reference_case
from draincheck.protocol.language import DeclarationError, Faults, action
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model
from hypothesis import settings

SMALL_REFERENCE = Check(
    reference(rooms=2, ranks=1, chunks=1, slots=2),
    (reference_properties.no_late_write,),
    (reference_properties.drained_while_held,),
)
NEWEST = "sglang-0.5.23-mooncake"


def untimed(profile: str, scenario: str, only: str = "") -> Question:
    question = cases_of(profile, [scenario], timer=False)[0].untimed
    kept = tuple(each for each in question.check.properties if not only or each.name == only)
    return replace(question, check=replace(question.check, properties=kept))


def run_machine(asked: Check | Question, examples: int = 100, seed: int = 1, **more: Any) -> Failure | None:
    machine = state_machine(asked, seed_with=seed, **more)
    machine.TestCase.settings = settings(
        machine.TestCase.settings, max_examples=examples, database=None, report_multiple_bugs=False
    )
    try:
        machine.TestCase("runTest").runTest()
    except Failed as failed:
        return failed.failure
    return None


# The walk: what is kept is what would be found anew.

WALKED = [
    toys.ring(Faults(loss=1, duplication=1, reordering=1), nodes=3),
    toys.arithmetic(),
    toys.counter(5),
    SMALL_REFERENCE,
    untimed("sglang-0.5.18-mooncake", "failed-send").check,
    untimed(NEWEST, "abort").check,
    untimed(NEWEST, "lost-report").check,
]


@pytest.mark.parametrize("check", WALKED, ids=lambda check: check.model.name.replace(" ", ""))
def test_a_walk_is_what_plain_steps_are(check: Check) -> None:
    chance = random.Random(3)
    model = check.model
    walk = Walk(model, check.properties, chance.choice(model.initial_states()))
    for _ in range(120):
        values = walk.values
        expected = {
            number: [(step.chosen, step.values) for step in model.steps_of(instance, values)]
            for number, instance in enumerate(model.instances)
        }
        assert walk.enabled() == [number for number, steps in expected.items() if steps]
        broken = [each for each in check.properties if each.violation(model, values)]
        assert walk.violated() == (broken[0] if broken else None)
        assert walk.is_stuck() == (not any(expected.values()) and not model.is_terminal(values))
        enabled = walk.enabled()
        if not enabled:
            walk = Walk(model, check.properties, chance.choice(model.initial_states()))
            continue
        number = chance.choice(enabled)
        at = chance.randrange(len(expected[number]))
        other = walk.fork()
        other.take(number, other.moves(number)[at])
        assert walk.values == values
        walk.take(number, walk.moves(number)[at])
        assert (walk.taken[-1][1], walk.values) == expected[number][at] and other.values == walk.values


def test_instances_that_are_excluded_are_tried_when_they_are_asked_for_again() -> None:
    walk = Walk(SMALL_REFERENCE.model, (), SMALL_REFERENCE.model.initial_states()[0])
    first = walk.enabled()
    walk = Walk(SMALL_REFERENCE.model, (), SMALL_REFERENCE.model.initial_states()[0])
    assert walk.enabled(excluded=first) == [] and walk.can_move()
    assert walk.enabled() == first


# Pace.


def test_weights_are_those_of_threads_and_environment_steps_and_zero_is_even() -> None:
    check = untimed(NEWEST, "abort").check
    pace = Pace(check)
    assert set(pace.weights(0)) == {1}
    names = {check.model.instances[number].action.name for number in pace.unfair}
    assert names == set(check.unfair_actions)
    uneven = [pace.weights(temper) for temper in range(1, 40)]
    assert len({tuple(weights) for weights in uneven}) == 39
    for weights in uneven:
        by_lane: dict[str, set[int]] = {}
        for number, instance in enumerate(check.model.instances):
            if number not in pace.unfair:
                by_lane.setdefault(instance.lane, set()).add(weights[number])
        assert all(len(each) == 1 for each in by_lane.values())


def test_a_pick_is_as_likely_as_its_weight_and_zero_is_the_first() -> None:
    check = toys.arithmetic()
    walk = Walk(check.model, (), check.model.initial_states()[0])
    weights = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1][: len(check.model.instances)]
    possible = possible_steps(walk, weights, ())
    counts = Counter(pick_of(possible, pick, DRAWS).number for pick in range(0, DRAWS, 7))
    assert pick_of(possible, 0, DRAWS) is possible[0]
    assert {each.number for each in possible} == set(counts)
    assert counts[1] > counts[0]


# What is found, and how long it is.


@pytest.mark.parametrize(
    ("asked", "subject", "beyond"),
    [
        (toys.ring(Faults(reordering=2)), "in_order", 0),
        (toys.arithmetic(), "never_all_six", 3),
        (untimed("sglang-0.5.18-mooncake", "abort", "no_late_write"), "no_late_write", 3),
        (untimed("sglang-0.5.20-mooncake", "failed-send", "no_late_write"), "no_late_write", 3),
        (untimed("sglang-0.5.18-mooncake", "failed-send", "failed_rooms_stay_failed"), "failed_rooms_stay_failed", 3),
    ],
    ids=["ring", "arithmetic", "abort", "failed-send", "means"],
)
def test_a_violation_is_found_and_gets_nearly_as_short_as_the_shortest(
    asked: Check | Question, subject: str, beyond: int
) -> None:
    check = asked.check if isinstance(asked, Question) else asked
    found = search(check)
    shortest = len(found.path_to(found.violated[subject])) - 1
    failure = run_machine(asked, 400)
    assert failure is not None and failure.subject == subject
    assert shortest <= len(failure.trace) <= shortest + beyond
    assert f"Found with seed 1: {len(failure.taken)} steps" in failure.text
    assert failure.trace.violation is not None and failure.trace.violation.conjunct in failure.text


def name_of(check: Check) -> str:
    return check.model.name.replace(" ", "")


SOUND = [toys.ring(), toys.ring(Faults(loss=1)), toys.counter(4), SMALL_REFERENCE]


@pytest.mark.parametrize("check", SOUND, ids=name_of)
def test_nothing_is_found_where_nothing_fails(check: Check) -> None:
    assert not oracle.explore(check).violated
    assert run_machine(check, 20) is None


def stuck_ring() -> Check:
    """A ring that is not allowed to end."""
    return replace(toys.ring(), model=replace(toys.ring().model, terminal=lambda s: False))


def test_a_deadlock_is_found() -> None:
    failure = run_machine(stuck_ring(), 20)
    assert failure is not None and failure.subject == "no_deadlock"
    found = search(stuck_ring())
    assert found.deadlock is not None
    assert len(failure.trace) == len(found.path_to(found.deadlock)) - 1
    assert "nothing can happen any more" in failure.text
    assert run_machine(replace(stuck_ring(), deadlock=False), 20) is None


@action("sender")
def send_too_much(s: toys.Ring) -> None:
    """Counts on when the receiver has had its second number."""
    if s.last == 2:
        s.sent += 3


def faulty_ring() -> Check:
    return replace(toys.ring(), model=replace(toys.ring().model, actions=(toys.send, toys.receive, send_too_much)))


def test_a_step_that_breaks_the_rules_is_found() -> None:
    failure = run_machine(faulty_ring(), 20)
    assert failure is not None and failure.subject == "no_fault"
    assert len(failure.trace) == 4
    assert "send_too_much(): sent may hold 0 .. 3; 5 was assigned" in failure.text
    assert "a step breaks the rules after 4 steps" in failure.text


def test_the_seed_decides_what_is_found_and_how_often() -> None:
    asked = untimed("sglang-0.5.18-mooncake", "abort", "no_late_write")
    counts: list[int] = []

    def count(walk: Walk) -> None:
        counts[-1] += 1

    found: list[Failure | None] = []
    for seed in (1, 1, 4):
        counts.append(0)
        found.append(run_machine(asked, 100, seed, watch=count))
    assert all(found)
    assert (found[0].taken, counts[0]) == (found[1].taken, counts[1]) != (found[2].taken, counts[2])  # type: ignore


def test_without_environment_steps_none_is_taken() -> None:
    fired: set[str] = set()

    def note(walk: Walk) -> None:
        fired.update(label.split("(")[0] for label, _ in walk.recipe()[-1:])

    asked = untimed(NEWEST, "abort")
    assert run_machine(asked, 5, faults=0, watch=note) is None
    assert fired and not fired & set(asked.check.unfair_actions)


@pytest.mark.slow
def test_a_default_run_fires_every_action_and_reaches_what_is_deep() -> None:
    """As docs/random-testing.md says: all actions, all probes, and more than a twentieth of the 20,704 states."""
    result = explore(NEWEST, "--seed", 1, "--json")
    assert result.exit_code == 3
    met = json.loads(result.stdout)
    assert met["never_fired"] == [] and all(met["hits"].values())
    assert set(met["reached"]) == {"live_write_of_ended_request", "drained_hold", "reuse_after_drain", "came_to_rest"}
    assert all(met["reached"].values())
    assert met["states"] > 20_704 // 20 and met["steps"] > 10_000


TEST_FILE = """
from hypothesis import settings
from draincheck.explorer.walks.machine import state_machine
from draincheck.properties.drain.cases import cases_of
import toys
from draincheck.protocol.language import Faults

TestRing = state_machine(toys.ring()).TestCase
TestBroken = state_machine(toys.ring(Faults(reordering=2)), seed_with=1).TestCase
TestBroken.settings = settings(max_examples=20, stateful_step_count=20, database=None)
"""


@pytest.mark.parametrize(
    "runner",
    [("pytest", "-p", "no:cacheprovider", "-n0"), pytest.param(("unittest",), marks=pytest.mark.slow)],
    ids=["pytest", "unittest"],
)
def test_it_runs_under_plain_test_runners_with_plain_settings(tmp_path: Path, runner: tuple[str, ...]) -> None:
    (tmp_path / "test_mine.py").write_text(TEST_FILE, "utf-8")
    target = "test_mine.py" if runner[0] == "pytest" else "test_mine"
    done = subprocess.run(
        [sys.executable, "-m", *runner, target],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent), "PATH": ""},
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    assert "1 failed, 1 passed" in text or ("Ran 2 tests" in text and "(failures=1)" in text)
    assert "ring: in_order is violated after 5 steps" in text and "Found with seed 1" in text


# Traces as tests.


def run_pasted(source: str, **fixtures: object) -> None:
    """Runs the one function of a file."""
    names: dict[str, Any] = {}
    exec(compile(source, "pasted", "exec"), names)
    (function,) = (each for name, each in names.items() if name.startswith("test_"))
    function(**fixtures)


def verified(profile: str, scenario: str, **sizes: int) -> list[Trace]:
    (case,) = cases_of(profile, [scenario], **sizes)
    row = verify(case)
    return [each for each in (*row.traces, row.witness) if each]


@pytest.mark.parametrize(
    ("profile", "scenario", "sizes", "says"),
    [
        ("sglang-0.5.18-mooncake", "abort", {}, "cases_of('sglang-0.5.18-mooncake', ['abort'])"),
        (NEWEST, "abort", {"chunks": 1}, f"cases_of('{NEWEST}', ['abort'], chunks=1)"),
        (NEWEST, "mixed", {}, "['mixed'])"),
    ],
    ids=["old", "sized", "mixed"],
)
def test_a_pasted_trace_is_a_test_that_passes(profile: str, scenario: str, sizes: dict[str, int], says: str) -> None:
    traces = verified(profile, scenario, **sizes)
    assert traces
    for each in traces:
        source = pytest_source(each)
        assert says in source
        run_pasted(source)


def test_a_pasted_test_fails_where_the_run_does_not_show_it() -> None:
    source = pytest_source(verified("sglang-0.5.18-mooncake", "abort")[0])
    without_last = source.replace("    ('land(prefill=0, decode=0)', ()),\n]", "]")
    assert without_last != source
    with pytest.raises(AssertionError):
        run_pasted(without_last)


def test_a_trace_of_a_profile_of_ones_own_carries_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    text = CliRunner().invoke(main, ["profile", "sglang-0.5.18-mooncake"]).stdout
    mine.write_text(text.replace('name = "sglang-0.5.18-mooncake"', 'name = "mine"'), "utf-8")
    source = pytest_source(verified(str(mine), "abort")[0])
    assert "check_of(" in source and "cases_of" not in source
    run_pasted(source)


def test_reference_deadlock_fault_and_promise_are_pasted() -> None:
    question = reference_case(0).timed
    assert question is not None
    found = search(question.check)
    states = found.path_to(found.violated["no_late_write"])
    steps = follow(question.check.model, states)
    (prop,) = question.check.properties
    run_pasted(pytest_source(violation_trace(question.check.model, prop, states[0], steps, question.source)))

    for check in (stuck_ring(), faulty_ring()):
        failure = run_machine(check, 20)
        assert failure is not None
        run_pasted(pytest_source(failure.trace), check=check)
    with pytest.raises(AssertionError):
        run_pasted(pytest_source(deadlock_trace_of(stuck_ring())), check=toys.ring())

    check = toys.door(turns=False)
    initial = check.model.initial_states()[0]
    walk = Walk(check.model, (), initial)
    taken = []
    for label in ("ask(n=0)", "ask(n=1)", "enter(n=1)", "leave(n=1)", "ask(n=1)"):
        number = next(at for at, each in enumerate(check.model.instances) if each.label == label)
        taken += list(check.model.steps_of(check.model.instances[number], walk.values))
        walk.take(number, walk.moves(number)[0])
    run_pasted(pytest_source(promise_trace(check, check.promises[0], initial, taken, 2, {})), check=check)
    probe_check = toys.ring()
    reached = search(probe_check).path_to(search(probe_check, until=()).reached["second_node_has_three"])
    witness = witness_trace(
        probe_check.model, probe_check.probes[0], reached[0], follow(probe_check.model, reached), {}
    )
    run_pasted(pytest_source(witness), check=probe_check)


def deadlock_trace_of(check: Check) -> Trace:
    failure = run_machine(check, 20)
    assert failure is not None
    return deadlock_trace(check.model, failure.trace.initial, failure.trace.taken, {})


def test_show_writes_a_test(tmp_path: Path) -> None:
    path = tmp_path / "late.trace.json"
    path.write_text(dump(verified("sglang-0.5.18-mooncake", "abort")[0]), "utf-8")
    result = CliRunner().invoke(main, ["show", str(path), "--format", "pytest"])
    assert result.exit_code == 0
    assert result.stdout == pytest_source(load(path))
    run_pasted(result.stdout)


# Large sizes.


def large(profile: str, timer: str = "patient", **sizes: Any) -> Question:
    chosen = {"ranks": 4, "decode_ranks": 4, "rooms": 8, "chunks": 8, "slots": 64, "lives": "endless", **sizes}
    from draincheck.models.catalogue.profile import load_profile
    from draincheck.properties.drain.cases import drain_case

    question = getattr(drain_case(load_profile(profile), replace(SCENARIOS["abort"], **chosen)), timer)
    # One request in one slot of a rank is another one's on the next where several are admitted at once.
    kept = tuple(each for each in question.check.properties if each.name != "ranks_decide_alike")
    return replace(question, check=replace(question.check, properties=kept))


def test_sizes_beyond_a_search_run_and_are_refused_where_they_are_traced() -> None:
    model: Model = large(NEWEST).check.model
    walk = Walk(model, (), model.initial_states()[0])
    for _ in range(50):
        number = walk.enabled()[0]
        walk.take(number, walk.moves(number)[0])
    with pytest.raises(DeclarationError, match=r"8 rooms of 8 chunks.*run it directly"):
        trace(model)
    many = {"rooms": 1, "chunks": 8, "ranks": 1, "decode_ranks": 1, "lives": "one"}
    with pytest.raises(DeclarationError, match="slots is 64; a search takes at most 8"):
        trace(large(NEWEST, **many).check.model)


@pytest.mark.slow
def test_a_long_run_comes_to_rest_with_all_memory_free() -> None:
    question = large(NEWEST, rooms=2, ranks=2, decode_ranks=2, chunks=2, slots=4)
    done = campaign(question.check, 25, 3)
    assert done.failure is None
    assert done.aborts >= 25 and done.lives > 10 and done.steps > 1_000
    assert done.fired["abort"] == 2 * done.aborts and done.fired["finish"] > 0
    again = campaign(question.check, 25, 3)
    assert (again.steps, again.fired) == (done.steps, done.fired)


def test_a_long_run_that_fails_is_thinned_out_and_shown() -> None:
    asked = large("sglang-0.5.18-mooncake", "untimed", rooms=2, ranks=1, decode_ranks=1, chunks=2, slots=2)
    late = replace(asked.check, properties=tuple(p for p in asked.check.properties if p.name == "no_late_write"))
    done = campaign(late, 200, 1, asked.source)
    assert done.failure is not None and done.failure.subject == "no_late_write"
    assert len(done.failure.trace) <= 26
    run_pasted(pytest_source(done.failure.trace))


def test_memory_that_does_not_come_back_is_found_at_rest() -> None:
    """A release that forgets slots: the one that ends a hold is taken out of the model."""
    question = large(NEWEST, rooms=1, ranks=1, decode_ranks=1, chunks=1, slots=1)
    model = question.check.model
    kept = tuple(each for each in model.actions if each.name not in ("release_drained", "release_expired_late"))
    check = Check(replace(model, actions=kept), (), fair=question.check.fair_actions & {each.name for each in kept})
    done = campaign(check, 1, 1)
    assert done.failure is not None and done.failure.subject == "all_given_back"
    trace = done.failure.trace
    assert trace.violation is not None and "is free again, and not request" in trace.violation.conjunct
    assert len(trace) < len(done.failure.taken)


def test_what_befalls_a_request_befalls_it_on_all_ranks() -> None:
    question = large(NEWEST, rooms=2, ranks=2, decode_ranks=2, chunks=1, slots=2)
    instances = question.check.model.instances
    groups = {tuple(instances[number].label for number in group) for group in groups_of(question.check).values()}
    assert groups == {
        ("abort(decode=0, request=0)", "abort(decode=1, request=0)"),
        ("abort(decode=0, request=1)", "abort(decode=1, request=1)"),
    }


def test_thinned_runs_fail_at_their_end_and_nowhere_before() -> None:
    check = toys.arithmetic()
    model, chance = check.model, random.Random(2)
    start = Walk(model, (), model.initial_states()[0])
    walk = start.fork()
    for _ in range(400):
        number = chance.choice(walk.enabled())
        walk.take(number, chance.choice(walk.moves(number)))

    def fails(at: Walk) -> bool:
        return at.values[0] == 6 and len(at.taken) > 0

    short = thinned(start, walk.taken, fails)
    again = start.fork()
    for number, chosen in short:
        assert not fails(again)
        again.take(number, next(move for move in again.moves(number) if move.chosen == chosen))
    assert fails(again) and len(short) < 150 < len(walk.taken)
    assert thinned(start, walk.taken[:5], lambda at: False) == walk.taken[:5]
    assert thinned(start, walk.taken, lambda at: True) == []  # it fails where it begins


def test_a_model_that_shows_no_slots_has_given_everything_back() -> None:
    model = toys.ring().model
    assert all_given_back(model).violation(model, model.initial_states()[0]) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_132_aborts_on_four_and_four_ranks_and_every_held_slot_comes_back(seed: int) -> None:
    question = large(NEWEST)
    done = campaign(question.check, 132, seed)
    assert done.failure is None
    assert done.aborts >= 132 and done.fired["abort"] == 4 * done.aborts and done.fired["dispose"] >= done.aborts
    assert done.fired["land"] > 1_000 and done.lives > 100


# The command.


def explore(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["explore", *map(str, arguments)])


def test_a_failure_is_drawn_with_its_seed_and_as_a_test() -> None:
    result = explore("sglang-0.5.18-mooncake", "--property", "no_late_write", "--seed", 1)
    assert result.exit_code == 1
    assert "no_late_write is violated after 17 steps" in result.stdout and "Found with seed 1" in result.stdout
    pasted = result.stdout.split("As a test:\n\n")[1].split("\n\nsglang-0.5.18-mooncake / abort:")[0]
    run_pasted(pasted)
    assert "random runs" not in result.stdout.lower()


def test_nothing_found_is_exit_code_3_and_says_that_it_decides_nothing() -> None:
    result = explore("reference", "--examples", 3, "--seed", 1)
    assert result.exit_code == 3
    assert "Random runs decide nothing" in result.stdout and result.stderr == ""
    result = explore(NEWEST, "--rooms", 2, "--chunks", 1, "--aborts", 4, "--seed", 1, "--release-timer", "late")
    assert result.exit_code == 3
    assert "at the end of each run all memory was free again" in result.stdout


def test_what_is_unknown_and_can_matter_is_said() -> None:
    arguments = ("--examples", 1, "--seed", 1, "--property", "no_late_write")
    said = "err_implies_quiet is unknown and taken as False"
    assert said in explore("sglang-0.5.23-nixl", "--scenario", "failed-send", *arguments).stdout
    assert said not in explore("sglang-0.5.23-nixl", "--scenario", "abort", *arguments).stdout


def test_the_documented_fields_are_the_ones_printed() -> None:
    result = explore("sglang-0.5.18-mooncake", "--property", "no_late_write", "--seed", 1, "--json")
    printed = json.loads(result.stdout)
    assert (printed["format"], printed["version"], printed["seed"]) == ("draincheck-explore", 1, 1)
    assert len(printed["failure"]["trace"]) == printed["failure"]["trace_length"] == 17
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    section = text.split("draincheck explore --json")[1].split("\n# ")[0]
    for name in (*printed, *printed["failure"]):
        assert f"`{name}`" in section, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "no such profile"),
        ((NEWEST, "--scenario", "storm"), "no scenario is called storm"),
        ((NEWEST, "--rooms", 9), "rooms is 9; allowed are whole numbers from 1 to 8"),
        ((NEWEST, "--slots", 65), "slots is 65; allowed are whole numbers from 1 to 64"),
        ((NEWEST, "--property", "nothing"), "no property is called nothing here; known are no_late_write"),
        ((NEWEST, "--except", "nothing"), "no property is called nothing here"),
        ((NEWEST, "--aborts", 0), "0 is not in the range"),
        ((NEWEST, "--seed", -1), "-1 is not in the range"),
        ((NEWEST, "--scenario", "reuse", "--aborts", 3), "in endless lives every room number is used again"),
        (("reference", "--rooms", 3), "the reference model has fixed sizes"),
        (("sglang-0.5.18-mooncake", "--release-timer", "late"), "nothing is held by sglang-0.5.18-mooncake in abort"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[object, ...], message: str) -> None:
    result = explore(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr and "Traceback" not in result.output
