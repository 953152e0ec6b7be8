"""A proof and a search that take an update of a room's status differently say so, and name each other."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.commands.prove import document, legend
from draincheck.explorer.commands.report import legend as row_legend
from draincheck.explorer.verdicts.proofs import Method, Result, Verdict
from draincheck.explorer.verdicts.status_update import assumption, words
from draincheck.explorer.verdicts.verify import verify
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.closed import APART, ONE_STEP, STATUS_UPDATE
from draincheck.models.drain.endless import endless_model
from draincheck.models.drain.scenario import SCENARIOS
from draincheck.properties.drain.cases import drain_case
from draincheck.properties.small import reference_case

OLDEST, NEWEST = "sglang-0.5.18-mooncake", "sglang-0.5.23-mooncake"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_model_says_what_it_assumes_and_which_command_assumes_otherwise(scenario: str) -> None:
    model = drain_case(load_profile(NEWEST), replace(SCENARIOS[scenario], name="mine")).untimed.check.model
    steps = {each.name for each in model.actions}
    assumed = assumption("mine", model.bounds)
    assert assumed["taken_as"] == (APART if "look_at_room" in steps else ONE_STEP)
    command, profile, *rest = assumed["see"].split()[1:]
    assert profile == "mine"
    if assumed["taken_as"] == ONE_STEP:
        assert command == "verify" and SCENARIOS[rest[-1]].split_status
    else:
        proved = endless_model(load_profile(NEWEST))
        assert command == "prove" and not rest and proved.bounds[STATUS_UPDATE] == ONE_STEP


def test_a_model_without_status_updates_assumes_nothing() -> None:
    bounds = reference_case().untimed.check.model.bounds
    assert not assumption("reference", bounds) and not words("reference", bounds)


def result(bounds: dict[str, str]) -> Result:
    return Result("mine / endless", bounds, ("no_late_write",), Method.INDUCTION, Verdict.PROVED, "", 1.0)


def test_a_proof_says_it() -> None:
    found = result(dict(endless_model(load_profile(NEWEST)).bounds))
    (line,) = (line for line in legend("mine", [found, found]) if line.startswith("Assumed"))
    assert "taken as one step; draincheck verify mine --scenario split-status takes it apart" in line
    (shown,) = document("mine", {}, [found])["results"]
    assert shown["assumption"] == assumption("mine", found.bounds)
    assert document("mine", {}, [result({})])["results"][0]["assumption"] is None


def test_the_commands_say_it() -> None:
    def rows(*arguments: str) -> Any:
        return json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)

    (apart,) = rows("verify", OLDEST, "--scenario", "split-status")["rows"]
    assert apart["assumption"] == {"about": STATUS_UPDATE, "taken_as": APART, "see": f"draincheck prove {OLDEST}"}
    bounded = rows("prove", OLDEST, "--scenario", "split-status", "--method", "bmc", "--depth", "0")["results"]
    assert {each["assumption"]["taken_as"] for each in bounded} == {APART}


def test_the_legend_says_it_of_each_row_that_takes_it_apart_and_once_of_the_others() -> None:
    names = ("abort", "metadata", "split-status")
    rows = [verify(drain_case(load_profile(NEWEST), SCENARIOS[name])) for name in names]
    lines = [line for line in row_legend(rows) if "an update of a room's status" in line]
    assert len(lines) == 2
    assert any(
        line.startswith(f"{NEWEST} / split-status: ") and f"draincheck prove {NEWEST} takes" in line for line in lines
    )
    assert any(
        line.startswith("abort, metadata: ") and "--scenario split-status takes it apart" in line for line in lines
    )
