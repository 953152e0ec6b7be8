"""What `verify` asks of a profile in a scenario: the check without the release timer, and the one with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..models.drain import DEFAULT, SCENARIOS, Scenario, Timer, drain_model
from ..models.profile import Profile, load_profile
from ..models.reference import reference
from ..protocol.language import DeclarationError
from . import reference as reference_properties
from .check import Check
from .delay import holds_end_by_drain
from .safety import (
    drained_hold,
    frees_only_its_own,
    live_write_of_ended_request,
    no_late_write,
    reads_what_was_written_for_it,
    release_under_live_write,
    reuse_after_drain,
)

SAFETY = (no_late_write, reads_what_was_written_for_it, frees_only_its_own)
DELAYS = frozenset({holds_end_by_drain.name})
"""Properties whose failure costs time, and no data."""

LEAKS = frozenset[str]()
"""Properties and promises whose failure loses no data, and something is never given back."""

INEQUALITY = "T_hold > t_abort_propagation + t_remaining_chunks + t_in_flight_call"


@dataclass(frozen=True)
class Question:
    """A check with what must be reached for a pass to count, and data from which it can be built again."""

    check: Check
    required: tuple[str, ...]
    source: Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """A row of the verdict table: checks with the release timer off, firing late enough, and at any moment.

    `timed` and `patient` are None where no hold can end by a timer.

    `count_all` asks to explore on behind a violation, so that the counts are those of the whole model.
    `assumed` names knobs that are unknown, with the value taken for them.
    """

    profile: str
    scenario: str
    untimed: Question
    timed: Question | None
    witness: str
    patient: Question | None = None
    count_all: bool = False
    assumed: Mapping[str, object] | None = None


def drain_case(profile: Profile, scenario: Scenario, *, timer: bool = True) -> Case:
    """The case of a profile in a scenario. `timer=False` leaves the release timer switched off."""
    knobs = profile.knobs
    holds = knobs.hold_enabled and knobs.hold_causes != "none"
    drains = holds and knobs.acks_drain

    def question(when: Timer) -> Question:
        probes = [live_write_of_ended_request]
        properties = (*SAFETY, holds_end_by_drain) if holds and when is Timer.OFF else SAFETY
        probes += [drained_hold, reuse_after_drain] if drains else []
        probes += [release_under_live_write] if when is Timer.ANY else []
        check = Check(drain_model(profile.name, knobs, scenario, timer=when), properties, tuple(probes))
        source = {"kind": "drain", "profile": profile.as_data(), "scenario": asdict(scenario), "timer": when.value}
        return Question(check, tuple(probe.name for probe in probes), source)

    return Case(
        profile=profile.name,
        scenario=scenario.name,
        untimed=question(Timer.OFF),
        timed=question(Timer.ANY) if holds and timer else None,
        patient=question(Timer.LATE) if holds and timer else None,
        witness=reuse_after_drain.name if drains else live_write_of_ended_request.name,
        assumed={name: getattr(knobs, name, "not modelled") for name in profile.unknown},
    )


def cases_of(name_or_path: str, scenarios: Sequence[str] = (), *, timer: bool = True, **sizes: int) -> list[Case]:
    """The cases of a profile of the catalogue, or of a TOML file, in some scenarios (default: those of DEFAULT).

    Sizes are those of Scenario: rooms, ranks, chunks, slots. Raises ProfileError or DeclarationError.
    """
    profile = load_profile(name_or_path)
    chosen = [scenario_with(name, sizes) for name in scenarios or DEFAULT]
    return [drain_case(profile, scenario, timer=timer) for scenario in chosen]


def reference_case(timer: int | None = None) -> Case:
    """The reference model, explored to its end; `timer` adds the variant whose hold ends after so many ticks."""

    def question(ticks: int | None) -> Question:
        probes = (reference_properties.drained_while_held,)
        check = Check(reference(ticks), (reference_properties.no_late_write,), probes)
        return Question(check, tuple(probe.name for probe in probes), {"kind": "reference", "ticks": ticks})

    return Case(
        profile="reference",
        scenario="untimed" if timer is None else f"timed, T={timer}",
        untimed=question(None),
        timed=None if timer is None else question(timer),
        witness=reference_properties.drained_while_held.name,
        count_all=True,
    )


def scenario_with(name: str, sizes: Mapping[str, Any]) -> Scenario:
    """A scenario of the catalogue, with some of its sizes replaced. Raises DeclarationError for an unknown one."""
    if name not in SCENARIOS:
        raise DeclarationError(f"no scenario is called {name}; known are {', '.join(SCENARIOS)}")
    return replace(SCENARIOS[name], **sizes)
