"""What every search of a case finds: a result that is otherwise is damaged, or made up.

This is no proof that a search was made. It refuses what no search can have found: counts that are too few, too many or
of something else, bounds of another model, a class that does not follow from what failed, a pass that has not reached
what a pass must reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from ...properties.case import Case, Question
from .verify import LOSS, Run, Verdict, class_of, losing, weaknesses_of

if TYPE_CHECKING:
    from .results import Result, SavedRun

_ORDER = list(Verdict)


def implausible(result: Result, case: Case) -> Iterator[str]:
    """What is wrong with a settled result of a case, in words; nothing, if a search can have found it."""
    off = result.without_timer or result.run
    runs = {name: run for run in (off, result.run) for name in _questions_of(run, case)}
    if "untimed" not in _questions_of(off, case) or len(runs) != 1 + (result.run is not off):
        yield "the bounds are not those of its models"
        return
    if not isfinite(result.seconds) or result.seconds < 0:
        yield f"{result.seconds} seconds"
    for name, run in runs.items():
        yield from _of_run(run, _question(case, name))
        yield from _of_class(run, result, case, name)
    yield from _of_findings(result, case, runs)
    yield from _of_witness(result, case, off)
    yield from _of_promises(result, case)
    last = case.timed or case.patient or case.untimed
    if not result.findings and result.run.bounds != last.check.model.bounds:
        yield "nothing was found, and the last search is missing"


def _question(case: Case, name: str) -> Question:
    question: Question = getattr(case, name)
    return question


def _questions_of(run: Run, case: Case) -> list[str]:
    """The questions that a run can be the search of, by its bounds: they say when the release timer fires."""
    return [name for name, each in _asked(case).items() if each.check.model.bounds == run.bounds]


def _asked(case: Case) -> dict[str, Question]:
    questions = {"untimed": case.untimed, "patient": case.patient, "timed": case.timed}
    return {name: each for name, each in questions.items() if each}


def _of_run(run: Run, question: Question) -> Iterator[str]:
    check, model = question.check, question.check.model
    actions = {instance.action.name for instance in model.instances}
    asked = {each.name for each in (*check.properties, *check.probes)}
    if not isfinite(run.seconds) or run.seconds < 0:
        yield f"{run.seconds} seconds"
    if run.states < 1 or not 0 <= run.depth < run.states:
        yield f"{run.states} states, {run.depth} steps deep"
    if run.transitions < run.states - len(model.initial_states()):
        yield f"{run.states} states by {run.transitions} transitions"
    if run.complete is bool(run.reason):
        yield "complete, and cut short"
    if set(run.hits) != actions or min(run.hits.values()) < 0 or sum(run.hits.values()) != run.transitions:
        yield "transitions that are not those of the model's actions"
    if set(run.counts) != asked or not all(0 <= count <= run.states for count in run.counts.values()):
        yield "counts that are not those of its properties and probes"
        return
    if run.complete and not any(run.counts[name] for name in losing(check)):
        for name in question.required:
            if not run.counts[name]:
                yield f"{name} was not reached"
        for name in sorted(actions - model.may_rest):
            if not run.hits.get(name):
                yield f"the action {name} never fired"


def _of_class(run: Run, result: Result, case: Case, name: str) -> Iterator[str]:
    """The class of a run, and what it counts, against the findings."""
    check = _question(case, name).check
    failing = [each.name for each in check.properties if run.counts.get(each.name)]
    classes = [_class_of(case, name, each) for each in failing if each not in weaknesses_of(check)]
    broken = [_class_of(case, name, each.name) for each in check.promises]
    worst = min(classes, key=_ORDER.index, default=Verdict.SAFE)
    if run.verdict is not worst and run.verdict not in broken:
        yield f"the class {run.verdict} of a run that has {worst}"
    shown = {each.run.subject for each in result.findings} | {each.subject for each in result.weaknesses}
    for missing in sorted(set(failing) - shown):
        yield f"{missing} fails, and no run shows it"


def _class_of(case: Case, name: str, subject: str) -> Verdict:
    """The class of what fails in a question of the case."""
    lost = Verdict.CONDITIONAL if name == "timed" else Verdict.CORRUPTS
    return class_of(_question(case, name).check, subject, lost, timer=case.timed is not None)


def _of_findings(result: Result, case: Case, runs: dict[str, Run]) -> Iterator[str]:
    subjects = [each.run.subject for each in result.findings]
    places = [_ORDER.index(each.verdict) for each in result.findings]
    if len(set(subjects)) < len(subjects) or places != sorted(places):
        yield "its findings are out of order"
    for finding in result.findings:
        saved = finding.run
        if saved.question not in _asked(case):
            yield f"{saved.subject} as a finding of {saved.question}, which is not asked"
            continue
        check = _question(case, saved.question).check
        known = {"violation": check.properties, "promise": check.promises}.get(saved.kind, ())
        if saved.subject not in {each.name for each in known} - weaknesses_of(check):
            yield f"{saved.subject} as a finding"
        elif finding.verdict is not _class_of(case, saved.question, saved.subject):
            yield f"the class {finding.verdict} for {saved.subject}"
        if saved.kind == "violation":
            yield from _of_shortest(saved, runs)


def _of_witness(result: Result, case: Case, off: Run) -> Iterator[str]:
    """The runs that the search without the release timer gives besides: the witness, and weaknesses."""
    lost = any(each.verdict in LOSS for each in result.findings)
    if bool(result.witness) is not (not lost and bool(off.counts.get(case.witness))):
        yield "its witness does not fit its counts"
    weak = {name for name in weaknesses_of(case.untimed.check) if off.counts.get(name)}
    if {each.subject for each in result.weaknesses} != weak or len(result.weaknesses) != len(weak):
        yield "its weaknesses do not fit its counts"
    for kind, saved in [("witness", result.witness), *(("violation", each) for each in result.weaknesses)]:
        if saved and (saved.kind, saved.question) != (kind, "untimed"):
            yield f"{saved.subject} as a {kind}"
        elif saved:
            yield from _of_shortest(saved, {"untimed": off})
    if result.witness and result.witness.subject != case.witness:
        yield f"{result.witness.subject} as its witness"


def _of_shortest(saved: SavedRun, runs: dict[str, Run]) -> Iterator[str]:
    """A shortest run against the search that has found it: as deep, with as many states, and counted."""
    run, steps = runs.get(saved.question), len(saved.steps)
    if run and (steps > run.depth + 1 or steps >= run.states or not run.counts.get(saved.subject)):
        yield f"{saved.subject} after {steps} steps, which its counts do not show"


def _of_promises(result: Result, case: Case) -> Iterator[str]:
    asked: Sequence[Question] = [each for each in (case.untimed, case.patient, case.timed) if each]
    unfair = [list(each.check.unfair_actions) for each in asked if each.check.promises]
    if result.unfair is None and result.verdict is Verdict.SAFE and unfair:
        yield "no promise was decided"
    if result.unfair is not None and result.unfair not in unfair:
        yield "other actions are unfair than those of its models"
