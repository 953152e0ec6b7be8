"""The visited set behind one small interface, partitioned by hash.

A state belongs to the partition that its hash names, and each partition has arrays of its own. Today there is one;
threads, disk or other machines would be further partitions, and only this file would route states between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compile.native import Native
from . import kernel
from .partition import U64, Edges, Partition, Positions


class VisitedSet:
    """All visited states: of `width` 64-bit words, with at most `successors` successors each; `memory` in bytes.

    Positions number the states in the order of discovery. `advance` expands states; the rest looks at them.
    """

    def __init__(self, width: int, instances: int, successors: int, memory: int) -> None:
        self.memory = memory
        self._shape = (0,) * width
        self.partitions = (Partition(width, instances, successors, memory),)

    def owner(self, words: Sequence[int]) -> Partition:
        """The partition that a state belongs to."""
        return self.partitions[int(kernel.owner(np.array(words, U64), self._shape, len(self.partitions)))]

    def add_root(self, words: Sequence[int]) -> None:
        """Enters an initial state; it is its own parent."""
        self.owner(words).add_root(words)

    def find(self, words: Sequence[int]) -> int | None:
        """The position of a state, or None if it is not in the set."""
        return self.owner(words).find(words)

    def advance(self, native: Native, until: int) -> int:
        """Expands states up to position `until`; returns why it stopped, as kernel.FINISHED and so on."""
        return self._only.advance(native, until)

    def edges(self, native: Native, positions: Positions) -> Edges:
        """The steps out of some states that are in the set, with all their successors."""
        return self._only.edges(native, positions)

    def marks(self, native: Native, begin: int, end: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """A word for each state from `begin` up to `end`: bit n is set where promise n is pending."""
        words = np.empty(end - begin, U64)
        native.mark(self.address, begin, end, words.ctypes.data)
        return words

    @property
    def _only(self) -> Partition:
        (partition,) = self.partitions
        return partition

    @property
    def count(self) -> int:
        """States in the set."""
        return self._only.count

    @property
    def cursor(self) -> int:
        """The first state that is not yet expanded; those behind it are the frontier."""
        return self._only.cursor

    @property
    def transitions(self) -> int:
        """Successors met so far, duplicates included."""
        return self._only.transitions

    @property
    def hits(self) -> Sequence[int]:
        """Successors met so far, for each instance."""
        return [int(count) for count in self._only.hits]

    @property
    def event(self) -> tuple[int, int]:
        """The state and the instance that `advance` stopped at."""
        return self._only.event

    @property
    def deadlock(self) -> int | None:
        """The first state that has no step and is not terminal."""
        return self._only.deadlock

    @property
    def stuck(self) -> int:
        """How many expanded states have no step and are not terminal."""
        return self._only.stuck

    @property
    def bytes_used(self) -> int:
        """Bytes of states, parent links and slots that are in use."""
        return self._only.bytes_used

    @property
    def address(self) -> int:
        """Where the packed states lie, in the order of their positions."""
        return self._only.address

    def state(self, position: int) -> tuple[int, ...]:
        """The packed words of a state."""
        return self._only.state(position)

    def path(self, position: int) -> list[int]:
        """Positions from an initial state to the given one, along parent links: a shortest path."""
        return self._only.path(position)
