"""Pairs of runs and finer steps: against the plain way on toys, and what they say of releases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import oracle
import pytest
import toys
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.proofs.induction import UNDECIDED, inductive
from draincheck.explorer.proofs.refinement import (
    INITIAL,
    RULES,
    STEP,
    seen,
    unmatched,
    unmatched_trace,
    without_choices,
)
from draincheck.explorer.proofs.symbolic import Symbolic
from draincheck.explorer.proofs.unrolling import NO_FAULT, Bounds, bounded_check
from draincheck.explorer.search.search import Limits, search
from draincheck.explorer.traces.render_terminal import terminal_text
from draincheck.explorer.traces.trace import follow, violation_trace
from draincheck.explorer.verdicts.degradation import relate as degradations
from draincheck.explorer.verdicts.degradation import too_early
from draincheck.explorer.verdicts.relations import Method, Verdict, by_pairs, by_steps, relate
from draincheck.models.catalogue.profile import headlines, load_profile
from draincheck.properties.drain.cases import SAFETY
from draincheck.properties.drain.degradation import DEGRADATIONS
from draincheck.properties.drain.relations import (
    UNDER_WAY,
    atomicities,
    concluding,
    degradation_checks,
    is_one_of,
    requests,
    with_success_counted,
)
from draincheck.protocol.language import (
    DeclarationError,
    DomainFault,
    Faults,
    State,
    action,
    field,
    flag,
    machinery,
    require,
    upto,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from draincheck.protocol.language.pairs import Pair, pair_of, views
from draincheck.protocol.language.property import claim, invariant, probe
from draincheck.protocol.roles.steps import Life
from world import Note, Prompt, Thing

# Pairs.


@invariant
@machinery  # it looks at the cells themselves
def copies_are_alike(s: State[Pair]) -> None:
    """Both copies are in the same state, as far as both have the same cells."""
    left, right = ({cell.name: value for cell, value in zip(v.layout.cells, v.values, strict=True)} for v in views(s))
    alike = 1
    for name in left.keys() & right.keys():
        alike &= left[name] == right[name]
    claim(alike, "every cell has the same value in both")


def expected_steps(left: Model, right: Model, values: Values) -> set[tuple[str, Values]]:
    """The steps of a pair, from the steps of each copy: what has the same label and options goes together."""
    at = len(left.layout.cells)
    own: list[dict[tuple[str, tuple[int, ...]], Values]] = [
        {(step.instance.label, step.chosen): step.values for step in model.steps(part)}
        for model, part in ((left, values[:at]), (right, values[at:]))
    ]
    return {
        (key[0], (*own[0].get(key, values[:at]), *own[1].get(key, values[at:])))
        for key in own[0].keys() | own[1].keys()
    }


PAIRS = [
    (toys.ring().model, toys.ring().model),
    (toys.ring(Faults(reordering=1, duplication=1)).model, toys.ring(Faults(reordering=1, duplication=1)).model),
    (toys.counter(3).model, toys.counter(3).model),
    (toys.arithmetic().model, toys.arithmetic().model),
    (toys.door(turns=True).model, toys.door(turns=True).model),
    (toys.ring().model, toys.ring(Faults(loss=1)).model),
    (toys.ring(Faults(loss=1)).model, toys.ring(Faults(reordering=1)).model),
    (toys.door(turns=True).model, toys.door(turns=False).model),
]


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda model: model.name)
def test_a_pair_does_what_its_copies_do(left: Model, right: Model) -> None:
    """Direct execution, the compiled search and the copies' own steps agree; each copy keeps all of its runs."""
    pair = pair_of(left, right)
    check = Check(pair, (copies_are_alike,), deadlock=False)
    steps = oracle.every_step(check)
    for values, taken in steps.items():
        assert {(step.instance.label, step.values) for step in taken} == expected_steps(left, right, values)
    at = len(left.layout.cells)
    assert {values[:at] for values in steps} == set(oracle.every_step(Check(left, ())))
    assert {values[at:] for values in steps} == set(oracle.every_step(Check(right, ())))

    expected, found = oracle.explore(check), search(check, until=())
    assert (found.states, found.transitions, found.depth) == (expected.states, expected.transitions, expected.depth)
    assert (found.counts, found.hits) == (expected.counts, expected.hits)
    run = bounded_check(Symbolic(pair), copies_are_alike, Bounds(depth=4))
    nearest = expected.violated.get("copies_are_alike", 99)
    assert len(run.states) == (nearest + 1 if nearest <= 4 else 0)
    assert not run.states or len(follow(pair, run.states)) == nearest


@pytest.mark.parametrize(("left", "right"), [*PAIRS[:3], PAIRS[4]], ids=lambda model: model.name)
def test_a_model_with_itself_stays_on_the_diagonal(left: Model, right: Model) -> None:
    pair, at = pair_of(left, right), len(left.layout.cells)
    steps = oracle.every_step(Check(pair, ()))
    assert set(steps) == {(*values, *values) for values in oracle.every_step(Check(left, ()))}
    for taken in steps.values():
        assert all(step.values[:at] == step.values[at:] for step in taken)
    broken = inductive(Symbolic(pair), [copies_are_alike], every_breach=True).breaches
    assert not [breach for breach in broken if breach.lemma != NO_FAULT]  # for any state, reachable or not


@action("t")
def ask(s: Prompt) -> None:
    """Sends a note, once."""
    require(s.n == 0)
    s.n = 1
    s.quick[()].send(about=0)


@action("t")
def answer(s: Prompt) -> None:
    """Receives the note."""
    s.quick[()].receive()


@action("t")
def wander(s: Prompt) -> None:
    """Does something else."""
    require(s.n in (0, 1))
    s.n = 3 if s.n == 0 else 2


def test_prompt_delivery_binds_the_copy_and_not_the_other() -> None:
    both = Model(name="both", state=Prompt, actions=(ask, answer, wander), sizes={Thing: 1})
    never = Model(name="never", state=Prompt, actions=(answer, wander), sizes={Thing: 1})
    pair = pair_of(both, never)
    for values, taken in oracle.every_step(Check(pair, ())).items():
        assert {(step.instance.label, step.values) for step in taken} == expected_steps(both, never, values)
    (asked,) = [step for step in pair.steps(pair.layout.initial) if step.instance.action.name == "ask"]
    assert {step.instance.action.name for step in pair.steps(asked.values)} == {"answer", "wander"}
    assert [event.channel for event in asked.events] == ["left quick"]
    assert Note in {channel.message for channel in pair.layout.channels.values()}


def test_copies_must_fit() -> None:
    with pytest.raises(DeclarationError, match="different sizes"):
        pair_of(toys.ring(nodes=2).model, toys.ring(nodes=3).model)

    @action("receiver")
    def receive(s: toys.Ring, node: toys.Node) -> None:
        """Takes a number for a node."""
        s.wire[()].receive()

    with pytest.raises(DeclarationError, match="receive has other parameters in one copy"):
        pair_of(toys.ring().model, replace(toys.ring().model, actions=(toys.send, receive)))


def test_a_pair_of_runs_is_one_diagram() -> None:
    pair = pair_of(toys.ring().model, toys.ring(Faults(loss=1)).model, ("plain", "lossy"))
    found = search(Check(pair, (copies_are_alike,), deadlock=False))
    states = found.path_to(found.violated["copies_are_alike"])
    text = terminal_text(violation_trace(pair, copies_are_alike, states[0], follow(pair, states), {}))
    assert "sends plain wire: value 1" in text and "takes away lossy wire: value 1" in text
    assert "plain sent: 0 → 1 · lossy sent: 0 → 1" in text


# Degradations.


def pair_result(name: str, degradation: str) -> Any:
    return by_pairs(degradation, degradation_checks(load_profile(name))[degradation])


@pytest.mark.slow
def test_a_failed_send_never_shortens_the_hold_of_the_newest_release() -> None:
    found = pair_result("sglang-0.5.23-mooncake", "failed send")
    assert (found.verdict, found.trace) == (Verdict.HOLDS, None)
    assert found.states > 1_000_000
    assert found.bounds["failing sends"] == "plain: 0, degraded: 1"


@pytest.mark.parametrize(
    "name", [pytest.param("sglang-0.5.20-mooncake-hold-on", marks=pytest.mark.slow), "sglang-0.5.18-mooncake"]
)
def test_a_dead_rank_is_released_under_a_write_that_the_plain_copy_still_waits_for(name: str) -> None:
    """Also where plain aborts are not held: there, `degrade` has no hold that could be shortened."""
    found = pair_result(name, "dead rank")
    assert found.verdict is Verdict.FAILS and found.trace is not None
    assert found.trace.steps[-1].label == "dispose(decode=0)"
    assert {change.cell for change in found.trace.steps[-1].changes} >= {"degraded life[0,0]"}
    assert not any(change.cell.startswith("plain") for change in found.trace.steps[-1].changes)
    assert found.trace.violation is not None
    assert found.trace.violation.values == {"decode": "0", "request": "0", "degraded": "gone", "plain": "transferring"}


@invariant
def never_before_the_plain_copy(s: State[Pair]) -> None:
    """A stricter relation: no hold ends by acks in the degraded copy while the plain copy keeps the memory."""
    plain, degraded = views(s)
    for decode, request in requests(degraded):
        over = (degraded.life[decode, request] == Life.GONE) & (degraded.drained[request] != 0)
        claim((over & is_one_of(plain.life[decode, request], *UNDER_WAY)) == 0, "the plain copy has not kept it")


@pytest.mark.slow
def test_without_a_write_in_flight_a_hold_may_well_end_earlier() -> None:
    """A message that is lost ahead of the ack lets the ack come sooner: nothing is in flight, and nothing is wrong."""
    check = degradation_checks(load_profile("sglang-0.5.23-mooncake"))["lost ack"]
    found = search(Check(check.model, (*check.properties, never_before_the_plain_copy)), until=())
    assert set(found.violated) == {"never_before_the_plain_copy"}
    states = found.path_to(found.violated["never_before_the_plain_copy"])
    trace = violation_trace(
        check.model, never_before_the_plain_copy, states[0], follow(check.model, states), check.model.bounds
    )
    (lost,) = [step for step in trace.steps if step.label.startswith("loss_report")]
    assert lost.choice == "takes away degraded report: failed, generation 0"


@pytest.mark.slow
def test_pairs_agree_with_degrade_wherever_there_is_a_hold() -> None:
    for name in (*headlines(), "sglang-0.5.20-mooncake-hold-on", "sglang-0.5.23-nixl", "sglang-0.5.23-mori"):
        rows, trouble = degradations([load_profile(name)])
        assert not trouble
        earlier = {row.degradation: row.earlier is not None for row in rows}
        pairs = {each.name: each.verdict for each in relate(load_profile(name), list(DEGRADATIONS))}
        assert Verdict.UNDETERMINED not in pairs.values()
        failing = {each for each, verdict in pairs.items() if verdict is Verdict.FAILS}
        if too_early(rows[0].plain):
            assert not any(earlier.values())
            assert failing == {"failed send", "dead rank"}
        else:
            assert failing == {each for each, is_earlier in earlier.items() if is_earlier}, name


@probe
def nothing(s: State[Pair]) -> int:
    """Nothing is like this."""
    return 0


def test_what_was_cut_short_or_was_not_seen_is_undetermined() -> None:
    pair = pair_of(toys.counter(3).model, toys.counter(3).model)
    cut = by_pairs("cut", Check(pair, (copies_are_alike,)), Limits(states=2))
    assert (cut.verdict, cut.detail) == (Verdict.UNDETERMINED, "limit of 2 states reached")
    unseen = by_pairs("unseen", Check(pair, (copies_are_alike,), (nothing,)))
    assert (unseen.verdict, unseen.detail) == (Verdict.UNDETERMINED, "nothing was never reached")
    assert by_pairs("whole", Check(pair, (copies_are_alike,))).verdict is Verdict.HOLDS


def test_a_proof_ends_with_its_time() -> None:
    model = toys.ring().model
    cut = inductive(Symbolic(model), [], every_breach=True, seconds=0.0)
    assert [each.lemma for each in cut.breaches] == [UNDECIDED] and not cut.proved
    left = unmatched(Symbolic(model), Symbolic(model), lambda s: None, seconds=0.0)
    assert [each.subject for each in left.unmatched] == [UNDECIDED]


# Atomicity.


class Lift(State[None]):
    """A lift that goes up two floors at once, or one after the other."""

    floor = field(upto(5), means="where it is")
    moving = field(flag, means="it has gone up one floor of two")


@action("lift")
def rise(s: Lift) -> None:
    """Two floors up."""
    require(s.floor <= 3)
    s.floor += 2


@action("lift")
def begin(s: Lift) -> None:
    """One floor up, and there will be another."""
    require((s.moving == 0) & (s.floor <= 3))
    s.floor += 1
    s.moving = True


@action("lift")
def end(s: Lift) -> None:
    """The other floor."""
    require(s.moving)
    s.floor += 1
    s.moving = False


@action("guest")
def call(s: Lift) -> None:
    """The lift is called to one of the lower floors, when it stands."""
    require(s.moving == 0)
    s.floor = s.choose(range(3))


@action("guest")
def hurry(s: Lift) -> None:
    """The lift is called while it moves."""
    s.floor = s.choose([0, 1]) if s.moving else s.choose([0, 1, 2])


def standing(s: Lift) -> None:
    """While it moves, the lift is where it began to."""
    if s.moving:
        s.floor -= 1
        s.moving = False


def unmoved(s: Lift) -> None:
    """Every state stands for itself."""


@invariant
def between_floors(s: Lift) -> None:
    """A moving lift has left the lowest floor, and has not reached the last but one."""
    claim((s.moving == 0) | ((s.floor > 0) & (s.floor < 5)), "there is a floor below and one above")


def lift(*actions: Any) -> Model:
    return Model(name="lift", state=Lift, actions=actions, sizes={})


def fails_by_hand(fine: Model, coarse: Model, view: Any) -> Iterator[tuple[str, str]]:
    """Steps of the fine model without a counterpart, state by state, in direct execution."""
    for values in product(range(6), range(2)):
        if between_floors.violation(fine, values):
            continue
        before = seen(fine, view, values)
        targets = {step.values for step in coarse.steps(before)} | {before}
        for step in fine.steps(values):
            try:
                matched = seen(fine, view, step.values) in targets
            except DomainFault:
                matched = False
            if not matched:
                yield STEP, step.instance.label


@pytest.mark.parametrize("view", [standing, unmoved])
@pytest.mark.parametrize("fine", [(begin, end, call), (begin, end, hurry), (begin, end, call, rise), (rise, call)])
@pytest.mark.parametrize("coarse", [(rise, call), (rise,), (call,), (rise, hurry)])
def test_refinement_is_what_it_is_by_hand(view: Any, fine: tuple[Any, ...], coarse: tuple[Any, ...]) -> None:
    small, large = lift(*fine), lift(*coarse)
    asked = Symbolic(small, constants=False), Symbolic(large, constants=False)
    found = unmatched(*asked, view, (between_floors,))
    assert {(each.subject, each.step.label if each.step else "") for each in found.unmatched} == set(
        fails_by_hand(small, large, view)
    )
    for each in found.unmatched:
        trace = unmatched_trace(small, large, view, each)
        assert len(trace) == 1 and trace.violation is not None


def test_a_lift_in_two_steps_refines_one_in_one_step_where_nobody_hurries() -> None:
    fine, coarse = Symbolic(lift(begin, end, call)), Symbolic(lift(rise, call))
    assert not unmatched(fine, coarse, standing, (between_floors,)).unmatched
    without = unmatched(fine, coarse, standing).unmatched
    assert {each.subject for each in without} == {RULES}  # a lift that moves on the highest floor cannot go on


def test_initial_states_and_failures_need_a_counterpart() -> None:
    def start_above(s: Lift) -> None:
        s.floor = 1

    @invariant
    def stands(s: Lift) -> None:
        """The lift stands."""
        claim(s.moving == 0, "it stands")

    fine, coarse = lift(begin, end), lift(rise)
    started = unmatched(Symbolic(replace(fine, start=start_above)), Symbolic(coarse), standing, (between_floors,))
    assert [each.subject for each in started.unmatched] == [INITIAL]
    hidden = unmatched(Symbolic(fine), Symbolic(coarse), standing, (between_floors,), (stands,))
    assert [each.subject for each in hidden.unmatched] == ["stands"]
    with pytest.raises(DeclarationError, match="different cells"):
        unmatched(Symbolic(fine), Symbolic(toys.counter(1).model), standing)


def test_a_view_is_a_function() -> None:
    def anywhere(s: Lift) -> None:
        s.floor = s.choose([0, 1])

    with pytest.raises(DeclarationError, match="the view may not choose"):
        unmatched(Symbolic(lift(begin, end)), Symbolic(lift(rise)), anywhere)

    def going(s: Lift) -> None:
        s.moving = True

    with pytest.raises(DeclarationError, match="the view changes moving, which never changes"):
        unmatched(Symbolic(lift(rise)), Symbolic(lift(rise, call)), going)


def test_choices_are_taken_apart() -> None:
    symbolic = Symbolic(lift(hurry, begin), constants=False)
    (tree,) = [each.tree for each in symbolic.commands if each.instance.action.name == "hurry"]
    assert len(without_choices(tree)) == 3


def test_success_in_two_steps_refines_success_in_one() -> None:
    found = by_steps("success", atomicities(load_profile("sglang-0.5.23-mooncake"))["success"])
    assert (found.verdict, found.method, found.unmatched) == (Verdict.HOLDS, Method.STEPS, ())


def test_a_transfer_that_times_out_after_the_last_success_has_no_counterpart() -> None:
    asked = atomicities(load_profile("sglang-0.5.23-mooncake"))["success, timeouts"]
    found = by_steps("timeouts", asked)
    assert (found.verdict, found.method) == (Verdict.HOLDS, Method.BOTH)
    assert found.unmatched == ("waiting_timeout(decode=0, request=0)",)
    without_lemma = unmatched(Symbolic(asked.fine), Symbolic(asked.coarse), with_success_counted, (), SAFETY)
    assert "preallocate" in {each.step.action.name for each in without_lemma.unmatched if each.step}
    assert concluding(asked.coarse, apart=True).actions == asked.fine.actions


def test_a_room_opened_in_two_steps_is_another_protocol() -> None:
    """The step without a counterpart is a real one: the searched run takes it, and corrupts memory."""
    found = by_steps("opening", atomicities(load_profile("sglang-0.5.23-mooncake"))["opening"])
    assert (found.verdict, found.method, found.unmatched) == (Verdict.FAILS, Method.BOTH, ("open_room(prefill=0)",))
    assert found.trace is not None and (found.trace.subject, len(found.trace)) == ("no_late_write", 26)
    assert "open_room(prefill=0)" in [step.label for step in found.trace.steps]


# The command.


def test_the_command() -> None:
    run = CliRunner().invoke
    result = run(main, ["relate", "sglang-0.5.23-mooncake", "--relation", "opening", "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    (row,) = document["relations"]
    assert (document["format"], row["of"], row["verdict"]) == ("draincheck-relate", "opening", "FAILS")
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    for name in row:
        assert re.search(f"`{name}`", text), name
    arguments = ["--relation", "dead ack path", "--relation", "success, timeouts"]
    result = run(main, ["relate", "sglang-0.5.23-mooncake", *arguments])
    assert result.exit_code == 0 and "in every pair of runs" in result.stdout
    result = run(main, ["relate", "sglang-0.5.23-mooncake", *arguments[2:], "--max-states", "10"])
    assert result.exit_code == 3 and "limit of 10 states reached" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sglang-0.5.23-mooncake", "--relation", "ageing"], "no relation 'ageing'; sglang-0.5.23-mooncake is asked:"),
        (["sglang-0.5.23-fake"], "the backend transfers nothing"),
        (["nobody"], "nobody"),
    ],
)
def test_wrong_input_is_named(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["relate", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr and "Traceback" not in result.output
