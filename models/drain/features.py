"""Features that scenarios ask for, and that a release refuses at start-up or does not have: no verdict about those.

A profile says of each whether its release has it, with the evidence. What nobody has established is taken as had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..catalogue.profile import Profile, Setting
from .scenario import Scenario


@dataclass(frozen=True)
class Feature:
    """Something that can be switched on: the knob that says whether a release has it, its value where it has not,
    which scenarios need it, and its name in words."""

    knob: str
    absent: Setting
    needed: Callable[[Scenario], bool]
    words: str


FEATURES = (
    Feature("unified_memory", False, lambda scenario: "compaction" in scenario.events, "unified memory"),
    Feature("staging", False, lambda scenario: scenario.deferrals > 0, "a staging buffer"),
    Feature("hisparse", False, lambda scenario: scenario.hisparse, "HiSparse"),
    Feature("role_switch", False, lambda scenario: "role-switch" in scenario.events, "a change of role"),
    Feature("checksum", "absent", lambda scenario: "checksum-mismatch" in scenario.ends, "checksums"),
)


def lacking(profile: Profile, scenario: Scenario) -> str:
    """Why a release cannot run what a scenario is about, with the evidence; empty if it can, or if nobody knows."""
    for feature in FEATURES:
        if feature.needed(scenario) and profile.settings[feature.knob] == feature.absent:
            return f"{scenario.name} needs {feature.words}, which is not to be had: {profile.evidence[feature.knob]}"
    return ""


def switched_on(knob: str, scenario: Scenario) -> bool:
    """Whether a knob says whether a release has a feature that the scenario needs."""
    return any(feature.knob == knob and feature.needed(scenario) for feature in FEATURES)


def switched_off(knob: str, scenario: Scenario) -> bool:
    """Whether a knob says only whether a release has a feature that the scenario leaves switched off."""
    return any(feature.knob == knob and not feature.needed(scenario) for feature in FEATURES)
