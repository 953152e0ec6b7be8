"""The hold inequality: formulas, decisions, theorem, and the agreement of Z3 with the explicit model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import oracle
import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.operators import hold as hold_command
from draincheck.explorer.search.search import compile_check, search
from draincheck.explorer.traces.trace import follow, violation_trace
from draincheck.explorer.verdicts.verify import EXPLANATION, Verdict
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.small.timed_hold import HoldBounds, timed_hold, timed_hold_check
from draincheck.properties.drain.cases import drain_case, scenario_with
from draincheck.properties.drain.safety import no_late_write
from draincheck.properties.hold.inequality import (
    QUANTITIES,
    READ_KNOBS,
    Cause,
    Situation,
    Timing,
    TimingError,
    assumptions,
    decimal,
    default_of,
    fails,
    parse_interval,
    terms,
    writers,
)
from draincheck.properties.hold.solver import Answer, Finding, decide
from draincheck.properties.hold.theorem import Chunk, Claim, Obligation, discharge, obligations, prove
from draincheck.protocol.language import DeclarationError
from draincheck.protocol.language.check import Check
from hypothesis import example, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
NEWEST = "sglang-0.5.23-mooncake"

ARTICLE = {
    "bandwidth_gigabytes_per_second": "25",
    "kv_bytes_per_token": "37500",
    "context_tokens": "1048576",
    "chunk_tokens": "8192",
    "prefill_tokens_per_second": "20000",
    "prefill_queue_seconds": "0",
    "abort_propagation_seconds": "1",
    "calls_per_chunk": "1",
    "index_batches_per_call": "1",
    "destinations": "1",
    "launched_chunks": "1",
    "retry_tail_seconds": "20",
}
"""The assumptions of the article's first model; what it says nothing of is 1 or small."""


def found(cause: Cause, profile: str = NEWEST, knobs: Mapping[str, Any] = {}, **given: Any) -> list[Finding]:
    """The findings for the article's timings, some of them replaced."""
    said = {name: given.pop(name) for name in ("notification", "acks_arrive", "one_rank") if name in given}
    situation = Situation(replace(load_profile(profile).knobs, **knobs), cause, **said)
    defaults = {name: default_of(name, load_profile(profile)) for name in QUANTITIES}
    timings = defaults | ARTICLE | given
    return decide(situation, {name: parse_interval(name, text) for name, text in timings.items()})


def only(cause: Cause, profile: str = NEWEST, knobs: Mapping[str, Any] = {}, **given: Any) -> Finding:
    (finding,) = found(cause, profile, knobs, **given)
    return finding


# The formulas, on the articles' numbers.


def test_a_rank_that_is_told_has_one_chunk_left() -> None:
    finding = only(Cause.ABORT)
    assert finding.terms.in_flight_call == Fraction(8192 * 37500, 25 * 10**9) == Fraction("0.012288")
    assert (finding.answer, finding.smallest) == (Answer.PROVED, Fraction("1.012288"))
    assert finding.slack == Fraction("28.987712")
    assert finding.terms.dominating == "t_abort_propagation"


@pytest.mark.parametrize(("context", "seconds"), [("1048576", "52.4288"), ("131072", "6.5536")])
def test_a_rank_that_is_not_told_goes_on_to_the_end(context: str, seconds: str) -> None:
    finding = only(Cause.ABORT, notification=False, context_tokens=context)
    assert finding.terms.remaining_chunks == Fraction(seconds)
    assert finding.smallest == Fraction(seconds) + Fraction("0.012288")
    assert (finding.answer is Answer.PROVED) == (Fraction(seconds) < 29)
    deaf = only(Cause.ABORT, knobs={"abort_handled": False}, context_tokens=context)
    assert deaf.smallest == finding.smallest


def test_an_abort_is_never_waited_for_longer_than_the_transfer_itself_takes() -> None:
    finding = only(Cause.ABORT, abort_propagation_seconds="1000")
    assert finding.smallest == only(Cause.ABORT, notification=False).smallest


def test_slow_writes_dominate_what_is_left_where_prefill_is_faster() -> None:
    finding = only(Cause.ABORT, notification=False, bandwidth_gigabytes_per_second="0.3072", context_tokens="24576")
    chunk = Fraction(1)  # second
    assert finding.terms.in_flight_call == chunk
    assert finding.terms.remaining_chunks == Fraction(8192, 20000) + 2 * chunk


def test_calls_to_destinations_add_up_or_overlap() -> None:
    one = only(Cause.ABORT).terms.in_flight_call
    assert only(Cause.ABORT, destinations="4").terms.in_flight_call == 4 * one
    assert only(Cause.ABORT, knobs={"posts_at_once": True}, destinations="4").terms.in_flight_call == one
    assert only(Cause.ABORT, launched_chunks="3").terms.in_flight_call == 3 * one


def test_each_call_has_a_budget_of_its_own() -> None:
    """Without a bandwidth, the calls' budgets bound the chunk, and what is retried comes on top."""
    finding = only(
        Cause.ABORT,
        bandwidth_gigabytes_per_second="unknown",
        calls_per_chunk="2",
        index_batches_per_call="3",
        destinations="2",
        call_timeout_seconds="1",
    )
    assert finding.smallest == 1 + 2 * 3 * 2 * 1 + 20
    assert finding.answer is Answer.UNDETERMINED
    patient = only(Cause.ABORT, bandwidth_gigabytes_per_second="unknown", call_timeout_seconds="1", hold_seconds="23")
    assert patient.answer is Answer.PROVED  # the bandwidth does not matter


def test_chunks_that_take_their_whole_budget_are_counted() -> None:
    """Three chunks fit, so there are at most four: the first waits for prefill, the others for each other."""
    finding = only(
        Cause.ABORT,
        notification=False,
        bandwidth_gigabytes_per_second="unknown",
        context_tokens="24576",
        call_timeout_seconds="1",
        retry_tail_seconds="7",
    )
    assert finding.smallest == Fraction(8192, 20000) + 4 * 1 + 7


def test_neither_end_of_a_chunk_is_the_worse_one() -> None:
    """Smaller chunks are more of them; each takes its budget if the calls are slow, and its bytes if they are not."""
    slow = {"notification": False, "bandwidth_gigabytes_per_second": "0.0001", "call_timeout_seconds": "1"}
    ends = [only(Cause.ABORT, **slow, chunk_tokens=size).smallest for size in ("1024", "8192")]
    both = only(Cause.ABORT, **slow, chunk_tokens="1024..8192")
    assert ends[0] > ends[1] and both.smallest == ends[0] and not both.reason


def test_defaults_are_those_of_the_release() -> None:
    for profile, timeout, launched in (
        (NEWEST, "30", "1"),
        ("sglang-0.5.23-nixl", "none", "unknown"),
        ("sglang-0.5.23-ascend", "unknown", "1"),  # what its errors mean is not established
    ):
        loaded = load_profile(profile)
        assert (default_of("call_timeout_seconds", loaded), default_of("launched_chunks", loaded)) == (
            timeout,
            launched,
        )
        assert default_of("hold_seconds", loaded) == "30"
    endless = only(Cause.ABORT, "sglang-0.5.23-nixl", bandwidth_gigabytes_per_second="unknown", hold_seconds="1000000")
    assert endless.answer is Answer.UNDETERMINED  # nothing bounds a call but its bytes


def test_a_call_in_parts_ends_within_its_budgets_where_a_whole_one_is_retried() -> None:
    slow = {"bandwidth_gigabytes_per_second": "0.01024", "call_timeout_seconds": "30", "hold_seconds": "40"}
    whole = only(Cause.ABORT, **slow)  # 30 s: the budget
    assert (whole.answer, whole.smallest) == (Answer.REFUTED, 1 + 30 + 20)
    parts = only(Cause.ABORT, **slow, index_batches_per_call="2")
    assert (parts.answer, parts.smallest) == (Answer.PROVED, 1 + 30)


def test_a_failed_call_leaves_its_retries() -> None:
    failing, other = found(Cause.FAILED_SEND)
    assert (failing.smallest, other.smallest) == (20, Fraction("21.012288"))
    (alone,) = found(Cause.FAILED_SEND, one_rank=True)
    assert alone.smallest == 20
    failing, _ = found(Cause.FAILED_SEND, knobs={"wait_for_siblings": False})
    assert failing.smallest == Fraction("20.012288")
    failing, _ = found(Cause.FAILED_SEND, knobs={"err_implies_quiet": True})
    assert failing.smallest == 0


def test_a_dead_node_is_noticed_by_its_heartbeats() -> None:
    lives, dead = found(Cause.NODE_FAILURE)
    assert lives.smallest == only(Cause.ABORT).smallest
    assert dead.smallest == Fraction("0.012288") + 20 - 5  # one whole interval lies between two misses
    _, dead = found(Cause.NODE_FAILURE, heartbeat_seconds="7", heartbeat_misses="3")
    assert dead.smallest == Fraction("0.012288") + 20 - 14


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_that_is_not_held_is_never_safe(cause: Cause) -> None:
    for causes, enabled in (("none", False), ("decode_initiated", True), ("all", True)):
        findings = found(cause, knobs={"hold_causes": causes, "hold_enabled": enabled}, hold_seconds="1000")
        held = causes == "all" or (causes == "decode_initiated" and cause in (Cause.ABORT, Cause.WAITING_TIMEOUT))
        assert all(each.answer is (Answer.PROVED if held else Answer.REFUTED) for each in findings)


def test_no_hold_is_long_enough_where_failed_sends_are_acknowledged() -> None:
    unsound = {"poison_on_error": False}
    for each in found(Cause.FAILED_SEND, knobs=unsound, hold_seconds="1000000"):
        assert (each.answer, each.smallest) == (Answer.REFUTED, None)
    for change in ({"acks_arrive": False}, {"retry_tail_seconds": "0"}, {"notification": False}):
        findings = found(Cause.FAILED_SEND, knobs=unsound, hold_seconds="1000000", **change)
        assert all(each.answer is Answer.PROVED for each in findings)
    for knob in ({"failed_chunk_uncounted": False}, {"err_implies_quiet": True}, {"drain_ack": False}):
        findings = found(Cause.FAILED_SEND, knobs=unsound | knob, hold_seconds="1000000")
        assert all(each.answer is Answer.PROVED for each in findings)


def test_a_backend_that_transfers_nothing_is_safe() -> None:
    assert found(Cause.ABORT, profile="sglang-0.5.23-fake") == []


class Watched:
    """Knobs that note which of them are read."""

    def __init__(self, knobs: Any, names: set[str]) -> None:
        self._knobs, self._names = knobs, names

    def __getattr__(self, name: str) -> Any:
        if name == "acks_drain":
            self._names |= {"hold_enabled", "drain_ack"}
        else:
            self._names.add(name)
        return getattr(self._knobs, name)


def test_the_knobs_that_are_named_are_those_that_are_read() -> None:
    """An unknown knob is named as an assumption exactly if a formula can depend on it."""
    names: set[str] = set()
    knobs: Any = Watched(load_profile(NEWEST).knobs, names)
    timing = Timing(**(dict.fromkeys(QUANTITIES, Fraction(1)) | {"hold_seconds": Fraction(1000)}))
    for cause in Cause:
        situation = Situation(knobs, cause)
        for writer in writers(situation):
            fails(situation, timing, terms(situation, writer, timing))
    assert names == READ_KNOBS
    profile = load_profile("sglang-0.5.23-nixl")
    said = assumptions(Situation(profile.knobs, Cause.FAILED_SEND), profile)
    assert any(line.startswith("err_implies_quiet is unknown") for line in said)


# Decisions.


def test_equality_is_not_safe() -> None:
    for hold, answer in (("1.012287", Answer.REFUTED), ("1.012288", Answer.REFUTED), ("1.012289", Answer.PROVED)):
        assert only(Cause.ABORT, hold_seconds=hold).answer is answer


def test_arithmetic_is_exact() -> None:
    """In floating point 0.1 + 0.2 is more than 0.3, and 0.7 is less than 0.1 * 7."""
    chunk = {"kv_bytes_per_token": "1", "chunk_tokens": "1", "bandwidth_gigabytes_per_second": "5e-9"}
    equal = only(Cause.ABORT, **chunk, abort_propagation_seconds="0.1", hold_seconds="0.3")
    assert (equal.terms.total, equal.answer) == (Fraction(3, 10), Answer.REFUTED)
    above = only(Cause.ABORT, **chunk, abort_propagation_seconds="0.1", hold_seconds="0.3000000000000000001")
    assert above.answer is Answer.PROVED


def test_an_interval_is_safe_if_all_of_it_is() -> None:
    assert only(Cause.ABORT, abort_propagation_seconds="0..28").answer is Answer.PROVED
    finding = only(Cause.ABORT, abort_propagation_seconds="0..29.987712")
    assert finding.answer is Answer.REFUTED and finding.slack == 0
    assert only(Cause.ABORT, hold_seconds="1..60").answer is Answer.REFUTED
    assert only(Cause.ABORT, hold_seconds="2..60").answer is Answer.PROVED


def test_what_is_unknown_matters_only_where_it_can() -> None:
    finding = only(Cause.ABORT, abort_propagation_seconds="unknown")
    assert finding.answer is Answer.UNDETERMINED
    assert finding.unknown == ("abort_propagation_seconds",)
    assert finding.smallest == Fraction("52.441088")  # the transfer ends some time
    assert finding.enough == {"abort_propagation_seconds": Fraction("29.987712")}
    at_most = only(Cause.ABORT, abort_propagation_seconds="0..29.9877")
    assert at_most.answer is Answer.PROVED
    no_matter = only(Cause.ABORT, prefill_tokens_per_second="unknown", retry_tail_seconds="unknown")
    assert no_matter.answer is Answer.PROVED


def test_what_fails_whatever_is_unknown_is_not_safe() -> None:
    finding = only(Cause.ABORT, hold_seconds="1", retry_tail_seconds="unknown", prefill_queue_seconds="unknown")
    assert finding.answer is Answer.REFUTED
    assert finding.terms.total >= 1


def test_several_unknown_ones_are_all_named() -> None:
    pair = {"abort_propagation_seconds": "unknown", "prefill_queue_seconds": "unknown"}
    finding = only(Cause.ABORT, **pair, context_tokens="131072")
    assert set(finding.unknown) == set(pair)
    assert finding.enough and set(finding.enough) == set(pair)  # a bound on either would do
    everything = dict.fromkeys(ARTICLE, "unknown")
    finding = only(Cause.ABORT, **everything)
    assert finding.answer is Answer.UNDETERMINED and "bandwidth_gigabytes_per_second" in finding.unknown


UNKNOWN_ABLE = sorted(name for name, quantity in QUANTITIES.items() if quantity.worse == "high" and not quantity.whole)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), chosen=st.sets(st.sampled_from([*UNKNOWN_ABLE, "call_timeout_seconds"]), min_size=1, max_size=3))
def test_conditions_on_what_is_unknown_are_right(data: st.DataObject, chosen: set[str]) -> None:
    """Below a value that is said to be enough nothing fails; at one that is said to be needed something always does."""
    knobs = {"posts_at_once": data.draw(st.booleans()), "abort_handled": data.draw(st.booleans())}
    known = {"call_timeout_seconds": "10", "hold_seconds": "30", "kv_bytes_per_token": "1000000"}
    unknown = dict.fromkeys(chosen, "unknown")
    finding = only(Cause.ABORT, knobs=knobs, **(known | unknown))
    if finding.answer is not Answer.UNDETERMINED:
        return
    assert finding.unknown
    for name, limit in (finding.enough or {}).items():
        for share in (Fraction(99, 100), Fraction(1, 3)):
            value = limit * share
            text = shown_exactly(name, value)
            assert only(Cause.ABORT, knobs=knobs, **(known | unknown | {name: text})).answer is Answer.PROVED
    for name, limit in (finding.needed or {}).items():
        text = shown_exactly(name, limit * Fraction(101, 100))
        assert only(Cause.ABORT, knobs=knobs, **(known | unknown | {name: text})).answer is not Answer.PROVED


def shown_exactly(name: str, value: Fraction) -> str:
    """A value of the formulas, as the option takes it; near enough where its fraction is long."""
    quantity = QUANTITIES[name]
    value = 1 / (value * quantity.scale) if quantity.rate else value
    short = value.limit_denominator(10**15)
    return str(short if short else value)


def test_a_budget_that_is_unknown_may_be_short() -> None:
    """A bound on the ABORT alone is enough only with the retries of a call that timed out."""
    both = {"abort_propagation_seconds": "unknown", "call_timeout_seconds": "unknown"}
    finding = only(Cause.ABORT, **both)
    assert finding.unknown == ("abort_propagation_seconds",)
    assert finding.enough == {"abort_propagation_seconds": Fraction("9.987712")}
    assert finding.needed == {"abort_propagation_seconds": Fraction("29.987712")}


def test_a_bandwidth_that_is_unknown_gets_its_least_value() -> None:
    finding = only(Cause.ABORT, bandwidth_gigabytes_per_second="unknown")
    (line,) = [line for line in hold_command.condition_words(finding) if "exactly" in line]
    # 29 s are left for a chunk of 307.2 MB.
    assert line == "it holds exactly if bandwidth-gigabytes-per-second > ~0.0105931034 GB/s"


NUMBERS = st.fractions(min_value=0, max_value=50, max_denominator=12)
RANGES = st.tuples(NUMBERS, NUMBERS).map(sorted)
WHOLE = st.tuples(st.integers(1, 4), st.integers(1, 4)).map(sorted)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), cause=st.sampled_from(list(Cause)), told=st.booleans(), at_once=st.booleans())
def test_answers_agree_with_single_values(data: st.DataObject, cause: Cause, told: bool, at_once: bool) -> None:
    """For random intervals: proved means that no value fails, not safe comes with values that do."""
    knobs = replace(load_profile(NEWEST).knobs, posts_at_once=at_once, wait_for_siblings=data.draw(st.booleans()))
    situation = Situation(knobs, cause, notification=told)
    intervals, inside = {}, {}
    for name, quantity in QUANTITIES.items():
        low, high = data.draw(WHOLE if quantity.whole else RANGES)
        low, high = max(low, quantity.least, Fraction(1, 12)), max(high, quantity.least, Fraction(1, 12))
        if name.startswith("bandwidth"):
            low, high = low / 10**8, high / 10**8
        intervals[name] = parse_interval(name, f"{Fraction(low)}..{Fraction(high)}")
        ends = [intervals[name].low, intervals[name].high]
        if not quantity.whole:
            ends.append((ends[0] + ends[1]) / 2)
        inside[name] = ends
    samples = [{name: data.draw(st.sampled_from(ends)) for name, ends in inside.items()} for _ in range(20)]
    for finding in decide(situation, intervals):
        assert finding.answer is not Answer.UNDETERMINED
        single = [terms(situation, finding.writer, Timing(**each)) for each in samples]
        assert all(each.total <= finding.smallest for each in single)
        shown = asdict(finding.timing)
        assert all(intervals[name].low <= shown[name] <= intervals[name].high for name in QUANTITIES)
        late = [fails(situation, Timing(**each), of) for each, of in zip(samples, single, strict=True)]
        if finding.answer is Answer.PROVED:
            assert not any(late) and finding.slack > 0
        else:
            assert fails(situation, finding.timing, finding.terms)


def test_a_solver_that_gives_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draincheck.properties.hold.solver._Question.ask", lambda *_: ("unknown", None))
    finding = only(Cause.ABORT)
    assert finding.answer is Answer.UNDETERMINED and finding.reason


# The theorem.


def test_the_theorem_is_proved_and_its_mutants_are_not() -> None:
    theorem = prove()
    assert theorem.proved
    assert {proof.status for proof in theorem.proofs} == {"proved"}
    assert not any(proof.vacuous for proof in theorem.proofs)
    refuted = {mutant.name: mutant.refuted_by for mutant in theorem.mutants}
    assert set(refuted) == {
        "without t_abort_propagation",
        "without t_remaining_chunks",
        "without t_in_flight_call",
        "without t_retry_tail",
        ">= for >",
    }
    assert all(proof and proof.counterexample for proof in refuted.values())
    strict = refuted[">= for >"]
    assert strict and strict.name == "no late write"
    values = {name: Fraction(value) for name, value in strict.counterexample.items()}
    assert values["over"] + values["retried"] == values["T"]  # a landing at the moment of the release


def wrong_inputs(chunk: Chunk, produce: Any, write: Any) -> Chunk:
    """The next state from the wrong inputs: the launch does not wait for the chunk, the end not for the write."""
    return Chunk(chunk.ready + produce, chunk.over, chunk.over)


def test_an_induction_from_the_wrong_inputs_is_not_believed() -> None:
    """Its sufficiency is valid, for it says nothing of the model; tightness and mutants tell."""
    proofs = {each.name: discharge(each).status for each in obligations(Claim(step=wrong_inputs))}
    assert proofs["base"] == proofs["step"] == proofs["any sizes: step"] == "proved"
    assert proofs["tight: step"] == "refuted"
    theorem = prove(Claim(step=wrong_inputs))
    assert not theorem.proved


def test_hypotheses_that_cannot_be_met_prove_nothing() -> None:
    first, *others = obligations(Claim())
    empty = replace(first, hypotheses=[*first.hypotheses, others[0].conclusion, first.hypotheses[0] != True])  # noqa: E712
    proof = discharge(Obligation(empty.name, empty.sentence, empty.hypotheses, empty.conclusion))
    assert proof.status == "proved" and proof.vacuous


# The explicit model.

TICKS = st.integers(0, 4)
BOUNDS = st.builds(
    HoldBounds,
    hold=st.just(0),
    propagation=st.integers(0, 8),
    queue=st.integers(0, 3),
    production=TICKS,
    write=TICKS,
    retries=st.integers(0, 3),
    chunks=st.integers(1, 4),
    told=st.booleans(),
    acks=st.booleans(),
)


@pytest.fixture(scope="module")
def explored() -> Iterator[Any]:
    """Whether a late write is reachable, by the compiled search. Bounds are cells, so one compiled model serves all."""
    compiled = compile_check(timed_hold_check(bounds(hold=1)), constants=False)
    machine_code = compiled.quick

    def is_late(chosen: HoldBounds) -> bool:
        other = replace(compiled, initial=timed_hold(chosen).initial_states())
        vars(other)["quick"] = machine_code
        result = search(other)
        assert result.violated or result.complete
        return bool(result.violated)

    yield is_late


def bounds(**chosen: Any) -> HoldBounds:
    plain = {"hold": 6, "propagation": 2, "queue": 1, "production": 1, "write": 2, "retries": 1, "chunks": 3}
    return HoldBounds(**(plain | chosen))


def by_solver(chosen: HoldBounds) -> Finding:
    """The same question to Z3: tokens are chunks, a byte takes w seconds, and calls may fail."""
    values = {
        "hold_seconds": chosen.hold,
        "abort_propagation_seconds": chosen.propagation,
        "prefill_queue_seconds": chosen.queue,
        "retry_tail_seconds": chosen.retries,
        "context_tokens": chosen.chunks,
        "call_timeout_seconds": 1000,
        "bandwidth_gigabytes_per_second": "1e-9",
    }
    timings = dict.fromkeys(QUANTITIES, "1") | {name: str(value) for name, value in values.items()}
    intervals = {name: parse_interval(name, text) for name, text in timings.items()}
    # Not by their options, which refuse a zero that means nothing to an operator.
    for name, value in (("prefill_tokens_per_second", chosen.production), ("kv_bytes_per_token", chosen.write)):
        intervals[name] = replace(intervals["hold_seconds"], low=Fraction(value), high=Fraction(value))
    situation = Situation(load_profile(NEWEST).knobs, Cause.FAILED_SEND, notification=chosen.told)
    (finding,) = [each for each in decide(situation, intervals) if each.writer.name == "another rank"]
    return finding


@settings(max_examples=50, deadline=None)
@given(chosen=BOUNDS)
@example(chosen=HoldBounds(hold=0, propagation=0, queue=0, production=0, write=0, retries=0, chunks=1))
@example(chosen=bounds(told=False, production=3))
@example(chosen=bounds(propagation=8, write=4, production=1))
def test_the_explicit_model_and_the_solver_agree(explored: Any, chosen: HoldBounds) -> None:
    """At the boundary and on either side of it: equality is unsafe in both."""
    boundary = int(by_solver(chosen).smallest)
    for hold in range(max(0, boundary - 1), boundary + 2):
        at = replace(chosen, hold=hold)
        answer = by_solver(at).answer
        assert answer is (Answer.PROVED if hold > boundary else Answer.REFUTED)
        assert explored(at) is (answer is Answer.REFUTED), at


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("acks", [True, False])
def test_the_explicit_model_in_every_engine(told: bool, acks: bool) -> None:
    boundary = int(by_solver(bounds(told=told)).smallest)
    for hold in (boundary, boundary + 1):
        check = timed_hold_check(bounds(hold=hold, told=told, acks=acks))
        plain, compiled = oracle.explore(check), search(check, until=())
        assert compiled.complete and (plain.states, plain.counts) == (compiled.states, compiled.counts)
        assert bool(compiled.counts["no_late_write"]) is (hold == boundary)


def test_the_late_write_of_the_explicit_model_is_a_trace() -> None:
    check = timed_hold_check(bounds(hold=5))
    result = search(check)
    states = result.path_to(result.violated["no_late_write"])
    (prop,) = check.properties
    trace = violation_trace(check.model, prop, states[0], follow(check.model, states), {})
    labels = [step.label for step in trace.steps]
    assert sum("tick" in label for label in labels) == 5  # the victim is there, and written to, at the boundary
    assert "land" in labels[-1] and any("take" in label for label in labels)


def test_a_rank_without_chunks_writes_nothing(explored: Any) -> None:
    assert not explored(bounds(hold=0, chunks=0))


def test_bounds_that_no_timer_holds_are_refused() -> None:
    for wrong in ({"hold": 64}, {"write": -1}, {"chunks": 8}, {"queue": 40, "production": 40}):
        with pytest.raises(DeclarationError, match="timed hold"):
            bounds(**wrong)


# Beside `verify`: where no timer interferes, the same profiles corrupt.


@pytest.mark.parametrize(
    "profile",
    [
        "sglang-0.5.18-mooncake",
        "sglang-0.5.20-mooncake-hold-on",
        "sglang-0.5.21-mooncake",
        "sglang-0.5.23-mooncake",
        "sglang-0.5.23-nixl",
        "sglang-0.5.23-ascend",
    ],
)
def test_an_endless_hold_is_as_safe_as_the_protocol_without_its_timer(profile: str) -> None:
    for scenario, cause in (("abort", Cause.ABORT), ("failed-send", Cause.FAILED_SEND)):
        findings = found(cause, profile, acks_arrive=True, hold_seconds="1000000")
        unsafe = any(each.answer is Answer.REFUTED for each in findings)
        case = drain_case(load_profile(profile), scenario_with(scenario, {"chunks": 1}), timer=False)
        result = search(Check(case.untimed.check.model, (no_late_write,), deadlock=False))
        assert unsafe is bool(result.violated), (scenario, [each.answer for each in findings])


# The command.

GIVEN = [part for name, text in ARTICLE.items() for part in (f"--{name.replace('_', '-')}", text)]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["hold", *arguments])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((NEWEST, *GIVEN), 0, "PROVED"),
        ((NEWEST, *GIVEN, "--no-notification", "--cause", "abort"), 1, "safe T_hold: more than 52.441088 s"),
        ((NEWEST, "--cause", "abort"), 3, "it depends on"),
        (("sglang-0.5.20-mooncake", *GIVEN, "--cause", "abort"), 1, "not held by this profile: T_hold is 0"),
        (("sglang-0.5.21-mooncake", *GIVEN, "--cause", "failed-send"), 1, "no T_hold is enough"),
        (("sglang-0.5.23-fake", "--cause", "abort"), 0, "transfers nothing"),
        (("sglang-0.5.23-nixl", *GIVEN[:20], *GIVEN[22:], "--cause", "abort"), 3, "launched-chunks < "),
        ((NEWEST, *GIVEN, "--cause", "failed-send", "--ranks", "1"), 0, "the rank whose send failed"),
        ((NEWEST, *GIVEN, "--hold-seconds", "unknown"), 3, "safe T_hold: more than 21.012288 s"),
    ],
)
def test_the_command(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output


def test_a_counterexample_is_drawn_in_the_order_of_time() -> None:
    output = run(NEWEST, *GIVEN, "--cause", "failed-send", "--hold-seconds", "21.012288").output
    drawn = [line.split("| ")[-1].split(";")[0].strip() for line in output.splitlines() if " |" in line]
    assert drawn == [
        "failed-send: decode sends ABORT, and holds the slots",
        "notification: the rank acts on the ABORT",
        "last chunk launched",
        "its call fails",
        "last landing",
        "release",
    ]
    assert "in the same instant either may come first" in output
    assert (
        "21.012288 s = t_abort_propagation 1 s + t_in_flight_call 0.012288 s + t_retry_tail 20 s = 21.012288 s"
        in output
    )


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--hold-seconds", "30s", "expected a number without unit (it is in s), lo..hi or unknown"),
        ("--bandwidth-gigabytes-per-second", "25GiB", "a GiB is 2^30 bytes, 1.073741824 gigabytes"),
        ("--bandwidth-gigabytes-per-second", "0", "greater than 0"),
        ("--context-tokens", "9..3", "the lower end is above the upper one"),
        ("--destinations", "1.5", "it is a count; give whole numbers"),
        ("--hold-seconds", "-3", "at least 0"),
        ("--hold-seconds", "nan", "expected a number"),
        ("--hold-seconds", "", "expected a number"),
        ("--hold-seconds", "1..2..3", "expected a number"),
        ("--hold-seconds", "1e99", "from 1e-18 to 1e18"),
        ("--hold-seconds", "1e999999999", "expected a number"),
        ("--hold-seconds", "1/0", "expected a number"),
        ("--ranks", "0", "at least 1"),
        ("--chunk-tokens", "0", "at least 1"),
    ],
)
def test_wrong_input_is_one_line(option: str, value: str, said: str) -> None:
    result = run(NEWEST, option, value)
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit)
    (line,) = result.output.splitlines()
    assert line.startswith(f"draincheck: {option} {value}") and said in line


def test_wrong_calls() -> None:
    assert run().exit_code == 2
    assert run(NEWEST, "--theorem").exit_code == 2
    assert "no such profile" in run("nobody").output


def test_units_are_those_of_the_names() -> None:
    assert parse_interval("bandwidth_gigabytes_per_second", "25").low == Fraction(1, 25 * 10**9)
    fast = parse_interval("bandwidth_gigabytes_per_second", "10..25")
    assert (fast.low, fast.high) == (Fraction(1, 25 * 10**9), Fraction(1, 10**10))
    with pytest.raises(TimingError):
        parse_interval("hold_seconds", "thirty")
    assert [decimal(Fraction(text)) for text in ("30", "0.012288", "1048576", "1/3")] == [
        "30",
        "0.012288",
        "1,048,576",
        "~0.333333333",
    ]


def keys(value: Any) -> set[str]:
    """Every key of a JSON value but the names of quantities and terms."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys, value.values())) - set(QUANTITIES)


def test_the_document_is_documented() -> None:
    section = (ROOT / "docs" / "json.md").read_text("utf-8").split("# The JSON document of `draincheck hold --json`")[1]
    section = section.split("\n# ")[0]
    refuted = run(NEWEST, *GIVEN, "--no-notification", "--json")
    unknown = run(NEWEST, "--json")
    theorem = run("--theorem", "--json")
    assert [each.exit_code for each in (refuted, unknown, theorem)] == [1, 3, 0]
    for result in (refuted, unknown, theorem):
        document = json.loads(result.output)
        assert document["version"] == 1
        missing = [key for key in sorted(keys(document) - VARIABLES) if f"`{key}`" not in section]
        assert not missing


VARIABLES = {"A", "T", "a", "p", "q", "r", "w", "latest", "launch", "over", "produce", "ready", "retried", "write"}
"""Names in the theorem's counterexamples, which are explained in docs/hold-inequality.md."""


def test_the_document_says_what_the_table_says() -> None:
    document = json.loads(run(NEWEST, *GIVEN, "--json").output)
    assert document["verdict"] == "PROVED"
    assert [each["cause"] for each in document["causes"]] == list(Cause)
    abort = document["causes"][0]["writers"][0]
    assert abort["safe_above"] == {"seconds": 1.012288, "exact": str(Fraction("1.012288"))}
    assert abort["assignment"]["bandwidth_gigabytes_per_second"] == 25
    assert abort["dominates"] == "t_abort_propagation" and abort["timeline"] == []


def test_theorem_on_paper_and_in_the_terminal() -> None:
    result = run("--theorem")
    assert result.exit_code == 0 and "The hold inequality is proved" in result.output
    page = (ROOT / "docs" / "hold-inequality.md").read_text("utf-8")
    for each in obligations(Claim()):
        assert f"| {each.name} |" in page, each.name
    for name, quantity in QUANTITIES.items():
        assert f"| `--{name.replace('_', '-')}` | {quantity.unit or 'count'} | {quantity.default or '-'} |" in page, (
            name
        )


def test_help_loads_no_solver() -> None:
    code = "import sys, draincheck.explorer.commands.cli as c; c.main(['hold', '--help'], standalone_mode=False);"
    code += "sys.exit(bool({'z3', 'numba', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_verdict_names_the_command() -> None:
    assert "draincheck hold PROFILE evaluates it" in EXPLANATION[Verdict.CONDITIONAL]


@pytest.mark.parametrize("option", ["--kv-bytes-per-token", "--call-timeout-seconds", "--heartbeat-seconds"])
@pytest.mark.parametrize("value", ["0", "0..5", "-1", "0/7"])
def test_zero_is_refused_where_it_means_nothing(option: str, value: str) -> None:
    result = run("sglang-0.5.23-mooncake", f"{option}={value}")
    assert result.exit_code == 2 and result.stderr.strip().endswith("give values that are greater than 0")
