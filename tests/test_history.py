"""Each change of the history, taken away, breaks the named property and no other."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.verdicts.history import Chapter, tell
from draincheck.explorer.verdicts.verify import Verdict
from draincheck.models.catalogue.profile import ProfileError
from draincheck.models.mutants.changes import Change, changes, mutant
from pydantic import ValidationError

pytestmark = pytest.mark.xdist_group("history")

CHANGES = changes()
TOLD = [change for change in CHANGES if not change.untold]


@cache
def chapter_of(name: str) -> Chapter:
    return tell(next(change for change in CHANGES if change.name == name))


@pytest.mark.parametrize("change", TOLD, ids=lambda change: change.name)
def test_a_change_taken_away_breaks_its_property_and_no_other(change: Change) -> None:
    chapter = chapter_of(change.name)
    assert chapter.holds
    assert chapter.broken == (change.property,)
    assert chapter.as_said and chapter.trace is not None
    assert chapter.trace.subject == change.property
    profiles = mutant(change)
    differing = {name for name, value in profiles.fixed.settings.items() if profiles.broken.settings[name] != value}
    assert differing == set(change.without)


def test_every_change_of_the_disclosure_has_a_row() -> None:
    numbers = {number for change in CHANGES for number in change.prs}
    assert numbers == {
        41612, 39461, 19524, 29017, 36988, 38935, 27372, 35049, 35360, 37454, 41023, 40645, 41402, 41404, 43719,
        41618, 37077, 35281, 36612, 24226, 30899, 43562, 32758, 39500, 41128, 45973,
    }  # fmt: skip


def test_a_change_that_does_nothing_is_noticed() -> None:
    idle = TOLD[0].model_copy(update={"without": {"gen_tags": True}})
    chapter = tell(idle)
    assert not chapter.as_said and chapter.broken == () and chapter.trace is None


def test_wrong_data_are_refused() -> None:
    with pytest.raises(ValidationError, match="give base, without, scenario and property, or untold"):
        Change(name="x", prs=[1])
    with pytest.raises(ProfileError, match=r'gen_tags\.value is "maybe"'):
        mutant(TOLD[0].model_copy(update={"without": {"gen_tags": "maybe"}}))


@pytest.mark.slow
def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draincheck.explorer.verdicts.history.tell", lambda change: chapter_of(change.name))
    result = CliRunner().invoke(main, ["history"])
    assert result.exit_code == 0
    for change in CHANGES:
        assert f"#{change.prs[0]}" in result.stdout
    document = json.loads(CliRunner().invoke(main, ["history", "--json"]).stdout)
    assert document["format"] == "draincheck-history"
    told = [row for row in document["rows"] if not row["untold"]]
    assert [row["verdict"] in (Verdict.CORRUPTS, Verdict.LEAKS, Verdict.DELAYS) for row in told] == [True] * len(TOLD)
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    for name in document["rows"][0]:
        assert re.search(f"`{name}`", text), name
