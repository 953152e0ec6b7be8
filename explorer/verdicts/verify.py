"""Verdicts: what the searches of a case say together, and the traces that show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ...properties.case import Case, Question
from ...protocol.language.check import Check
from ...protocol.language.property import Kind, Promise, Property
from ..search.liveness import Outcome, decide_promises
from ..search.search import (
    INTERRUPTED,
    OUT_OF_MEMORY,
    Exploration,
    Limits,
    Progress,
    SearchInterrupted,
    compile_check,
    never_fired,
    search,
)
from ..traces.trace import Trace, deadlock_trace, fault_trace, follow, promise_trace, violation_trace, witness_trace


class Verdict(StrEnum):
    """What is known about a case; the first is the worst."""

    CORRUPTS = "CORRUPTS"
    VIOLATED = "VIOLATED"
    LEAKS = "LEAKS"
    DELAYS = "DELAYS"
    CONDITIONAL = "CONDITIONAL"
    UNDETERMINED = "UNDETERMINED"
    SAFE = "SAFE"


INEQUALITY = "T_hold > t_abort_propagation + t_remaining_chunks + t_in_flight_call"

EXPLANATION: Mapping[Verdict, str] = {
    Verdict.CORRUPTS: "a property of memory fails, however long the hold: no release timer fires too early",
    Verdict.VIOLATED: "a property or promise fails",
    Verdict.LEAKS: "no data is lost, but memory or a room number is never given back",
    Verdict.DELAYS: "no data is lost, but a hold that nothing disturbed or a transfer given up is left to its timer",
    Verdict.CONDITIONAL: f"it fails only if the release timer fires before the writes are over: safe if {INEQUALITY}, "
    "after a failed send with t_retry_tail (draincheck hold PROFILE evaluates it)",
    Verdict.UNDETERMINED: "not everything is known: see the reason",
    Verdict.SAFE: "every reachable state within the bounds satisfies every property",
}

LOSSLESS = frozenset({Kind.LEAK, Kind.DELAY, Kind.MEANS})
"""What is lost is no data: behind such a failure, a search goes on."""

LOSS = frozenset({Verdict.CORRUPTS, Verdict.VIOLATED})
"""Behind such a finding nothing more is asked."""

BEYOND = 2_000_000
"""Up to so many states the search goes on behind a loss of memory, to see what else fails."""

INTERRUPTION = (INTERRUPTED,)
"""The doubts of a case that Ctrl-C has ended."""

Watch = Callable[[str, Progress], None]


@dataclass(frozen=True)
class Run:
    """One search of a case, in numbers. `reason` says why it does not settle the case, if it does not.

    `verdict` is the worst that this search found, or SAFE.
    """

    verdict: Verdict
    states: int
    transitions: int
    depth: int
    seconds: float
    complete: bool
    reason: str
    bounds: Mapping[str, str]
    hits: Mapping[str, int]
    counts: Mapping[str, int]

    @property
    def idle(self) -> tuple[str, ...]:
        """Actions that never happen in any run; none are known where the search was cut short."""
        return tuple(name for name, hits in self.hits.items() if not hits) if self.complete else ()


@dataclass(frozen=True)
class Finding:
    """A way in which a case fails, with the shortest run that shows it."""

    verdict: Verdict
    subject: str
    trace: Trace


@dataclass(frozen=True)
class Weakness:
    """A property that the safety of others rests on, and that fails; by itself it loses nothing."""

    subject: str
    trace: Trace


@dataclass(frozen=True)
class Held:
    """What never ends if no timer ends it: the shortest run to it, and what is kept back at its end, a dataclass."""

    kept: object
    trace: Trace


@dataclass(frozen=True)
class Otherwise:
    """What the verdict would be with other values of what is unknown: its classes, the worst first."""

    settings: Mapping[str, object]
    classes: tuple[Verdict, ...]


@dataclass(frozen=True)
class Row:
    """The verdict of a profile in a scenario: the worst of its findings, or SAFE or UNDETERMINED without one.

    `findings` has every property that was found to fail, the worst class first. `reasons` say why there may be more
    than was found. `run` is the search that decides; its bounds say when the release timer fires in it.
    `without_timer` is the one with the timer switched off, if that is another. `stuck` leads to a step that breaks the
    language's rules, or to a deadlock, `witness` exercises the property without the timer. `stored` says that the
    result is one of an earlier run. `unfair` names the actions that need not happen even if they always can, as
    promises were decided; None if there was no promise.

    `held` is a hold that never ends without a release timer; None if there is none, or none is known. `unasked` names
    what is not asked in the scenario, each with the reason. `assumed` has the values that were taken for
    what is unknown, as far as the verdict rests on them, and `otherwise` what others would give; `untried` says which
    others were not searched.
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
    unfair: tuple[str, ...] | None = None
    held: Held | None = None
    unasked: Mapping[str, str] = field(default_factory=dict[str, str])
    otherwise: tuple[Otherwise, ...] = ()
    untried: str = ""

    @property
    def classes(self) -> tuple[Verdict, ...]:
        """The verdict and every other class that applies, the worst first; UNDETERMINED at the end: maybe more."""
        more = (Verdict.UNDETERMINED,) if self.reasons else ()
        return tuple(dict.fromkeys((self.verdict, *(each.verdict for each in self.findings), *more)))

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
        """The runs of all findings, and the one that broke the rules, or got stuck without a finding."""
        ends = self.stuck is not None and (self.stuck.kind == "fault" or not self.findings)
        return (*(finding.trace for finding in self.findings), *((self.stuck,) if self.stuck and ends else ()))


class CaseInterrupted(KeyboardInterrupt):
    """Ctrl-C while a case was decided; `row` is what is known of it."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row


def verify(case: Case, limits: Limits = Limits(), watch: Watch | None = None) -> Row:  # noqa: B008 - frozen
    """Decides a case, and whether its verdict rests on what is unknown.

    Raises DraincheckError if the model is declared wrongly, and for Ctrl-C, once the first search runs,
    CaseInterrupted with what is known.
    """
    rows: list[Row] = []
    for each in (case, *case.alternatives):
        try:
            rows.append(decide(each, limits, watch))
        except CaseInterrupted as stopped:
            rows.append(stopped.row)
            raise CaseInterrupted(weigh(case, rows[0], rows[1:])) from None
    return weigh(case, rows[0], rows[1:])


def decide(case: Case, limits: Limits = Limits(), watch: Watch | None = None) -> Row:  # noqa: B008 - frozen
    """Decides a case: with the release timer off; if no memory is lost, late enough; then at any moment.

    A hold that does not end without a timer is a finding where there is no timer. Raises as verify does.
    """
    try:
        off = _explore(case, case.untimed, Verdict.CORRUPTS, limits, watch, beyond=BEYOND)
    except MemoryError:
        return undecided(case, OUT_OF_MEMORY[1])
    deciding, findings, doubts = off, off.findings, off.doubts
    if case.timed:
        findings = tuple(each for each in findings if not _ended_by_timer(case, each.subject))
    unfair = off.question.check.unfair_actions if off.question.check.promises else None
    if _may_go_on(off, findings):
        for asked, lost in ((case.patient, Verdict.CORRUPTS), (case.timed, Verdict.CONDITIONAL)):
            if asked is None:
                continue
            try:
                answer = _explore(case, asked, lost, limits, watch)
            except KeyboardInterrupt:  # while the model was traced or compiled
                doubts = (*doubts, INTERRUPTED)
                break
            except MemoryError:
                doubts = (*doubts, OUT_OF_MEMORY[1])
                break
            doubts = (*doubts, *answer.doubts)
            if asked.check.promises and answer.found.complete:
                unfair = asked.check.unfair_actions
            if not findings or _worst(answer.findings) < _worst(findings):
                deciding = answer
            findings = _together(findings, answer.findings)
            if any(each.verdict in (*LOSS, lost) for each in answer.findings) or not _may_go_on(answer, findings):
                break
    row = _row(case, findings, tuple(dict.fromkeys(doubts)), deciding, off, unfair)
    if INTERRUPTED in doubts:
        raise CaseInterrupted(row)
    return row


def weigh(case: Case, row: Row, others: Sequence[Row]) -> Row:
    """The worst of a case's rows with different values of what is unknown, and which of these it rests on.

    `others` are those of the case's alternatives, as far as they are known.
    """
    if not case.assumed:
        return row
    worst = min((row, *others), key=lambda each: _BADNESS[each.verdict])  # the first, if several are
    otherwise: list[Otherwise] = []
    for other in (row, *others):
        settings = {name: value for name, value in other.assumed.items() if value != worst.assumed[name]}
        if _differ(other, worst):
            otherwise.append(Otherwise(settings, other.classes))
    otherwise.sort(key=lambda each: len(each.settings))
    decisive: list[Otherwise] = []
    for each in otherwise:  # what changes the verdict by itself says all about what changes it with more
        if not any(known.settings.items() <= each.settings.items() for known in decisive):
            decisive.append(each)
    names = {name for each in decisive for name in each.settings}
    missing = "other values were not searched" if len(others) < len(case.alternatives) else case.untried
    return replace(
        worst,
        profile=row.profile,
        assumed={name: value for name, value in worst.assumed.items() if name in names},
        otherwise=tuple(decisive),
        untried=missing,
    )


def _differ(one: Row, other: Row) -> bool:
    """Whether the verdicts differ. Behind a loss of memory the search ends, so what else fails is not compared."""
    if LOSS & {one.verdict, other.verdict}:
        return one.verdict is not other.verdict
    return one.classes != other.classes


_BADNESS = {verdict: place for place, verdict in enumerate(Verdict)}


def _worst(findings: Sequence[Finding]) -> int:
    """How bad the worst finding is: the less, the worse."""
    return min((_BADNESS[each.verdict] for each in findings), default=len(Verdict))


def _together(findings: Sequence[Finding], more: Sequence[Finding]) -> tuple[Finding, ...]:
    """All findings, the worst class first; of what fails in both, the first."""
    known = {each.subject for each in findings}
    both = [*findings, *(each for each in more if each.subject not in known)]
    return tuple(sorted(both, key=lambda each: _BADNESS[each.verdict]))


def _may_go_on(answer: _Answer, findings: Sequence[Finding]) -> bool:
    """Whether the next search can say more: nothing is lost yet, and this one went to its end."""
    if answer.doubts == INTERRUPTION or any(each.verdict in LOSS for each in findings):
        return False
    return not answer.doubts or (bool(findings) and answer.finished)


@dataclass(frozen=True)
class _Answer:
    """A question with what its search found. `doubts` say why it is no pass, and are empty if it found a loss."""

    question: Question
    found: Exploration
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...]
    seconds: float
    never_pending: tuple[str, ...]

    @property
    def finished(self) -> bool:
        """Whether every reachable state was expanded, and none is stuck."""
        return self.found.complete and self.found.deadlock is None


def _explore(
    case: Case, question: Question, lost: Verdict, limits: Limits, watch: Watch | None, beyond: int = 0
) -> _Answer:
    title = (
        f"{case.profile} / {case.scenario}, release timer {question.check.model.bounds.get('release timer', 'none')}"
    )

    def progress(at: Progress) -> None:
        if watch:
            watch(title, at)

    compiled = compile_check(question.check)
    until = losing(question.check)
    outcomes, interrupted = dict[str, Outcome](), True
    try:
        found = search(compiled, limits, until=() if case.count_all else until, beyond=beyond, progress=progress)
    except SearchInterrupted as stopped:
        found = stopped.found
    began = time.perf_counter()
    if found.stopped != INTERRUPTED:
        with suppress(KeyboardInterrupt):
            outcomes = decide_promises(found, limits)
            interrupted = False
    seconds = found.seconds + time.perf_counter() - began
    rested = [each.name for each in found.check.promises if each.may_rest and _is_idle(outcomes.get(each.name))]
    doubts = INTERRUPTION if interrupted else doubts_of(question, found, outcomes)
    return _Answer(question, found, _findings(case, question, found, outcomes, lost), doubts, seconds, tuple(rested))


def _is_idle(outcome: Outcome | None) -> bool:
    return outcome is not None and not outcome.unknown and not outcome.pending


def class_of(check: Check, name: str, lost: Verdict = Verdict.CORRUPTS, *, timer: bool = True) -> Verdict:
    """The class of a property or promise that fails; `lost` is that of memory. Without a release timer (`timer`), what
    is left to it never ends."""
    asked = _asked(check)[name]
    kind = asked.kind
    if isinstance(asked, Property) and asked.without_timer and not timer:
        kind = asked.without_timer
    if kind is Kind.RULE and lost is Verdict.CORRUPTS:
        return Verdict.VIOLATED
    return {Kind.LEAK: Verdict.LEAKS, Kind.DELAY: Verdict.DELAYS}.get(kind, lost)


def _asked(check: Check) -> dict[str, Property | Promise]:
    return {each.name: each for each in (*check.properties, *check.promises)}


def weaknesses_of(check: Check) -> frozenset[str]:
    """Names of the properties whose failure loses nothing by itself."""
    return frozenset(each.name for each in check.properties if each.kind is Kind.MEANS)


def losing(check: Check) -> frozenset[str]:
    """Names of the properties whose failure may lose data: there a search ends."""
    return frozenset(each.name for each in check.properties if each.kind not in LOSSLESS)


def _ended_by_timer(case: Case, name: str) -> bool:
    return any(each.name == name and each.by_timer for each in case.untimed.check.promises)


def failures(found: Exploration, outcomes: Mapping[str, Outcome]) -> list[str]:
    """The properties that fail, the nearest first, and then the promises that are broken."""
    broken = [name for name, outcome in outcomes.items() if outcome.lasso]
    return [*sorted(found.violated, key=lambda name: found.violated[name]), *broken]


def failure_trace(
    found: Exploration, outcomes: Mapping[str, Outcome], name: str, source: Mapping[str, object]
) -> Trace:
    """The run that shows the failure of a property or promise, executed directly."""
    check = found.check
    if name in found.violated:
        prop = next(each for each in check.properties if each.name == name)
        states = found.path_to(found.violated[name])
        return violation_trace(check.model, prop, states[0], follow(check.model, states), source)
    promise = next(each for each in check.promises if each.name == name)
    lasso = outcomes[name].lasso
    assert lasso is not None
    taken = follow(check.model, lasso.states, lasso.instances)
    return promise_trace(check, promise, lasso.states[0], taken, lasso.loop, source)


def _findings(
    case: Case, question: Question, found: Exploration, outcomes: Mapping[str, Outcome], lost: Verdict
) -> tuple[Finding, ...]:
    """What fails, each with its shortest trace, worst class first; losing memory counts as `lost`."""
    findings: list[Finding] = []
    for name in failures(found, outcomes):
        if name in weaknesses_of(found.check):
            continue
        verdict = class_of(found.check, name, lost, timer=case.timed is not None)
        findings.append(Finding(verdict, name, failure_trace(found, outcomes, name, question.source)))
    return tuple(sorted(findings, key=lambda each: _BADNESS[each.verdict]))


def _weaknesses(answer: _Answer) -> tuple[Weakness, ...]:
    found, source = answer.found, answer.question.source
    names = [name for name in failures(found, {}) if name in weaknesses_of(found.check)]
    return tuple(Weakness(name, failure_trace(found, {}, name, source)) for name in names)


def _stuck(question: Question, found: Exploration) -> Trace | None:
    """The run to a step that breaks the rules, or else to a deadlock."""
    model = question.check.model
    if found.faulty:
        states = found.path_to(found.faulty.position)
        return fault_trace(question.check, states[0], follow(model, states), question.source)
    if found.deadlock is None:
        return None
    states = found.path_to(found.deadlock)
    return deadlock_trace(model, states[0], follow(model, states), question.source)


def doubts_of(question: Question, found: Exploration, outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """Why a search is no pass: it was cut short, got stuck, or did not see what it must. None if it found a loss."""
    if found.stopped == "violation found" or (found.violated.keys() & losing(found.check)):
        return ()
    if found.faulty:
        return (found.stopped,)
    if found.deadlock is not None:
        return ("a state that is not terminal has no step: the model or the protocol is stuck there",)
    if found.stopped:
        return (found.stopped,)
    doubts = [
        f"no {kind} is asked for"
        for kind, missing in (
            ("property", not (found.check.properties or found.check.promises)),
            ("probe", bool(found.check.probes) and not question.required),
        )
        if missing
    ]
    doubts += [f"the action {name} never fired" for name in never_fired(found)]
    doubts += [f"{name} was never reached" for name in question.required if name not in found.reached]
    resting = {each.name for each in found.check.promises if each.may_rest}
    for name, outcome in outcomes.items():
        if outcome.unknown:
            doubts.append(f"{name} could not be decided: {outcome.unknown}")
        elif not outcome.pending and name not in resting:
            doubts.append(f"{name} was never pending")
    return tuple(doubts)


def _row(
    case: Case,
    findings: Sequence[Finding],
    doubts: Sequence[str],
    deciding: _Answer,
    off: _Answer,
    unfair: tuple[str, ...] | None,
) -> Row:
    known = findings[0].verdict if findings else Verdict.SAFE
    lost = any(each.verdict in LOSS for each in findings)
    elsewhere = off if off is not deciding else None
    return Row(
        profile=case.profile,
        scenario=case.scenario,
        verdict=Verdict.UNDETERMINED if doubts and not findings else known,
        findings=tuple(findings),
        reasons=tuple(doubts),
        run=_run(deciding),
        without_timer=_run(elsewhere) if elsewhere else None,
        seconds=deciding.seconds + (elsewhere.seconds if elsewhere else 0.0),
        stuck=_stuck(deciding.question, deciding.found),
        witness=None if lost else _witness(case, off.found),
        assumed=case.assumed or {},
        weaknesses=_weaknesses(off),
        unfair=unfair,
        held=held_of(case, off.findings),
        unasked={**(case.unasked or {}), **dict.fromkeys(off.never_pending, "nothing ever made it pending")},
    )


def held_of(case: Case, findings: Sequence[Finding]) -> Held | None:
    """The hold that never ends among the findings of a search with the release timer off."""
    asked = case.untimed.check
    costs = {each.name: each.kept for each in asked.promises if each.kept}
    for each in findings:
        if each.subject in costs:
            end = each.trace.steps[-1].values if each.trace.steps else each.trace.initial
            return Held(costs[each.subject](asked.model, end), each.trace)
    return None


def undecided(case: Case, reason: str) -> Row:
    """The row of a case of which nothing is known, and why."""
    question = case.timed or case.untimed
    bounds = question.check.model.bounds
    run = Run(Verdict.SAFE, 0, 0, 0, 0.0, False, reason, bounds, {}, {})
    return Row(
        profile=case.profile,
        scenario=case.scenario,
        verdict=Verdict.UNDETERMINED,
        findings=(),
        reasons=(reason,),
        run=run,
        without_timer=None,
        seconds=0.0,
        stuck=None,
        witness=None,
        assumed=case.assumed or {},
    )


def _witness(case: Case, found: Exploration) -> Trace | None:
    position = found.reached.get(case.witness)
    if position is None:
        return None
    check = found.check
    probe = next(each for each in check.probes if each.name == case.witness)
    states = found.path_to(position)
    return witness_trace(check.model, probe, states[0], follow(check.model, states), case.untimed.source)


def _run(answer: _Answer) -> Run:
    found, findings = answer.found, answer.findings
    return Run(
        findings[0].verdict if findings else Verdict.SAFE,
        found.states, found.transitions, found.depth, answer.seconds, found.complete, found.stopped,
        found.check.model.bounds, found.hits, found.counts,
    )  # fmt: skip


def exit_code(rows: Sequence[Row]) -> int:
    """0 if every row is SAFE, 1 if a property fails in one, else 3 if one is undetermined."""
    if any(row.findings for row in rows):
        return 1
    return 3 if any(Verdict.UNDETERMINED in row.classes for row in rows) else 0
