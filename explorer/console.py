"""What commands say on a terminal, and how wide their tables are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table


@contextmanager
def note() -> Generator[Callable[[str], None]]:
    """A line on the terminal that says what is being done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(Text(text))


def print_wide(shown: Table) -> None:
    """Prints a table as wide as it is: a terminal that is too narrow wraps its lines; nothing of it is cut off."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    endless = Console(width=10_000)
    width = Measurement.get(endless, endless.options, shown).maximum
    Console(width=max(console.width, width)).print(shown)


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
    click.echo(json.dumps({**document, "partial": partial} if partial else document, indent=1))
