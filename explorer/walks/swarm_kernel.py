"""The inner loop of the simulation, in numba: many walkers take turns, each turn a step or a return to the start.

As in kernel.py, nothing here depends on a model, whose compiled functions are called by address.

Every random number is a function of a walk's key and of what it is for, and the key is one of the seed, the walker and
how often it has started anew. So a walk can be taken again alone, and no walk depends on how many others there are.

A walk takes an instance at random, each alike, and then one of its options. Both schedulers are one: the instances are
those of the enabled lanes of highest priority. If all lanes have the priority 0, that is any of them (uniform). If each
has its own (PCT: Burckhardt et al., ASPLOS 2010), it is one lane, until the walk comes to a change point: the lane that
took the step there falls below all others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import njit, types  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.extending import intrinsic  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from ..compile.native import FAULT_BIT, ORIGIN_SHIFT
from ..kept.loop_cache import compiled_loop

# Places in the array of numbers that `advance` reads and writes.
DEEPEST, STUCK, FAULT_TURN, FAULT_WALKER, FAULT_CODE = 0, 1, 2, 3, 4
NUMBERS = 5

NEVER = 2**63 - 1
"""An age that no walk reaches."""
AT_START = 1 << 32
"""Random numbers of a walk: below this, one for each step; from here on, those for its start."""
PRIORITIES_FROM = 1 << 63
"""Priorities drawn at the start are not below this one; those given at change points are."""

u = np.uint64
_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)
_BYTES = np.uint64(8)
_ORIGIN = np.uint64(ORIGIN_SHIFT)
_CODE_MASK = np.uint64((1 << ORIGIN_SHIFT) - 1)
_FAULT = np.uint64(FAULT_BIT)
_AT_START = np.uint64(AT_START)
_TOP = np.uint64(PRIORITIES_FROM)
_LANE_MASK = np.uint64(0xFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class Walkers(NamedTuple):
    """Walkers side by side, one to a row.

    `states`: the packed state. `ages`: steps since the start. `walks`: how often it has started. `keys`: of its
    random numbers. `last`: the number of the action of its last step, -1 after a start. `scheduled`: whether its lanes
    have priorities. `priorities`: of each lane. `points`: the ages at which a lane falls.
    """

    states: Any
    ages: Any
    walks: Any
    keys: Any
    last: Any
    scheduled: Any
    priorities: Any
    points: Any


class Tables(NamedTuple):
    """What the loop knows of a model: packed initial states, and the lane and the action of each instance."""

    initial: Any
    lanes: Any
    actions: Any


class Record(NamedTuple):
    """What is counted and seen.

    `hits` of each instance; `pairs` of actions, the second taken directly after the first; `counts` of states in which
    a predicate is true. `sightings`: for each predicate and then for deadlocks a row of age, walker and walk, the least
    that was met while it was wanted. `seen` and `numbers` are working memory.
    """

    hits: Any
    pairs: Any
    counts: Any
    sightings: Any
    seen: Any
    numbers: Any


def _caller(arguments: int) -> Any:
    """A function for numba that calls compiled code at an address; all are 64-bit words."""

    @intrinsic
    def call(typing: Any, address: Any, given: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            word = ir.IntType(64)
            function = builder.inttoptr(values[0], ir.FunctionType(word, [word] * arguments).as_pointer())
            return builder.call(function, [builder.extract_value(values[1], n) for n in range(arguments)])

        return types.int64(types.uint64, types.UniTuple(types.uint64, arguments)), generate  # pyright: ignore

    return call


_call_expand: Any = _caller(4)
_call_observe: Any = _caller(6)
_call_terminal: Any = _caller(1)


@njit(inline="always")
def _mix(z: Any) -> Any:
    """Scrambles 64 bits (SplitMix64)."""
    z = (z ^ (z >> u(30))) * _MULTIPLIER
    z = (z ^ (z >> u(27))) * _MULTIPLIER_2
    return z ^ (z >> u(31))


@njit(inline="always")
def _draw(key: Any, what: Any) -> Any:
    """A random word of a walk; `what` numbers its words."""
    return _mix(key + (what + _ONE) * _STRIDE)


@njit(inline="always")
def _below(word: Any, bound: Any) -> Any:
    """A number below `bound` from the low half of a random word."""
    return ((word & _LOW) * u(bound)) >> _HALF


@njit
def _start(walkers: Any, tables: Any, seed: Any, number: Any, at: Any, shape: Any, depth: Any) -> None:
    """Begins the next walk of a walker: a random initial state, and where it is scheduled, priorities and points.

    The change points are spread over an assumed length of the walk: `depth`, halved a random number of times, because
    how long walks are differs by orders of magnitude between models.
    """
    walkers.walks[at] += 1
    key = _draw(_draw(_mix(seed), u(number)), u(walkers.walks[at]))
    walkers.keys[at] = key
    walkers.ages[at] = 0
    walkers.last[at] = -1
    chosen = _below(_draw(key, _AT_START), len(tables.initial))
    for w in range(len(shape)):
        walkers.states[at, w] = tables.initial[chosen, w]
    if not walkers.scheduled[at]:
        return
    halvings = 0
    while depth >> (halvings + 1):
        halvings += 1
    length = depth >> np.int64(_below(_draw(key, _AT_START + _ONE), halvings + 1))
    what = _AT_START + u(2)
    for point in range(walkers.points.shape[1]):
        walkers.points[at, point] = 1 + np.int64(_below(_draw(key, what), length))
        what += _ONE
    for lane in range(walkers.priorities.shape[1]):
        walkers.priorities[at, lane] = (_draw(key, what) | _TOP) & ~_LANE_MASK | u(lane)
        what += _ONE


@njit(inline="always")
def _note(sightings: Any, row: Any, age: Any, walker: Any, walk: Any) -> None:
    """Keeps the sighting with the least age, then of the first walker, then of its first walk."""
    best = sightings[row]
    if age < best[0] or (age == best[0] and (walker < best[1] or (walker == best[1] and walk < best[2]))):
        best[0], best[1], best[2] = age, walker, walk


@compiled_loop
def look(observe: Any, walkers: Any, record: Any, first: Any, wanted: Any) -> None:
    """Evaluates all predicates in the walkers' states, and notes sightings of those in `wanted`."""
    states_at, counts_at, seen_at = (
        u(walkers.states.ctypes.data), u(record.counts.ctypes.data), u(record.seen.ctypes.data),
    )  # fmt: skip
    size = len(walkers.ages)
    position = _call_observe(observe, (states_at, _ZERO, u(size), u(wanted), counts_at, seen_at))
    while position < size:
        found = record.seen[0] & u(wanted)
        for row in range(len(record.counts)):
            if (found >> u(row)) & _ONE:
                _note(record.sightings, row, walkers.ages[position], first + position, walkers.walks[position])
        position = _call_observe(observe, (states_at, u(position + 1), u(size), u(wanted), counts_at, seen_at))


@compiled_loop
def start(walkers: Any, tables: Any, seed: Any, first: Any, shape: Any, depth: Any) -> None:
    """Begins the next walk of every walker; the first of them has the number `first`."""
    for at in range(len(walkers.ages)):
        _start(walkers, tables, seed, first + at, at, shape, depth)


@compiled_loop
def advance(
    expand: Any,
    observe: Any,
    terminal: Any,
    walkers: Any,
    tables: Any,
    record: Any,
    seed: Any,
    first: Any,
    shape: Any,
    depth: Any,
    turns: Any,
    wanted: Any,
    stuck_wanted: Any,
    out: Any,
) -> Any:
    """Lets each walker take so many turns; False if a state that was met breaks the language's rules.

    `out` has room for all successors of all walkers' states. `shape` is a tuple as long as a state has words. A walk
    ends where no step is possible, and after `depth` steps; the walker's next turn takes it to the start of the next.
    """
    stride, row = u(len(shape) + 1), u(len(shape)) * _BYTES
    states_at, out_at = u(walkers.states.ctypes.data), u(out.ctypes.data)
    size = len(walkers.ages)
    deadlocks = len(record.sightings) - 1
    for turn in range(turns):
        made = u(_call_expand(expand, (states_at, _ZERO, u(size), out_at)))
        i = _ZERO
        for at in range(size):
            # The successors of one state lie together, and among them those of one instance.
            begin = i
            best, candidates, previous = _ZERO, _ZERO, _CODE_MASK
            while i < made and out[i * stride] >> _ORIGIN == u(at):
                code = out[i * stride] & _CODE_MASK
                if code & _FAULT:
                    record.numbers[FAULT_TURN], record.numbers[FAULT_WALKER] = turn, first + at
                    record.numbers[FAULT_CODE] = np.int64(code ^ _FAULT)
                    return False
                priority = walkers.priorities[at, tables.lanes[code]]
                if priority > best:
                    best, candidates = priority, _ONE
                elif priority == best:
                    candidates += u(code != previous)
                previous = code
                i += _ONE
            age = walkers.ages[at]
            if i == begin or age >= depth:
                if i == begin and _call_terminal(terminal, (states_at + u(at) * row,)) == 0:
                    record.numbers[STUCK] += 1
                    if stuck_wanted:
                        _note(record.sightings, deadlocks, age, first + at, walkers.walks[at])
                _start(walkers, tables, seed, first + at, at, shape, depth)
                continue
            random = _draw(walkers.keys[at], u(age))
            skip = ((random >> _HALF) * candidates) >> _HALF
            chosen, previous = begin, _CODE_MASK
            while True:
                code = out[chosen * stride] & _CODE_MASK
                if code != previous and walkers.priorities[at, tables.lanes[code]] == best:
                    if skip == _ZERO:
                        break
                    skip -= _ONE
                previous = code
                chosen += _ONE
            options = _ONE
            while chosen + options < i and out[(chosen + options) * stride] & _CODE_MASK == code:
                options += _ONE
            chosen = (chosen + _below(random, options)) * stride
            for w in range(len(shape)):
                walkers.states[at, w] = out[chosen + u(w + 1)]
            age += 1
            walkers.ages[at] = age
            record.hits[code] += 1
            action, last = tables.actions[code], walkers.last[at]
            if last >= 0:
                record.pairs[last, action] += 1
            walkers.last[at] = action
            record.numbers[DEEPEST] = max(record.numbers[DEEPEST], age)
            if walkers.scheduled[at]:
                for point in range(walkers.points.shape[1]):
                    if walkers.points[at, point] == age:
                        walkers.priorities[at, tables.lanes[code]] = u(point + 1)
        look(observe, walkers, record, first, wanted)
    return True
