"""What a field may hold: the domains, and the index types whose sizes a model chooses."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn, cast

from .errors import DeclarationError, ModelFault

NONE = -1
"""The value of a `maybe` field that points at nothing."""

LARGEST_SIZE = 64
"""More of anything than this cannot be explored; a larger size is taken for a mistake."""

LARGEST_VALUE = 2**31 - 1

UNBOUNDED = 2**61
"""As the size of an index type: there is no bound. Such types only bound counters: `upto(Generation)`.

The number only marks such a size: a counter without bound goes on behind it, in every execution. A model with such a
size can be run directly, and proved; only a search needs bounds.
"""


class Index(int):
    """Base of index types. A subclass names one kind of thing that a model has a fixed number of.

    >>> class Room(Index):
    ...     "A transfer of one request."

    Values are 0 .. size-1. The model chooses the size: `Model(sizes={Room: 2})`.
    """

    @classmethod
    def label(cls, value: int, size: int) -> str:
        """How a value is shown: `room 0`. A subclass may say it better."""
        words = re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()
        return f"{words} {value}"


class Symbolic:
    """Base of the values that stand for numbers while a function is traced (explorer/compile/expression.py)."""

    __slots__ = ()


def is_number(value: object) -> bool:
    """Whether a value is one of the language's numbers: a whole number, a truth value, or what stands for one."""
    return isinstance(value, int | Symbolic)


def are_numbers(values: object) -> bool:
    """Whether something is a sequence of numbers. A range is one, and is not gone through."""
    if isinstance(values, range):
        return True
    return isinstance(values, Sequence) and all(map(is_number, cast("Sequence[object]", values)))


class NoValue:
    """Base of what is looked into, and has no value itself: tables, channels, messages."""

    def say_value(self) -> str:
        """What to name instead."""
        raise NotImplementedError

    def _no_value(self, *_: object) -> NoReturn:
        raise ModelFault(self.say_value())

    __bool__ = __int__ = __index__ = __iter__ = __len__ = __str__ = __format__ = _no_value
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_value
    __hash__ = None  # pyright: ignore[reportAssignmentType]


def index_of(place: object, name: str) -> int:
    """What a table or channel called `name` is indexed by. Raises DeclarationError for a slice, a text, None."""
    if not (is_number(place) or isinstance(place, NoValue)):
        raise DeclarationError(f"{name} is indexed by {place!r}; index it by whole numbers, one for each place")
    return operator.index(cast(int, place))


Sizes = Mapping[type[Index], int]
Bound = int | type[Index]


@dataclass(frozen=True)
class Domain:
    """The closed interval lo .. hi of integers, with a name for each value where there is one.

    A field begins at `start`: the lowest value, or 0 where a counter may also fall below it.
    """

    lo: int
    hi: int
    names: tuple[str, ...] = ()

    @property
    def start(self) -> int:
        """The value that a field of this domain begins with."""
        return self.lo if self.names else max(self.lo, min(0, self.hi))

    @property
    def bounded(self) -> bool:
        """Whether there is a greatest value."""
        return self.hi < UNBOUNDED

    @property
    def bits(self) -> int:
        """Bits that a packed value takes: 0 for a constant."""
        return (self.hi - self.lo).bit_length()

    def show(self, value: int) -> str:
        """A value as a reader wants to see it."""
        if self.names:
            return self.names[value - self.lo]
        return str(value)


@dataclass(frozen=True)
class DomainSpec:
    """A domain whose bounds may still be index types, resolved by `resolve` once sizes are known."""

    kind: str
    bound: Bound = 0
    low: int = 0
    names: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it has numbers beside 0 and 1, whatever the sizes are."""
        return self.kind == "range" and (self.low < 0 or (isinstance(self.bound, int) and self.bound > 1))

    def resolve(self, sizes: Sizes) -> Domain:
        """The concrete domain under a model's sizes. Raises DeclarationError for a missing size."""
        if self.kind != "range" and isinstance(self.bound, type):
            size = count_of(self.bound, sizes)
            labels = tuple(self.bound.label(value, size) for value in range(size))
            return Domain(NONE, size - 1, ("none", *labels)) if self.kind == "maybe" else Domain(0, size - 1, labels)
        return Domain(self.low, size_of(self.bound, sizes), self.names)


def size_of(bound: Bound, sizes: Sizes) -> int:
    """The number behind a bound: itself, or the model's size of an index type."""
    if isinstance(bound, int):
        return bound
    if bound not in sizes:
        raise DeclarationError(f"no size is given for {bound.__name__}; add it to the model's sizes")
    return sizes[bound]


def count_of(index: type[Index], sizes: Sizes) -> int:
    """How many of an index type there are. Raises DeclarationError if there is no end of them."""
    size = size_of(index, sizes)
    if size == UNBOUNDED:
        raise DeclarationError(f"{index.__name__} is without bound here; it can bound counters, and nothing else")
    return size


def check_sizes(sizes: Sizes) -> None:
    """Raises DeclarationError for a size that is neither UNBOUNDED nor a whole number from 1 to LARGEST_SIZE."""
    for index, size in sizes.items():
        _index_type(index)
        if not _whole(size) or (not 1 <= size <= LARGEST_SIZE and size != UNBOUNDED):
            raise DeclarationError(
                f"size of {index.__name__} is {size!r}; allowed are whole numbers from 1 to {LARGEST_SIZE}, "
                "and UNBOUNDED"
            )


flag = DomainSpec("range", 1, names=("no", "yes"))
"""A truth value, 0 or 1."""


def upto(bound: Bound) -> DomainSpec:
    """A counter 0 .. bound. With an index type: 0 .. how many of them the model has."""
    _check_bound(f"upto({bound!r})", bound, 0)
    return DomainSpec("range", bound)


def between(low: int, bound: Bound) -> DomainSpec:
    """A counter low .. bound that begins at 0 where it can. With an index type: .. how many of them there are."""
    where = f"between({low!r}, {bound!r})"
    if not _whole(low) or abs(low) > LARGEST_VALUE:
        raise DeclarationError(f"{where}: the lower bound must be a whole number, at most {LARGEST_VALUE} from 0")
    _check_bound(where, bound, low)
    return DomainSpec("range", bound, low)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_bound(where: str, bound: Any, low: int) -> None:
    if isinstance(bound, type):
        _index_type(cast(type[Index], bound))
    elif not _whole(bound) or not low <= bound <= LARGEST_VALUE:
        raise DeclarationError(
            f"{where}: the bound must be an index type or a whole number in {low} .. {LARGEST_VALUE}"
        )


def maybe(index: type[Index]) -> DomainSpec:
    """An index, or NONE."""
    return DomainSpec("maybe", _index_type(index))


DomainLike = DomainSpec | type[Index] | type[IntEnum]


def as_domain(like: DomainLike, where: str) -> DomainSpec:
    """The domain meant by a declaration: a DomainSpec, an index type, or an IntEnum counted from 0."""
    if isinstance(like, DomainSpec):
        return like
    if isinstance(like, type) and issubclass(like, Index):  # pyright: ignore[reportUnnecessaryIsInstance]
        return DomainSpec("index", _index_type(like))
    if isinstance(like, type) and issubclass(like, IntEnum):  # pyright: ignore[reportUnnecessaryIsInstance]
        members = list(like)
        if [m.value for m in members] != list(range(len(members))):
            raise DeclarationError(f"{where}: {like.__name__} must number its members 0, 1, 2, ... in order")
        names = tuple(m.name.lower().replace("_", " ") for m in members)
        return DomainSpec("range", len(members) - 1, names=names)
    raise DeclarationError(
        f"{where}: {like!r} is no domain; use an Index type, an IntEnum, flag, upto(...) or maybe(...)"
    )


def _index_type(index: type[Index]) -> type[Index]:
    if not (isinstance(index, type) and issubclass(index, Index)) or index is Index:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DeclarationError(f"{index!r} is no index type; subclass Index to name what is counted")
    return index
