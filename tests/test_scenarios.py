"""Scenarios leave steps out of a model; what they leave out could not have happened in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draincheck.explorer.search.search import Limits, search
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.scenario import ENDS, EVENTS, SCENARIOS, Scenario
from draincheck.models.drain.story import ENVIRONMENT, STORY
from draincheck.properties.drain.cases import drain_case, misfit
from draincheck.protocol.language import DeclarationError
from draincheck.protocol.language.check import Check
from draincheck.protocol.roles import decode_receiver, decode_scheduler, memory, prefill_scheduler, transfer_worker

SWITCHES = {
    prefill_scheduler.arrive,
    prefill_scheduler.look_at_room,
    prefill_scheduler.open_room,
    decode_scheduler.pretend_success,
    decode_scheduler.release_expired,
    decode_scheduler.release_expired_late,
    transfer_worker.send_aux,
    transfer_worker.aux_returns,
    decode_receiver.receive_aux,
    decode_receiver.conclude_transfer,
    memory.restore_ends,
    memory.give_up_restore,
}
"""Steps that a scenario takes for others, or that belong to a feature it switches on: these may well be possible."""

PROFILES = ("sglang-0.5.18-mooncake", "sglang-0.5.19-nixl-hold-on", "sglang-0.5.21-mooncake", "sglang-0.5.23-mori")


ASKED = [(name, each) for name in PROFILES for each in SCENARIOS if not misfit(load_profile(name), SCENARIOS[each])]


@pytest.mark.parametrize(("profile", "scenario"), ASKED)
def test_steps_that_are_left_out_could_not_happen(profile: str, scenario: str) -> None:
    case = drain_case(load_profile(profile), replace(SCENARIOS[scenario], chunks=1, slots=None), timer=False)
    model = case.untimed.check.model
    left_out = [each for each in STORY if each not in {*model.actions, *ENVIRONMENT, *SWITCHES}]
    whole = replace(model, actions=(*model.actions, *left_out), may_rest=frozenset())
    found = search(Check(whole, (), deadlock=False), Limits(states=100_000))
    assert found.states > 1
    assert [each.name for each in left_out if found.hits[each.name]] == []


def test_every_end_and_event_is_in_a_scenario() -> None:
    assert {end for scenario in SCENARIOS.values() for end in scenario.ends} == set(ENDS)
    assert {event for scenario in SCENARIOS.values() for event in scenario.events} == set(EVENTS)


def test_ends_and_events_are_known() -> None:
    with pytest.raises(DeclarationError, match="no end is called boredom; known are disconnect,"):
        Scenario(name="x", sentence="x", ends=("boredom",))
    with pytest.raises(DeclarationError, match="no event is called party; known are flush,"):
        Scenario(name="x", sentence="x", events=("party",))


def test_pairs_need_the_same_number_of_ranks() -> None:
    with pytest.raises(DeclarationError, match="pairs each decode rank with a prefill rank; there are 2 and 3"):
        replace(SCENARIOS["stages"], ranks=3)


def test_mixed_versions_need_a_peer() -> None:
    lonely = replace(load_profile("sglang-0.5.23-mooncake"), peer="")
    assert "need a peer" in misfit(lonely, SCENARIOS["mixed"])
    assert not misfit(lonely, SCENARIOS["abort"])
