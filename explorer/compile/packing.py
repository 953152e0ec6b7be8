"""Exact packing: each cell gets as many bits as its domain needs, and a state becomes a few 64-bit words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...protocol.language import DeclarationError, Layout

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
        """The words of a state; each value must be one that its place holds."""
        words = [0] * self.words
        for place, value in zip(self.places, values, strict=True):
            words[place.word] |= (value - place.lo) << place.shift
        return tuple(words)

    def holds(self, values: Sequence[int]) -> bool:
        """Whether each value is one that its cell's place can hold."""
        return all(0 <= value - place.lo < 1 << place.bits for place, value in zip(self.places, values, strict=True))

    def unpack(self, words: Sequence[int]) -> tuple[int, ...]:
        """The value of each cell."""
        return tuple(((int(words[place.word]) & place.mask) >> place.shift) + place.lo for place in self.places)


def packing_of(layout: Layout, constants: Mapping[int, int] = {}) -> Packing:
    """Puts each cell into the first word that has room for it. No cell spans two words.

    Cells named in `constants` take no bits: they hold the value that is given for them, and no other. Raises
    DeclarationError for another field without bound.
    The highest bit of the first word stays 0, so that a word of ones can stand for "no state" (visited.py).
    """
    used: list[int] = [0]
    places: list[Place] = []
    for position, cell in enumerate(layout.cells):
        if position not in constants and not cell.domain.bounded:
            raise DeclarationError(
                f"the field {cell.field} has no greatest value, and a search needs one; run the model, or prove it"
            )
        lo, bits = (constants[position], 0) if position in constants else (cell.domain.lo, cell.domain.bits)
        word = next((w for w, full in enumerate(used) if full + bits <= WORD - (w == 0)), len(used))
        if word == len(used):
            used.append(0)
        places.append(Place(word, used[word], bits, lo))
        used[word] += bits
    return Packing(tuple(places), len(used))
