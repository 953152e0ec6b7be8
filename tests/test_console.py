"""What reaches the terminal: text, whatever names and messages hold, and no more of it than helps."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.terminal.console import LONGEST, message, text_cell, visible, visible_line
from draincheck.explorer.terminal.screen import Screen
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

EXPLORER = Path(__file__).parents[1] / "explorer"
HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eabc\r\x7f\udc80"
PROFILE = "sglang-0.5.23-mooncake"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@given(st.text())
def test_visible_text_has_nothing_to_obey(text: str) -> None:
    assert all(char.isprintable() or char in "\n\t" for char in visible(text))
    assert visible_line(text).isprintable()
    if text.isprintable():
        assert visible(text) == visible_line(text) == text


@given(st.text(alphabet=st.characters(max_codepoint=255)))
def test_a_document_stays_a_document(text: str) -> None:
    assert json.loads(visible(json.dumps({"a": text}, indent=1))) == {"a": text}


@given(st.text(max_size=3 * LONGEST))
def test_messages_are_one_line_of_bounded_length(text: str) -> None:
    assert message(text).isprintable()
    assert len(message(text)) < LONGEST + 50


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    short = message(f"mine.toml: title is {'x' * 100_000}; expected is a short one")
    assert short.startswith("mine.toml: title is xxx") and short.endswith("xxx; expected is a short one")
    assert "[... 98,0" in short


def test_messages_hide_credentials_of_addresses() -> None:
    assert message("http://u:p@host/a: no; HTTPS://tok@b") == "http://***@host/a: no; HTTPS://***@b"


def test_tables_and_diagrams_show_what_is_hostile_and_keep_their_own_styles() -> None:
    printed = io.StringIO()
    screen = Screen(width=200)
    screen.file = printed
    screen._force_terminal = True
    table = Table("a")
    table.add_row(text_cell(HOSTILE))
    table.add_row(HOSTILE)
    table.add_row(text_cell("two\nlines [bold]", "bold red"))
    screen.print(table, Text(HOSTILE))
    shown = printed.getvalue()
    assert "\\u001b[2J" in shown and "\\u202e" in shown and "two\\nlines [bold]" in shown
    assert not set("\x07\x9b\r\x7f\u202e\udc80") & set(shown)
    assert "\x1b[2J" not in shown


def test_nobody_prints_past_the_console() -> None:
    """`click.echo`, `print` and rich's own console are used in one place only."""
    for path in sorted(EXPLORER.rglob("*.py")):
        if path.name in ("console.py", "screen.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "click.echo", "click.secho", "Console", "rich.print"), (
                    f"{path.name}, line {node.lineno}: {called} prints what may hold anything; use the console"
                )


def hostile_profile(tmp_path: Path) -> Path:
    text = run("profile", PROFILE).stdout
    path = tmp_path / "hostile.toml"
    name, title = (json.dumps(each) for each in ("\x1b[2J\nSAFE [/bold]", "\x1b]0;x\x07"))
    lines = [
        f"name = {name}" if line.startswith("name = ") else f"title = {title}" if line.startswith("title = ") else line
        for line in text.splitlines()
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [("verify", "--scenario", "abort"), ("hold",), ("simulate", "--steps", "1000", "--scenario", "abort")],
    ids=lambda words: words[0],
)
def test_a_profile_s_name_is_not_obeyed(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(words[0], hostile_profile(tmp_path), *words[1:])
    assert result.exit_code in (0, 1, 3), result.output
    assert "\x1b" not in result.output and "\\u001b[2J" in result.output
    assert not any(line.startswith("SAFE [/bold]") for line in result.output.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", HOSTILE),
        ("verify", "--scenario", HOSTILE),
        ("verify", "--chunks", HOSTILE),
        ("show", HOSTILE),
        ("gate", "--pool", HOSTILE, "--context", "1"),
        ("gate", "--log", HOSTILE),
        ("metrics", HOSTILE),
        ("hold", PROFILE, "--hold-seconds", HOSTILE),
        ("size", "--pool-tokens", HOSTILE),
        (f"--{HOSTILE}",),
        (HOSTILE,),
        ("metrics", "-", "-", HOSTILE),
        ("prove", PROFILE, "--property", HOSTILE),
    ],
    ids=lambda arguments: arguments[0] if arguments[0].isalnum() else "group",
)
def test_arguments_are_not_obeyed_and_not_repeated_at_length(arguments: tuple[str, ...]) -> None:
    for long in (False, True):
        result = run(*(each * 5000 if long and each == HOSTILE else each for each in arguments))
        assert result.exit_code == 2, result.output
        assert all(char.isprintable() or char in "\n\t" for char in result.output)
        assert len(result.output) < 3 * LONGEST
