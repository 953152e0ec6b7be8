"""Gates and lock-steps of the releases: with one the bad run is gone, without it the model shows it again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.search.search import search
from draincheck.models.catalogue.profile import ProfileError, Setting, catalogue, load_profile
from draincheck.models.drain.features import FEATURES, lacking
from draincheck.models.drain.scenario import SCENARIOS
from draincheck.properties.drain.cases import cases_of, drain_case, left_out, scenario_with
from draincheck.properties.drain.safety import no_late_write, ranks_decide_alike, reads_what_was_written_for_it
from draincheck.protocol.language import action, require
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from draincheck.protocol.language.property import claim, invariant
from draincheck.protocol.roles import decode_scheduler, transfer_worker
from draincheck.protocol.roles.indices import Chunk, DecodeRank, Request
from draincheck.protocol.roles.messages import ControlKind
from draincheck.protocol.roles.router import is_submitted
from draincheck.protocol.roles.state import Drain
from draincheck.protocol.roles.steps import Life
from draincheck.protocol.roles.topology import partners, room_of

NEWEST = "sglang-0.5.23-mooncake"


def check_of(name: str, scenario: str, settings: dict[str, Setting] | None = None, **sizes: int) -> Check:
    profile = load_profile(name)
    profile = replace(profile, settings={**profile.settings, **(settings or {})})
    return drain_case(profile, scenario_with(scenario, sizes), timer=False).untimed.check


def steps_to(check: Check, name: str) -> int | None:
    """Steps of the shortest run that violates a property; None if there is none, by a search to the end."""
    wanted = [each for each in check.properties if each.name == name]
    assert wanted
    found = search(replace(check, properties=tuple(wanted), probes=(), promises=()))
    assert found.violated or found.complete
    return len(found.path_to(found.violated[name])) - 1 if found.violated else None


def failing(check: Check) -> dict[str, int]:
    """Every property that fails, with the steps of its shortest run."""
    found = search(replace(check, probes=(), promises=()), until=())
    assert found.complete
    return {name: len(found.path_to(at)) - 1 for name, at in found.violated.items()}


def follow(model: Model, labels: str) -> tuple[list[str], Values]:
    """Executes steps by their names as far as they go: those that are left, and the state that was reached."""
    (values,) = model.initial_states()
    todo = [label.strip() for label in labels.split(";")]
    while todo:
        (instance,) = (each for each in model.instances if each.label == todo[0])
        steps = list(model.steps_of(instance, values))
        if not steps:
            break
        (step,) = steps
        values, todo = step.values, todo[1:]
    return todo, values


# The staging ring: success is held back until every chunk has arrived.


def all_arrived(s: Drain) -> None:
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            for chunk in s.all(Chunk):
                s.arrived[decode, request, chunk] = True


def test_a_chunk_that_was_put_back_is_waited_for() -> None:
    check = check_of(NEWEST, "staging", chunks=2, decode_ranks=1)
    assert steps_to(check, reads_what_was_written_for_it.name) is None
    assert steps_to(check, no_late_write.name) is None
    ungated = replace(check, model=replace(check.model, start=all_arrived))
    assert steps_to(ungated, reads_what_was_written_for_it.name) == 23
    assert steps_to(ungated, no_late_write.name) is not None


@pytest.mark.slow
def test_a_chunk_that_was_put_back_is_waited_for_by_both_ranks() -> None:
    check = check_of(NEWEST, "staging", chunks=2)
    assert set(failing(check)) == {
        "rooms_are_forgotten",
        "holds_end_by_drain",
        "abort_stops_the_room",
        "acks_are_true",
    }
    ungated = replace(check, model=replace(check.model, start=all_arrived))
    assert steps_to(ungated, reads_what_was_written_for_it.name) == 30


# Decode's ranks take a client's abort in the same turn of their loops.


@action("decode {decode} scheduler")
def abort_unpublished(s: Drain, decode: DecodeRank, request: Request) -> None:
    """As if each rank took the client's abort in a turn of its own."""
    require(s.life[decode, request] == Life.NEW and is_submitted(s, request))
    for prefill in partners(s, decode):
        s.control[decode, prefill].send(kind=ControlKind.ABORT, room=room_of(s, request), generation=0, request=0)
    s.life[decode, request] = Life.GONE


def test_ranks_take_an_early_abort_in_the_same_turn() -> None:
    check = check_of(NEWEST, "timeouts", decode_ranks=2)
    assert steps_to(check, ranks_decide_alike.name) is None
    apart = [abort_unpublished if each is decode_scheduler.abort_unpublished else each for each in check.model.actions]
    assert steps_to(replace(check, model=replace(check.model, actions=tuple(apart))), ranks_decide_alike.name) == 3


@invariant
def aborted_behind_every_metadata(s: Drain) -> None:
    """No rank has taken the client's abort while another has not yet published."""
    for decode in s.all(DecodeRank):
        for other in s.all(DecodeRank):
            for request in s.all(Request):
                life = s.life[other, request]
                early = (life == Life.NEW) | (life == Life.PREALLOCATED)
                claim((s.cancelled[decode, request] == 0) | (early == 0), "the other rank has published as well")


@pytest.mark.parametrize(("stages", "steps"), [(False, None), (True, 3)])
def test_ranks_of_one_stage_publish_before_any_of_them_aborts(stages: bool, steps: int | None) -> None:
    check = check_of(NEWEST, "fan-out")
    model = replace(check.model, knobs=replace(check.model.knobs, stages=stages))
    assert steps_to(Check(model, (aborted_behind_every_metadata,)), aborted_behind_every_metadata.name) == steps


# The worker's teardown takes away what a chunk of the old life would find.


@pytest.mark.parametrize(
    "name", ["sglang-0.5.21-mooncake", pytest.param("sglang-0.5.20-mooncake-hold-on", marks=pytest.mark.slow)]
)
def test_the_teardown_leaves_the_later_chunk_nobody_to_write_to(name: str) -> None:
    assert steps_to(check_of(name, "reuse"), no_late_write.name) is None
    assert steps_to(check_of(name, "reuse", {"teardown": "never"}), no_late_write.name) == 50


@pytest.mark.slow
def test_what_the_teardown_does_not_hold_back() -> None:
    """A chunk of the old life is written for the new one; and in the newest releases its write outlives the new one."""
    assert steps_to(check_of("sglang-0.5.21-mooncake", "reuse"), reads_what_was_written_for_it.name) == 36
    assert steps_to(check_of(NEWEST, "reuse"), no_late_write.name) == 44


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        (NEWEST, "abort"),
        ("sglang-0.5.21-mooncake", "abort"),
        ("sglang-0.5.22-nixl", "failed-send"),
        ("sglang-0.5.18-mooncake", "failed-send"),
        pytest.param("sglang-0.5.20-mooncake-hold-on", "failed-send", marks=pytest.mark.slow),
        pytest.param("sglang-0.5.21-mooncake", "fan-out", marks=pytest.mark.slow),
        pytest.param("sglang-0.5.22-mooncake", "fan-out", marks=pytest.mark.slow),
    ],
)
def test_teardown_and_gate_change_nothing_where_each_request_has_its_own_number(name: str, scenario: str) -> None:
    check = check_of(name, scenario)
    setting = replace(check.model.knobs, reuse="ended")
    actions = (*check.model.actions, transfer_worker.look_at_end, transfer_worker.tear_down)
    whole = replace(check, model=replace(check.model, knobs=setting, actions=actions))
    assert failing(whole).keys() == failing(check).keys()


# The gate of the metadata: a success of the old life does not start the new one.

STALE_SUCCESS = """preallocate(decode=0, request=0); publish(decode=0, request=0); arrive(prefill=0, request=0);
    receive_metadata(prefill=0, decode=0); start_prefill(request=0); produce(prefill=0, request=0);
    put_chunk(prefill=0); dequeue(prefill=0); count(prefill=0); test_room(prefill=0); post(prefill=0);
    land(prefill=0, decode=0); call_returns(prefill=0); decide_outcome(prefill=0); report_outcome(prefill=0);
    abort(decode=0, request=0); arm_tracker(decode=0); send_abort(decode=0); take_failed(request=0);
    dispose(decode=0); preallocate(decode=0, request=1); publish(decode=0, request=1);
    receive_status(decode=0, prefill=0); commit(request=1)"""
"""The last chunk of request 0 was sent when its client went; request 1 takes its number, and its success."""


def all_filled(s: Drain) -> None:
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            s.filled[decode, request] = True


@pytest.mark.parametrize("name", [name for name in catalogue() if "hold-on" not in name and "fake" not in name])
def test_a_success_of_the_old_life_waits_for_content_of_the_new_one(name: str) -> None:
    """In every release and backend; steps that a release without a hold does not have are left out."""
    model = check_of(name, "early-reuse").model
    names = {each.name for each in model.actions}
    labels = "; ".join(label for label in STALE_SUCCESS.split(";") if label.strip().split("(")[0] in names)
    if model.knobs.prefill.count_point == "after_test":
        counted, tested = "count(prefill=0)", "test_room(prefill=0)"
        labels = labels.replace(counted, "it").replace(tested, counted).replace("it;", f"{tested};")
    assert follow(model, labels)[0] == ["commit(request=1)"]
    left, values = follow(replace(model, start=all_filled), labels)
    assert not left and reads_what_was_written_for_it.violation(model, values)


@pytest.mark.parametrize(("backend", "opens"), [("mooncake", False), ("ascend", False), ("nixl", True), ("mori", True)])
def test_content_that_goes_out_beside_the_last_chunk_opens_the_gate_before_it_lands(backend: str, opens: bool) -> None:
    model = check_of(f"sglang-0.5.23-{backend}", "early-reuse").model
    left, values = follow(model, STALE_SUCCESS.split(" land")[0].rstrip("; \n"))
    assert not left
    assert bool(model.state_of(values).filled[0, 0]) is opens


@pytest.mark.slow
def test_behind_the_gate_a_chunk_of_the_old_life_is_still_read_by_the_new_one() -> None:
    check = check_of(NEWEST, "early-reuse")
    assert steps_to(check, reads_what_was_written_for_it.name) == 31
    ungated = replace(check, model=replace(check.model, start=all_filled))
    assert steps_to(ungated, reads_what_was_written_for_it.name) == 24


# What a release refuses at start-up gets no verdict.


def test_every_feature_is_needed_by_a_scenario_and_lacking_in_a_release() -> None:
    for feature in FEATURES:
        needing = [scenario for scenario in SCENARIOS.values() if feature.needed(scenario)]
        assert needing, feature.knob
        answers = {bool(lacking(load_profile(name), needing[0])) for name in catalogue()}
        assert answers == {True, False}, feature.knob


@pytest.mark.parametrize("backend", ["nixl", "mori", "ascend"])
@pytest.mark.parametrize("release", range(18, 24))
def test_unified_memory_is_refused_beside_any_backend_but_mooncake(release: int, backend: str) -> None:
    name = f"sglang-0.5.{release}-{backend}"
    assert "compaction" not in [case.scenario for case in cases_of(name, list(SCENARIOS))]
    with pytest.raises(ProfileError, match=r"compaction needs unified memory, .* refused at start-up"):
        cases_of(name, ["compaction"])
    assert [case.scenario for case in cases_of(f"sglang-0.5.{release}-mooncake", ["compaction"])] == ["compaction"]


def test_what_is_left_out_is_said() -> None:
    nixl = "sglang-0.5.23-nixl"
    assert left_out([nixl, NEWEST], list(SCENARIOS)) == {"role-switch": [nixl], "compaction": [nixl]}
    said = CliRunner().invoke(main, f"verify {nixl} --scenario rejected --scenario compaction --no-store".split())
    told = "No verdict on compaction, which start-up refuses or the release does not have"
    assert said.output.endswith(f"{told}: {nixl}\n")


def test_a_feature_that_nobody_has_established_is_asked_about_and_said() -> None:
    (case,) = cases_of("sglang-0.5.23-mori", ["hisparse"], timer=False)
    assert case.assumed and "hisparse" in case.assumed
    (other,) = cases_of("sglang-0.5.23-mori", ["abort"], timer=False)
    assert not other.assumed or "hisparse" not in other.assumed
