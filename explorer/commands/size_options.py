"""The options that say how many of what a model has, for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., None])


def _sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """`Ranks=3`: an index type of a user's own model, and how many there are."""
    found: list[tuple[str, int]] = []
    for value in values:
        kind, equals, number = value.partition("=")
        if not (kind.isidentifier() and equals and number.isascii() and number.isdigit() and len(number) < 10):
            raise click.BadParameter(f"{value!r}: write an index type and a number, as in Ranks=3", ctx, param)
        found.append((kind, int(number)))
    return tuple(found)


def own_sizes() -> Callable[[F], F]:
    """Adds --size, which may be repeated, for models in Python files."""
    text = "How many of an index type a Python file's model has, as in Ranks=3 (may be repeated)."
    return click.option("--size", "own", multiple=True, metavar="TYPE=N", callback=_sizes, help=text)


def size_options(slots: str = "one request's") -> Callable[[F], F]:
    """Adds --prefill-ranks, --decode-ranks, --rooms, --chunks and --slots; `slots` says what its default is."""
    texts = {
        "--prefill-ranks": "Prefill ranks that write to decode.",
        "--decode-ranks": "Decode ranks, which schedule together.",
        "--rooms": "Requests with a transfer.",
        "--chunks": "Chunks of a request; each has a slot.",
        "--slots": f"Slots of decode's pool (default: {slots}).",
    }

    def declare(command: F) -> F:
        for name, text in reversed(texts.items()):
            command = click.option(name, type=int, help=text)(command)
        return command

    return declare
