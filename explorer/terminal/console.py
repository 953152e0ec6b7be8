"""The one way to the terminal: what is printed, how wide tables are, and that nothing printed is obeyed by it.

Names, labels and messages come from profiles, traces, servers and file names. Whatever their characters are, a terminal
gets to see them as text: control characters are written as escapes, and values that are too long lose their middle.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from .screen import Screen

WIDTH = 120
"""Columns where there is no terminal to ask."""
ENDLESS = 10_000
LONGEST = 2_000
"""Characters of a message: whole lists of what is known fit, what somebody pasted does not."""

_CREDENTIALS = re.compile(r"(?<=://)[^\s@]*[^/@]*@")


def visible(text: str) -> str:
    """A text in which each character that is not printable is an escape: controls, directions, lone surrogates.

    Line feeds and tabs stay. The escapes are those of JSON, so that a document stays one.
    """
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)


def visible_line(text: str) -> str:
    """The same without line feeds and tabs: no name can begin a line that looks like one of ours."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def message(text: str) -> str:
    """A message as it is shown: on one line, without credentials of addresses; a long one loses its middle."""
    line = visible_line(re.sub(r"\s*\n\s*", " ", _CREDENTIALS.sub("***@", text)))
    left_out = len(line) - LONGEST
    if left_out <= 0:
        return line
    return f"{line[: LONGEST * 2 // 3]} [... {left_out:,} characters ...] {line[-LONGEST // 3 :]}"


def echo(line: str = "", *, err: bool = False) -> None:
    """Prints a sentence, on one line."""
    click.echo(visible_line(line), err=err)


def echo_lines(lines: Iterable[str]) -> None:
    """Prints sentences, each on a line of its own."""
    for line in lines:
        echo(line)


def echo_text(text: str) -> None:
    """Prints a text that has its own lines, as it is."""
    click.echo(visible(text), nl=False)


def complain(text: str) -> None:
    """Says on standard error what is wrong."""
    click.echo(f"draincheck: {message(text)}", err=True)


def text_cell(text: str, style: str = "") -> Text:
    """A text for a table, on one line."""
    from rich.text import Text

    return Text(visible_line(text), style=style)


def screen() -> Screen:
    """Where tables and diagrams are printed: as wide as the terminal, or WIDTH without one."""
    from .screen import Screen

    return Screen() if sys.stdout.isatty() else Screen(width=WIDTH)


@contextmanager
def note() -> Generator[Callable[[str], None]]:
    """A line on the terminal that says what is being done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.text import Text

    from .screen import Screen

    with Screen(stderr=True).status("") as status:
        yield lambda text: status.update(Text(text))


def print_wide(shown: Table) -> None:
    """Prints a table as wide as it is: a terminal that is too narrow wraps its lines; nothing of it is cut off."""
    from rich.measure import Measurement

    from .screen import Screen

    endless = Screen(width=ENDLESS)
    width = Measurement.get(endless, endless.options, shown).maximum
    Screen(width=max(screen().width, width)).print(shown)


class _Output:
    """Whether the command has begun to print its document."""

    document_begun = False


def forget_document() -> None:
    """A command begins: nothing is printed yet."""
    _Output.document_begun = False


def document_printed() -> bool:
    """Whether a document was begun since `forget_document`."""
    return _Output.document_begun


def print_document(document: Mapping[str, object], partial: str = "") -> None:
    """Prints the one JSON document of a command. `partial` says why it does not hold all that was asked, if so."""
    _Output.document_begun = True
    echo_text(json.dumps({**document, "partial": partial} if partial else document, indent=1) + "\n")
