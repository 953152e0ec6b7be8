"""Degradations must lengthen a hold: what has gone wrong never makes decode give memory back earlier.

Earlier means: before the writes of prefill are over, whatever the release timer does later than that. The relation is
between two models of a profile: the plain abort, and one in which something else goes wrong as well. Where memory is
never given back too early in the first, it must not be in the second.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...models.catalogue.profile import Profile
from ...models.drain.scenario import SCENARIOS
from ..case import Case
from .cases import drain_case, misfit
from .safety import no_late_write

PLAIN = "abort"

DEGRADATIONS: Mapping[str, str] = {
    "lost ABORT": "lost-message",
    "lost ack": "lost-report",
    "dead ack path": "worker-death",
    "failed send": "failed-send",
    "old peer": "mixed",
    "dead rank": "node-failure",
}
"""What can go wrong, and the scenario in which it may."""

TOO_EARLY = no_late_write.name
"""The property that fails where memory was given back too early: a write has reached the next owner."""


def relation_cases(profile: Profile) -> dict[str, Case]:
    """The cases that are compared, by the degradation, the plain one by an empty name; those that a profile can be
    asked in. With an old peer it is decode that runs the profile, and prefill the one that it names as its peer."""
    named = {"": PLAIN, **DEGRADATIONS}
    fitting = {name: SCENARIOS[each] for name, each in named.items() if not misfit(profile, SCENARIOS[each])}
    return {name: drain_case(profile, scenario) for name, scenario in fitting.items()}
