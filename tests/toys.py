"""Small models for tests of the language and the engines: channels, faults, choices, full words."""

from __future__ import annotations

from enum import IntEnum

from draincheck.protocol.language import (
    NONE,
    Faults,
    Index,
    Message,
    State,
    action,
    between,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    require,
    upto,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import Promise, claim, invariant, probe


class Node(Index):
    """A process."""


class Token(Message):
    """A number on its way."""

    value = part(upto(3))


class Ring(State[None]):
    """A sender and a receiver with a channel between them."""

    sent = field(upto(3), means="numbers sent so far")
    last = field(upto(3), means="the number received last")
    holder = field(maybe(Node), means="whom the receiver has chosen")
    went_back = ghost(flag, means="a smaller number came after a larger one")
    wire = channel(Token, capacity=4, means="sender to receiver")


@action("sender")
def send(s: Ring) -> None:
    """The sender sends the next number."""
    require(s.sent < 3)
    s.sent += 1
    s.wire[()].send(value=s.sent)


@action("receiver")
def receive(s: Ring) -> None:
    """The receiver takes a number and gives it to any node."""
    token = s.wire[()].receive()
    note_order(s, token.value)
    s.last = token.value
    s.holder = s.choose(Node)


@ghost_code
def note_order(s: Ring, value: int) -> None:
    """Keeps whether numbers came in order."""
    if value < s.last:
        s.went_back = True


def over(s: Ring) -> int:
    """Terminal: everything is sent and nothing waits."""
    return s.sent == 3 and s.wire[()].length == 0


@invariant
def in_order(s: Ring) -> None:
    """Numbers arrive in the order in which they were sent."""
    claim(not s.went_back, "no smaller number came after a larger one", last=s.last)


@probe
def second_node_has_three(s: Ring) -> int:
    """The last number is with the second node."""
    return s.holder == 1 and s.last == 3


def ring(faults: Faults | None = None, nodes: int = 2) -> Check:
    """The ring under faults; reordering breaks `in_order`."""
    model = Model(
        name="ring",
        state=Ring,
        actions=(send, receive),
        sizes={Node: nodes},
        terminal=over,
        faults={"wire": faults} if faults else {},
    )
    return Check(model, (in_order,), (second_node_has_three,))


class Bit(Index):
    """A binary digit."""


class Counter(State[None]):
    """Binary digits that together fill words of the packed state completely."""

    digit = field(flag, Bit, means="a digit")


@action("counter")
def flip(s: Counter, bit: Bit) -> None:
    """A digit is set, if all lower ones are."""
    require(not s.digit[bit])
    for lower in s.all(Bit):
        if lower < bit:
            require(s.digit[lower])
    s.digit[bit] = True


def all_set(s: Counter) -> int:
    """Terminal: every digit is set."""
    return all(s.digit[bit] for bit in s.all(Bit))


def start_anywhere(s: Counter) -> None:
    """The lowest digit may be set from the start."""
    s.digit[0] = s.choose([False, True])


def counter(bits: int) -> Check:
    """A counter of so many digits: bits + 1 states in a row, the last with all bits set."""
    model = Model(name="counter", state=Counter, actions=(flip,), sizes={Bit: bits}, terminal=all_set)
    return Check(model, ())


class Arith(State[None]):
    """Numbers that are added, subtracted and compared."""

    x = field(upto(6), means="a number")
    y = field(upto(6), Node, means="numbers")
    where = field(maybe(Node), means="which of them, or none")
    low = field(between(-2, 1), means="a number that may be negative")


@action("a")
def add(s: Arith, n: Node) -> None:
    """Adds two numbers where the sum fits."""
    total = s.x + s.y[n] + 1
    require(total <= 6)
    s.y[n] = total


@action("a")
def subtract(s: Arith, n: Node) -> None:
    """Takes the difference in either direction."""
    s.x = s.y[n] - s.x if s.y[n] >= s.x else s.x - s.y[n]


@action("b")
def scale(s: Arith) -> None:
    """Doubles a chosen number if it is small, by an index that the state holds."""
    require(s.where != NONE)
    s.y[s.where] = min(6, 2 * s.y[s.where])


@action("b")
def point(s: Arith) -> None:
    """Points at any node, or at none."""
    s.where = s.choose([NONE, 0, 1])


@action("b")
def mark(s: Arith) -> None:
    """Uses truth values as numbers, without a decision."""
    s.x = (s.x > 3) + ((s.y[0] == s.y[1]) & (s.where != NONE)) + (1 | (s.x == 0))


@action("b")
def sink(s: Arith) -> None:
    """Goes down to the lowest, and up again from there."""
    s.low = s.low - 1 if s.low > -2 else 1


@invariant
def never_all_six(s: Arith) -> None:
    """Not all numbers are six."""
    claim(not (s.x == 6 and s.y[0] == 6 and s.y[1] == 6), "one number is not six", x=s.x, y0=s.y[0], y1=s.y[1])


def arithmetic() -> Check:
    """Every operator of the language, on numbers small enough for the oracle."""
    model = Model(name="arithmetic", state=Arith, actions=(add, subtract, scale, point, mark, sink), sizes={Node: 2})
    return Check(model, (never_all_six,))


class Stage(IntEnum):
    """How far a process is."""

    AWAY = 0
    WAITING = 1
    INSIDE = 2


class Door(State[None]):
    """A room for one process at a time."""

    stage = field(Stage, Node, means="how far the process is")
    turn = field(maybe(Node), means="whose turn it is; anybody's if none")


@action("process {n}")
def ask(s: Door, n: Node) -> None:
    """The process wants to go in; it need never want to."""
    require(s.stage[n] == Stage.AWAY)
    s.stage[n] = Stage.WAITING


@action("process {n}")
def enter(s: Door, n: Node) -> None:
    """The process goes in if nobody is there, and it is its turn or anybody's."""
    require(s.stage[n] == Stage.WAITING)
    require((s.turn == NONE) | (s.turn == n))
    for other in s.all(Node):
        require(s.stage[other] != Stage.INSIDE)
    s.stage[n] = Stage.INSIDE
    s.turn = NONE


@action("process {n}")
def leave(s: Door, n: Node) -> None:
    """The process comes out, and whoever comes next, comes."""
    require(s.stage[n] == Stage.INSIDE)
    s.stage[n] = Stage.AWAY


@action("process {n}")
def leave_to_next(s: Door, n: Node) -> None:
    """The process comes out, and whoever waits has the next turn."""
    require(s.stage[n] == Stage.INSIDE)
    s.stage[n] = Stage.AWAY
    for other in s.all(Node):
        if s.stage[other] == Stage.WAITING:
            s.turn = other


def door(*, turns: bool, fair: frozenset[str] = frozenset({"enter", "leave", "leave_to_next"})) -> Check:
    """Two processes at a door. Without turns, one of them can starve."""
    actions = (ask, enter, leave_to_next if turns else leave)
    model = Model(name="door", state=Door, actions=actions, sizes={Node: 2}, bounds={"processes": "2"})
    fair &= {each.name for each in actions}
    promises = tuple(
        Promise(f"process_{n}_gets_in", f"Process {n} does not wait for ever.", lambda s, n=n: s.stage[n] == 1)
        for n in range(2)
    )
    return Check(model, (), (), deadlock=False, promises=promises, fair=fair)
