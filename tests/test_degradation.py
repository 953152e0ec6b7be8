"""What goes wrong never makes decode give memory back earlier; where it does, the pair of runs shows it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.verdicts.degradation import Relation, relate, too_early
from draincheck.models.catalogue.profile import load_profile
from draincheck.properties.drain.degradation import DEGRADATIONS, relation_cases

pytestmark = pytest.mark.xdist_group("degradation")


def found(name: str) -> dict[str, Relation]:
    relations, trouble = relate([load_profile(name)])
    assert not trouble
    return {each.degradation: each for each in relations}


@pytest.mark.slow
def test_the_newest_release_never_releases_earlier() -> None:
    relations = found("sglang-0.5.23-mooncake")
    assert set(relations) == set(DEGRADATIONS)
    assert all(each.known and each.earlier is None for each in relations.values())


@pytest.mark.slow
def test_a_failure_that_decode_did_not_start_is_released_at_once_where_it_is_not_held() -> None:
    relations = found("sglang-0.5.20-mooncake-hold-on")
    assert {name for name, each in relations.items() if each.earlier} == {"failed send", "dead rank"}
    degraded, plain = relations["failed send"].traces
    assert degraded.violation is not None and plain.kind == "witness"
    assert any(step.label.startswith("release_drained") for step in plain.steps)
    assert not any(step.label.startswith("release") for step in degraded.steps)


def test_without_a_hold_there_is_nothing_to_lengthen() -> None:
    relations = found("sglang-0.5.18-mooncake")
    assert all(too_early(each.plain) and each.earlier is None for each in relations.values())


def test_a_profile_without_a_peer_is_not_asked_about_one() -> None:
    lonely = replace(load_profile("sglang-0.5.23-mooncake"), peer="")
    assert set(relation_cases(lonely)) == {"", *DEGRADATIONS} - {"old peer"}


@pytest.mark.slow
def test_the_command() -> None:
    result = CliRunner().invoke(main, ["degrade", "sglang-0.5.20-mooncake-hold-on", "--jobs", "1"])
    assert result.exit_code == 1
    assert "EARLIER" in result.stdout and "never earlier" in result.stdout
    result = CliRunner().invoke(main, ["degrade", "sglang-0.5.23-mooncake", "--jobs", "1", "--json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["format"] == "draincheck-degrade"
    assert [row["degradation"] for row in document["rows"]] == list(DEGRADATIONS)
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    for name in document["rows"][0]:
        assert re.search(f"`{name}`", text), name
