"""Exact packing: each cell gets as many bits as its domain needs, and a state becomes a few 64-bit words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol.language import Layout

WORD = 64


@dataclass(frozen=True)
class Place:
    """Where a cell lies: its word, its lowest bit, how many bits, and the value that 0 stands for."""

    word: int
    shift: int
    bits: int
    lo: int

    @property
    def mask(self) -> int:
        """The cell's bits within its word."""
        return ((1 << self.bits) - 1) << self.shift


@dataclass(frozen=True)
class Packing:
    """The place of each cell, in cell order, and the number of words of a state (at least 1)."""

    places: tuple[Place, ...]
    words: int

    def pack(self, values: Sequence[int]) -> tuple[int, ...]:
        """The words of a state; the values must lie in their domains."""
        words = [0] * self.words
        for place, value in zip(self.places, values, strict=True):
            words[place.word] |= (value - place.lo) << place.shift
        return tuple(words)

    def unpack(self, words: Sequence[int]) -> tuple[int, ...]:
        """The value of each cell."""
        return tuple(((int(words[place.word]) & place.mask) >> place.shift) + place.lo for place in self.places)


def packing_of(layout: Layout) -> Packing:
    """Puts each cell into the first word that has room for it. No cell spans two words.

    The highest bit of the first word stays 0, so that a word of ones can stand for "no state" (visited.py).
    """
    used: list[int] = [0]
    places: list[Place] = []
    for cell in layout.cells:
        bits = cell.domain.bits
        word = next((w for w, full in enumerate(used) if full + bits <= WORD - (w == 0)), len(used))
        if word == len(used):
            used.append(0)
        places.append(Place(word, used[word], bits, cell.domain.lo))
        used[word] += bits
    return Packing(tuple(places), len(used))
