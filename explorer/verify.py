"""Verdicts: what the searches of a case say together, and the traces that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ..models.model import Model
from ..properties.cases import DELAYS, INEQUALITY, LEAKS, WEAKNESSES, Case, Question
from .search import Exploration, Limits, Progress, compile_check, never_fired, search
from .trace import Trace, deadlock_trace, follow, violation_trace, witness_trace


class Verdict(StrEnum):
    """What is known about a case; the first is the worst."""

    CORRUPTS = "CORRUPTS"
    LEAKS = "LEAKS"
    DELAYS = "DELAYS"
    CONDITIONAL = "CONDITIONAL"
    UNDETERMINED = "UNDETERMINED"
    SAFE = "SAFE"


EXPLANATION: Mapping[Verdict, str] = {
    Verdict.CORRUPTS: "a property of memory fails, however long the hold: no release timer fires too early",
    Verdict.LEAKS: "no data is lost, but memory or a room number is never given back",
    Verdict.DELAYS: "no data is lost, but a hold that nothing disturbed or a transfer given up is left to its timer",
    Verdict.CONDITIONAL: f"it fails only if the release timer fires before the writes are over: safe if {INEQUALITY}",
    Verdict.UNDETERMINED: "nothing is known: see the reason",
    Verdict.SAFE: "every reachable state within the bounds satisfies every property",
}

BEYOND = 2_000_000
"""Up to so many states the search goes on behind a loss of memory, to see what else fails."""

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
class Finding:
    """A property that fails, the class that this puts the case into, and the shortest run that shows it."""

    verdict: Verdict
    subject: str
    trace: Trace


@dataclass(frozen=True)
class Weakness:
    """A property that the safety of others rests on, and that fails; by itself it loses nothing."""

    subject: str
    trace: Trace


@dataclass(frozen=True)
class Row:
    """The verdict of a profile in a scenario: the worst of its findings, or SAFE or UNDETERMINED without one.

    `findings` has every property that was found to fail, the worst class first. `run` is the search that decides;
    its bounds say when the release timer fires in it. `without_timer` is the one with the timer switched off, if that
    is another. `stuck` leads to a deadlock, `witness` exercises the property without the timer. `stored` says that
    the result is one of an earlier run.
    """

    profile: str
    scenario: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]
    run: Run
    without_timer: Run | None
    seconds: float
    stuck: Trace | None
    witness: Trace | None
    assumed: Mapping[str, object] = field(default_factory=dict[str, object])
    weaknesses: tuple[Weakness, ...] = ()
    stored: bool = False

    @property
    def subject(self) -> str:
        """The property of the worst finding, or an empty string."""
        return self.findings[0].subject if self.findings else (self.stuck.subject if self.stuck else "")

    @property
    def trace(self) -> Trace | None:
        """The run that shows the verdict, if there is one."""
        return self.findings[0].trace if self.findings else self.stuck

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The runs of all findings, or the one that got stuck."""
        return tuple(finding.trace for finding in self.findings) or ((self.stuck,) if self.stuck else ())


def verify(case: Case, limits: Limits = Limits(), watch: Watch | None = None) -> Row:  # noqa: B008 - frozen
    """Decides a case: with the release timer off; if no memory is lost, late enough; then at any moment.

    Raises DraincheckError if the model is declared wrongly. Ctrl-C gives UNDETERMINED, once the first search runs.
    """
    off = _explore(case, case.untimed, limits, watch, beyond=BEYOND)
    findings = _findings(case.untimed, off, Verdict.CORRUPTS)
    doubts = _doubts(case.untimed, off)
    question, deciding = case.untimed, off
    if _may_go_on(off, doubts, findings):
        for asked, lost in ((case.patient, Verdict.CORRUPTS), (case.timed, Verdict.CONDITIONAL)):
            if asked is None:
                continue
            try:
                found = _explore(case, asked, limits, watch)
            except KeyboardInterrupt:  # while the model was traced or compiled
                doubts = ("interrupted",)
                break
            losses = _findings(asked, found, lost)
            doubts = _doubts(asked, found)
            if not findings or (lost is Verdict.CORRUPTS and losses):
                question, deciding = asked, found
            findings = sorted([*findings, *losses], key=lambda each: list(Verdict).index(each.verdict))
            if losses or not _may_go_on(found, doubts, findings):
                break
    return _row(case, findings, doubts, question, deciding, off)


def _may_go_on(found: Exploration, doubts: Sequence[str], findings: Sequence[Finding]) -> bool:
    """Whether the next search can say more: nothing is lost yet, and this one went to its end."""
    if any(each.verdict is Verdict.CORRUPTS for each in findings):
        return False
    return not doubts or (bool(findings) and found.complete and found.deadlock is None)


def _explore(case: Case, question: Question, limits: Limits, watch: Watch | None, beyond: int = 0) -> Exploration:
    title = (
        f"{case.profile} / {case.scenario}, release timer {question.check.model.bounds.get('release timer', 'none')}"
    )

    def progress(at: Progress) -> None:
        if watch:
            watch(title, at)

    compiled = compile_check(question.check)
    until = {each.name for each in question.check.properties} - DELAYS - LEAKS - WEAKNESSES
    return search(compiled, limits, until=() if case.count_all else until, beyond=beyond, progress=progress)


def _findings(question: Question, found: Exploration, lost: Verdict) -> list[Finding]:
    """The properties that fail, each with its shortest trace, worst class first; losing memory counts as `lost`."""
    findings = [
        Finding(class_of(name, lost), name, _shortest(question, found, name))
        for name in _by_depth(found)
        if name not in WEAKNESSES
    ]
    return sorted(findings, key=lambda each: list(Verdict).index(each.verdict))


def _weaknesses(question: Question, found: Exploration) -> tuple[Weakness, ...]:
    return tuple(Weakness(name, _shortest(question, found, name)) for name in _by_depth(found) if name in WEAKNESSES)


def _by_depth(found: Exploration) -> list[str]:
    """The properties that fail, the one with the shortest trace first."""
    return sorted(found.violated, key=lambda name: found.violated[name])


def _shortest(question: Question, found: Exploration, name: str) -> Trace:
    """The shortest run to where a property fails."""
    model = question.check.model
    prop = next(each for each in question.check.properties if each.name == name)
    states = found.path_to(found.violated[name])
    return violation_trace(model, prop, states[0], follow(model, states), question.source)


def class_of(name: str, lost: Verdict = Verdict.CORRUPTS) -> Verdict:
    """The class of a property that fails; `lost` is that of memory."""
    if name in LEAKS:
        return Verdict.LEAKS
    return Verdict.DELAYS if name in DELAYS else lost


def _deadlock(question: Question, found: Exploration) -> Trace | None:
    if found.deadlock is None:
        return None
    states, model = found.path_to(found.deadlock), question.check.model
    return deadlock_trace(model, states[0], follow(model, states), question.source)


def _doubts(question: Question, found: Exploration) -> tuple[str, ...]:
    """Why a search is no pass: it was cut short, got stuck, or did not see what it must. None if it found a loss."""
    if found.stopped == "violation found" or (found.violated.keys() - DELAYS - LEAKS - WEAKNESSES):
        return ()
    if found.deadlock is not None:
        return ("a state that is not terminal has no step: the model or the protocol is stuck there",)
    if found.stopped:
        return (found.stopped,)
    doubts = [f"the action {name} never fired" for name in never_fired(found)]
    doubts += [f"{name} was never reached" for name in question.required if name not in found.reached]
    return tuple(doubts)


def _row(
    case: Case,
    findings: Sequence[Finding],
    doubts: Sequence[str],
    question: Question,
    deciding: Exploration,
    off: Exploration,
) -> Row:
    known = findings[0].verdict if findings else Verdict.SAFE
    finished = deciding.complete and deciding.deadlock is None
    verdict = Verdict.UNDETERMINED if doubts and not (findings and finished) else known
    lost = any(each.verdict is Verdict.CORRUPTS for each in findings)
    elsewhere = off if off is not deciding else None
    return Row(
        profile=case.profile,
        scenario=case.scenario,
        verdict=verdict,
        findings=tuple(findings),
        reasons=tuple(doubts),
        run=_run(question.check.model, deciding),
        without_timer=_run(case.untimed.check.model, elsewhere) if elsewhere else None,
        seconds=deciding.seconds + (elsewhere.seconds if elsewhere else 0.0),
        stuck=_deadlock(question, deciding),
        witness=None if lost else _witness(case, off),
        assumed=case.assumed or {},
        weaknesses=_weaknesses(case.untimed, off),
    )


def _witness(case: Case, found: Exploration) -> Trace | None:
    position = found.reached.get(case.witness)
    if position is None:
        return None
    check = found.check
    probe = next(each for each in check.probes if each.name == case.witness)
    states = found.path_to(position)
    return witness_trace(check.model, probe, states[0], follow(check.model, states), case.untimed.source)


def _run(model: Model, found: Exploration) -> Run:
    return Run(
        found.states, found.transitions, found.depth, found.seconds, found.complete, found.stopped,
        model.bounds, found.hits, found.counts,
    )  # fmt: skip


def exit_code(rows: Sequence[Row]) -> int:
    """0 if every row is SAFE, 1 if a property fails in one, else 3 if one is undetermined."""
    if any(row.findings for row in rows):
        return 1
    return 3 if any(row.verdict is Verdict.UNDETERMINED for row in rows) else 0
