"""What is known of the relations between runs of a release: by which method, and what shows it where one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...models.catalogue.profile import Profile
from ...properties.drain.relations import Atomicity, atomicities, degradation_checks
from ...protocol.language import DraincheckError
from ...protocol.language.check import Check
from ...protocol.language.model import Model
from ...protocol.language.property import Property
from ..proofs.induction import UNDECIDED, inductive
from ..proofs.refinement import STEP, Refinement, Unmatched, unmatched, unmatched_trace
from ..proofs.symbolic import Symbolic
from ..proofs.unrolling import NO_FAULT
from ..search.search import Exploration, Limits, never_fired, search
from ..traces.trace import Trace, follow, violation_trace

NO_TIME = "not every step was decided in the time"


class Verdict(StrEnum):
    """What is known; the first is the worst."""

    FAILS = "FAILS"
    UNDETERMINED = "UNDETERMINED"
    HOLDS = "HOLDS"


class Method(StrEnum):
    """How it is known: each pair of runs was searched; each step has its counterpart; both models were searched."""

    PAIRS = "pairs of runs"
    STEPS = "step by step"
    BOTH = "both searched"


@dataclass(frozen=True)
class Relation:
    """A relation between runs. `detail` says what it took, or why it fails or nothing is known.

    `trace` is the run that shows the failure (of both copies, for a pair), executed directly; or a step that is in the
    way of a proof, from a state that may be unreachable. `states` counts those searched, of both models if there are
    two; None if nothing was searched. `unmatched` names steps of the finer model without a counterpart.
    """

    kind: str
    name: str
    model: str
    bounds: Mapping[str, str]
    method: Method
    verdict: Verdict
    detail: str
    seconds: float
    states: int | None = None
    unmatched: tuple[str, ...] = ()
    trace: Trace | None = None


Watch = Callable[[str], None]


def _no_watch(text: str) -> None:
    return None


def relate(
    profile: Profile,
    names: Collection[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    watch: Watch = _no_watch,
) -> list[Relation]:
    """The relations of these names, all without any. Raises DraincheckError for a name that the profile is not asked.

    The release timer is off in all of them.
    """
    if not profile.knobs.transfers:
        raise DraincheckError(f"{profile.origin}: the backend transfers nothing; there is nothing to relate")
    pairs, steps = degradation_checks(profile), atomicities(profile)
    for name in names:
        if name not in {*pairs, *steps}:
            raise DraincheckError(f"no relation {name!r}; {profile.name} is asked: {', '.join((*pairs, *steps))}")
    found: list[Relation] = []
    for name, check in pairs.items():
        if not names or name in names:
            watch(f"{profile.name}, degradation: {name}")
            found.append(by_pairs(name, check, limits))
    for name, atomicity in steps.items():
        if not names or name in names:
            watch(f"{profile.name}, atomicity: {name}")
            found.append(by_steps(name, atomicity, limits))
    return found


def by_pairs(name: str, check: Check, limits: Limits = Limits()) -> Relation:  # noqa: B008 - frozen
    """Searches every pair of runs for one in which a property of pairs fails."""
    began = time.perf_counter()
    model = check.model
    run = search(check, limits)
    trace = _failure(run, check.properties[0]) if run.violated else None
    doubts = _doubts(run, never_fired(run))
    if trace:
        verdict, detail = Verdict.FAILS, f"{trace.subject} fails after {len(trace)} steps"
    elif doubts:
        verdict, detail = Verdict.UNDETERMINED, "; ".join(doubts)
    else:
        verdict, detail = Verdict.HOLDS, "in every pair of runs"
    seconds = time.perf_counter() - began
    return Relation(
        "degradation", name, model.name, model.bounds, Method.PAIRS, verdict, detail, seconds, run.states, trace=trace
    )


def _doubts(run: Exploration, resting: Sequence[str]) -> list[str]:
    """Why a search without a failure says nothing: it was cut short, is stuck, or has not seen what it must."""
    if run.stopped:  # what it has not seen says nothing more
        return [run.stopped]
    doubts = ["a state that is not terminal has no step"] if run.deadlock is not None else []
    doubts += [f"the action {name} never fired" for name in resting]
    return doubts + [f"{each.name} was never reached" for each in run.check.probes if each.name not in run.reached]


def _failure(run: Exploration, prop: Property) -> Trace:
    states = run.path_to(run.violated[prop.name])
    return violation_trace(run.check.model, prop, states[0], follow(run.check.model, states), {})


def by_steps(name: str, asked: Atomicity, limits: Limits = Limits()) -> Relation:  # noqa: B008 - frozen
    """Looks for steps of the finer model without a counterpart; if there are any, both models are searched."""
    fine, coarse = Symbolic(asked.fine), Symbolic(asked.coarse)
    proof = inductive(fine, asked.lemmas, every_breach=True, seconds=limits.seconds)
    # What breaks the language's rules is no step; that is asked of both models by the refinement.
    breaches = [each for each in proof.breaches if each.lemma != NO_FAULT]
    if breaches:
        first = breaches[0]
        detail = NO_TIME if first.lemma == UNDECIDED else f"{first.lemma} is not inductive"
        return _relation(name, asked, Verdict.UNDETERMINED, detail, proof.seconds)
    left = None if limits.seconds is None else limits.seconds - proof.seconds
    found = unmatched(fine, coarse, asked.view, asked.lemmas, asked.properties, seconds=left)
    seconds = proof.seconds + found.seconds
    if not found.unmatched:
        detail = f"every step is one of the coarser model or none: {found.obligations + proof.obligations} obligations"
        return _relation(name, asked, Verdict.HOLDS, detail, seconds)
    if limits.seconds is not None and any(each.subject == UNDECIDED for each in found.unmatched):
        return _relation(name, asked, Verdict.UNDETERMINED, NO_TIME, seconds)
    missing = _labels(found)
    if fine.bounded:
        return _by_search(name, asked, missing, seconds, limits)
    trace = _first_step(asked, found.unmatched)
    detail = f"without a counterpart: {', '.join(missing)}"
    return _relation(name, asked, Verdict.UNDETERMINED, detail, seconds, missing=missing, trace=trace)


def _relation(
    name: str,
    asked: Atomicity,
    verdict: Verdict,
    detail: str,
    seconds: float,
    method: Method = Method.STEPS,
    states: int | None = None,
    missing: Sequence[str] = (),
    trace: Trace | None = None,
) -> Relation:
    model = asked.fine
    return Relation(
        "atomicity", name, model.name, model.bounds, method, verdict, detail, seconds, states, tuple(missing), trace
    )


def _labels(found: Refinement) -> list[str]:
    """What is unmatched, in words: the step, or a state at which something else is."""
    return list(
        dict.fromkeys(
            each.step.label
            if each.subject == STEP and each.step
            else f"{each.subject} of {each.step.label}"
            if each.step
            else each.subject
            for each in found.unmatched
        )
    )


def _first_step(asked: Atomicity, found: Sequence[Unmatched]) -> Trace | None:
    steps = [each for each in found if each.subject == STEP]
    return unmatched_trace(asked.fine, asked.coarse, asked.view, steps[0]) if steps else None


def _by_search(name: str, asked: Atomicity, missing: Sequence[str], before: float, limits: Limits) -> Relation:
    """The verdict of each property in both models, searched to the end: the same, or not."""
    fine, coarse = (_explored(model, asked.properties, limits) for model in (asked.fine, asked.coarse))
    seconds, states = before + fine.seconds + coarse.seconds, fine.states + coarse.states
    differing = [each for each in asked.properties if (each.name in fine.violated) != (each.name in coarse.violated)]
    # What happens in neither model makes no difference between them.
    resting = [never_fired(fine), never_fired(coarse)]
    both = set(resting[0]) & set(resting[1])
    doubts = [
        doubt
        for run, names in zip((fine, coarse), resting, strict=True)
        for doubt in _doubts(run, [name for name in names if name not in both])
    ]
    without = f"without a counterpart: {', '.join(missing)}"
    trace = None
    if differing:
        prop = differing[0]
        run, other = (fine, "coarser") if prop.name in fine.violated else (coarse, "finer")
        trace = _failure(run, prop)
        verdict = Verdict.UNDETERMINED if doubts else Verdict.FAILS
        detail = f"{prop.name} fails after {len(trace)} steps, and not in the {other} model; {without}"
    elif doubts:
        verdict, detail = Verdict.UNDETERMINED, f"{'; '.join(doubts)}; {without}"
    else:
        failing = ", ".join(fine.violated) or "none"
        verdict, detail = Verdict.HOLDS, f"the same properties fail in both: {failing}; {without}"
    return _relation(name, asked, verdict, detail, seconds, Method.BOTH, states, missing, trace)


def _explored(model: Model, properties: Sequence[Property], limits: Limits) -> Exploration:
    return search(Check(model, tuple(properties)), limits, until=())


def worst(relations: Sequence[Relation]) -> Verdict:
    """The worst verdict of some relations."""
    return next(each for each in Verdict if any(relation.verdict is each for relation in relations))
