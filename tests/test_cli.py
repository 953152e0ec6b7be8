"""The command line as a user meets it: output, exit codes, and no traceback for anything."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import GROUPS, main
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.scenario import DEFAULT, SCENARIOS
from draincheck.protocol.language import DraincheckError

NEWEST = "sglang-0.5.23-mooncake"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def rows(*arguments: object) -> list[dict[str, Any]]:
    document = json.loads(run("verify", *arguments, "--json").stdout)
    assert (document["format"], document["version"]) == ("draincheck-verify", 1)
    return document["rows"]


@pytest.mark.slow
def test_verify_without_arguments_ends_with_the_table_of_all_profiles() -> None:
    result = run("verify")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("profile"))
    table = [line.replace(", ", ",").split() for line in lines[heading + 1 : heading + 11]]
    assert [(row[0].split("-")[1], row[1], row[2].split(",")[0]) for row in table] == [
        ("0.5.18", "abort", "CORRUPTS"),
        ("0.5.18", "failed-send", "CORRUPTS"),
        ("0.5.20", "abort", "CORRUPTS"),
        ("0.5.20", "failed-send", "CORRUPTS"),
        ("0.5.21", "abort", "CONDITIONAL"),
        ("0.5.21", "failed-send", "CORRUPTS"),
        ("0.5.22", "abort", "CONDITIONAL"),
        ("0.5.22", "failed-send", "CONDITIONAL"),
        ("0.5.23", "abort", "CONDITIONAL"),
        ("0.5.23", "failed-send", "CONDITIONAL"),
    ]
    assert "T_hold > t_abort_propagation + t_remaining_chunks + t_in_flight_call" in result.stdout
    assert "release timer fires at any moment" in result.stdout
    assert "no write landed in the slot while another request owned it" in result.stdout
    assert "land(prefill=0, decode=0)" in result.stdout
    assert "status update one step" in result.stdout
    (others,) = (line for line in lines if line.startswith("Not asked"))
    assert set(others.split(": ")[1].split(", ")) == set(SCENARIOS) - set(DEFAULT)


def test_the_readme_shows_the_table_that_is_printed() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    shown = readme.split("```\nprofile")[1].split("```")[0].splitlines()[1:]
    printed = [line.rstrip() for line in run("verify").stdout.splitlines()]
    assert len(shown) == 10
    for line in shown:
        assert line.rstrip() in printed


def test_json_has_the_documented_fields() -> None:
    (row,) = rows(NEWEST, "--scenario", "abort")
    assert {
        "profile", "scenario", "verdict", "property", "states", "transitions", "depth", "trace_length",
        "seconds", "bounds",
    } <= set(row)  # fmt: skip
    assert (row["verdict"], row["property"]) == ("CONDITIONAL", "no_late_write")
    assert row["trace_length"] == len(row["trace"]) > 10
    assert row["without_timer"]["verdict"] == "SAFE"
    assert row["bounds"]["prefill ranks"] == "1"


def test_the_documented_fields_are_the_ones_printed() -> None:
    (row,) = rows(NEWEST, "--scenario", "abort")
    text = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    for name in (*row, *row["without_timer"]):
        assert f"`{name}`" in text, name


def test_no_timer_gives_safe_and_a_witness() -> None:
    result = run("verify", NEWEST, "--no-timer", "--witness", "--scenario", "abort")
    assert result.exit_code == 0
    assert "SAFE" in result.stdout and "release timer off" in result.stdout
    assert "release_drained(decode=0, request=0)" in result.stdout


def test_sizes_are_bounds_of_the_verdict() -> None:
    (row,) = rows(NEWEST, "--scenario", "abort", "--chunks", 1, "--slots", 2, "--no-timer")
    assert row["bounds"]["chunks"] == "1" and row["bounds"]["slots"] == "2" and row["verdict"] == "SAFE"


def test_reference() -> None:
    (row,) = rows("reference")
    assert (row["states"], row["transitions"], row["verdict"]) == (581_821, 1_983_016, "SAFE")


def test_a_cut_search_is_undetermined() -> None:
    result = run("verify", "reference", "--max-states", 1000)
    assert result.exit_code == 3
    assert "limit of 1,000 states reached" in result.stdout


def test_a_violation_found_before_the_search_was_cut_short_counts() -> None:
    result = run("verify", "reference", "--timer", 1, "--max-states", 600_000)
    assert result.exit_code == 1
    assert "CONDITIONAL" in result.stdout
    assert "not all states were counted (+): limit of 600,000 states reached" in result.stdout


def test_somebodys_own_profile(tmp_path: Path) -> None:
    text = run("profile", NEWEST).stdout.replace(f'name = "{NEWEST}"', 'name = "mine"')
    start = text.index("[poison_on_error]")
    mine = text[:start] + text[start:].replace("value = true", 'value = "unknown"', 1)
    path = tmp_path / "mine.toml"
    path.write_text(mine, "utf-8")
    result = run("verify", path, "--scenario", "failed-send")
    assert result.exit_code == 1
    assert "CORRUPTS" in result.stdout
    assert "mine / failed-send: CORRUPTS rests on what is unknown and taken as poison_on_error = false" in result.stdout


def test_profile_lists_what_there_is() -> None:
    result = run("profile")
    assert load_profile(NEWEST).title in result.stdout and "scenario failed-send" in result.stdout


@pytest.mark.parametrize("form", ["terminal", "mermaid", "dot", "itf"])
def test_saved_traces_are_shown_in_every_format(tmp_path: Path, form: str) -> None:
    saved = run("verify", "sglang-0.5.18-mooncake", "--scenario", "abort", "--save", tmp_path)
    (path,) = tmp_path.glob("*no_late_write.trace.json")
    assert str(path) in saved.stderr
    result = run("show", path, "--format", form)
    assert result.exit_code == 0
    assert "victim_takes" in result.stdout and "land" in result.stdout
    output = tmp_path / "out.txt"
    assert run("show", path, "--format", form, "--output", output).exit_code == 0
    assert output.read_text("utf-8").strip() == result.stdout.strip()


def damaged(tmp_path: Path, change: Any) -> Path:
    run("verify", "sglang-0.5.18-mooncake", "--scenario", "abort", "--save", tmp_path)
    (path,) = tmp_path.glob("*no_late_write.trace.json")
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data), "utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(format="other"), "format: Input should be 'draincheck-trace'"),
        (lambda data: data.update(version=99), "version: Input should be 1"),
        (lambda data: data["steps"].pop(3), "cannot happen there"),
        (lambda data: data["steps"].pop(), "holds at the end of the run"),
        (lambda data: data["steps"][2].update(action="jump()"), "which the model does not have"),
        (lambda data: data.pop("source"), "source: Field required"),
        (lambda data: data["source"].update(kind="other"), "source: Input tag 'other'"),
        (lambda data: data["source"].update(scenario=7), "source.drain.scenario: Input should be an object"),
        (lambda data: data.update(initial=[1, 2]), "does not begin in an initial state"),
        (lambda data: data.update(subject="nothing"), "nothing is no property"),
        (lambda data: data["source"]["profile"]["gen_tags"].update(value=3), "gen_tags.value is 3; allowed"),
        (lambda data: data["source"]["profile"].update(inherits="/dev/zero"), "inherits belongs into a TOML file"),
        (lambda data: data["source"]["prefill"].update(inherits="mine.toml"), "inherits belongs into a TOML file"),
        (lambda data: data["source"]["scenario"].update(chunks=0), "chunks is 0"),
        (
            lambda data: data["source"]["scenario"].update(chunks="x"),
            "source.drain.scenario.chunks: Input should be a valid integer",
        ),
        (lambda data: data["steps"].append(1), "steps.17: Input should be an object"),
    ],
)
def test_damaged_traces(tmp_path: Path, change: Any, message: str) -> None:
    result = run("show", damaged(tmp_path, change))
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert ".trace.json" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "sglang-0.5.19"), "no such profile"),
        (("verify", "nowhere.toml"), "cannot be read"),
        (("verify", "--scenario", "lost-mesage"), "no scenario is called lost-mesage; did you mean lost-message?"),
        (("verify", "--scenario", "storm"), "no scenario is called storm; did you mean restore?"),
        (("verify", "--chunks", "0"), "chunks is 0; allowed are whole numbers from 1 to 8"),
        (("verify", "--prefill-ranks", "1000000"), "prefill ranks is 1000000; allowed"),
        (("verify", "--rooms", "64"), "rooms is 64; allowed are whole numbers from 1 to 8"),
        (("verify", "--chunks", "3", "--slots", "2"), "3 chunks need as many slots; the pool has 2"),
        (("verify", "--chunks", "two"), "is not a valid integer"),
        (("verify", "--max-states", "0"), "limit states=0 must be greater than 0"),
        (("verify", "--timer", "1"), "--timer belongs to the reference model"),
        (("verify", "reference", "--timer", "-1"), "the timer is -1 ticks"),
        (("verify", "reference", "--timer", "1", "--no-timer"), "--timer and --no-timer exclude each other"),
        (("verify", "--rooms", "8", "--chunks", "8"), "8 rooms of 8 chunks: the transfer queue takes at most 16"),
        (("verify", "--rooms", "4", "--prefill-ranks", "4"), "4 rooms on 4 prefill and 1 decode ranks are too many"),
        (("verify", "--max-memory", "nan"), "give a number of GiB greater than 0"),
        (("verify", "--max-memory", "inf"), "give a number of GiB greater than 0"),
        (("verify", "--max-memory", "1e-9"), "which every search needs"),
        (("verify", "--max-memory", "0.001"), "which every search needs"),
        (("verify", "--max-seconds", "nan"), "must be greater than 0, and finite"),
        (("verify", "--all", "reference"), "name no profiles beside it"),
        (("verify", "reference", "--chunks", "2"), "the reference model has fixed sizes"),
        (("show", "nothing.json"), "cannot be read"),
        (("profile", "nothing"), "no such profile"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def odd_profile(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "odd.toml"
    path.write_text(
        run("profile", NEWEST).stdout.replace(f'name = "{NEWEST}"', f"name = {json.dumps(name)}"), "utf-8-sig"
    )
    return path


@pytest.mark.parametrize("name", ["[/bold] [red]", "a/../b\u0000c", "ä ö ü → ✗"])
def test_a_profile_may_have_any_name(tmp_path: Path, name: str) -> None:
    result = run("verify", odd_profile(tmp_path, name), "--scenario", "abort", "--save", tmp_path / "traces")
    assert result.exit_code == 1
    assert name.split(" ")[0].split("\u0000")[0] in result.stdout
    saved = list((tmp_path / "traces").iterdir())
    assert len(saved) == 2  # the violation and the witness
    assert all(run("show", each).exit_code == 0 for each in saved)


@pytest.mark.parametrize("command", ["verify", "degrade", "simulate"])
def test_the_folder_for_traces_is_tried_before_the_search(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    result = run(command, NEWEST, "--save", tmp_path / "file" / "traces")
    assert result.exit_code == 2 and not result.stdout
    assert "cannot be written" in result.stderr and result.stderr.count("\n") == 1


def test_results_are_printed_before_saving_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may become full while the search runs; nothing is left under the final name then."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = run("verify", NEWEST, "--save", tmp_path / "traces", "--no-store")
    assert result.exit_code == 2
    assert "CONDITIONAL" in result.stdout and "cannot be written: No space left on device" in result.stderr
    assert not list((tmp_path / "traces").iterdir())


def test_no_saved_trace_takes_the_place_of_another(tmp_path: Path) -> None:
    """Profiles of one name, names of odd characters, other sizes and timers: each trace has a file of its own."""
    text = run("profile", "sglang-0.5.18-mooncake").stdout
    named = [("same", text), ("same", run("profile", NEWEST).stdout), ("a/b", text), ("a b", text)]
    expected = 0
    for number, (name, profile) in enumerate(named):
        path = tmp_path / f"{number}.toml"
        path.write_text(re.sub(r'^name = ".*"', f'name = "{name}"', profile, flags=re.MULTILINE), "utf-8")
        for options in ([], ["--chunks", "1"]):
            result = run("verify", path, "--scenario", "abort", *options, "--save", tmp_path / "traces")
            expected += result.stderr.count("saved ")
    saved = list((tmp_path / "traces").iterdir())
    assert len({path.read_bytes() for path in saved}) == len(saved) > 10
    assert expected >= len(saved)  # the same trace is the same file
    assert all(run("show", path).exit_code == 0 for path in saved)


def test_a_saved_trace_is_not_overwritten(tmp_path: Path) -> None:
    arguments = ("verify", "sglang-0.5.18-mooncake", "--scenario", "abort", "--save", tmp_path)
    first, second = run(*arguments), run(*arguments)
    assert first.stderr == second.stderr and first.exit_code == second.exit_code == 1
    (path,) = tmp_path.glob("*no_late_write.trace.json")
    path.write_text("mine", "utf-8")
    third = run(*arguments)
    assert third.exit_code == 2 and path.read_text("utf-8") == "mine"
    assert "holds something else; it is not overwritten" in third.stderr


@pytest.mark.parametrize("command", ["verify", "degrade", "calibrate"])
def test_every_command_that_keeps_results_keeps_them_where_it_is_told(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def stop(*_: Any, store: Any, **__: Any) -> Any:
        asked.append(store and store.path("0" * 64).parents[1])
        raise DraincheckError("enough")

    for module in ("batch", "degradation", "calibration"):
        monkeypatch.setattr(f"draincheck.explorer.verdicts.{module}.verify_all", stop)
    monkeypatch.setenv("DRAINCHECK_STORE", str(tmp_path / "by variable"))
    for options in ((), ("--store", tmp_path / "by option"), ("--no-store",)):
        assert "enough" in run(command, *options).stderr
    assert asked == [tmp_path / "by variable", tmp_path / "by option", None]


def test_a_terminal_without_arrows_gets_a_diagram_all_the_same() -> None:
    command = [
        sys.executable,
        "-c",
        "from draincheck.explorer.commands.cli import GROUPS, main; main()",
        "verify",
        NEWEST,
    ]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == 1
    assert b"CONDITIONAL" in done.stdout and b"Traceback" not in done.stderr


def test_show_needs_an_output_for_pictures(tmp_path: Path) -> None:
    run("verify", "sglang-0.5.18-mooncake", "--scenario", "abort", "--save", tmp_path)
    (path,) = tmp_path.glob("*no_late_write.trace.json")
    assert "add --output FILE.svg" in run("show", path, "--format", "svg").stderr
    assert "does not end in .svg" in run("show", path, "--format", "svg", "--output", "a.png").stderr
    if shutil.which("dot"):
        gone = run("show", path, "--format", "svg", "--output", tmp_path / "gone" / "a.svg")
        assert gone.exit_code == 2 and "cannot be written" in gone.stderr


def test_interruption_prints_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from draincheck.explorer.verdicts import batch as module
    from draincheck.explorer.verdicts.verify import decide as first

    calls: list[object] = []

    def interrupted(case: Any, *rest: Any) -> Any:
        calls.append(case)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return first(case, *rest)

    monkeypatch.setattr(module, "decide", interrupted)
    result = run("verify", NEWEST, "--no-timer", "--jobs", 1)
    assert result.exit_code == 130
    assert "SAFE" in result.stdout and "interrupted; 1 rows are not known" in result.stderr


def test_help_does_not_load_the_engine() -> None:
    heavy = ("numba", "numpy", "rich", "llvmlite", "pydantic")
    code = f"import sys; from draincheck.explorer.commands import cli; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_help_lists_every_command_once_by_what_it_is_for() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(main.commands)
    shown = run("--help").stdout
    assert all(f"{title}:" in shown for title in GROUPS) and all(f"  {name} " in shown for name in listed)


def test_wrong_use_is_one_line_that_names_the_help() -> None:
    for arguments in (("verify", "--jbs", "3"), ("verify", "--jobs", "x"), ("prove",), ("nothing",)):
        done = run(*arguments)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1
        assert done.stderr.startswith("draincheck: ") and "--help says how it is used" in done.stderr
