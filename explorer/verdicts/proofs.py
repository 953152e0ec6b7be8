"""What can be proved of a model, by which method, and what is in the way where nothing is proved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ...models.catalogue.profile import Profile
from ...models.drain.endless import endless_model
from ...models.drain.scenario import SCENARIOS
from ...properties.case import Question
from ...properties.drain.cases import drain_case
from ...properties.drain.lemmas import GOALS, LEMMAS
from ...protocol.language import DeclarationError, EngineDisagreement, Index
from ...protocol.language.model import Model
from ...protocol.language.property import Property
from ...protocol.roles.indices import PrefillRank
from ..proofs.any_ranks import Family, unmet, with_ranks
from ..proofs.horn import spacer
from ..proofs.induction import UNDECIDED, Breach, Induction, largest_inductive
from ..proofs.net import require_agreement
from ..proofs.symbolic import Symbolic
from ..proofs.unrolling import NO_FAULT, Bounds, Unrolled, bounded_check, induction
from ..traces.trace import ReplayError, Trace, fault_trace, follow, induction_trace, violation_trace
from .verify import Verdict as Class
from .verify import verify

ANY = "any"
"""Instead of a number of prefill ranks."""


class Verdict(StrEnum):
    """What is known; the first is the worst."""

    VIOLATED = "VIOLATED"
    UNDETERMINED = "UNDETERMINED"
    PROVED = "PROVED"


class Method(StrEnum):
    """How it is known."""

    INDUCTION = "induction"
    K_INDUCTION = "k-induction"
    BMC = "bmc"
    SPACER = "spacer"
    SEARCH = "search"


@dataclass(frozen=True)
class Result:
    """What one method says of properties of one model.

    `detail` says what it took, or why nothing is known. `trace` is a run that fails, executed directly; or steps out of
    a state that may be unreachable, which are in the way of a proof. `lemmas` are those that were proved along.
    """

    model: str
    bounds: Mapping[str, str]
    subjects: tuple[str, ...]
    method: Method
    verdict: Verdict
    detail: str
    seconds: float
    trace: Trace | None = None
    lemmas: tuple[str, ...] = ()
    times: tuple[float, ...] = field(default=())


Watch = Callable[[str], None]


def _no_watch(text: str) -> None:
    return None


def prove_endless(
    profile: Profile,
    ranks: int | str,
    *,
    late_timer: bool,
    slots: int = 1,
    lemmas: Sequence[Property] = LEMMAS,
    goals: Sequence[Property] = GOALS,
    watch: Watch = _no_watch,
) -> Result:
    """Proves goals of a profile in endless lives by induction, for a number of prefill ranks, or for ANY number.

    Lemmas that some step breaks are left out; if the goals remain, they are proved all the same.
    """
    if ranks == ANY:
        model = endless_model(profile, slots=slots, late_timer=late_timer)
        return prove_any_number(model, PrefillRank, lemmas, goals, watch=watch)
    model = endless_model(profile, ranks=int(ranks), slots=slots, late_timer=late_timer)
    return prove_by_induction(model, lemmas, goals, watch=watch)


def prove_any_number(
    model: Model,
    kind: type[Index],
    lemmas: Sequence[Property],
    goals: Sequence[Property],
    watch: Watch = _no_watch,
) -> Result:
    """Proves goals of a model with any number of ranks, indices of type `kind`: by the theorem of docs/proofs.md.

    What is proved of two ranks holds of more if the model meets the theorem's conditions; one rank is proved by itself.
    """
    alone = _of_any(prove_by_induction(with_ranks(model, kind, 1), lemmas, goals, watch))
    if alone.verdict is not Verdict.PROVED:
        return alone
    began = time.perf_counter()
    watch(f"{model.name}, any number of ranks: whether all of them are treated alike")
    kept = [each for each in lemmas if each.name in alone.lemmas]
    obstacle = _obstacle(model, kind, [*kept, *goals])
    seconds = alone.seconds + time.perf_counter() - began
    if obstacle:
        detail = f"cannot be proved for any number of ranks: {obstacle}"
        return replace(alone, verdict=Verdict.UNDETERMINED, detail=detail, seconds=seconds)
    both = _of_any(prove_by_induction(with_ranks(model, kind, 2), kept, goals, watch))
    return replace(both, seconds=seconds + both.seconds)


def _of_any(result: Result) -> Result:
    return replace(result, bounds={**result.bounds, "prefill ranks": "any number"})


def _obstacle(model: Model, kind: type[Index], properties: Sequence[Property]) -> str:
    """The first condition of the theorem that the model does not meet; nothing if it meets all."""
    if refused := unmet(model, kind, properties):
        return str(refused[0])
    family = Family(model, kind)
    if family.is_empty(properties):
        return "condition consistent: two ranks have no initial state, or no step where the properties hold"
    if unlike := family.unlike():
        return f"condition alike: of two ranks, {', '.join(unlike)} is fixed for one, and not the same for the other"
    if wide := family.wide(properties, LOOKED_AT):
        return f"condition goal-width: Z3 finds that {', '.join(wide)} say of {LOOKED_AT} ranks more than of each"
    if strange := family.projects(LOOKED_AT):
        return f"condition projection: Z3 finds steps of {LOOKED_AT} ranks that are none of two: {', '.join(strange)}"
    return ""


LOOKED_AT = 3
"""So many ranks are looked at by Z3 as well, as a second net below the conditions on code."""


def prove_by_induction(
    model: Model, lemmas: Sequence[Property], goals: Sequence[Property], watch: Watch = _no_watch
) -> Result:
    """Proves goals of a model with lemmas, for runs of any length. A goal may be one of the lemmas.

    Raises DeclarationError if two different properties have one name: the one would be proved for the other.
    """
    began = time.perf_counter()
    everything = _distinct(model, [*lemmas, *goals])
    symbolic = Symbolic(model)
    ranks = model.bounds.get("prefill ranks", "")
    found, lost = largest_inductive(
        symbolic, everything, lambda at, of: watch(f"{model.name}, prefill ranks {ranks}: step {at} of {of}")
    )
    names = tuple(goal.name for goal in goals)
    kept = tuple(name for name in found.lemmas if name not in names)
    verdict, detail, trace = Verdict.PROVED, _proof_words(found, lost), None
    idle = [name for name in found.impossible if name not in model.may_rest]
    if not found.proved or not set(names) <= set(found.lemmas):
        breaches = [*lost, *found.breaches]
        verdict = Verdict.UNDETERMINED
        blocking = next((each for each in breaches if each.lemma in names), breaches[0])
        detail = _breach_words(lost[0] if lost else blocking)
        trace = _breach_trace(symbolic, everything, breaches)
    elif idle:
        verdict, detail = Verdict.UNDETERMINED, f"with these lemmas, {', '.join(idle)} can never happen"
    else:
        require_agreement(symbolic, everything)
    seconds = time.perf_counter() - began
    return Result(model.name, model.bounds, names, Method.INDUCTION, verdict, detail, seconds, trace, kept)


def _distinct(model: Model, properties: Sequence[Property]) -> list[Property]:
    """Each property once. Raises DeclarationError if a name stands for two, or for something else."""
    by_name: dict[str, Property] = {}
    for each in properties:
        if by_name.setdefault(each.name, each) != each:
            raise DeclarationError(f"{model.name}: two different properties are called {each.name}; rename one")
        if each.name in (NO_FAULT, UNDECIDED):
            raise DeclarationError(f"{model.name}: no property may be called {each.name}; rename it")
    return list(by_name.values())


def _proof_words(found: Induction, lost: Sequence[Breach]) -> str:
    words = f"{len(found.lemmas)} lemmas and properties, {found.obligations:,} obligations"
    if lost:
        words += f"; without {', '.join(dict.fromkeys(each.lemma for each in lost))}"
    return words


def _breach_words(breach: Breach) -> str:
    if not breach.states and breach.step is not None:
        return f"{breach.step.label}: {breach.lemma}"
    if breach.step is None:
        return f"{breach.lemma} fails at the start"
    if breach.lemma == NO_FAULT:
        return f"{breach.step.label} breaks the language's rules in a state that may be unreachable"
    return f"{breach.lemma} is not inductive: {breach.step.label} breaks it, in a state that may be unreachable"


def _breach_trace(symbolic: Symbolic, lemmas: Sequence[Property], breaches: Sequence[Breach]) -> Trace | None:
    """The first breach that is a step, as a trace."""
    for breach in breaches:
        lemma = next((each for each in lemmas if each.name == breach.lemma), None)
        if lemma is not None and len(breach.states) == 2:
            return induction_trace(symbolic.model, lemma, breach.states, {}, breach.step)
    return None


def refuted(profile: Profile, goals: Sequence[Property]) -> list[Result]:
    """A run that violates a goal though no release timer fires too early, by exhaustive search of small scenarios;
    none if there is none in these."""
    names = {goal.name for goal in goals}
    for name in REFUTING:
        row = verify(drain_case(profile, SCENARIOS[name]))
        for finding in row.findings:
            if finding.subject in names and finding.verdict is Class.CORRUPTS:
                detail = f"after {len(finding.trace)} steps, by exhaustive search"
                model, subject = finding.trace.model, (finding.subject,)
                return [
                    Result(
                        model,
                        row.run.bounds,
                        subject,
                        Method.SEARCH,
                        Verdict.VIOLATED,
                        detail,
                        row.seconds,
                        finding.trace,
                    )
                ]
    return []


REFUTING = ("abort", "failed-send", "late-reuse")
"""Small scenarios that are searched for a run that fails where nothing is proved."""


def prove_bounded(
    question: Question,
    subjects: Sequence[Property | None],
    method: Method,
    bounds: Bounds,
    *,
    simple_path: bool = False,
    watch: Watch = _no_watch,
) -> list[Result]:
    """Asks each property of a model by bounded model checking, k-induction or Spacer; None asks for faults.

    A run ends where a step breaks the language's rules, so what is proved of a property is that no run fails before.
    If anything is proved, it is therefore asked as well whether a step breaks them; if one does, or may, nothing is.
    """
    model = question.check.model
    symbolic = Symbolic(model)

    def progress(name: str, depth: int, seconds: float) -> None:
        watch(f"{model.name}: {name}, depth {depth}, {seconds:.0f} s")

    def ask(subject: Property | None) -> Result:
        if method is Method.SPACER:
            return _by_spacer(question, symbolic, subject, bounds)
        if method is Method.BMC:
            found = bounded_check(symbolic, subject, bounds, progress)
        else:
            found = induction(symbolic, subject, bounds, simple_path=simple_path, watch=progress)
        return _unrolled(question, subject, method, found)

    results = [ask(subject) for subject in subjects]
    if any(each.verdict is Verdict.PROVED for each in results):
        require_agreement(symbolic, [each for each in subjects if each])
    if None not in subjects and any(each.verdict is Verdict.PROVED for each in results):
        results.append(ask(None))
    rules = next((each for each in results if each.subjects == (NO_FAULT,)), None)
    if rules is None or rules.verdict is Verdict.PROVED:
        return results
    return [_up_to_faults(each, rules) if each.verdict is Verdict.PROVED else each for each in results]


def _up_to_faults(proved: Result, rules: Result) -> Result:
    """What a proof is worth where a step breaks the language's rules, or may."""
    why = "a run does" if rules.verdict is Verdict.VIOLATED else "whether a run does is not known"
    detail = f"no run fails before a step breaks the language's rules, and {why}"
    return replace(proved, verdict=Verdict.UNDETERMINED, detail=detail)


def _unrolled(question: Question, subject: Property | None, method: Method, found: Unrolled) -> Result:
    model = question.check.model
    trace = None
    verdict = Verdict.PROVED if found.proved else Verdict.UNDETERMINED
    detail = f"k = {found.depth + 1}" if found.proved else found.stopped
    try:
        if found.states:
            verdict, detail = Verdict.VIOLATED, f"after {len(found.states) - 1} steps"
            initial, taken = found.states[0], follow(model, found.states)
            if subject is None:
                trace = fault_trace(question.check, initial, taken, question.source)
            else:
                trace = violation_trace(model, subject, initial, taken, question.source)
        elif found.induction and subject is not None:
            trace = induction_trace(model, subject, found.induction, {})
    except ReplayError as error:
        raise EngineDisagreement(
            f"{model.name}: as terms, {found.subject} fails after these states: "
            f"{found.states or found.induction}; executed directly: {error}"
        ) from error
    return Result(
        model.name, model.bounds, (found.subject,), method, verdict, detail, found.seconds, trace, times=found.times
    )


def _by_spacer(question: Question, symbolic: Symbolic, subject: Property | None, bounds: Bounds) -> Result:
    model = question.check.model
    found = spacer(model, subject, bounds.seconds or SPACER_SECONDS)
    if found.fails:
        run = bounded_check(symbolic, subject, bounds)
        if run.states:
            return _unrolled(question, subject, Method.SPACER, run)
        detail = f"Spacer says that a run fails; none of {run.depth} steps or fewer does"
        return Result(
            model.name, model.bounds, (found.subject,), Method.SPACER, Verdict.UNDETERMINED, detail, found.seconds
        )
    verdict = Verdict.PROVED if found.holds else Verdict.UNDETERMINED
    detail = "an invariant that Spacer found, and that was confirmed" if found.holds else found.stopped
    return Result(model.name, model.bounds, (found.subject,), Method.SPACER, verdict, detail, found.seconds)


SPACER_SECONDS = 60.0


def worst(results: Sequence[Result]) -> Verdict:
    """The worst verdict of some results."""
    return next(each for each in Verdict if any(result.verdict is each for result in results))
