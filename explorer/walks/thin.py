"""A long run of a large model made shorter in place: blocks of its steps are left out while it still fails.

What remains is short enough for `shorten`, which keeps every state that it meets and so takes short runs only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.language import ModelFault
from .walk import Walk

SHORT = 150
"""Steps that `shorten` takes."""
LARGE = 1_000
"""Cells of a model whose states are too large for it."""

Taken = Sequence[tuple[int, tuple[int, ...]]]
"""Steps by the numbers of their instances, with what they chose."""


def thinned(start: Walk, taken: Taken, fails: Callable[[Walk], bool]) -> Taken:
    """A run with at most as many steps that fails at its end, and nowhere before. `start` is left as it is.

    Steps that are not possible any more fall away. Gives back `taken` if that does not fail.
    """
    enough = SHORT if len(start.values) <= LARGE else 1
    first = _until_failure(start, taken, fails)
    run = taken if first is None else first
    size = len(run) // 2
    while size and len(run) > enough:
        at = 0
        while at < len(run) > enough:
            shorter = _until_failure(start, [*run[:at], *run[at + size :]], fails)
            if shorter is None or len(shorter) >= len(run):
                at += size
            else:
                run = shorter
        size = min(size, len(run)) // 2
    return run


def _until_failure(start: Walk, taken: Taken, fails: Callable[[Walk], bool]) -> Taken | None:
    """The steps that are possible, up to the first state that fails; None if none does."""
    walk = start.fork()
    for number, chosen in taken:
        try:
            if fails(walk):
                return walk.taken
            move = next((each for each in walk.moves(number) if each.chosen == chosen), None)
        except ModelFault:
            move = None  # another failure than the one that is looked for: the step is left out
        if move:
            walk.take(number, move)
    try:
        return walk.taken if fails(walk) else None
    except ModelFault:
        return None
