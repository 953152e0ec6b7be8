"""Each known bug is found in the releases that have it, and in no other, but for differences that are explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.verdicts.calibration import Cell, calibrate, case_of
from draincheck.explorer.verdicts.verify import verify
from draincheck.models.catalogue.profile import catalogue
from draincheck.models.mutants.known_bugs import cells_of, known_bugs

BUGS = known_bugs()


def test_every_known_bug_has_a_row() -> None:
    assert {bug.id for bug in BUGS} == {f"C{number}" for number in range(1, 22)}


def test_cells_name_profiles_of_the_catalogue_once() -> None:
    for bug in BUGS:
        names = [name for name, _ in cells_of(bug)]
        assert len(names) == len(set(names)), bug.name
        assert set(names) <= set(catalogue()), bug.name
        assert set(bug.differs) <= set(names) and set(bug.prefill) <= set(names), bug.name
        assert bug.fails, bug.name


@pytest.mark.slow
def test_a_cell_is_the_verdict_of_its_case() -> None:
    """The table against single searches: a cell of each bug that is quick to decide."""
    for bug in BUGS:
        if bug.scenario in ("rejected", "offload", "checksum"):
            for name, expected in cells_of(bug):
                row = verify(case_of(bug, name))
                assert (bug.property in [each.subject for each in row.findings]) == (expected == "fails"), (
                    bug.id,
                    name,
                )


@pytest.mark.slow
def test_the_calibration_is_accounted_for() -> None:
    cells, trouble = calibrate(jobs=2)
    assert not trouble
    assert [(cell.bug.id, cell.profile) for cell in cells if not cell.accounted_for] == []
    assert sum(not cell.agrees for cell in cells) == sum(len(bug.differs) for bug in BUGS)


def test_cells_account_for_what_they_say() -> None:
    bug = BUGS[0]
    as_expected = Cell(bug, "x", "fails", 17, known=True, differs="")
    assert as_expected.agrees and as_expected.accounted_for
    assert not Cell(bug, "x", "fails", None, known=True, differs="").accounted_for
    assert Cell(bug, "x", "fails", None, known=True, differs="why").accounted_for
    assert not Cell(bug, "x", "fails", 17, known=True, differs="why").accounted_for
    assert not Cell(bug, "x", "holds", None, known=False, differs="").accounted_for


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [bug for bug in BUGS if bug.scenario in ("rejected", "offload")]
    monkeypatch.setattr("draincheck.explorer.verdicts.calibration.known_bugs", lambda: quick)
    result = CliRunner().invoke(main, ["calibrate", "--jobs", "1"])
    assert result.exit_code == 0
    assert "C15" in result.stdout and "C16" in result.stdout
    document = json.loads(CliRunner().invoke(main, ["calibrate", "--json"]).stdout)
    assert document["format"] == "draincheck-calibration"
    assert len(document["rows"]) == sum(len(cells_of(bug)) for bug in quick)
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    for name in document["rows"][0]:
        assert re.search(f"`{name}`", text), name


def test_a_cell_that_comes_out_otherwise_gives_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = next(bug for bug in BUGS if bug.id == "C16")
    wrong = bug.model_copy(update={"fails": bug.holds, "holds": bug.fails})
    monkeypatch.setattr("draincheck.explorer.verdicts.calibration.known_bugs", lambda: [wrong])
    result = CliRunner().invoke(main, ["calibrate", "--jobs", "1"])
    assert result.exit_code == 1
    assert "not accounted for" in result.stdout
