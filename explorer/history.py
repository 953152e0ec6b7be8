"""The history as verdicts: with each change the named property holds; without it, it fails, and no other does."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.changes import Change, mutant
from ..models.profile import Profile
from ..properties.cases import WEAKNESSES, drain_case, scenario_with
from .search import Exploration, Limits, compile_check, search
from .trace import Trace, follow, violation_trace
from .verify import Verdict, class_of


@dataclass(frozen=True)
class Chapter:
    """A change with what the model says of it.

    `holds` is whether the named property holds with the change, `broken` names those that fail only without it; both
    are of searches to the end, and `holds` is false if one was cut short. `standing` names properties that fail with
    and without the change: what others have mended, or nobody. `verdict` is the class of the failure. All are empty
    where the model cannot tell, and `change.untold` says why.
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
    with_it = _explore(profiles.fixed, change, limits)
    without_it = _explore(profiles.broken, change, limits)
    found = without_it.violated.keys() - with_it.violated.keys() - WEAKNESSES
    standing = tuple(sorted(with_it.violated.keys() & without_it.violated.keys() - WEAKNESSES))
    trace = None
    if change.property in found:
        check = without_it.check
        prop = next(each for each in check.properties if each.name == change.property)
        states = without_it.path_to(without_it.violated[change.property])
        trace = violation_trace(check.model, prop, states[0], follow(check.model, states), {})
    verdict = class_of(change.property) if trace else None
    holds = with_it.complete and without_it.complete and change.property not in with_it.violated
    return Chapter(change, holds, tuple(sorted(found)), verdict, trace, standing)


def _explore(profile: Profile, change: Change, limits: Limits) -> Exploration:
    case = drain_case(profile, scenario_with(change.scenario, {}))
    question = case.patient if change.timer == "late" and case.patient else case.untimed
    return search(compile_check(question.check), limits, until=())
