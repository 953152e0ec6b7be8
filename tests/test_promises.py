"""Promises: the engine and the oracle agree, and every run that is said to break one does so when executed directly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import toys
from draincheck.explorer.commands.report import document, legend
from draincheck.explorer.search import liveness
from draincheck.explorer.search.liveness import Outcome, decide_promises
from draincheck.explorer.search.search import Limits, search
from draincheck.explorer.traces import storage
from draincheck.explorer.traces.render_graphviz import dot_source
from draincheck.explorer.traces.render_itf import itf
from draincheck.explorer.traces.render_mermaid import mermaid
from draincheck.explorer.traces.render_terminal import terminal_text
from draincheck.explorer.traces.storage import TraceFileError
from draincheck.explorer.traces.trace import ReplayError, Trace, follow, promise_trace
from draincheck.explorer.verdicts.results import result_of
from draincheck.explorer.verdicts.verify import CaseInterrupted, Verdict, exit_code, verify
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.scenario import SCENARIOS
from draincheck.models.small.reference import Phase, reference
from draincheck.properties.case import Case, Question
from draincheck.properties.drain.cases import cases_of, drain_case, scenario_with
from draincheck.properties.small import reference_case
from draincheck.protocol.language import (
    Action,
    DeclarationError,
    Faults,
    Index,
    State,
    action,
    field,
    flag,
    require,
    upto,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Step, Values
from draincheck.protocol.language.property import Kind, Promise, claim, invariant, promise
from hypothesis import given, settings
from hypothesis import strategies as st

# Random models: a number that actions move along tables.

SIZE = 6


class Way(Index):
    """One of the ways an action has."""


class Board(State[None]):
    """A number."""

    at = field(upto(SIZE - 1), means="the number")


Table = dict[tuple[int, int], list[int]]
"""Where a way of an action leads from a number: several numbers are a choice."""


def mover(name: str, table: Table) -> Action:
    ways = tuple((here, by, tuple(there)) for (here, by), there in table.items())

    @action("m")
    def move(s: Board, way: Way) -> None:
        """Moves along the table."""
        for here, by, there in ways:
            if by == way and s.at == here:
                s.at = s.choose(there)
                return
        require(False)

    return replace(move, name=name)


numbers = st.integers(0, SIZE - 1)
tables = st.dictionaries(
    st.tuples(numbers, st.integers(0, 1)), st.lists(numbers, min_size=1, max_size=2, unique=True), max_size=7
)
pendings = st.frozensets(numbers, min_size=1)


def board(moves: dict[str, Table], fair: frozenset[str] | None, *pending: frozenset[int], ways: int = 2) -> Check:
    actions = tuple(mover(name, table) for name, table in moves.items())
    model = Model(name="board", state=Board, actions=actions, sizes={Way: ways})

    def promised(number: int, where: frozenset[int]) -> Promise:
        numbers = tuple(sorted(where))
        return Promise(f"promise_{number}", "Ends.", lambda s: any(s.at == each for each in numbers))

    promises = tuple(promised(number, where) for number, where in enumerate(pending))
    return Check(model, (), (), deadlock=False, promises=promises, fair=fair)


@st.composite
def boards(draw: st.DrawFn) -> Check:
    names = ("a", "b", "c")
    moves = {name: draw(tables) for name in names}
    fair = draw(st.frozensets(st.sampled_from(names)))
    return board(moves, fair, *draw(st.lists(pendings, min_size=1, max_size=4)))


def decide(check: Check) -> dict[str, Outcome]:
    return decide_promises(search(check, until=()))


def trace_of(check: Check, name: str) -> Trace:
    """The run that breaks a promise; making it executes it directly and checks that it is pending and fair."""
    lasso = decide(check)[name].lasso
    assert lasso is not None
    asked = next(each for each in check.promises if each.name == name)
    taken = follow(check.model, lasso.states, lasso.instances)
    return promise_trace(check, asked, lasso.states[0], taken, lasso.loop, {})


def compare(*checks: Check) -> set[str]:
    """Engine and oracle agree; the runs are what they are said to be. Returns what is broken in any of the checks.

    All checks must be of one model.
    """
    steps = oracle.every_step(checks[0])
    return set[str]().union(*(compare_one(check, steps) for check in checks))


def compare_one(check: Check, steps: Mapping[Values, Sequence[Step]]) -> set[str]:
    outcomes = decide(check)
    for each in check.promises:
        pending = {values for values in steps if each.is_pending(check.model, values)}
        assert outcomes[each.name].pending == len(pending)
        assert outcomes[each.name].edges == sum(len(steps[values]) for values in pending)
        assert not outcomes[each.name].unknown
    broken = {name for name, outcome in outcomes.items() if outcome.lasso}
    assert broken == oracle.broken_promises(check, steps)
    for name in broken:
        assert trace_of(check, name).kind == "promise"
    return broken


@settings(max_examples=300, deadline=None, derandomize=True)
@given(check=boards())
def test_engine_equals_oracle_on_random_models(check: Check) -> None:
    compare(check)


# Models that say what fairness is.


def here(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def test_a_process_can_starve_at_a_door_without_turns() -> None:
    check = toys.door(turns=False)
    assert compare(check) == {"process_0_gets_in", "process_1_gets_in"}
    trace = trace_of(check, "process_0_gets_in")
    assert trace.loop is not None and trace.loop < len(trace)
    around = [step.label for step in trace.steps[trace.loop :]]
    assert sorted(around) == ["ask(n=1)", "enter(n=1)", "leave(n=1)"]
    assert trace.unfair == ("ask",)


def test_nobody_starves_at_a_door_with_turns() -> None:
    assert compare(toys.door(turns=True)) == set()
    # Whoever may stay inside for ever lets the other one wait.
    assert compare(toys.door(turns=True, fair=frozenset({"enter"}))) == {"process_0_gets_in", "process_1_gets_in"}


def test_a_step_that_stays_possible_happens_if_it_is_fair() -> None:
    moves: dict[str, Table] = {"spin": {(0, 0): [0]}, "go": {(0, 0): [1]}}
    assert compare(board(moves, None, here(0), ways=1)) == set()
    # A step that need not happen may save the promise, and need not.
    assert compare(board(moves, frozenset({"spin"}), here(0), ways=1)) == {"promise_0"}


def test_a_step_that_is_possible_only_now_and_then_need_not_happen() -> None:
    moves: dict[str, Table] = {"spin": {(0, 0): [1], (1, 0): [0]}, "go": {(1, 0): [2]}}
    check = board(moves, None, here(0, 1), ways=1)
    assert compare(check) == {"promise_0"}
    assert [step.label for step in trace_of(check, "promise_0").steps] == ["spin(way=0)", "spin(way=0)"]


def test_fairness_is_each_instances_own() -> None:
    """The action happens again and again by its first way, and by its second, which would end it, never."""
    moves: dict[str, Table] = {"go": {(0, 0): [1], (1, 0): [0], (1, 1): [2]}}
    assert compare(board(moves, None, here(0, 1))) == {"promise_0"}
    always: dict[str, Table] = {"go": {(0, 0): [1], (1, 0): [0], (0, 1): [2], (1, 1): [2]}}
    assert compare(board(always, None, here(0, 1))) == set()


def test_an_option_of_a_choice_need_not_be_taken() -> None:
    moves: dict[str, Table] = {"go": {(0, 0): [0, 1]}}
    assert compare(board(moves, None, here(0), ways=1)) == {"promise_0"}


def test_a_step_that_changes_nothing_is_one() -> None:
    """What a step changes does not count, so a field that notes each step makes no difference. For TLA+ it does."""
    moves: dict[str, Table] = {"go": {(0, 0): [0, 1]}}
    noted: dict[str, Table] = {"go": {(0, 0): [2, 1], (2, 0): [0, 1]}}
    for check in (board(moves, None, here(0), ways=1), board(noted, None, here(0, 2), ways=1)):
        assert compare(check) == {"promise_0"}
    (kept, broken) = (
        oracle.broken_promises(check, oracle.steps_that_change(oracle.every_step(check)))
        for check in (board(moves, None, here(0), ways=1), board(noted, None, here(0, 2), ways=1))
    )
    assert kept == set() and broken == {"promise_0"}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(check=boards())
def test_nothing_is_kept_that_tla_breaks(check: Check) -> None:
    """The two differ only where an instance that is fair can in one state change nothing, or something."""
    steps = oracle.every_step(check)
    here_broken = oracle.broken_promises(check, steps)
    there_broken = oracle.broken_promises(check, oracle.steps_that_change(steps))
    assert there_broken <= here_broken
    options = {
        (values, step.instance): {other.values == values for other in taken if other.instance == step.instance}
        for values, taken in steps.items()
        for step in taken
        if step.instance.action.name in check.fair_actions
    }
    assert there_broken == here_broken or {True, False} in options.values()


def test_a_self_loop_is_a_run() -> None:
    check = board({"spin": {(0, 0): [1], (1, 0): [1]}}, None, here(1), ways=1)
    assert compare(check) == {"promise_0"}
    trace = trace_of(check, "promise_0")
    assert (len(trace), trace.loop) == (2, 1)


@pytest.mark.parametrize("fair", [None, frozenset[str](), frozenset({"go"})])
def test_a_run_may_end_where_nothing_has_to_happen(fair: frozenset[str] | None) -> None:
    check = board({"go": {(0, 0): [1]}, "save": {(1, 0): [2]}}, fair, here(1), ways=1)
    assert compare(check) == (set() if fair is None else {"promise_0"})
    if fair is not None:
        trace = trace_of(check, "promise_0")
        assert (len(trace), trace.loop, trace.unfair[-1]) == (1, 1, "save")
    stuck = board({"go": {(0, 0): [1]}}, None, here(1), ways=1)
    assert compare(stuck) == {"promise_0"}


def test_leaving_the_pending_states_for_a_moment_keeps_the_promise() -> None:
    check = board({"go": {(0, 0): [1], (1, 0): [2], (2, 0): [0]}}, None, here(0, 1), ways=1)
    assert compare(check) == set()


def test_a_cycle_visits_all_that_fairness_asks_for() -> None:
    """Each of three steps is possible everywhere and happens at one place: the cycle must visit all of them."""
    moves: dict[str, Table] = {
        "a": {(n, 0): [1 if n == 0 else n] for n in range(4)},
        "b": {(n, 0): [2 if n == 1 else 5] for n in range(4)},
        "c": {(n, 0): [(n + 1) % 4 if n in (2, 3) else 5] for n in range(4)},
    }
    check = board(moves, None, here(0, 1, 2, 3), ways=1)
    assert compare(check) == {"promise_0"}
    assert [step.label[0] for step in trace_of(check, "promise_0").steps] == ["a", "b", "c", "c"]


def hold_ends(q: int) -> Promise:
    return Promise(f"hold_{q}_ends", "The hold ends.", lambda s: s.phase[q] == Phase.HELD, Kind.LEAK)


@pytest.mark.parametrize("timer", [None, 1])
@pytest.mark.parametrize("lossy", [True, False])
def test_the_reference_models_hold_ends_if_no_ack_is_lost_or_there_is_a_timer(timer: int | None, lossy: bool) -> None:
    model = reference(timer, rooms=2, ranks=1, chunks=1, slots=1)
    model = replace(model, actions=tuple(each for each in model.actions if lossy or each.name != "drop_ack"))
    fair = frozenset(each.name for each in model.actions) - {"drop_ack", "abort"}
    check = Check(model, (), promises=(hold_ends(0), hold_ends(1)), fair=fair)
    assert compare(check) == ({"hold_0_ends", "hold_1_ends"} if lossy and timer is None else set())


@pytest.mark.slow
def test_engine_equals_oracle_on_the_protocol() -> None:
    """What probes look for, taken as pending: kept or broken, by what is fair."""
    case = drain_case(load_profile("sglang-0.5.21-mooncake"), scenario_with("abort", {"chunks": 1}))
    whole = case.untimed.check
    promises = tuple(Promise(each.name, each.sentence, each.function) for each in whole.probes)
    check = replace(whole, probes=(), promises=promises)
    actions = [each.name for each in check.model.actions]
    assert compare(check, replace(check, fair=frozenset(actions[::2])))


def test_faults_of_channels_are_never_taken_to_happen() -> None:
    """The token that only its loss would take away stays for ever; who receives none waits for ever."""
    base = toys.ring(Faults(loss=3))
    waits = Promise("token_goes", "No token stays on the wire.", lambda s: s.wire[()].length > 0)
    model = replace(base.model, actions=(toys.send,))
    check = Check(model, (), deadlock=False, promises=(waits,))
    assert check.unfair_actions == ("loss_wire",)
    assert compare(check) == {"token_goes"}
    assert compare(Check(base.model, (), deadlock=False, promises=(waits,))) == set()


def test_a_predicate_that_breaks_the_rules_is_no_silent_pass() -> None:
    strays = Promise("strays", "Ends.", lambda s: s.stage[s.stage[0]] > 2)
    check = replace(toys.door(turns=True, fair=frozenset()), promises=(strays,))
    with pytest.raises(DeclarationError, match="promise strays: stage has no element at Node 2"):
        trace_of(check, "strays")


def test_no_fair_step_of_the_drain_changes_nothing() -> None:
    """So it does not matter whether such a step counts as one."""
    case = drain_case(load_profile("sglang-0.5.23-mooncake"), scenario_with("abort", {"chunks": 1}))
    assert case.patient is not None and case.patient.check.promises
    check = case.patient.check
    found, instances = search(check, until=()), check.model.instances
    assert found.graph is not None
    sources, codes, targets = found.graph.edges_from(np.arange(found.states))
    still = {instances[code].action.name for code in codes[sources == targets].tolist()}
    assert found.complete and len(sources) == found.transitions and not still & check.fair_actions


class Ring(State[None]):
    """A place on a long way round."""

    at = field(upto(2999), means="the place")
    lap = field(flag, means="whether the lap is an odd one")


@action("r")
def go_on(s: Ring) -> None:
    """One place on; behind the last one a new lap begins."""
    if s.at < 2999:
        s.at += 1
    else:
        s.at = 0
        s.lap = 1 - s.lap


def test_a_long_loop_is_a_run_too() -> None:
    """Six thousand steps: each state of the loop is looked up by itself, and is the one at the end of its path."""
    model = Model(name="ring", state=Ring, actions=(go_on,), sizes={})
    around = Promise("around", "Ends.", lambda s: s.at >= 0)
    check = Check(model, (), promises=(around,))
    trace = trace_of(check, "around")
    assert (len(trace), trace.loop) == (6_000, 0) and trace.steps[-1].values == trace.initial
    found = search(check, until=())
    for position in (0, 1, 4_321, 5_999):
        assert found.state_at(position) == found.path_to(position)[-1]


# What is not known is said.


def test_a_search_that_was_cut_short_decides_no_promise() -> None:
    found = search(toys.door(turns=True), Limits(states=3))
    outcomes = decide_promises(found)
    assert all("not all states are known: limit of 3 states" in each.unknown for each in outcomes.values())


def test_limits_leave_a_promise_undecided() -> None:
    check = toys.door(turns=True)
    found = search(check, until=())
    assert found.graph is not None
    assert not decide_promises(found)["process_0_gets_in"].unknown
    outcome = decide_promises(found, Limits(seconds=1e-9))["process_0_gets_in"]
    assert "time limit reached" in outcome.unknown and outcome.lasso is None
    found.graph = replace(found.graph, spare=100)
    outcome = decide_promises(found)["process_0_gets_in"]
    assert "memory limit reached" in outcome.unknown and outcome.lasso is None


@pytest.mark.parametrize("number", [0, 1])
def test_an_interruption_is_no_answer_to_a_promise(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who asks may go on with the next question as if this one had been answered."""
    decided = 0

    def interrupt(*_: object) -> None:
        nonlocal decided
        decided += 1
        if decided > number:
            raise KeyboardInterrupt
        return _region(*_)  # type: ignore[arg-type]

    _region = liveness._region
    monkeypatch.setattr(liveness, "_region", interrupt)
    with pytest.raises(KeyboardInterrupt):
        decide_promises(search(toys.door(turns=True), until=()))
    (case,) = cases_of("sglang-0.5.23-mooncake", ["abort"])
    decided = 0
    with pytest.raises(CaseInterrupted) as stopped:
        verify(case)
    row = stopped.value.row
    assert row.reasons == ("interrupted",) and row.verdict is Verdict.UNDETERMINED
    assert not result_of(row, case).settled


def test_many_chunks_of_states_give_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(
        reference(rooms=2, ranks=1, chunks=1, slots=2), (), promises=(hold_ends(0),), fair=frozenset({"land"})
    )
    whole = decide(check)
    monkeypatch.setattr(liveness, "STATES_AT_ONCE", 7)
    monkeypatch.setattr(liveness, "MARKS_AT_ONCE", 11)
    assert decide(check) == whole


# Wrong declarations.


def test_wrong_declarations_of_promises() -> None:
    model = toys.door(turns=True).model
    with pytest.raises(DeclarationError, match="is no promise"):
        Check(model, (), promises=(toys.in_order,))  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="fair names entr, which is no action"):
        Check(model, (), fair=frozenset({"entr"}))
    with pytest.raises(DeclarationError, match="asked twice"):
        Check(model, (), promises=(hold_ends(0), hold_ends(0)))
    with pytest.raises(DeclarationError, match="say in a docstring"):

        @promise
        def mute(s: Any) -> int:
            return s.at


# Traces that are none.


@pytest.fixture(scope="module")
def starving() -> tuple[Check, Trace]:
    check = toys.door(turns=False)
    return check, trace_of(check, "process_0_gets_in")


def test_a_run_that_breaks_no_promise_is_refused(starving: tuple[Check, Trace]) -> None:
    check, trace = starving
    asked, other = check.promises
    taken, loop = list(trace.taken), trace.loop
    assert loop is not None
    assert promise_trace(check, asked, trace.initial, taken, loop, {}) == trace
    with pytest.raises(ReplayError, match="is not pending all along"):
        promise_trace(check, other, trace.initial, taken, loop, {})
    with pytest.raises(ReplayError, match="does not lead back"):
        promise_trace(check, asked, trace.initial, taken[:-1], loop, {})
    with pytest.raises(ReplayError, match="begins outside the run"):
        promise_trace(check, asked, trace.initial, taken, len(taken) + 1, {})
    with pytest.raises(ReplayError, match=r"not fair: \w+\(n=\d\) can always happen"):
        promise_trace(check, asked, trace.initial, taken, len(taken), {})
    strict = replace(check, fair=check.fair_actions | {"ask"})
    assert promise_trace(strict, asked, trace.initial, taken, loop, {}).unfair == ()
    spinning = board({"spin": {(0, 0): [0]}, "go": {(0, 0): [1]}}, None, here(0), ways=1)
    spin = [next(spinning.model.steps_of(spinning.model.instances[0], (0,)))]
    with pytest.raises(ReplayError, match=r"not fair: go\(way=0\) can always happen"):
        promise_trace(spinning, spinning.promises[0], (0,), spin, 0, {})


def test_the_instance_of_a_step_in_the_loop_is_kept_where_another_does_the_same() -> None:
    """Both spin; a run in which only the first did would not be fair."""
    moves: dict[str, Table] = {"first": {(0, 0): [0]}, "second": {(0, 0): [0]}}
    trace = trace_of(board(moves, None, here(0), ways=1), "promise_0")
    assert sorted(step.label for step in trace.steps) == ["first(way=0)", "second(way=0)"]


# Renderings.


@pytest.mark.parametrize("rendered", [terminal_text, lambda trace: terminal_text(trace, 30), mermaid, dot_source])
def test_a_loop_is_said_in_every_diagram(starving: tuple[Check, Trace], rendered: Any) -> None:
    _, trace = starving
    assert trace.loop is not None
    text = " ".join(rendered(trace).replace("<br/>", " ").split())
    words = f"steps {trace.loop + 1} to {len(trace)} repeat for ever"
    assert words in text
    assert "process_0_gets_in is broken: pending for ever after" in text
    assert "need not happen, even if always possible: ask" in text


@pytest.mark.parametrize("rendered", [terminal_text, mermaid, dot_source])
def test_an_end_is_said_in_every_diagram(rendered: Any) -> None:
    check = board({"save": {(0, 0): [2]}}, frozenset(), here(0), ways=1)
    text = " ".join(rendered(trace_of(check, "promise_0")).replace("<br/>", " ").split())
    assert "pending for ever after 0 steps" in text
    assert "no step is possible that has to happen" in text
    assert "repeat" not in text


def test_the_loop_of_the_trace_format_is_a_state() -> None:
    check = board({"spin": {(0, 0): [1], (1, 0): [2], (2, 0): [1]}}, None, here(1, 2), ways=1)
    found = json.loads(itf(trace_of(check, "promise_0")))
    assert found["loop"] == 1 and found["#meta"]["status"] == "promise"
    assert found["states"][-1]["at"] == found["states"][1]["at"]
    assert "loop" not in json.loads(itf(replace(trace_of(check, "promise_0"), loop=None)))


# Verdicts, and saved traces.


def promise_case(*promises: Promise, ticks: int | None = None, fair: frozenset[str] | None = None) -> Case:
    """The reference model in a small size, with promises."""
    whole = reference_case(ticks)

    def small(question: Question, timer: int | None) -> Question:
        model = reference(timer, rooms=2, ranks=1, chunks=1, slots=2)
        check = replace(question.check, model=model, promises=promises, fair=fair)
        return replace(question, check=check)

    return replace(
        whole,
        untimed=small(whole.untimed, None),
        timed=whole.timed and small(whole.timed, ticks),
        count_all=False,
    )


STRICT = frozenset(each.name for each in reference().actions) - {"drop_ack", "abort"}


def test_a_broken_promise_is_a_leak() -> None:
    row = verify(promise_case(hold_ends(0), hold_ends(1), fair=STRICT))
    assert row.verdict is Verdict.LEAKS and exit_code([row]) == 1
    assert [(each.verdict, each.subject) for each in row.findings] == [
        (Verdict.LEAKS, "hold_0_ends"),
        (Verdict.LEAKS, "hold_1_ends"),
    ]
    assert row.trace is not None and row.trace.kind == "promise"
    assert row.unfair == ("abort", "drop_ack") and row.run.verdict is Verdict.LEAKS
    assert any(line.endswith("but for those of: abort, drop_ack") for line in legend([row]))
    (found,) = document([row])["rows"]
    assert (found["verdict"], found["unfair"]) == ("LEAKS", ["abort", "drop_ack"])


def test_a_promise_may_be_one_of_time_or_of_nothing_known() -> None:
    row = verify(promise_case(replace(hold_ends(0), kind=Kind.RULE), fair=STRICT))
    assert [(each.verdict, each.subject) for each in row.findings] == [(Verdict.VIOLATED, "hold_0_ends")]
    row = verify(promise_case(replace(hold_ends(0), kind=Kind.DELAY), fair=STRICT))
    assert [(each.verdict, each.subject) for each in row.findings] == [(Verdict.DELAYS, "hold_0_ends")]


def test_a_property_may_be_a_leak_and_does_not_end_the_search() -> None:
    @invariant(kind=Kind.LEAK)
    def is_never_held(s: Any) -> None:
        """Nothing is held."""
        for q in range(2):
            claim(s.phase[q] != Phase.HELD, "the room is not held", q=q)

    case = promise_case(ticks=1)
    assert case.timed is not None
    question = replace(case.untimed, check=replace(case.untimed.check, properties=(is_never_held,)))
    row = verify(replace(case, untimed=question))
    assert [(each.verdict, each.subject) for each in row.findings] == [
        (Verdict.LEAKS, "is_never_held"),
        (Verdict.CONDITIONAL, "no_late_write"),
    ]
    assert row.run.complete and row.run.bounds["release timer"] == "off"


def test_a_leak_without_timer_is_not_called_safe_where_the_timer_loses_memory() -> None:
    case = promise_case(hold_ends(0), ticks=1, fair=STRICT)
    row = verify(replace(case, patient=case.timed, timed=None))
    assert [each.verdict for each in row.findings] == [Verdict.CORRUPTS, Verdict.LEAKS]
    assert row.without_timer is not None and row.without_timer.verdict is Verdict.LEAKS
    (found,) = document([row])["rows"]
    assert found["without_timer"]["verdict"] == "LEAKS"


def test_a_promise_that_is_kept_is_no_hindrance_and_one_that_is_never_pending_is() -> None:
    ends = Promise("write_lands", "A write lands.", lambda s: s.call[0, 0, 0])
    row = verify(promise_case(ends, fair=STRICT))
    assert row.verdict is Verdict.SAFE and row.unfair == ("abort", "drop_ack")
    idle = Promise("nothing", "Never pending.", lambda s: s.hold[0] > 0, may_rest=True)
    row = verify(promise_case(ends, idle, fair=STRICT))
    assert row.verdict is Verdict.SAFE and row.unasked == {"nothing": "nothing ever made it pending"}
    assert any("not asked: nothing: nothing ever made it pending" in line for line in legend([row]))
    idle = replace(idle, may_rest=False)
    row = verify(promise_case(ends, idle, fair=STRICT))
    assert row.verdict is Verdict.UNDETERMINED and row.reasons == ("nothing was never pending",)


def test_an_undecided_promise_makes_a_pass_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "BYTES_PER_STATE", 1 << 40)
    row = verify(promise_case(hold_ends(0), fair=STRICT))
    assert row.verdict is Verdict.UNDETERMINED and not row.findings
    assert row.reasons[0].startswith("hold_0_ends could not be decided: memory limit reached")


def test_without_promises_nothing_is_said_about_fairness() -> None:
    row = verify(drain_case(load_profile("sglang-0.5.23-mooncake"), SCENARIOS["rejected"], timer=False))
    assert row.unfair is None and document([row])["rows"][0]["unfair"] is None
    assert not any("stays possible" in line for line in legend([row]))


def test_saved_promises_replay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case = promise_case(hold_ends(0), fair=STRICT)
    monkeypatch.setattr(storage, "reference_case", lambda ticks: case)
    trace = verify(case).trace
    assert trace is not None
    path = storage.save(trace, tmp_path)
    assert storage.load(path) == trace
    saved = json.loads(path.read_text("utf-8"))
    assert saved["kind"] == "promise" and saved["loop"] == trace.loop
    for loop, words in ((None, "does not say what repeats"), (0, "does not lead back"), (99, "outside the run")):
        path.write_text(json.dumps({**saved, "loop": loop}), "utf-8")
        with pytest.raises(TraceFileError, match=words):
            storage.load(path)
