"""Any setting of the knobs: the compiled search and the oracle agree."""

from __future__ import annotations

from dataclasses import replace

import oracle
import pytest
from draincheck.explorer.proofs.symbolic import Symbolic
from draincheck.explorer.proofs.unrolling import Bounds, bounded_check
from draincheck.explorer.search.search import Limits, search
from draincheck.explorer.verdicts.verify import Verdict, verify
from draincheck.models.catalogue.profile import KNOBS, MODELLED, Profile, Setting, load_profile
from draincheck.models.drain.scenario import SCENARIOS, Scenario
from draincheck.properties.case import Question
from draincheck.properties.drain.cases import drain_case, misfit
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_symbolic import random_states, successors_by_z3

BASE = load_profile("sglang-0.5.23-mooncake")
SMALL = [
    name
    for name, scenario in SCENARIOS.items()
    if scenario.rooms == scenario.ranks == scenario.decode_ranks == 1 and not scenario.peer
]
"""One request and one rank at each end: what the oracle explores in seconds."""


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile with any allowed value for each knob that the model reads."""
    drawn: dict[str, Setting] = {name: draw(st.sampled_from(KNOBS[name].allowed)) for name in sorted(MODELLED)}
    drawn["transfers"] = draw(st.sampled_from([True, True, True, False]))
    assume(not (drawn["hold_enabled"] and drawn["hold_causes"] == "none"))
    return replace(BASE, settings={**BASE.settings, **drawn})


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any of the small scenarios, with one chunk."""
    return replace(SCENARIOS[draw(st.sampled_from(SMALL))], chunks=1, slots=None)


def compare(question: Question) -> None:
    expected = oracle.explore(question.check)
    found = search(replace(question.check, deadlock=False), until=())
    assert (found.states, found.transitions, found.depth) == (expected.states, expected.transitions, expected.depth)
    assert (found.counts, found.hits) == (expected.counts, expected.hits)
    assert set(found.violated) == set(expected.violated)


def agree(profile: Profile, scenario: Scenario, timer: bool) -> None:
    assume(not misfit(profile, scenario))
    case = drain_case(profile, scenario)
    compare(case.timed if timer and case.timed else case.untimed)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(profile=profiles(), scenario=scenarios(), timer=st.booleans())
def test_engines_agree_on_any_profile(profile: Profile, scenario: Scenario, timer: bool) -> None:
    agree(profile, scenario, timer)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(profile=profiles(), scenario=scenarios(), timer=st.booleans())
def test_engines_agree_on_many_profiles(profile: Profile, scenario: Scenario, timer: bool) -> None:
    agree(profile, scenario, timer)


def honest(profile: Profile, scenario: Scenario) -> None:
    """Where decode frees at once, memory is lost; no setting gets the model stuck; doubts are said."""
    assume(not misfit(profile, scenario))
    row = verify(drain_case(profile, scenario, timer=False))
    knobs = profile.knobs
    frees_at_once = "disconnect" in scenario.ends and not knobs.hold_enabled and knobs.transfers
    if frees_at_once:
        assert row.verdict is Verdict.CORRUPTS
    if row.verdict is Verdict.UNDETERMINED:
        assert row.reasons
    assert row.stuck is None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(profile=profiles(), scenario=scenarios())
def test_any_profile_gets_an_honest_verdict(profile: Profile, scenario: Scenario) -> None:
    honest(profile, scenario)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(profile=profiles(), scenario=scenarios())
def test_many_profiles_get_an_honest_verdict(profile: Profile, scenario: Scenario) -> None:
    honest(profile, scenario)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, derandomize=True)
@given(profile=profiles(), scenario=scenarios(), ranks=st.integers(1, 2), seed=st.integers(0, 999))
def test_z3_agrees_on_any_profile_and_size(profile: Profile, scenario: Scenario, ranks: int, seed: int) -> None:
    """From states on random runs Z3 takes the steps of direct execution; it fails where the search does, as near."""
    larger = replace(scenario, ranks=ranks)
    assume(not misfit(profile, larger))
    check = drain_case(profile, larger, timer=False).untimed.check
    symbolic = Symbolic(check.model)
    for values in random_states(check.model, 3, seed):
        assert successors_by_z3(symbolic, values) == {step.values for step in check.model.steps(values)}
    found = search(replace(check, deadlock=False), Limits(states=50_000), until=())
    for prop in check.properties[:2]:
        asked = bounded_check(symbolic, prop, Bounds(6))
        near = prop.name in found.violated and len(found.path_to(found.violated[prop.name])) <= 7
        assert bool(asked.states) == near
        if near:
            assert len(asked.states) == len(found.path_to(found.violated[prop.name]))
