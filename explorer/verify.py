"""Verdicts: what the searches of a case say together, and the traces that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..models.model import Model
from ..properties.cases import INEQUALITY, Case, Question
from .search import Exploration, Limits, Progress, compile_check, never_fired, search
from .trace import Trace, deadlock_trace, follow, violation_trace, witness_trace


class Verdict(StrEnum):
    """What is known about a case; the first is the worst."""

    CORRUPTS = "CORRUPTS"
    CONDITIONAL = "CONDITIONAL"
    UNDETERMINED = "UNDETERMINED"
    SAFE = "SAFE"


EXPLANATION: Mapping[Verdict, str] = {
    Verdict.CORRUPTS: "a property fails, and no release timer fires on the way there",
    Verdict.CONDITIONAL: f"it fails only if the release timer fires first: safe if {INEQUALITY}",
    Verdict.UNDETERMINED: "nothing is known: see the reason",
    Verdict.SAFE: "every reachable state within the bounds satisfies every property",
}

Watch = Callable[[str, Progress], None]


@dataclass(frozen=True)
class Run:
    """One search of a case, in numbers. `reason` says why it does not settle the case, if it does not."""

    states: int
    transitions: int
    depth: int
    seconds: float
    complete: bool
    reason: str
    bounds: Mapping[str, str]
    hits: Mapping[str, int]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """The verdict of a profile in a scenario.

    `run` is the search that decides: without the release timer for CORRUPTS, with it for CONDITIONAL.
    `without_timer` is the one with the timer switched off, if that is another. `trace` shows the failure.
    """

    profile: str
    scenario: str
    verdict: Verdict
    property: str
    reasons: tuple[str, ...]
    run: Run
    without_timer: Run | None
    seconds: float
    trace: Trace | None
    witness: Trace | None
    assumed: Mapping[str, object] = field(default_factory=dict[str, object])


def verify(case: Case, limits: Limits = Limits(), watch: Watch | None = None) -> Row:  # noqa: B008 - frozen
    """Decides a case: first with the release timer off, then, if nothing fails, with it.

    Raises DraincheckError if the model is declared wrongly, KeyboardInterrupt never: Ctrl-C gives UNDETERMINED.
    """
    off = _explore(case, case.untimed, limits, watch)
    failed = _failure(case.untimed, off)
    if failed:
        return _row(case, Verdict.CORRUPTS, failed, case.untimed, off, None)
    doubts = _doubts(case.untimed, off)
    if doubts or case.timed is None:
        verdict = Verdict.UNDETERMINED if doubts else Verdict.SAFE
        return _row(case, verdict, _deadlock(case.untimed, off), case.untimed, off, None, doubts)
    on = _explore(case, case.timed, limits, watch)
    failed = _failure(case.timed, on)
    if failed:
        return _row(case, Verdict.CONDITIONAL, failed, case.timed, on, off)
    doubts = _doubts(case.timed, on)
    verdict = Verdict.UNDETERMINED if doubts else Verdict.SAFE
    return _row(case, verdict, _deadlock(case.timed, on), case.timed, on, off, doubts)


def _explore(case: Case, question: Question, limits: Limits, watch: Watch | None) -> Exploration:
    title = f"{case.profile} / {case.scenario}, release timer {question.check.model.bounds['release timer']}"

    def progress(at: Progress) -> None:
        if watch:
            watch(title, at)

    compiled = compile_check(question.check)
    return search(compiled, limits, until_violation=not case.count_all, progress=progress)


def _failure(question: Question, found: Exploration) -> Trace | None:
    """The shortest trace to a violated property, if there is one."""
    if not found.violated:
        return None
    name, position = min(found.violated.items(), key=lambda item: item[1])
    prop = next(each for each in question.check.properties if each.name == name)
    states = found.path_to(position)
    model = question.check.model
    return violation_trace(model, prop, states[0], follow(model, states), question.source)


def _deadlock(question: Question, found: Exploration) -> Trace | None:
    if found.deadlock is None:
        return None
    states, model = found.path_to(found.deadlock), question.check.model
    return deadlock_trace(model, states[0], follow(model, states), question.source)


def _doubts(question: Question, found: Exploration) -> tuple[str, ...]:
    """Why a search without violation is no pass: it was cut short, got stuck, or did not see what it must."""
    if found.deadlock is not None:
        return ("a state that is not terminal has no step: the model or the protocol is stuck there",)
    if found.stopped:
        return (found.stopped,)
    doubts = [f"the action {name} never fired" for name in never_fired(found)]
    doubts += [f"{name} was never reached" for name in question.required if name not in found.reached]
    return tuple(doubts)


def _row(
    case: Case,
    verdict: Verdict,
    trace: Trace | None,
    question: Question,
    deciding: Exploration,
    off: Exploration | None,
    doubts: Sequence[str] = (),
) -> Row:
    clean = off or (deciding if not trace else None)
    return Row(
        profile=case.profile,
        scenario=case.scenario,
        verdict=verdict,
        property=trace.subject if trace else "",
        reasons=tuple(doubts),
        run=_run(question.check.model, deciding),
        without_timer=_run(case.untimed.check.model, off) if off else None,
        seconds=deciding.seconds + (off.seconds if off else 0.0),
        trace=trace,
        witness=_witness(case, clean) if clean else None,
        assumed=case.assumed or {},
    )


def _witness(case: Case, found: Exploration) -> Trace | None:
    position = found.reached.get(case.witness)
    if position is None:
        return None
    check = found.check
    probe = next(each for each in check.probes if each.name == case.witness)
    states = found.path_to(position)
    question = case.timed if case.timed and check is case.timed.check else case.untimed
    return witness_trace(check.model, probe, states[0], follow(check.model, states), question.source)


def _run(model: Model, found: Exploration) -> Run:
    return Run(
        found.states, found.transitions, found.depth, found.seconds, found.complete, found.stopped,
        model.bounds, found.hits, found.counts,
    )  # fmt: skip


def exit_code(rows: Sequence[Row]) -> int:
    """0 if every row is SAFE, 1 if a property fails in one, else 3 if one is undetermined."""
    verdicts = {row.verdict for row in rows}
    if verdicts & {Verdict.CORRUPTS, Verdict.CONDITIONAL}:
        return 1
    return 3 if Verdict.UNDETERMINED in verdicts else 0
