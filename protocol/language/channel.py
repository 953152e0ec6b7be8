"""Bounded FIFO channels of typed messages, with budgets for loss, duplication and reordering.

    class Note(Message):
        kind = part(NoteKind)
        room = part(Room)

    class Drain(State):
        to_prefill = channel(Note, PrefillRank, capacity=3, means="control socket, decode to prefill")

    s.to_prefill[rank].send(kind=NoteKind.ABORT, room=room)
    note = s.to_prefill[rank].receive()            # disabled while the channel is empty

A message waits as long as it likes, so delay is always included; `prompt=True` declares a channel without it:
nothing else happens in the model until the message has been received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import index as as_index
from typing import Any, Generic, TypeVar, cast

from .action import Action, require
from .domain import Domain, DomainLike, DomainSpec, Index, NoValue, Sizes, Symbolic, as_domain, index_of, upto
from .errors import ChannelFault, DeclarationError, IndexFault, ModelFault
from .state import Event, Layout, Scalar, State, Table, check_name, check_shape

M = TypeVar("M", bound="Message")
MAX_CAPACITY = 4096
"""A larger channel is taken for a mistake. What can be traced is far smaller (see the tracer)."""
Capacity = int | Callable[[Sizes], int]


@dataclass(frozen=True)
class Faults:
    """How often in one run a channel may lose, duplicate or reorder (swap two neighbours) a message."""

    loss: int = 0
    duplication: int = 0
    reordering: int = 0

    def __post_init__(self) -> None:
        for kind in ("loss", "duplication", "reordering"):
            budget = getattr(self, kind)
            if isinstance(budget, bool) or not isinstance(budget, int) or not 0 <= budget <= 64:
                raise DeclarationError(f"fault budget {kind}={budget!r}: allowed are whole numbers from 0 to 64")


class Part:
    """A value that a message carries. Use `part`."""

    def __init__(self, domain: DomainLike) -> None:
        self._domain = domain
        self.domain = DomainSpec("range")
        self.name = ""

    def declare(self, owner: type, name: str) -> None:
        """Takes the name it is declared under."""
        if name == "parts":
            raise DeclarationError(f"{owner.__name__}.parts: this name is taken by the language; choose another")
        self.name = name
        self.domain = as_domain(self._domain, f"{owner.__name__}.{name}")

    def __get__(self, message: Message | None, owner: type) -> int:
        return cast(int, self) if message is None else message.parts[self.name]


def part(domain: DomainLike) -> Part:
    """Declares a value that a message carries, with its domain."""
    return Part(domain)


class Message(NoValue):
    """Base of message types; an instance is a received message. `parts` maps each name to its value."""

    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            if isinstance(value, Part):
                value.declare(cls, name)

    def __init__(self, parts: dict[str, int]) -> None:
        self.parts = parts

    def say_value(self) -> str:
        """See NoValue."""
        return f"a {type(self).__name__} has no value; name one of its parts"


class ChannelSpec(Generic[M]):
    """A declared channel before sizes are known. Use `channel`."""

    def __init__(
        self, message: type[M], shape: tuple[type[Index], ...], capacity: Capacity, prompt: bool, means: str
    ) -> None:
        self.message = message
        self.shape = shape
        self.capacity = capacity
        self.prompt = prompt
        self.means = means
        self.name = ""
        declared = {name: value for base in reversed(message.__mro__) for name, value in vars(base).items()}
        self.parts = tuple(value for value in declared.values() if isinstance(value, Part))

    def declare(self, owner: type, name: str) -> None:
        """Takes the name it is declared under. Raises DeclarationError if something about it is wrong."""
        where = f"{owner.__name__}.{name}"
        check_name(where, name)
        check_shape(where, self.shape)
        if not self.means.strip():
            raise DeclarationError(f"{where}: say in one line what the channel is (means=...)")
        if not self.parts:
            raise DeclarationError(f"{where}: {self.message.__name__} carries nothing; give it a part(...)")
        if not callable(self.capacity):
            _check_capacity(where, self.capacity)
        self.name = name

    def __get__(self, state: State[Any] | None, owner: type) -> Channels[M]:
        if state is None:
            return cast("Channels[M]", self)
        return Channels(state, state.layout.channels[self.name])

    def __set__(self, state: State[Any], value: object) -> None:
        raise ModelFault(f"{self.name} is a channel; send into it, or receive from it")

    def bind(self, sizes: Sizes, faults: Faults | None) -> tuple[list[Table | Scalar], BoundChannel[M]]:
        """The fields that hold the channel, and what is needed to use them."""
        faults = faults or Faults()
        if self.prompt and faults != Faults():
            raise DeclarationError(f"{self.name}: a prompt channel delivers at once, and takes no fault budget")
        capacity = self.capacity(sizes) if callable(self.capacity) else self.capacity
        _check_capacity(self.name, capacity)
        fields: list[Table | Scalar] = []

        def add(
            kind: type[Table] | type[Scalar], suffix: str, domain: DomainLike, shape: tuple[type[Index], ...]
        ) -> None:
            spec = kind(domain, shape, self.means, False)
            spec.name = f"{self.name}.{suffix}"
            spec.domain = as_domain(domain, spec.name)
            fields.append(spec)

        vector = Table if self.shape else Scalar
        add(vector, "length", upto(capacity), self.shape)
        for place in range(capacity):
            for each in self.parts:
                add(vector, f"{place}.{each.name}", each.domain, self.shape)
        for kind in ("loss", "duplication", "reordering"):
            if getattr(faults, kind):
                add(Scalar, f"{kind}_used", upto(getattr(faults, kind)), ())
        parts = {each.name: each.domain.resolve(sizes) for each in self.parts}
        return fields, BoundChannel(self.name, self.message, self.shape, capacity, self.prompt, parts, faults)


def _check_capacity(where: str, capacity: int) -> None:
    whole = isinstance(capacity, int) and not isinstance(capacity, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or not 1 <= capacity <= MAX_CAPACITY:
        raise DeclarationError(f"{where}: capacity is {capacity}; allowed are whole numbers from 1 to {MAX_CAPACITY}")


def channel(
    message: type[M], /, *shape: type[Index], capacity: Capacity, means: str, prompt: bool = False
) -> ChannelSpec[M]:
    """Declares a FIFO channel, or one for each index of `shape`, that holds at most `capacity` messages.

    The capacity may be a function of the model's sizes. Sending into a full channel is a fault that names the
    channel, never a silent wait or drop.
    """
    return ChannelSpec(message, shape, capacity, prompt, means)


@dataclass(frozen=True)
class Places:
    """Positions of a channel's cells: its length, and each part of each message, oldest first."""

    length: int
    messages: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class BoundChannel(Generic[M]):
    """A channel under a model's sizes and fault budgets."""

    name: str
    message: type[M]
    shape: tuple[type[Index], ...]
    capacity: int
    prompt: bool
    parts: Mapping[str, Domain]
    faults: Faults
    _places: dict[tuple[int, ...], Places] = field(default_factory=dict[tuple[int, ...], "Places"], compare=False)

    def places(self, layout: Layout, key: tuple[int, ...]) -> Places:
        """Where the cells of one of the channels lie. Raises IndexFault for a key outside the shape."""
        if key not in self._places:

            def locate(suffix: str) -> int:
                name = f"{self.name}.{suffix}"
                return layout.tables[name].locate(key) if key else layout.base[name]

            messages = tuple({name: locate(f"{at}.{name}") for name in self.parts} for at in range(self.capacity))
            self._places[key] = Places(locate("length"), messages)
        return self._places[key]

    def of(self, state: State[Any], key: tuple[int, ...]) -> Fifo[M]:
        """One of the channels, in a state."""
        return Fifo(state, self, key)

    def lengths(self, state: State[Any]) -> Sequence[int]:
        """How many messages wait in each of the channels, in index order."""
        first = state.layout.base[f"{self.name}.length"]
        count = 1
        for index in self.shape:
            count *= state.layout.sizes[index]
        return [state.values[position] for position in range(first, first + count)]


class Channels(NoValue, Generic[M]):
    """Channels seen through a state: `s.acks[rank]`, or `s.acks[()]` for a single one."""

    def __init__(self, state: State[Any], bound: BoundChannel[M]) -> None:
        self._state = state
        self._bound = bound

    def __getitem__(self, key: int | tuple[int, ...]) -> Fifo[M]:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self._bound.shape):
            raise IndexFault(f"{self._bound.name} takes {len(self._bound.shape)} indices, not {len(keys)}")
        return Fifo(self._state, self._bound, tuple(index_of(each, self._bound.name) for each in keys))

    def say_value(self) -> str:
        """See NoValue."""
        return f"{self._bound.name} has no value; look at the length of one of its channels"


class Fifo(NoValue, Generic[M]):
    """One channel of a state."""

    def __init__(self, state: State[Any], bound: BoundChannel[M], key: tuple[int, ...]) -> None:
        self._state = state
        self._bound = bound
        self._key = key
        self._places = bound.places(state.layout, key)

    def say_value(self) -> str:
        """See NoValue."""
        return f"{self._bound.name} has no value; look at its length"

    @property
    def length(self) -> int:
        """Messages waiting, 0 .. capacity."""
        return self._state.read(self._places.length)

    def send(self, **parts: int) -> None:
        """Appends a message. Raises ChannelFault if the channel is full."""
        bound = self._bound
        if set(parts) != set(bound.parts):
            raise ModelFault(f"a message of {bound.name} has {', '.join(bound.parts)}; given: {', '.join(parts)}")
        self._append(parts)
        self._note("send", parts)

    def receive(self) -> M:
        """Takes the oldest message. Disabled while there is none."""
        require(self.length > 0)
        message = self._message(0)
        self._take(0)
        self._note("receive", message.parts)
        return message

    def peek(self) -> M:
        """The oldest message, left in its place. Disabled while there is none."""
        require(self.length > 0)
        return self._message(0)

    def waiting(self) -> Iterator[M]:
        """The messages that are in the channel now, oldest first, left in their places.

        What is sent or taken while one goes through them changes nothing of it.
        """
        length = self.length
        messages = [self._message(place) for place in self._places_in_use()]
        return (message for place, message in enumerate(messages) if place < length)

    def some(self, test: Callable[[M], int]) -> int:
        """Whether a message in the channel satisfies a test: one condition, in which nothing branches if the test
        does not (it combines its own with & and |).

        The test is asked of every place, and counts where there is a message; elsewhere it sees what an empty place
        holds, as in a traced step.
        """
        found = 0
        for place in range(self._bound.capacity):
            found |= (place < self.length) & _truth(test(self._message(place)))
        return found

    def count(self, test: Callable[[M], int]) -> int:
        """How many messages in the channel satisfy a test, without a branch as in `some`."""
        found = 0
        for place in range(self._bound.capacity):
            found = found + ((place < self.length) & _truth(test(self._message(place))))
        return found

    def remove_last(self) -> None:
        """Takes away the youngest message. Disabled while there is none."""
        require(self.length > 0)
        self.remove(as_index(self.length - 1))

    def remove(self, place: int) -> None:
        """Takes away the message at a place 0 .. length-1; those behind it move up."""
        place = as_index(place)
        if place < 0 or not place < self.length:
            raise ChannelFault(f"{self._bound.name}{list(self._key)} has no message at place {place}")
        self._take(place)
        self._note("remove", {"place": place})

    def clear(self) -> None:
        """Takes away whatever is in the channel."""
        for _ in range(self._bound.capacity):
            if self.length > 0:
                self.remove(0)

    def _take(self, place: int) -> None:
        state, messages = self._state, self._places.messages
        for here, behind in pairwise(messages[place:]):
            for name, position in here.items():
                state.write(position, state.read(behind[name]))
        for position in messages[-1].values():
            state.write(position, state.layout.cells[position].domain.start)
        self._set_length(self.length - 1)

    def duplicate(self, place: int) -> None:
        """Appends a copy of the message at a place."""
        self._append(self._message(place).parts)
        self._note("duplicate", {"place": place})

    def swap(self, place: int) -> None:
        """Exchanges the message at a place with the one behind it."""
        state = self._state
        for here, behind in zip(*(self._places.messages[at].values() for at in (place, place + 1)), strict=True):
            first, second = state.read(here), state.read(behind)
            state.write(here, second)
            state.write(behind, first)
        self._note("swap", {"place": place})

    def _note(self, kind: str, parts: dict[str, int]) -> None:
        self._state.events.append(Event(kind, self._bound.name, self._key, parts))

    def _append(self, parts: dict[str, int]) -> None:
        if self.length == self._bound.capacity:
            raise ChannelFault(
                f"{self._bound.name}{list(self._key)} is full ({self._bound.capacity}); "
                "give the channel a larger capacity, or the model fewer messages"
            )
        at = as_index(self.length)
        for name, position in self._places.messages[at].items():
            self._state.write(position, parts[name])
        self._set_length(at + 1)

    def _places_in_use(self) -> Sequence[int]:
        """The places at which there may be a message: all of them where the length is symbolic."""
        length = self.length
        return range(length if isinstance(length, int) else self._bound.capacity)  # pyright: ignore[reportUnnecessaryIsInstance]

    def _message(self, place: int) -> M:
        read = self._state.read
        return self._bound.message({name: read(at) for name, at in self._places.messages[place].items()})

    def _set_length(self, length: int) -> None:
        self._state.write(self._places.length, length)


def _truth(value: int) -> int:
    """A test's answer. It is joined by &, which has no meaning for other numbers."""
    if isinstance(value, Symbolic) or (isinstance(value, int) and value in (0, 1)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return value
    raise DeclarationError(f"a test of messages gives {value!r}; it must give whether something holds")


def fault_actions(bound: BoundChannel[Any]) -> list[Action]:
    """The environment's steps that a channel's fault budget allows, one action for each kind of fault."""
    made: list[Action] = []

    def add(kind: str, text: str, effect: Any, behind: int) -> None:
        if not getattr(bound.faults, kind):
            return

        def step(s: State[Any], *key: int) -> None:
            used = s.layout.base[f"{bound.name}.{kind}_used"]
            require(s.read(used) < getattr(bound.faults, kind))
            fifo = Fifo(s, bound, key)
            place = s.choose(range(bound.capacity - behind))
            require(place + behind < fifo.length)
            effect(fifo, place)
            s.write(used, s.read(used) + 1)

        step.__doc__ = f"The network {text} of {bound.name}. Bounded by the fault budget {kind}."
        parameters = tuple((f"at{i}", index) for i, index in enumerate(bound.shape))
        made.append(Action(f"{kind}_{bound.name}", step, parameters, "network", ""))

    add("loss", "loses a message", lambda fifo, place: fifo.remove(place), 0)  # pyright: ignore
    add("duplication", "delivers a message", lambda fifo, place: fifo.duplicate(place), 0)  # pyright: ignore
    add("reordering", "swaps two messages", lambda fifo, place: fifo.swap(place), 1)  # pyright: ignore
    return made
