"""How commands end: whatever is raised inside them, one line and a code of its own."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.terminal.ending import DEBUG
from draincheck.protocol.language import DraincheckError


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())
ENDS: dict[str, tuple[BaseException, int, str]] = {
    "a fault": (RuntimeError("two\nlines"), 70, "inner fault, nothing is decided: RuntimeError: two lines"),
    "a fault without words": (AssertionError(), 70, "inner fault, nothing is decided: AssertionError;"),
    "a full disk": (OSError(errno.ENOSPC, "No space left on device"), 70, "No space left on device"),
    "a pipe of the program's own": (BrokenPipeError(errno.EPIPE, "Broken pipe"), 70, "Broken pipe"),
    "an end of file": (EOFError(), 70, "EOFError"),
    "no memory": (MemoryError(), 3, "UNDETERMINED: memory ran out"),
    "Ctrl-C": (KeyboardInterrupt(), 130, "interrupted"),
    "wrong input": (DraincheckError("mine.toml: line 3: no"), 2, "mine.toml: line 3: no"),
}


def arguments_of(command: click.Command) -> list[str]:
    """Something for each required argument."""
    return ["1" for each in command.params if isinstance(each, click.Argument) and each.required]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("end", ENDS)
def test_whatever_is_raised_in_a_command_is_one_line_and_has_its_code(
    words: tuple[str, ...], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, code, line = ENDS[end]
    command = COMMANDS[words]

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "callback", fail)
    for as_json in (False, True):
        if as_json and not any("--json" in each.opts for each in command.params):
            continue
        result = CliRunner().invoke(main, [*words, *arguments_of(command), *(["--json"] if as_json else [])])
        assert result.exit_code == code
        assert line in result.stderr and result.stderr.startswith("draincheck: ")
        assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr
        if as_json and code != 2:
            document = json.loads(result.stdout)
            assert document["format"] == "draincheck-partial" and document["exit_code"] == code
            assert line in document["partial"]
        else:
            assert result.stdout == ""


def test_a_fault_shows_where_it_came_from_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("here")

    monkeypatch.setattr(COMMANDS["profile",], "callback", fail)
    monkeypatch.setenv(DEBUG, "1")
    result = CliRunner().invoke(main, ["profile"])
    assert result.exit_code == 70 and "in fail\n" in result.stderr


def shell(command: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m draincheck.explorer.commands.start"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("draincheck", program, 1)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("command", ["profile", "--help", "gate --pool 1 --context 1 --json"])
def test_an_output_that_is_full_is_said(command: str) -> None:
    found = shell(f"draincheck {command} > /dev/full")
    assert found.returncode == 70 and found.stderr.count("\n") == 1
    assert "standard output cannot be written: No space left on device" in found.stderr


def test_an_output_that_is_closed_is_said() -> None:
    found = shell("draincheck profile >&-")
    assert found.returncode == 70 and found.stderr.count("\n") == 1
    assert "standard output is closed" in found.stderr


@pytest.mark.parametrize("command", ["profile", "--help", "gate --pool 1 --context 1"])
def test_an_output_that_nobody_reads_ends_quietly(command: str) -> None:
    found = shell(f"draincheck {command} | true")
    assert (found.returncode, found.stderr) == (141, "")


def test_messages_that_nobody_can_read_change_nothing() -> None:
    assert shell("draincheck profile 2>&- > /dev/null").returncode == 0
    assert shell("draincheck profile no-such-profile 2>&-").returncode == 2
