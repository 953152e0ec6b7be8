"""The history as verdicts: with each change every property holds, and without it the named one fails, and no other."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.changes import Change, mutant
from ..models.profile import Profile
from ..properties.cases import drain_case, scenario_with
from .liveness import Outcome, decide_promises
from .search import Exploration, Limits, compile_check, search
from .trace import Trace
from .verify import Verdict, class_of, failure_trace, failures


@dataclass(frozen=True)
class Chapter:
    """A change with what the model says of it.

    `holds` is whether every property and promise holds with the change, `broken` names those that fail without it;
    both are of searches to the end, and `holds` is false if one was cut short. `verdict` is the class of the failure.
    All are empty where the model cannot tell, and `change.untold` says why.
    """

    change: Change
    holds: bool
    broken: tuple[str, ...]
    verdict: Verdict | None
    trace: Trace | None

    @property
    def as_said(self) -> bool:
        """Whether the model says what the history does."""
        if self.change.untold:
            return True
        return self.holds and self.broken == (self.change.property,)


def tell(change: Change, limits: Limits = Limits()) -> Chapter:  # noqa: B008 - frozen
    """Checks one change, with the release timer off. Raises DraincheckError if its data make no sense."""
    if change.untold:
        return Chapter(change, False, (), None, None)
    profiles = mutant(change)
    with_it, kept = _explore(profiles.fixed, change, limits)
    without_it, unkept = _explore(profiles.broken, change, limits)
    broken = failures(without_it, unkept)
    trace = verdict = None
    if change.property in broken:
        trace = failure_trace(without_it, unkept, change.property, {})
        verdict = class_of(without_it.check, change.property, Verdict.CORRUPTS)
    complete = with_it.complete and without_it.complete
    decided = complete and not any(each.unknown for each in (*kept.values(), *unkept.values()))
    return Chapter(change, decided and not failures(with_it, kept), tuple(sorted(broken)), verdict, trace)


def _explore(profile: Profile, change: Change, limits: Limits) -> tuple[Exploration, dict[str, Outcome]]:
    question = drain_case(profile, scenario_with(change.scenario, {}), timer=False).untimed
    found = search(compile_check(question.check), limits, until=())
    return found, decide_promises(found, limits)
