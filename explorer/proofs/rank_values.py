"""What is known of values when code is read for all numbers of ranks at once (rank_form.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from ...protocol.language.sources import Syntax


@dataclass(frozen=True)
class Known:
    """A plain value, the same in every model of the family."""

    value: Any


@dataclass(frozen=True)
class Data:
    """A number that the state decides: what is shared, and what the rank in hand keeps. `truth`: it is 0 or 1."""

    truth: bool = False


@dataclass(frozen=True)
class Items:
    """A sequence of so many values."""

    values: tuple[Abstract, ...]


@dataclass(frozen=True)
class Many:
    """A sequence of nobody knows how many values that are alike."""

    each: Abstract


@dataclass(frozen=True)
class Table:
    """The cells or channels of a name, before an index says which."""

    name: str


@dataclass(frozen=True)
class Wire:
    """One channel. `shared`: it belongs to no rank."""

    name: str
    shared: bool


@dataclass(frozen=True, eq=False)
class Code:
    """A lambda, with the frame that it was written in."""

    node: ast.Lambda
    frame: Frame


@dataclass(frozen=True, eq=False)
class Generated:
    """A call of a generator function, which runs where it is looped over."""

    called: Callable[..., Any]
    arguments: Mapping[str, Abstract]


class Mark(Enum):
    """Values of which nothing more is to be said."""

    STATE = "the state"
    RANK = "the rank in hand: the acting one, or that of the loop"
    RANKS = "all ranks"
    MESSAGE = "a message"
    GATHERING = "a condition that a loop over ranks gathers"
    UNSETTLED = "what may differ from rank to rank, or from path to path"


Abstract: TypeAlias = "Known | Data | Items | Many | Table | Wire | Code | Generated | Mark"

Env: TypeAlias = "dict[str, Abstract]"


@dataclass
class Loop:
    """A loop that is being walked: over ranks or not, and how its names stand where it is left or begun anew."""

    ranks: bool
    breaks: list[Env] = field(default_factory=list["Env"])
    continues: list[Env] = field(default_factory=list["Env"])


@dataclass
class Frame:
    """A call that is being walked."""

    syntax: Syntax
    names: Mapping[str, Any]
    env: Env
    loops: list[Loop] = field(default_factory=list[Loop])
    returns: list[Abstract] = field(default_factory=list["Abstract"])
    on_yield: Callable[[Abstract], None] | None = None


def join(a: Abstract, b: Abstract) -> Abstract:
    """What is known of a value that is one of two."""
    if a is b or (isinstance(a, Known) and isinstance(b, Known) and _same(a.value, b.value)):
        return a
    if is_number(a) and is_number(b):
        return Data(is_truth(a) and is_truth(b))
    if isinstance(a, Items) and isinstance(b, Items) and len(a.values) == len(b.values):
        return Items(tuple(map(join, a.values, b.values)))
    return a if a == b and isinstance(a, Wire | Table) else Mark.UNSETTLED


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | str | range | tuple) and a == b)


def is_number(value: Abstract) -> bool:
    """Whether a value is a number, known or of the state."""
    return isinstance(value, Data) or (isinstance(value, Known) and isinstance(value.value, int))


def is_truth(value: Abstract) -> bool:
    """Whether a value is 0 or 1."""
    return (isinstance(value, Data) and value.truth) or (isinstance(value, Known) and value.value in (0, 1))


def merge(envs: Sequence[Env]) -> Env:
    """What is known of names where several paths meet."""
    merged = dict(envs[0])
    for env in envs[1:]:
        for name in merged.keys() | env.keys():
            merged[name] = join(merged.get(name, Mark.UNSETTLED), env.get(name, Mark.UNSETTLED))
    return merged
