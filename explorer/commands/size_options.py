"""The options that say how many of what a model has, for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., None])


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
