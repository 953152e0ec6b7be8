"""The state of a model: fields declared once, with shape, domain and meaning, and read like variables.

    class Drain(State):
        hold = field(flag, Room, means="the decode scheduler keeps the room's slots back")
        owner = ghost(maybe(Room), Slot, means="the room that may use this slot")

An action then writes `s.hold[room] = True`. The same code runs on Python ints and on the symbolic values of
the tracer, since nothing here looks inside a value: it is compared, and the comparison decides.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from functools import cached_property
from itertools import product
from typing import Any, Generic, Protocol, TypeVar, cast, overload

from .domain import (
    Domain,
    DomainLike,
    DomainSpec,
    Index,
    NoValue,
    Sizes,
    are_numbers,
    as_domain,
    check_sizes,
    count_of,
    index_of,
    is_number,
)
from .errors import AccessFault, DeclarationError, DomainFault, GhostFault, IndexFault, ModelFault

_TAKEN = frozenset({"layout", "knobs", "values", "access", "events", "choices", "choice_names", "labels"})
"""Attributes of State objects, which no field may be called."""

K = TypeVar("K")
I = TypeVar("I", bound=Index)  # noqa: E741 - the index type of `all` and `choose`


class Access(Enum):
    """Whose code is running, which decides what it may touch."""

    PROTOCOL = "protocol code"
    GHOST = "ghost code"
    PROPERTY = "a property"


class FieldSpec:
    """A declared field before sizes are known. Do not build it directly: use `field` or `ghost`."""

    def __init__(self, domain: DomainLike, shape: tuple[type[Index], ...], means: str, ghost: bool) -> None:
        self.name = ""
        self.shape = shape
        self.means = means
        self.ghost = ghost
        self._domain = domain
        self.domain = DomainSpec("range")

    def declare(self, owner: type, name: str) -> None:
        """Takes the name it is declared under. Raises DeclarationError if something about it is wrong."""
        where = f"{owner.__name__}.{name}"
        check_name(where, name)
        check_shape(where, self.shape)
        if not self.means.strip():
            raise DeclarationError(f"{where}: say in one line what the field means (means=...)")
        self.name = name
        self.domain = as_domain(self._domain, where)


def check_name(where: str, name: str) -> None:
    """Raises DeclarationError for a name that State objects use themselves."""
    if name.startswith("_") or name in _TAKEN or hasattr(State, name):
        raise DeclarationError(f"{where}: this name is taken by the language; choose another")


def check_shape(where: str, shape: tuple[object, ...]) -> None:
    """Raises DeclarationError unless a shape consists of index types."""
    for index in shape:
        if not (isinstance(index, type) and issubclass(index, Index) and index is not Index):
            raise DeclarationError(f"{where}: the shape takes index types, not {index!r}")


class Scalar(FieldSpec):
    """A field with one value."""

    def __get__(self, state: State[Any] | None, owner: type) -> int:
        if state is None:
            return cast(int, self)
        return state.read(state.layout.base[self.name])

    def __set__(self, state: State[Any], value: int) -> None:
        state.write(state.layout.base[self.name], value)


class Table(FieldSpec):
    """A field with one value for each index of its shape."""

    def __get__(self, state: State[Any] | None, owner: type) -> Cells:
        if state is None:
            return cast(Cells, self)
        return Cells(state, state.layout.tables[self.name])

    def __set__(self, state: State[Any], value: object) -> None:
        raise ModelFault(f"{self.name} is a table; assign one of its elements")


@overload
def field(domain: DomainLike, /, *, means: str) -> Scalar: ...
@overload
def field(domain: DomainLike, first: type[Index], /, *more: type[Index], means: str) -> Table: ...
def field(domain: DomainLike, /, *shape: type[Index], means: str) -> Scalar | Table:
    """Declares a field of the protocol: its domain, its shape (index types), and what it means.

    It begins at 0, NONE, or the first member of the enumeration.
    """
    return Table(domain, shape, means, False) if shape else Scalar(domain, shape, means, False)


@overload
def ghost(domain: DomainLike, /, *, means: str) -> Scalar: ...
@overload
def ghost(domain: DomainLike, first: type[Index], /, *more: type[Index], means: str) -> Table: ...
def ghost(domain: DomainLike, /, *shape: type[Index], means: str) -> Scalar | Table:
    """Declares a field that no implementation has. Properties read it; protocol code may only write it."""
    return Table(domain, shape, means, True) if shape else Scalar(domain, shape, means, True)


@dataclass(frozen=True)
class Cell:
    """One value of the state: an element of a field, under a model's sizes."""

    field: str
    index: tuple[int, ...]
    domain: Domain
    ghost: bool

    @property
    def name(self) -> str:
        """`owner[2]`, or `bad` for a scalar."""
        return self.field + ("[" + ",".join(map(str, self.index)) + "]" if self.index else "")


@dataclass(frozen=True)
class TableShape:
    """Where a table's cells lie in the flat state, and how long each dimension is."""

    name: str
    base: int
    shape: tuple[type[Index], ...]
    lengths: tuple[int, ...]

    @cached_property
    def _positions(self) -> Mapping[int | tuple[int, ...], int]:
        """The flat position of each element, as most code asks for it."""
        grid = enumerate(product(*map(range, self.lengths)), self.base)
        return {at[0] if len(at) == 1 else at: position for position, at in grid}

    def locate(self, key: int | tuple[int, ...]) -> int:
        """The flat position of an element. Raises IndexFault outside the shape."""
        try:
            return self._positions[key]
        except (KeyError, TypeError):  # not there, or a symbolic value, which no dictionary takes
            return self._locate(key)

    def _locate(self, key: int | tuple[int, ...]) -> int:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.lengths):
            raise IndexFault(f"{self.name} takes {len(self.lengths)} indices, not {len(keys)}")
        position = 0
        for at, length, kind in zip(keys, self.lengths, self.shape, strict=True):
            i = index_of(at, self.name)
            if not 0 <= i < length:
                raise IndexFault(f"{self.name} has no element at {kind.__name__} {i} (it has 0 .. {length - 1})")
            position = position * length + i
        return self.base + position


@dataclass(frozen=True)
class Layout:
    """A state class under sizes: the flat list of cells, and where each field begins."""

    sizes: Sizes
    cells: tuple[Cell, ...]
    base: Mapping[str, int]
    tables: Mapping[str, TableShape]
    channels: Mapping[str, Any] = dataclass_field(default_factory=dict[str, Any])

    @cached_property
    def ghosts(self) -> tuple[bool, ...]:
        """Whether each cell is one of a ghost field."""
        return tuple(cell.ghost for cell in self.cells)

    @cached_property
    def prompt_channels(self) -> tuple[Any, ...]:
        """The channels that deliver before anything else happens."""
        return tuple(channel for channel in self.channels.values() if channel.prompt)

    @property
    def initial(self) -> list[int]:
        """Every field at the value that its domain begins with, in cell order."""
        return [cell.domain.start for cell in self.cells]


def lay_out(state_class: type[State[Any]], sizes: Sizes, budgets: Mapping[str, Any] | None = None) -> Layout:
    """Binds a state class to sizes. `budgets` holds the faults of each channel (see channel.py).

    Raises DeclarationError for a missing, zero or absurd size, or a budget for a channel that is not there.
    """
    check_sizes(sizes)
    cells: list[Cell] = []
    base: dict[str, int] = {}
    tables: dict[str, TableShape] = {}
    channels: dict[str, Any] = {}

    def place(spec: FieldSpec) -> None:
        lengths = tuple(count_of(index, sizes) for index in spec.shape)
        domain = spec.domain.resolve(sizes)
        base[spec.name] = len(cells)
        if spec.shape:
            tables[spec.name] = TableShape(spec.name, len(cells), spec.shape, lengths)
        cells.extend(Cell(spec.name, at, domain, spec.ghost) for at in _grid(lengths))

    unused = dict(budgets or {})
    for name in _declared(state_class):
        spec = getattr(state_class, name)
        if isinstance(spec, FieldSpec):
            place(spec)
        else:
            channel_fields, channels[name] = spec.bind(sizes, unused.pop(name, None))
            for part in channel_fields:
                place(part)
    if unused:
        known = ", ".join(channels) or "none"
        raise DeclarationError(f"faults are given for {', '.join(unused)}; the channels are: {known}")
    return Layout(sizes, tuple(cells), base, tables, channels)


def _declared(state_class: type[State[Any]]) -> list[str]:
    """Names of fields and channels, base classes first, in the order they are written."""
    names: dict[str, None] = {}
    for base in reversed(state_class.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, FieldSpec) or hasattr(value, "bind"):
                names[name] = None
    if not names:
        raise DeclarationError(f"{state_class.__name__} declares no field")
    return list(names)


def _grid(lengths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not lengths:
        yield ()
        return
    for i in range(lengths[0]):
        for rest in _grid(lengths[1:]):
            yield (i, *rest)


Chooser = Callable[[int], int]


def no_choice(options: int) -> int:
    """The chooser of code that may not choose."""
    raise ModelFault("choose() may be used in actions and initial states only")


class Labelled(int):
    """A value that remembers how it is shown. A state with `labels` set gives these, for messages."""

    label: str

    def __new__(cls, value: int, label: str) -> Labelled:
        made = super().__new__(cls, value)
        made.label = label
        return made


@dataclass(frozen=True)
class Event:
    """What a step did to a channel: `kind` is send, receive, remove, duplicate or swap.

    `parts` are those of the message, or its place in the channel for the last three.
    """

    kind: str
    channel: str
    key: tuple[int, ...]
    parts: Mapping[str, int]


class Store(Protocol):
    """Where a state object keeps its values, by position: a list, or something that notes what is looked at."""

    def __getitem__(self, position: int, /) -> int:
        """The value of a cell."""
        ...

    def __setitem__(self, position: int, value: int, /) -> None:
        """Sets a cell."""
        ...

    def __iter__(self) -> Iterator[int]:
        """The values in order."""
        ...


class State(Generic[K]):
    """Base of state classes. An instance is one state that an action or property looks at and changes."""

    layout: Layout
    knobs: K
    values: Store
    access: Access
    events: list[Event]
    choices: list[int]
    choice_names: list[str]
    labels: bool
    _chooser: Chooser

    def __init_subclass__(cls) -> None:
        # Not in __set_name__: Python 3.11 wraps what is raised there.
        for name, value in list(vars(cls).items()):
            if isinstance(value, FieldSpec) or hasattr(value, "bind"):
                value.declare(cls, name)

    def __init__(
        self,
        layout: Layout,
        values: Store,
        knobs: K,
        chooser: Chooser = no_choice,
        access: Access = Access.PROTOCOL,
    ) -> None:
        # All at once, past the check of names below: a state is made for every step that is tried.
        vars(self).update(
            layout=layout, knobs=knobs, values=values, access=access, events=[], choices=[], choice_names=[],
            labels=False, _chooser=chooser,
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _TAKEN and not name.startswith("_") and not hasattr(type(self), name):
            raise ModelFault(f"{type(self).__name__} declares no field {name}, which is assigned")
        super().__setattr__(name, value)

    def all(self, index: type[I]) -> Sequence[I]:
        """Every index of a type, in order: `for slot in s.all(Slot)`."""
        return cast(Sequence[I], range(count_of(index, self.layout.sizes)))

    def size(self, index: type[Index]) -> int:
        """How many of a type the model has; UNBOUNDED if it has no end of them."""
        return self.layout.sizes[index]

    @overload
    def choose(self, options: type[I]) -> I: ...
    @overload
    def choose(self, options: Sequence[int]) -> int: ...
    def choose(self, options: type[I] | Sequence[int]) -> I | int:
        """Nondeterministic choice: every option is explored, each as a transition of its own."""
        if self.access is Access.GHOST:
            raise GhostFault("ghost code may not choose")
        if self.access is Access.PROPERTY:
            raise DeclarationError("a property or predicate may not choose")
        values = self.all(options) if isinstance(options, type) else options
        if not are_numbers(values):
            raise DeclarationError("choose() takes an index type, or a sequence of whole numbers")
        if not values:
            raise ModelFault("choose() was given no option")
        value = values[self._chooser(len(values))]
        self.choices.append(int(value))
        name = value.name.lower().replace("_", " ") if isinstance(value, Enum) else str(int(value))
        self.choice_names.append(name)
        return value

    def read(self, position: int) -> int:
        """The value of a cell. Raises GhostFault if protocol code reads a ghost."""
        if self.access is Access.PROTOCOL and self.layout.ghosts[position]:
            raise GhostFault(
                f"protocol code reads the ghost field {self.layout.cells[position].field}; "
                "only properties and functions marked @ghost_code may"
            )
        value = self.values[position]
        return Labelled(value, self.layout.cells[position].domain.show(value)) if self.labels else value

    def write(self, position: int, value: int) -> None:
        """Sets a cell. Raises DomainFault for a value outside its domain."""
        cell = self.layout.cells[position]
        if self.access is Access.PROPERTY:
            raise AccessFault(f"a property may not change the state; it assigns {cell.name}")
        if self.access is Access.GHOST and not cell.ghost:
            raise GhostFault(f"ghost code assigns {cell.name}, which is no ghost field")
        if not is_number(value):
            raise ModelFault(f"{cell.name} is assigned {value!r}, which is no whole number")
        lo, hi = cell.domain.lo, cell.domain.hi
        if not lo <= value or (cell.domain.bounded and not value <= hi):
            most = hi if cell.domain.bounded else "any number"
            raise DomainFault(f"{cell.name} may hold {lo} .. {most}; {_show(value)} was assigned")
        # The tracer's values stay as they are; a bool or an enumeration member becomes its number.
        self.values[position] = int(value) if isinstance(value, int) else value  # pyright: ignore[reportUnnecessaryIsInstance]

    @contextmanager
    def accessing(self, access: Access) -> Generator[None]:
        """Runs a block with other rights, and restores the rights after it."""
        before, self.access = self.access, access
        try:
            yield
        finally:
            self.access = before


def _show(value: int) -> str:
    return str(int(value)) if isinstance(value, int) else "another value"  # pyright: ignore[reportUnnecessaryIsInstance]


class Cells(NoValue):
    """A table seen through a state: `s.owner[slot]`."""

    __slots__ = ("_shape", "_state")

    def __init__(self, state: State[Any], shape: TableShape) -> None:
        self._state = state
        self._shape = shape

    def __getitem__(self, key: int | tuple[int, ...]) -> int:
        return self._state.read(self._shape.locate(key))

    def say_value(self) -> str:
        """See NoValue."""
        return f"{self._shape.name} is a table, and has no value; name one of its elements"

    def __setitem__(self, key: int | tuple[int, ...], value: int) -> None:
        self._state.write(self._shape.locate(key), value)
