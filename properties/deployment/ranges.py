"""A number that is only known to lie between two others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, both included; a known number has both ends equal."""

    low: Fraction
    high: Fraction

    @classmethod
    def exactly(cls, value: Fraction | int) -> Range:
        """The range of one number."""
        return cls(Fraction(value), Fraction(value))

    @property
    def known(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high
