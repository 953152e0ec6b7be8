"""A hold that no ack ends is held for ever where no release timer ends it: a leak, with what it costs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.commands.report import document, legend, table
from draincheck.explorer.verdicts.results import result_of, row_of
from draincheck.explorer.verdicts.verify import Row, Verdict, exit_code, verify
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.scenario import SCENARIOS, Scenario
from draincheck.properties.case import Case
from draincheck.properties.drain.cases import drain_case
from draincheck.properties.drain.progress import Kept, kept_by_holds
from draincheck.protocol.roles.steps import Life

NEWEST = "sglang-0.5.23-mooncake"
WAYS = ("failed-send", "worker-death", "node-failure", "lost-report", "lost-message")
"""Scenarios in which something can keep back an ack."""


def small(scenario: str) -> Scenario:
    return replace(SCENARIOS[scenario], chunks=1, slots=None)


@cache
def case_of(scenario: str, timer: bool, **settings: bool | str) -> Case:
    base = load_profile(NEWEST)
    return drain_case(replace(base, settings={**base.settings, **settings}), small(scenario), timer=timer)


@cache
def row(scenario: str, timer: bool) -> Row:
    return verify(case_of(scenario, timer))


@pytest.mark.parametrize("scenario", WAYS)
def test_without_a_timer_the_leak_is_seen(scenario: str) -> None:
    found = row(scenario, False)
    assert found.verdict is Verdict.LEAKS and exit_code([found]) == 1
    (finding,) = (each for each in found.findings if each.subject == "holds_end")
    model = case_of(scenario, False).untimed.check.model
    end = finding.trace.steps[-1].values
    state = model.state_of(end)
    assert state.life[0, 0] == Life.HELD
    fair = [each for each in model.instances if each.action.name not in finding.trace.unfair]
    going_on = [each.label for each in fair if next(model.steps_of(each, end), None)]
    assert not going_on or finding.trace.loop != len(finding.trace)  # it rests there, or goes round for ever
    assert found.held is not None and found.held.kept == kept_by_holds(model, end) == Kept(1, 1, 0)


@pytest.mark.parametrize("scenario", WAYS)
def test_where_a_timer_ends_it_the_column_without_the_timer_says_so(scenario: str) -> None:
    found = row(scenario, True)
    assert "holds_end" not in {each.subject for each in found.findings}
    assert found.without_timer is not None and found.without_timer.verdict is Verdict.LEAKS
    assert found.held is not None
    with_timer, without = legend([found]), legend([row(scenario, False)])
    for lines in (with_timer, without):
        assert any("1 of decode's 1 slots held for ever, until decode is started anew" in line for line in lines)


def test_where_acks_end_every_hold_nothing_is_said() -> None:
    found = row("abort", False)
    assert found.verdict is Verdict.SAFE and found.held is None
    assert not any("for ever" in line for line in legend([found]))
    timed = row("abort", True)
    assert timed.without_timer is not None and timed.without_timer.verdict is Verdict.SAFE


@pytest.mark.parametrize("settings", [{"arm_order": "after", "gen_tags": False}, {"inactive_register": "never"}])
def test_what_is_left_to_a_timer_leaks_where_there_is_none(settings: dict[str, bool | str]) -> None:
    without, with_timer = (verify(case_of("abort", timer, **settings)) for timer in (False, True))
    assert {each.subject: each.verdict for each in without.findings} == {
        "holds_end": Verdict.LEAKS,
        "holds_end_by_drain": Verdict.LEAKS,
    }
    assert {each.subject: each.verdict for each in with_timer.findings} == {
        "holds_end_by_drain": Verdict.DELAYS,
        "no_late_write": Verdict.CONDITIONAL,
    }


def test_metadata_buffers_are_counted_too() -> None:
    scenario = replace(small("metadata"), name="both", send_faults=1)
    found = verify(drain_case(load_profile(NEWEST), scenario, timer=False))
    assert found.held is not None and found.held.kept == Kept(1, 1, 1)
    assert str(found.held.kept) == "1 of decode's 1 slots and 1 metadata buffer"


def test_a_result_keeps_it() -> None:
    for timer in (False, True):
        asked = case_of("lost-message", timer)
        again = row_of(result_of(row("lost-message", timer), asked), asked)
        assert again.held == row("lost-message", timer).held


def test_the_document_and_the_table_say_it() -> None:
    (shown,) = document([row("lost-message", True)])["rows"]
    held = row("lost-message", True).held
    assert held is not None
    assert shown["held_for_ever"] == {
        "slots": 1, "pool": 1, "buffers": 0, "trace": [step.label for step in held.trace.steps],
    }  # fmt: skip
    assert shown["without_timer"]["verdict"] == "LEAKS"
    (last,) = list(table([row("lost-message", True)]).columns[-1].cells)
    assert str(last).startswith("LEAKS, ")


def test_a_delay_is_a_leak_in_the_column_without_the_timer() -> None:
    found = verify(case_of("abort", True, inactive_register="never"))
    assert found.verdict is Verdict.DELAYS
    (last,) = list(table([found]).columns[-1].cells)
    assert "LEAKS" in str(last)


def test_the_command_says_it() -> None:
    arguments = ["verify", NEWEST, "--no-timer", "--scenario", "lost-message", "--json"]
    result = CliRunner().invoke(main, arguments)
    (shown,) = json.loads(result.stdout)["rows"]
    assert (result.exit_code, shown["verdict"], shown["property"]) == (1, "LEAKS", "holds_end")
