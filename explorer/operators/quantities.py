"""Numbers with units, as people write them on a command line: `30`, `30s`, `37.5kB`, `1..6/min`, `5%`.

A unit that could mean two things is refused: K may be 1,000 or 1,024, m a minute or a thousandth. A number without a
unit has the unit of its option's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import click

from ...properties.deployment.ranges import Range
from ...protocol.language.errors import DraincheckError

NUMBER = re.compile(r"[+-]?[0-9]+(_[0-9]+)*(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
"""A number without a unit; short exponents only, so that no number is too large to write down."""
LARGEST = Fraction(10**18)
LONGEST = 60
"""Characters of a quantity."""

_BYTES = {f"{prefix}B": Fraction(1000) ** power for power, prefix in enumerate(("", "k", "M", "G", "T"))} | {
    f"{prefix}iB": Fraction(1024) ** power for power, prefix in enumerate(("K", "M", "G", "T"), 1)
}
_DECIMAL_OR_BINARY = "could be a power of 1,000 or of 1,024"


class QuantityError(DraincheckError):
    """A number, unit or range that cannot be read, or is not allowed where it stands."""


@dataclass(frozen=True)
class Kind:
    """What a number counts: how it is called, its units with their factors, and what is allowed."""

    name: str
    units: Mapping[str, Fraction]
    whole: bool = False
    largest: Fraction = LARGEST
    ambiguous: Mapping[str, str] = field(default_factory=dict[str, str])
    """Units that people write and that mean two things, with what they could mean."""


SECONDS = Kind(
    "seconds",
    {
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "ms": Fraction(1, 1000),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
    },
    ambiguous={"m": "could be minutes or milliseconds"},
)
PER_MINUTE = Kind(
    "aborts per minute",
    {"/s": Fraction(60), "/min": Fraction(1), "/h": Fraction(1, 60)},
    ambiguous={"/m": "could be per minute or per millisecond"},
)
TOKENS = Kind(
    "tokens",
    {"Ki": Fraction(1024), "Mi": Fraction(1024**2)},
    whole=True,
    ambiguous=dict.fromkeys(("k", "K", "m", "M"), _DECIMAL_OR_BINARY),
)
BYTES = Kind(
    "bytes",
    _BYTES,
    ambiguous={
        **dict.fromkeys(("K", "k", "M", "G", "T", "KB"), _DECIMAL_OR_BINARY),
        **dict.fromkeys(("b", "kb", "Kb", "mb", "Mb", "gb", "Gb", "tb", "Tb"), "could be bits"),
    },
)
BYTES_PER_SECOND = Kind(
    "bytes per second",
    {f"{unit}/s": factor for unit, factor in _BYTES.items()},
    ambiguous={f"{unit}/s": meaning for unit, meaning in BYTES.ambiguous.items()},
)
TOKENS_PER_SECOND = Kind("tokens per second", {"/s": Fraction(1)})
SHARE = Kind("a share from 0 to 1, or per cent", {"%": Fraction(1, 100)}, largest=Fraction(1))


def number(text: str) -> Fraction:
    """The number that a text without a unit writes, exactly. Raises QuantityError."""
    if len(text) > LONGEST or not NUMBER.fullmatch(text):
        raise QuantityError(f"{_shown(text)} is not a number")
    return Fraction(text)


def quantity(text: str, kind: Kind, *, zero: bool = False) -> Fraction:
    """A number with or without a unit, in the kind's first unit. Raises QuantityError for what is not allowed."""
    if ".." in text:
        raise QuantityError(f"{_shown(text)} is a range; give one number ({kind.name})")
    value = _in_unit(text.strip(), kind)
    if value < 0 or (value == 0 and not zero):
        least = "0 or more" if zero else "greater than 0"
        raise QuantityError(f"{_shown(text)} is not allowed; it must be {least} ({kind.name})")
    if value > kind.largest:
        raise QuantityError(f"{_shown(text)} is too large; the most is {float(kind.largest):g} ({kind.name})")
    if kind.whole and value.denominator != 1:
        raise QuantityError(f"{_shown(text)} is not a whole number of {kind.name}")
    return value


def span(text: str, kind: Kind, *, zero: bool = False) -> Range:
    """A quantity, or a range `low..high` of them. Raises QuantityError for a range that is empty or half named."""
    low_text, dots, high_text = text.partition("..")
    low = quantity(low_text, kind, zero=zero)
    if not dots:
        return Range(low, low)
    high = quantity(high_text, kind, zero=zero)
    if low != 0 and bool(_unit(low_text)) != bool(_unit(high_text)):  # 0 is the same in every unit
        raise QuantityError(f"{_shown(text)} has a unit at one end only; write it at both")
    if low > high:
        raise QuantityError(f"{_shown(text)} begins above its end; write the smaller number first")
    return Range(low, high)


def _in_unit(text: str, kind: Kind) -> Fraction:
    match = NUMBER.match(text)
    if not match or len(text) > LONGEST:
        raise QuantityError(f"{_shown(text)} is not a number ({kind.name}{_units_words(kind)})")
    unit = _unit(text)
    if not unit:
        return Fraction(match.group())
    if meaning := kind.ambiguous.get(unit):
        raise QuantityError(f"{_shown(text)}: {unit} {meaning}; write the number out, or with{_units_words(kind, '')}")
    if unit not in kind.units:
        raise QuantityError(f"{_shown(text)}: no unit {_shown(unit)} here ({kind.name}{_units_words(kind)})")
    return Fraction(match.group()) * kind.units[unit]


def _unit(text: str) -> str:
    text = text.strip()
    match = NUMBER.match(text)
    return text[match.end() :].strip() if match else ""


def _units_words(kind: Kind, before: str = ", with or without a unit:") -> str:
    return f"{before} {', '.join(kind.units)}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 3] + "...")


@dataclass(frozen=True)
class WorkingSet:
    """Memory that others need: a number of tokens, or a share of the pool; the other one is None."""

    tokens: Range | None
    share: Range | None


def working_set(text: str) -> WorkingSet:
    """`400000`, `300000..400000`, `60%`. A share needs its %: 1 would be a token, or everything."""
    if "%" in text:
        return WorkingSet(None, span(text, SHARE, zero=True))
    try:
        return WorkingSet(span(text, TOKENS, zero=True), None)
    except QuantityError as error:
        raise QuantityError(f"{error}; give tokens as 400000, or a share of the pool as 60%") from None


class _OptionType(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """What the types of options below share; an error names the option."""

    def read(self, text: str) -> Any:
        """The value that the text of the option writes."""
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads the text of the option. Raises QuantityError."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except QuantityError as error:
            raise QuantityError(f"{param.opts[0] if param else 'value'}: {error}") from None


class Quantity(_OptionType):
    """One number, as a Fraction."""

    def __init__(self, kind: Kind, *, zero: bool = False) -> None:
        self.name = "number"
        self._kind, self._zero = kind, zero

    def read(self, text: str) -> Any:
        """The number in the kind's first unit."""
        return quantity(text, self._kind, zero=self._zero)


class Span(Quantity):
    """A number or a range of numbers, as a Range."""

    def __init__(self, kind: Kind, *, zero: bool = False) -> None:
        super().__init__(kind, zero=zero)
        self.name = "number|low..high"

    def read(self, text: str) -> Any:
        """The range, of one number if it is one."""
        return span(text, self._kind, zero=self._zero)


class WorkingSetType(_OptionType):
    """Tokens, or a share of the pool in per cent, as a WorkingSet."""

    name = "tokens|share%"

    def read(self, text: str) -> Any:
        """The working set."""
        return working_set(text)
