"""Anybody's own model, from a Python file: verdicts, sizes, traces, and what is wrong with a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.traces.storage import load

ROOT = Path(__file__).parents[1]


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The model of the documents, with two checks."""
    path = tmp_path / "lock.py"
    path.write_text((ROOT / "docs" / "lock.py").read_text("utf-8"), "utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def rows(*arguments: object) -> list[dict[str, object]]:
    return json.loads(run("verify", *arguments, "--json").stdout)["rows"]


def test_each_check_is_a_row(lock: Path) -> None:
    done = run("verify", lock)
    assert done.exit_code == 1
    assert "one_at_a_time is violated after 7 steps" in done.stdout
    assert "release timer" not in done.stdout and "T_hold" not in done.stdout
    assert "Bounds: twice: Worker 2, duplication of grants 1" in done.stdout
    found = [(row["profile"], row["scenario"], row["verdict"], row["states"]) for row in rows(lock)]
    assert found == [("lock.py", "lossy", "SAFE", 17), ("lock.py", "twice", "VIOLATED", 47)]
    assert run("verify", lock, "--scenario", "lossy").exit_code == 0


def test_a_mapping_names_the_checks(lock: Path) -> None:
    lock.write_text(lock.read_text("utf-8") + "checks = {'only this': lossy}\n", "utf-8")
    assert [row["scenario"] for row in rows(lock)] == ["only this"]


def test_sizes_are_those_of_index_types(lock: Path) -> None:
    (three,) = rows(lock, "--scenario", "lossy", "--size", "Worker=3")
    assert three["states"] == 31 and three["bounds"] == {"Worker": "3", "loss of grants": "1"}


def test_a_saved_run_is_executed_when_it_is_read(lock: Path, tmp_path: Path) -> None:
    assert run("verify", lock, "--save", tmp_path / "traces").exit_code == 1
    (path,) = (tmp_path / "traces").glob("*one_at_a_time*")
    shown = run("show", path)
    assert shown.exit_code == 0 and "at most one worker works is false" in shown.stdout
    beside = path.with_name("lock.py")
    lock.rename(beside)
    assert len(load(path)) == 7
    beside.write_text(beside.read_text("utf-8") + "# another line\n", "utf-8")
    done = run("show", path)
    assert done.exit_code == 2 and "has changed since the trace was made; verify it again" in done.stderr
    beside.unlink()
    assert "is not there; put it beside the trace" in run("show", path).stderr


def test_the_other_commands_take_it(lock: Path) -> None:
    walked = run("simulate", lock, "--scenario", "twice", "--steps", 2**18)
    assert walked.exit_code == 1 and "one_at_a_time" in walked.stdout
    explored = run("explore", lock, "--scenario", "twice", "--seed", 1)
    assert explored.exit_code == 1 and "from draincheck import own_cases, rerun" in explored.stdout
    assert "choose one with --scenario: lossy, twice" in run("explore", lock).stderr
    bounded = run("prove", lock, "--scenario", "twice", "--method", "bmc", "--depth", 8)
    assert bounded.exit_code == 1 and "VIOLATED" in bounded.stdout


def test_a_model_that_gets_stuck_or_breaks_the_rules_is_no_pass(lock: Path) -> None:
    text = lock.read_text("utf-8")
    lock.write_text(text.replace("terminal=lambda s: s.holder != NONE,", ""), "utf-8")
    done = run("verify", lock, "--scenario", "lossy")
    assert done.exit_code == 3 and "no step" in done.stdout
    lock.write_text(text.replace("capacity=2", "capacity=1"), "utf-8")
    done = run("verify", lock, "--scenario", "twice")
    assert done.exit_code in (1, 3) and "grants" in done.stdout


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("x = 1\n", (), "mine.py: it has no check; write NAME = Check(model, (property, ...)) at its top level"),
        ("\ndef f(:\n", (), "mine.py:2: it cannot be run: SyntaxError: "),
        ("\n\nraise ValueError('a\\nb')\n", (), "mine.py:3: it cannot be run: ValueError: a b"),
        ("exit(0)\n", (), "mine.py:1: it cannot be run: SystemExit: 0"),
        ("checks = [1]\n", (), "mine.py: checks is no mapping"),
        ("checks = {'a': 1}\n", (), "mine.py: checks has a value that is no Check"),
        ("from draincheck import State, field\nclass S(State):\n    a = field(3)\n", (), "mine.py:3: "),
        ("x = 1\n", ("--size", "Worker"), "write an index type and a number, as in Ranks=3"),
        ("x = 1\n", ("--prefill-ranks", "2"), "is said with --size TYPE=N"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    tmp_path: Path, content: str, arguments: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(content, "utf-8")
    done = run("verify", path, *arguments)
    assert done.exit_code == 2 and message in done.stderr and "Traceback" not in done.output


def test_unknown_names_and_sizes(lock: Path) -> None:
    assert "no check is called storm; it has lossy, twice" in run("verify", lock, "--scenario", "storm").stderr
    assert "no index type Rank; it has Worker" in run("verify", lock, "--size", "Rank=2").stderr
    assert "--size belongs to Python files" in run("verify", "reference", "--size", "Rank=2").stderr
    assert "cannot be read" in run("verify", lock.with_name("gone.py")).stderr


def test_the_file_of_the_documents_is_the_model_of_the_language_page() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "language.md").read_text("utf-8"), re.DOTALL)
    model = program[program.index("class Worker") : program.index("assert verify")].rstrip()
    assert model in (ROOT / "docs" / "lock.py").read_text("utf-8")


def test_options_of_profiles_are_refused_for_a_file(lock: Path) -> None:
    assert "--no-timer belongs to profiles" in run("verify", lock, "--no-timer").stderr
    assert "--release-timer belongs to profiles" in run("simulate", lock, "--release-timer", "late").stderr
