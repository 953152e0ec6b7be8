"""The verdict table, computed; and each known fix taken away, which must break what it mends."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from draincheck.explorer.verdicts.verify import Row, Verdict, exit_code, verify
from draincheck.models.catalogue.profile import Profile, Setting, headlines, load_profile
from draincheck.models.drain.scenario import DEFAULT, SCENARIOS
from draincheck.properties.drain.cases import drain_case, scenario_with
from draincheck.properties.small import reference_case

CORRUPTS, LEAKS, DELAYS = Verdict.CORRUPTS, Verdict.LEAKS, Verdict.DELAYS
CONDITIONAL, SAFE = Verdict.CONDITIONAL, Verdict.SAFE

# What the disclosure, the code and the runs of the releases' own classes lead one to expect.
EXPECTED = {
    "sglang-0.5.18-mooncake": {"abort": CORRUPTS, "failed-send": CORRUPTS},
    "sglang-0.5.20-mooncake": {"abort": CORRUPTS, "failed-send": CORRUPTS},
    "sglang-0.5.21-mooncake": {"abort": CONDITIONAL, "failed-send": CORRUPTS},
    "sglang-0.5.22-mooncake": {"abort": CONDITIONAL, "failed-send": CONDITIONAL},
    "sglang-0.5.23-mooncake": {"abort": CONDITIONAL, "failed-send": CONDITIONAL},
}


DEFAULTS = [SCENARIOS[name] for name in DEFAULT]


@cache
def row(profile: str, scenario: str, timer: bool = True) -> Row:
    return verify(drain_case(load_profile(profile), SCENARIOS[scenario], timer=timer))


def test_the_catalogue_is_what_is_expected_of() -> None:
    assert headlines() == sorted(EXPECTED)


@pytest.mark.parametrize("profile", EXPECTED)
@pytest.mark.parametrize("scenario", DEFAULT)
def test_verdict(profile: str, scenario: str) -> None:
    found = row(profile, scenario)
    assert found.verdict is EXPECTED[profile][scenario]
    assert found.subject == "no_late_write"
    assert found.trace is not None and found.trace.violation is not None
    expiries = [step.label for step in found.trace.steps if step.label.startswith("release_expired")]
    assert bool(expiries) is (found.verdict is CONDITIONAL)
    assert found.trace.steps[-1].label == "land(prefill=0, decode=0)"


@pytest.mark.parametrize("profile", ["sglang-0.5.22-mooncake", "sglang-0.5.23-mooncake"])
@pytest.mark.parametrize("scenario", DEFAULT)
def test_nothing_is_lost_without_the_release_timer(profile: str, scenario: str) -> None:
    """Acks end every hold after an abort; a failed send is never acknowledged, so only a timer ends its hold."""
    found = row(profile, scenario, False)
    expected = {"abort": [], "failed-send": [(LEAKS, "holds_end")]}
    assert [(each.verdict, each.subject) for each in found.findings] == expected[scenario]
    assert found.verdict is (LEAKS if found.findings else SAFE) and found.run.complete
    assert found.run.bounds["release timer"] == "off"
    assert all(found.run.hits.values())
    assert found.witness is not None and found.witness.subject == "reuse_after_drain"


def test_a_conditional_trace_has_the_timer_fire_under_a_live_write() -> None:
    found = row("sglang-0.5.23-mooncake", "abort")
    assert found.trace is not None
    labels = [step.label for step in found.trace.steps]
    expected = ["post(prefill=0)", "release_expired(decode=0, request=0)", "land(prefill=0, decode=0)"]
    assert sorted(expected, key=labels.index) == expected
    assert not any(label.startswith("release_drained") for label in labels)


@pytest.mark.parametrize("profile", EXPECTED)
def test_a_status_update_taken_apart_corrupts_in_every_release(profile: str) -> None:
    """The rank looks at the room, an ABORT fails it and is acknowledged, and the look is written back over Failed."""
    found = row(profile, "split-status")
    assert found.verdict is CORRUPTS and found.trace is not None
    labels = [step.label for step in found.trace.steps]
    assert not any(label.startswith("release_expired") for label in labels)
    if found.run.bounds["release timer"] == "off" and "release_drained(decode=0, request=0)" in labels:
        looked, opened = labels.index("look_at_room(prefill=0, request=0)"), labels.index("open_room(prefill=0)")
        assert looked < labels.index("mark_failed(prefill=0)") < opened < labels.index("post(prefill=0)")
    else:
        assert profile in ("sglang-0.5.18-mooncake", "sglang-0.5.20-mooncake")  # they free at once


def with_knobs(profile: str, **settings: Setting) -> Profile:
    base = load_profile(profile)
    return replace(base, settings={**base.settings, **settings})


def verdicts(profile: Profile) -> dict[str, Verdict]:
    return {scenario.name: verify(drain_case(profile, scenario)).verdict for scenario in DEFAULTS}


def classes(profile: Profile) -> dict[str, list[Verdict]]:
    rows = [verify(drain_case(profile, scenario)) for scenario in DEFAULTS]
    return {row.scenario: list(dict.fromkeys(finding.verdict for finding in row.findings)) for row in rows}


NEWEST = "sglang-0.5.23-mooncake"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"abort": CONDITIONAL, "failed-send": CONDITIONAL}),
        # deferred release, default-on: #35049, #41023
        ({"hold_enabled": False}, {"abort": CORRUPTS, "failed-send": CORRUPTS}),
        # hold on every failure kind: #41404
        ({"hold_causes": "decode_initiated"}, {"abort": CONDITIONAL, "failed-send": CORRUPTS}),
        # failed Mooncake sends are not acknowledged as drained: #43719
        ({"poison_on_error": False, "poison_on_rejected_post": False}, {"abort": CONDITIONAL, "failed-send": CORRUPTS}),
    ],
)
def test_a_fix_taken_away_breaks_what_it_mends(settings: dict[str, Setting], expected: dict[str, Verdict]) -> None:
    assert verdicts(with_knobs(NEWEST, **settings)) == expected


def test_the_flag_protects_aborts_on_the_release_that_has_it_off() -> None:
    flagged = with_knobs("sglang-0.5.20-mooncake", hold_enabled=True)
    assert classes(flagged) == {"abort": [DELAYS, CONDITIONAL], "failed-send": [CORRUPTS, DELAYS]}


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        # the tracker is armed before the ABORT is sent: #41402
        ({"arm_order": "after", "gen_tags": False}, ["ack_at_once", "receive_ack", "arm_tracker"]),
        # clearing a room keeps the ack that is owed: #40645
        ({"ack_target_survives_clear": False}, ["register_target", "clear_target"]),
        # a room that is cleared or finished while a chunk is counted is owed an ack: #40645
        ({"inactive_register": "never"}, ["count", "receive_abort", "register_target"]),
    ],
)
def test_a_lost_ack_leaves_the_hold_to_its_timer(settings: dict[str, Setting], steps: list[str]) -> None:
    found = verify(drain_case(with_knobs(NEWEST, **settings), SCENARIOS["abort"]))
    finding = found.findings[0]
    assert (finding.verdict, finding.subject) == (DELAYS, "holds_end_by_drain")
    labels = [step.label.split("(")[0] for step in finding.trace.steps]
    at = 0
    for step in steps:
        at = labels.index(step, at)


def test_counting_before_the_look_at_the_room_is_needed() -> None:
    """A chunk that is looked at and not yet counted would be acknowledged as drained: #35049."""
    assert verdicts(with_knobs(NEWEST, count_point="after_test"))["abort"] is CORRUPTS


@pytest.mark.slow
def test_a_quiet_error_may_be_acknowledged() -> None:
    """Where the library says error only when nothing is live, poisoning refused posts is enough."""
    quiet = with_knobs(NEWEST, poison_on_error=False, err_implies_quiet=True)
    assert verdicts(quiet)["failed-send"] is CONDITIONAL
    assert verdicts(with_knobs(NEWEST, poison_on_error=False))["failed-send"] is CORRUPTS
    assert verdicts(with_knobs(NEWEST, poison_on_rejected_post=False))["failed-send"] is CORRUPTS


def test_two_prefill_ranks_corrupt_through_the_sibling_of_a_failed_one() -> None:
    """Decode frees at once when one rank reports failure, while the other rank's write is in flight."""
    flagged = with_knobs("sglang-0.5.20-mooncake", hold_enabled=True)
    found = verify(drain_case(flagged, SCENARIOS["writers"]))
    assert found.verdict is CORRUPTS


def test_an_unknown_knob_is_taken_as_the_worse_value_and_said() -> None:
    found = verify(drain_case(with_knobs(NEWEST, poison_on_error="unknown"), SCENARIOS["failed-send"]))
    assert found.verdict is CORRUPTS
    assert dict(found.assumed) == {"poison_on_error": False}


def test_exit_codes() -> None:
    safe, conditional = row(NEWEST, "abort", False), row(NEWEST, "abort")
    undetermined = replace(safe, verdict=Verdict.UNDETERMINED)
    assert exit_code([safe]) == 0
    assert exit_code([safe, conditional]) == 1
    assert exit_code([safe, undetermined]) == 3
    assert exit_code([undetermined, conditional]) == 1


def test_reference_verdicts() -> None:
    found = verify(reference_case())
    assert found.verdict is SAFE
    assert (found.run.states, found.run.transitions) == (581_821, 1_983_016)
    assert found.witness is not None


@pytest.mark.slow
def test_two_prefill_ranks_in_the_whole_scenario() -> None:
    scenario = scenario_with("abort", {"ranks": 2})
    found = verify(drain_case(load_profile(NEWEST), scenario))
    assert list(dict.fromkeys(each.verdict for each in found.findings)) == [LEAKS, CONDITIONAL]
    assert found.subject == "rooms_are_forgotten"  # metadata that come behind the clearing open the room again
    assert found.run.states > 40_000_000 and found.run.complete


# What is known of the smallest scenarios, by release and backend: abort, and a failed send.
MATRIX = {
    "18-nixl": (CORRUPTS, CORRUPTS),
    "18-mori": (CORRUPTS, CORRUPTS),
    "18-ascend": (CORRUPTS, CORRUPTS),
    "19-mooncake": (CORRUPTS, CORRUPTS),
    "19-nixl": (CORRUPTS, CORRUPTS),
    "19-mori": (CORRUPTS, CORRUPTS),
    "20-nixl": (CORRUPTS, CORRUPTS),
    "20-mori": (CORRUPTS, CORRUPTS),
    "21-nixl": (DELAYS, CORRUPTS),  # an ack for an inactive room with a counted chunk is lost
    "21-mori": (CORRUPTS, CORRUPTS),  # no hold: the backend does not declare support
    "21-ascend": (CONDITIONAL, CORRUPTS),
    "22-nixl": (CONDITIONAL, CORRUPTS),
    "22-mori": (CONDITIONAL, CORRUPTS),
    "22-ascend": (CONDITIONAL, CONDITIONAL),
    "23-nixl": (CONDITIONAL, CORRUPTS),  # an error of the library is acknowledged, and nobody knows that it is quiet
    "23-mori": (CONDITIONAL, CORRUPTS),  # a post that raises is not poisoned
    "23-ascend": (CONDITIONAL, CONDITIONAL),
    "19-mooncake-hold-on": (LEAKS, CORRUPTS),  # a late Success opens a room that was cleared
    "20-mooncake-hold-on": (DELAYS, CORRUPTS),
    "19-nixl-hold-on": (DELAYS, CORRUPTS),
    "20-nixl-hold-on": (DELAYS, CORRUPTS),
}


NEWER = ("21", "22", "23")
"""The others are asked on demand; docs/scenarios.md has all of them."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each.startswith(NEWER) else pytest.mark.slow) for each in MATRIX]
)
def test_other_releases_and_backends(name: str) -> None:
    assert tuple(row(f"sglang-0.5.{name}", scenario).verdict for scenario in DEFAULT) == MATRIX[name]


def test_an_error_that_is_known_to_be_quiet_makes_the_newest_nixl_conditional() -> None:
    assert row("sglang-0.5.23-nixl", "failed-send").assumed == {"err_implies_quiet": False}
    assert verdicts(with_knobs("sglang-0.5.23-nixl", err_implies_quiet=True))["failed-send"] is CONDITIONAL


@pytest.mark.parametrize(
    ("profile", "scenario", "settings", "broken"),
    [
        (NEWEST, "fan-out", {"release_agreement": "rank_local"}, "ranks_decide_alike"),
        (NEWEST, "flush", {"idle_counts_holds": False}, "frees_only_its_own"),
        (NEWEST, "hisparse", {"hisparse_held": False}, "no_late_write"),
        (NEWEST, "fan-out", {"failed_terminal": False}, "failed_rooms_stay_failed"),
        (NEWEST, "abort", {"abort_handled": False}, "holds_end_by_drain"),
        ("sglang-0.5.21-mooncake", "siblings", {"wait_for_siblings": False}, "acks_are_true"),
        ("sglang-0.5.23-nixl", "staging", {"defer_waits": False}, "no_late_write"),
        (NEWEST, "abort", {"caches_failed": True}, "quarantined_never_cached"),
        (NEWEST, "metadata", {"aux_channel": "unordered_tcp"}, "no_late_metadata"),
    ],
)
def test_a_fix_taken_away_breaks_its_property(
    profile: str, scenario: str, settings: dict[str, Setting], broken: str
) -> None:
    with_it = verify(drain_case(load_profile(profile), SCENARIOS[scenario], timer=False))
    without_it = verify(drain_case(with_knobs(profile, **settings), SCENARIOS[scenario], timer=False))
    assert broken not in failing(with_it)
    assert broken in failing(without_it)


def failing(found: Row) -> set[str]:
    """Names of all properties that fail, those that lose nothing by themselves included."""
    return {each.subject for each in found.findings} | {each.subject for each in found.weaknesses}


def test_a_router_that_drops_the_decode_half_spares_it_the_timeout() -> None:
    assert "transfers_end_without_timeout" in failing(row(NEWEST, "prefill-abort", False))
    assert "transfers_end_without_timeout" not in failing(row(NEWEST, "router-drop", False))


def test_every_hold_ends_in_every_fair_run_where_the_timer_is_long_enough() -> None:
    found = row(NEWEST, "lost-report")
    assert found.verdict is CONDITIONAL and found.unfair is not None
    assert "abort" in found.unfair and "release_expired_late" not in found.unfair
    assert "holds_end" not in failing(found)


def test_a_backend_that_transfers_nothing_is_asked_about_nothing_else() -> None:
    from draincheck.models.catalogue.profile import ProfileError
    from draincheck.properties.drain.cases import cases_of

    (case,) = cases_of("sglang-0.5.23-fake", list(SCENARIOS))
    assert case.scenario == "abort" and verify(case).verdict is SAFE
    with pytest.raises(ProfileError, match="transfers nothing"):
        cases_of("sglang-0.5.23-fake", ["writers"])
