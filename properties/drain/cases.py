"""What `verify` asks of a profile in a scenario: the check without the release timer, and the one with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import Any

from ...models.catalogue.profile import Profile, ProfileError, load_profile
from ...models.drain.circumstances import Circumstances, Timer
from ...models.drain.closed import drain_model, setting_of, without_effect
from ...models.drain.features import lacking
from ...models.drain.scenario import DEFAULT, SCENARIOS, Scenario
from ...models.drain.story import ENVIRONMENT
from ...protocol.language import DeclarationError
from ...protocol.language.check import Check
from ...protocol.language.property import Kind, Probe, Property
from ..case import Case, Question
from .progress import (
    came_to_rest,
    holds_end,
    holds_end_by_drain,
    prefill_ends_without_timeout,
    rooms_are_forgotten,
    schedulers_survive,
    slots_come_back,
    transfers_end_without_timeout,
)
from .safety import (
    abort_stops_the_room,
    acks_are_true,
    copies_read_their_own,
    drained_hold,
    failed_rooms_stay_failed,
    frees_only_its_own,
    held_within_bound,
    live_write_of_ended_request,
    no_late_metadata,
    no_late_write,
    owned_once,
    quarantined_never_cached,
    ranks_decide_alike,
    reads_what_was_written_for_it,
    release_under_live_write,
    reuse_after_drain,
    transfer_finished,
)
from .unknown import Values, labels, other_values, untried, worse_values

SAFETY = (
    no_late_write,
    reads_what_was_written_for_it,
    owned_once,
    held_within_bound,
    frees_only_its_own,
    no_late_metadata,
    quarantined_never_cached,
    copies_read_their_own,
    ranks_decide_alike,
)
"""What must hold whenever the release timer fires."""

MEANS = (acks_are_true, abort_stops_the_room, failed_rooms_stay_failed)
"""What the safety of the drain rests on."""

PROGRESS = (
    holds_end_by_drain,
    transfers_end_without_timeout,
    prefill_ends_without_timeout,
    slots_come_back,
    rooms_are_forgotten,
    schedulers_survive,
)
"""What must come to an end without a timer, asked while every timer is off."""

DELAYS = frozenset(each.name for each in PROGRESS if each.kind is Kind.DELAY)
"""Properties whose failure costs time, and no data."""

NO_STEP = "with this profile it adds no step to what can happen"
"""Why nothing is asked of an end or event."""


def drain_case(profile: Profile, scenario: Scenario, *, prefill: Profile | None = None, timer: bool = True) -> Case:
    """The case of a profile in a scenario. `timer=False` leaves the release timer switched off.

    `prefill` is the profile of the prefill side; by default the same, or with mixed versions the peer. Raises
    ProfileError if the profile names none.
    """
    if misfit(profile, scenario):
        raise ProfileError(f"{profile.origin}: {misfit(profile, scenario)}")
    prefill = prefill or (load_profile(profile.peer) if scenario.peer else profile)
    ends = [profile] if prefill == profile else [profile, prefill]
    taken = worse_values(ends, scenario)
    return replace(
        _settled_case(profile, prefill, scenario, timer),
        assumed=labels(ends, taken),
        alternatives=tuple(_alternatives(ends, scenario, timer, taken)),
        untried=untried(taken),
    )


def _alternatives(ends: Sequence[Profile], scenario: Scenario, timer: bool, taken: Values) -> Iterator[Case]:
    """The cases with other values of what is unknown, but for those that no system can have or cannot be asked."""
    for values in other_values(taken):
        settled = [each for end, own in zip(ends, values, strict=True) if (each := end.settled(own))]
        if len(settled) == len(ends) and not misfit(settled[0], scenario):
            yield replace(_settled_case(settled[0], settled[-1], scenario, timer), assumed=labels(ends, values))


def _settled_case(profile: Profile, prefill: Profile, scenario: Scenario, timer: bool) -> Case:
    """The case of two profiles with the worse values of what is unknown."""
    around = Circumstances(setting_of(profile.knobs, prefill.knobs, scenario), scenario, Timer.OFF)

    def question(when: Timer) -> Question:
        properties = (*SAFETY, *means_of(scenario), *progress_of(scenario)) if when is Timer.OFF else SAFETY
        probes = probes_of(around)
        if when is Timer.OFF:
            probes.insert(0, came_to_rest)
        if when is Timer.ANY and around.writes_outlive:
            probes.append(release_under_live_write)
        model = drain_model(profile.name, profile.knobs, prefill.knobs, scenario, timer=when)
        source = {
            "kind": "drain",
            "profile": profile.as_data(),
            "prefill": prefill.as_data(),
            "scenario": asdict(scenario),
            "timer": when.value,
        }
        promises = (holds_end,) if around.holds and when is not Timer.ANY else ()
        fair = frozenset(each.name for each in model.actions if each not in ENVIRONMENT)
        check = Check(model, properties, tuple(probes), promises=promises, fair=fair)
        return Question(check, tuple(each.name for each in probes), source)

    timed = timer and around.holds
    witnesses = probes_of(around)
    return Case(
        profile=profile.name,
        scenario=scenario.name,
        untimed=question(Timer.OFF),
        timed=question(Timer.ANY) if timed else None,
        patient=question(Timer.LATE) if timed else None,
        witness=witnesses[-1].name,
        unasked=unasked_of(scenario) | dict.fromkeys(without_effect(around), NO_STEP),
    )


def misfit(profile: Profile, scenario: Scenario) -> str:
    """Why a profile cannot be asked in a scenario; empty if it can."""
    if scenario.peer and not profile.peer:
        return 'mixed versions need a peer; write peer = "..." at the top'
    plain = Scenario(name="", sentence="", rooms=scenario.rooms, chunks=scenario.chunks, slots=scenario.slots)
    if not profile.knobs.transfers and replace(scenario, name="", sentence="") != plain:
        return f"the backend transfers nothing, and {scenario.name} is about a transfer; the scenario abort is not"
    return lacking(profile, scenario)


def unasked_of(scenario: Scenario) -> dict[str, str]:
    """Properties that are not asked in a scenario though others are asked for them, each with the reason."""
    unasked: dict[str, str] = {}
    if scenario.lost_controls:
        unasked[abort_stops_the_room.name] = "an ABORT that is lost stops nothing"
    if scenario.lost_controls or scenario.lost_reports:
        unasked |= dict.fromkeys(sorted(DELAYS), "what a lost message would have ended is left to timeouts")
    if {"worker-death", "node-failure"} & set(scenario.ends):
        unasked |= dict.fromkeys(sorted(DELAYS), "what the dead would have ended is left to timeouts")
    return unasked


def means_of(scenario: Scenario) -> tuple[Property, ...]:
    """What the safety of the drain rests on, as far as the scenario is asked for it."""
    return tuple(each for each in MEANS if each.name not in unasked_of(scenario))


def progress_of(scenario: Scenario) -> tuple[Property, ...]:
    """What must end without a timer, as far as the scenario is asked for it."""
    return tuple(each for each in PROGRESS if each.name not in unasked_of(scenario))


def probes_of(around: Circumstances) -> list[Probe]:
    """What must be reached for a pass to count; the last is the witness to show."""
    if around.drains and around.writes_outlive:
        return [live_write_of_ended_request, drained_hold, reuse_after_drain]
    if around.writes_outlive:
        return [live_write_of_ended_request]
    return [transfer_finished]


def cases_of(name_or_path: str, scenarios: Sequence[str] = (), *, timer: bool = True, **sizes: int) -> list[Case]:
    """The cases of a profile of the catalogue, or of a TOML file, in some scenarios (default: those of DEFAULT).

    Of several, those that a profile cannot be asked in are left out. Sizes are those of Scenario: rooms, ranks,
    decode_ranks, chunks, slots. Raises ProfileError or DeclarationError.
    """
    profile = load_profile(name_or_path)
    chosen = [scenario_with(name, sizes) for name in scenarios or DEFAULT]
    if len(chosen) > 1:
        chosen = [scenario for scenario in chosen if not misfit(profile, scenario)]
    return [drain_case(profile, scenario, timer=timer) for scenario in chosen]


def left_out(names: Sequence[str], scenarios: Sequence[str]) -> dict[str, list[str]]:
    """By scenario, the profiles that `cases_of` leaves out because their release does not have what it is about."""
    profiles = [load_profile(name) for name in names] if len(scenarios) > 1 else []
    lacks = {name: [each.name for each in profiles if lacking(each, SCENARIOS[name])] for name in scenarios}
    return {name: without for name, without in lacks.items() if without}


def scenario_with(name: str, sizes: Mapping[str, Any]) -> Scenario:
    """A scenario of the catalogue, with some of its sizes replaced. Raises DeclarationError for an unknown one."""
    if name not in SCENARIOS:
        close = get_close_matches(name, list(SCENARIOS), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise DeclarationError(f"no scenario is called {name}; {hint}draincheck profile lists them")
    return replace(SCENARIOS[name], **sizes)
