"""The history as verdicts: with each change the named property holds; without it, it fails, and no other does."""

from __future__ import annotations

from dataclasses import dataclass

from ...models.catalogue.profile import Profile
from ...models.mutants.changes import Change, mutant
from ...properties.drain.cases import drain_case, scenario_with
from ..search.liveness import Outcome, decide_promises
from ..search.search import Exploration, Limits, compile_check, search
from ..traces.trace import Trace
from .verify import Verdict, class_of, doubts_of, failure_trace, failures, weaknesses_of


@dataclass(frozen=True)
class Chapter:
    """A change with what the model says of it.

    `holds` is whether the named property holds with the change, `broken` names those that fail only without it; both
    are of searches to the end, and `holds` is false if one was cut short or did not reach what it must. `standing`
    names properties that fail with and without the change: what others have mended, or nobody. `verdict` is the class
    of the failure. All are empty where the model cannot tell, and `change.untold` says why.
    """

    change: Change
    holds: bool
    broken: tuple[str, ...]
    verdict: Verdict | None
    trace: Trace | None
    standing: tuple[str, ...] = ()

    @property
    def as_said(self) -> bool:
        """Whether the model says what the history does."""
        if self.change.untold:
            return True
        return self.holds and self.broken == (self.change.property,)


def tell(change: Change, limits: Limits = Limits()) -> Chapter:  # noqa: B008 - frozen
    """Checks one change. Raises DraincheckError if its data make no sense."""
    if change.untold:
        return Chapter(change, False, (), None, None)
    profiles = mutant(change)
    with_it, kept, doubts = _explore(profiles.fixed, change, limits)
    without_it, unkept, _ = _explore(profiles.broken, change, limits)
    before, after = set(failures(with_it, kept)), set(failures(without_it, unkept))
    standing = weaknesses_of(without_it.check)
    found = after - before - standing
    trace = verdict = None
    if change.property in found:
        trace = failure_trace(without_it, unkept, change.property, {})
        verdict = class_of(without_it.check, change.property)
    undecided = any(outcome.unknown for outcome in (*kept.values(), *unkept.values()))
    settled = with_it.complete and without_it.complete and not undecided and not doubts
    holds = settled and change.property not in before
    return Chapter(change, holds, tuple(sorted(found)), verdict, trace, tuple(sorted(before & after - standing)))


def _explore(
    profile: Profile, change: Change, limits: Limits
) -> tuple[Exploration, dict[str, Outcome], tuple[str, ...]]:
    """What the search of a profile found, of properties and of promises, and why it would be no pass."""
    case = drain_case(profile, scenario_with(change.scenario, {}))
    late = case.patient if change.timer == "late" else None
    question = late or case.untimed
    found = search(compile_check(question.check), limits, until=())
    outcomes = decide_promises(found, limits) if late else {}  # with the timer off, its absence breaks them
    return found, outcomes, doubts_of(question, found, outcomes)
