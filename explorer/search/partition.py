"""A partition of the visited set: exact states in the order of discovery, with the state each was reached from.

A breadth-first search needs nothing else: the frontier is a range of positions, and parent links are positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...protocol.language import DeclarationError
from ..compile.native import Native
from . import kernel
from .memory import PIECE, Ahead

BATCH = 256
RECENT_STATES = 1 << 14
FIRST_SLOT_BITS = 18
LOAD = 0.7
NEARLY_FULL = 0.9
STATES_AHEAD = 128 << 20
MAX_STATES = 2**kernel.ID_BITS - 2

U64 = np.dtype(np.uint64)

Positions = np.ndarray[Any, np.dtype[np.int64]]
Edges = tuple[Positions, np.ndarray[Any, np.dtype[np.int32]], Positions]
"""Steps between visited states: positions before, numbers of instances, positions after."""


class Partition:
    """One part of the visited set, of states of `width` 64-bit words with at most `successors` successors each.

    Memory: 8*width + 4 bytes a state, and 8 bytes a slot, with between 1.4 and 2.9 slots a state.
    """

    def __init__(self, width: int, instances: int, successors: int, memory: int) -> None:
        self.width = width
        self.memory = memory
        self._shape = (0,) * width
        self._successors = max(1, successors)
        self.capacity = self._reserve(memory)
        self._bits = FIRST_SLOT_BITS
        self._slots = np.zeros(1 << self._bits, U64)
        self._larger: np.ndarray[Any, Any] | None = None
        self._out = np.empty(BATCH * self._successors * (width + 1), U64)
        self._beside = self._out.nbytes + 8 * (RECENT_STATES * width + BATCH * self._successors)
        # No state has all bits set: see packing_of.
        self._recent = np.full(RECENT_STATES * width, 2**64 - 1, U64)
        self.hits = np.zeros(max(1, instances), np.int64)
        self.numbers = np.zeros(kernel.NUMBERS, np.int64)

    def _reserve(self, memory: int) -> int:
        """Reserves address space for as many states as the memory can hold; pages are used when touched.

        Raises MemoryError where there is not even some.
        """
        capacity = min(MAX_STATES, memory // (8 * self.width + 4 + round(8 / LOAD)))
        while True:
            try:
                self._states = np.empty(capacity * self.width, U64)
                self._parents = np.empty(capacity, np.uint32)
                self._ahead = (Ahead(self._states, STATES_AHEAD), Ahead(self._parents, STATES_AHEAD // 4))
                return capacity
            except MemoryError:
                if capacity < 1 << 16:
                    raise
                capacity //= 2

    @property
    def count(self) -> int:
        """States in the set."""
        return int(self.numbers[kernel.STATES])

    @property
    def cursor(self) -> int:
        """The first state that is not yet expanded."""
        return int(self.numbers[kernel.CURSOR])

    @property
    def transitions(self) -> int:
        """Successors met so far, duplicates included."""
        return int(self.numbers[kernel.TRANSITIONS])

    @property
    def event(self) -> tuple[int, int]:
        """The state and the instance that `advance` stopped at."""
        return int(self.numbers[kernel.EVENT_STATE]), int(self.numbers[kernel.EVENT_CODE])

    @property
    def deadlock(self) -> int | None:
        """The first state that has no step and is not terminal."""
        return int(self.numbers[kernel.STUCK_FIRST]) if self.stuck else None

    @property
    def stuck(self) -> int:
        """How many expanded states have no step and are not terminal."""
        return int(self.numbers[kernel.STUCK])

    @property
    def bytes_used(self) -> int:
        """Bytes of states, parent links and slots that are in use."""
        return self.count * (8 * self.width + 4) + self._slots.nbytes

    @property
    def address(self) -> int:
        """Where the packed states lie."""
        return self._states.ctypes.data

    def state(self, position: int) -> tuple[int, ...]:
        """The packed words of a state."""
        at = position * self.width
        return tuple(int(word) for word in self._states[at : at + self.width])

    def find(self, words: Sequence[int]) -> int | None:
        """The position of a state, or None if it is not in the set."""
        packed = np.array(words, U64)
        position = int(kernel.lookup(self._states, self._slots, self._shift, packed, self._shape))
        return None if position < 0 else position

    def path(self, position: int) -> list[int]:
        """Positions from an initial state to the given one, along parent links: a shortest path."""
        positions = [position]
        while int(self._parents[positions[-1]]) != positions[-1]:
            positions.append(int(self._parents[positions[-1]]))
        return positions[::-1]

    def edges(self, native: Native, positions: Positions) -> Edges:
        """The steps out of some states, as (position before, number of the instance, position after)."""
        room = len(positions) * self._successors
        sources, codes, targets = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
        made = kernel.edges(
            native.expand, self._states, self._slots, self._shift, self._shape, positions, self._out,
            sources, codes, targets,
        )  # fmt: skip
        return sources[:made].copy(), codes[:made].copy(), targets[:made].copy()

    def add_root(self, words: Sequence[int]) -> None:
        """Enters an initial state; it is its own parent. Raises DeclarationError if the memory is used up."""
        count = self.count
        if count >= int((1 << self._bits) * LOAD) and not self._grow():
            raise DeclarationError(f"{count:,} initial states do not fit into {self.memory:,} bytes")
        packed = np.array(words, U64)
        if kernel.insert(self._states, self._slots, self._shift, packed, self._shape, count) < 0:
            self._parents[count] = count
            self.numbers[kernel.STATES] += 1

    def advance(self, native: Native, until: int) -> int:
        """Expands states up to position `until`. Returns why it stopped, as kernel.FINISHED and so on.

        kernel.FULL means that the memory is used up; growing the table of slots happens in here.
        """
        self._get_memory_ready()
        while True:
            limit = min(self.capacity, int((1 << self._bits) * LOAD), self._room(self._slots.nbytes))
            reason = kernel.advance(
                native.expand, native.terminal, self._states, self._parents, self._slots, self._shift,
                self._shape, self._successors, until, limit, BATCH, self._out, self._recent, self.hits, self.numbers,
            )  # fmt: skip
            if reason != kernel.FULL or not self._grow():
                return int(reason)

    def _room(self, slots: int) -> int:
        """How many states fit into the memory beside so many bytes of slots."""
        return (self.memory - self._beside - slots) // (8 * self.width + 4)

    def _get_memory_ready(self) -> None:
        """Asks for the pages of the next states, and for the next table of slots when this one is nearly full."""
        count, room = self.count, self._room(self._slots.nbytes)
        for ahead, size in zip(self._ahead, (8 * self.width, 4), strict=True):
            ahead.use(count * size, room * size)
        if self._larger is None and count > int((1 << self._bits) * LOAD * NEARLY_FULL) and self._can_grow():
            with suppress(MemoryError):  # it is tried again when there is no other way
                self._larger = np.zeros(2 << self._bits, U64)
                Ahead(self._larger, self._larger.nbytes).use(PIECE, self._larger.nbytes)

    def _can_grow(self) -> bool:
        """Whether a larger table of slots would help, and there is memory for it beside this one."""
        full = int((1 << self._bits) * LOAD) < min(self.capacity, self._room(16 << self._bits))
        return full and self.count <= self._room(24 << self._bits)

    def _grow(self) -> bool:
        """Doubles the table of slots; False if that does not help or would need too much memory."""
        if not self._can_grow():
            return False
        try:
            larger = np.zeros(2 << self._bits, U64) if self._larger is None else self._larger
        except MemoryError:
            return False
        if not kernel.double(self._slots, larger, self._bits):
            larger[:] = 0
            kernel.enter(self._states, larger, np.uint64(63 - self._bits), self._shape, self.count)
        self._slots, self._larger = larger, None
        self._bits += 1
        return True

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - self._bits)
