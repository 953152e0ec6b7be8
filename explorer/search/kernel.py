"""The inner loop of the search, in numba: expand states, drop duplicates, append the new ones.

Nothing here depends on a model: the model's code is called by address. The compiled loops are kept on disk
(`loop_cache.py`), so only the first run after an installation pays for them (a few seconds).

The visited set is a table of slots, 0 or `tag << 32 | position + 1`, and the states in the order of their
discovery. Tags only save comparisons: equality is always decided on whole states.

A successor is looked up in three passes over a batch, so that memory latency overlaps:
 1. hash it; drop it if the small table of recently seen states has it (breadth-first search meets most of its
    duplicates soon after each other); ask the processor for its slot in the visited set;
 2. look at the slot, and ask for the state that it names;
 3. compare whole states, and insert.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import njit, types  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.core import cgutils as _cgutils  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.extending import intrinsic  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from ..compile.native import FAULT_BIT, ORIGIN_SHIFT
from ..kept.loop_cache import compiled_loop

# Why `advance` stopped.
FINISHED, FULL, FAULTED = 0, 1, 2

# Places in the array of numbers that `advance` reads and writes.
CURSOR, STATES, TRANSITIONS, EVENT_STATE, EVENT_CODE, STUCK, STUCK_FIRST = 0, 1, 2, 3, 4, 5, 6
NUMBERS = 7

ID_BITS = 32
TAG_TOP = 56
"""A tag holds the hash bits below this one, 32 of them: see `double`."""

u = np.uint64
cgutils: Any = _cgutils
_ID_MASK = np.uint64((1 << ID_BITS) - 1)
_TAG_MASK = np.uint64(((1 << 32) - 1) << 32)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_2 = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_BYTES = np.uint64(8)
_ORIGIN = np.uint64(ORIGIN_SHIFT)
_CODE_MASK = np.uint64((1 << ORIGIN_SHIFT) - 1)
_FAULT = np.uint64(FAULT_BIT)
_OWNER_MASK = np.uint64((1 << (TAG_TOP - 32)) - 1)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@intrinsic
def _call_expand(typing: Any, address: Any, states: Any, first: Any, count: Any, out: Any) -> Any:
    """Calls `expand` at an address; arguments and result are 64-bit integers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(word, [word] * 4).as_pointer())
        return builder.call(function, list(arguments[1:]))

    return types.int64(types.uint64, types.uint64, types.int64, types.int64, types.uint64), generate  # pyright: ignore


@intrinsic
def _call_terminal(typing: Any, address: Any, state: Any) -> Any:
    """Calls `terminal` at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(function, [arguments[1]])

    return types.int64(types.uint64, types.uint64), generate  # pyright: ignore


@intrinsic
def _prefetch(typing: Any, address: Any) -> Any:
    """Asks the processor to bring the cache line at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0"
        )
        pointer = builder.inttoptr(arguments[0], byte)
        builder.call(function, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.uint64), generate  # pyright: ignore


@njit(inline="always")
def _digest(words: Any, at: Any, shape: Any) -> Any:
    """64 hash bits of the state words[at:]. The highest bits choose a slot, the next are its tag."""
    h = words[at] * _MULTIPLIER
    for w in range(1, len(shape)):
        h = ((h ^ (h >> _HALF)) + words[at + u(w)]) * _MULTIPLIER_2
    h ^= h >> _HALF
    h *= _MULTIPLIER
    return h ^ (h >> u(29))


@njit(inline="always")
def _tag(h: Any) -> Any:
    return (h << u(64 - TAG_TOP)) & _TAG_MASK


@njit(inline="always")
def _find(states: Any, slots: Any, shift: Any, h: Any, words: Any, at: Any, shape: Any) -> Any:
    """The slot that names the state words[at:], or the empty slot where it belongs."""
    width = u(len(shape))
    mask = u(len(slots) - 1)
    slot = h >> shift
    tag = _tag(h)
    while True:
        entry = slots[slot]
        if entry == _ZERO:
            return slot
        if entry & _TAG_MASK == tag:
            there = ((entry & _ID_MASK) - _ONE) * width
            differ = _ZERO
            for w in range(len(shape)):
                differ |= states[there + u(w)] ^ words[at + u(w)]
            if differ == _ZERO:
                return slot
        slot = (slot + _ONE) & mask


@compiled_loop
def owner(words: Any, shape: Any, partitions: Any) -> Any:
    """The number of the partition that a state belongs to, by hash bits that slots and tags do not use."""
    return np.int64(_digest(words, _ZERO, shape) & _OWNER_MASK) % partitions


@compiled_loop
def lookup(states: Any, slots: Any, shift: Any, words: Any, shape: Any) -> Any:
    """The position of the state `words`, or -1."""
    slot = _find(states, slots, shift, _digest(words, _ZERO, shape), words, _ZERO, shape)
    return np.int64(slots[slot] & _ID_MASK) - 1


@compiled_loop
def insert(states: Any, slots: Any, shift: Any, words: Any, shape: Any, count: Any) -> Any:
    """The position of the state `words`; if it is new, it is appended and the result is -1 - position."""
    h = _digest(words, _ZERO, shape)
    slot = _find(states, slots, shift, h, words, _ZERO, shape)
    if slots[slot] != _ZERO:
        return np.int64(slots[slot] & _ID_MASK) - 1
    slots[slot] = _tag(h) | u(count + 1)
    for w in range(len(shape)):
        states[u(count) * u(len(shape)) + u(w)] = words[u(w)]
    return -1 - count


@compiled_loop
def double(old: Any, new: Any, bits: Any) -> Any:
    """Moves the entries of a table of 2**bits slots into an empty one of twice the size. False if it cannot.

    Entries lie in the order of their hashes, but for the displacement of linear probing, so both tables are
    passed once from front to back. The tag holds the bits that are needed: those around the slot's lowest,
    from which the home slot follows, and the one that is new. That takes displacements below 2**(bits - 8),
    so it gives up at a run of full slots as long as that, and the new table must be filled by `enter`.
    """
    known = u(bits - (64 - TAG_TOP))
    low_mask = (_ONE << known) - _ONE
    old_mask, new_mask = u(len(old) - 1), u(len(new) - 1)
    start = run = _ZERO
    while old[start] != _ZERO:
        start += _ONE
    for step in range(len(old)):
        at = (start + u(step)) & old_mask
        entry = old[at]
        if entry == _ZERO:
            run = _ZERO
            continue
        run += _ONE
        if run > low_mask:
            return False
        tag = entry >> _HALF
        low = tag >> (_HALF - known)
        home = (at - ((at - low) & low_mask)) & old_mask
        slot = (home << _ONE) | ((tag >> (_HALF - known - _ONE)) & _ONE)
        while new[slot] != _ZERO:
            slot = (slot + _ONE) & new_mask
        new[slot] = entry
    return True


@compiled_loop
def enter(states: Any, slots: Any, shift: Any, shape: Any, count: Any) -> None:
    """Enters the first `count` states into an empty table of slots: the plain way to grow."""
    mask = u(len(slots) - 1)
    for position in range(count):
        h = _digest(states, u(position) * u(len(shape)), shape)
        slot = h >> shift
        while slots[slot] != _ZERO:
            slot = (slot + _ONE) & mask
        slots[slot] = _tag(h) | u(position + 1)


@compiled_loop
def advance(
    expand: Any,
    terminal: Any,
    states: Any,
    parents: Any,
    slots: Any,
    shift: Any,
    shape: Any,
    successors: Any,
    until: Any,
    limit: Any,
    batch: Any,
    out: Any,
    recent: Any,
    hits: Any,
    numbers: Any,
) -> Any:
    """Expands states from numbers[CURSOR] up to `until`, appending what is new behind numbers[STATES].

    Arrays are flat: `states` and `recent` have `width` words a state, `out` has width + 1 words for each of
    batch * successors successors. `shape` is a tuple of `width` numbers: its type makes the width a constant of
    the compiled code. Stops before a batch that could exceed `limit` states, or at a state that breaks the
    language's rules. Counts the states that have no step and are not terminal.
    """
    width = u(len(shape))
    stride, row = width + _ONE, width * _BYTES
    cursor, count = u(numbers[CURSOR]), u(numbers[STATES])
    transitions = u(numbers[TRANSITIONS])
    recent_mask = u(len(recent) // len(shape) - 1)
    slots_at, states_at, out_at = u(slots.ctypes.data), u(states.ctypes.data), u(out.ctypes.data)
    hashes = np.empty(batch * successors, np.uint64)
    stepped = np.zeros(batch, np.uint8)
    reason = FINISHED
    while cursor < u(until):
        size = min(u(batch), u(until) - cursor)
        if count + size * u(successors) > u(limit):
            reason = FULL
            break
        made = u(_call_expand(expand, states_at + cursor * row, np.int64(cursor), np.int64(size), out_at))  # pyright: ignore
        stepped[: np.int64(size)] = 0
        kept = faulted = _ZERO
        for i in range(made):
            at, to = u(i) * stride, kept * stride
            origin = out[at]
            code = origin & _CODE_MASK
            if code & _FAULT:
                # The faulty state is found again by its origin; nothing of this batch counts.
                numbers[EVENT_STATE] = np.int64(origin >> _ORIGIN)
                numbers[EVENT_CODE] = np.int64(code ^ _FAULT)
                faulted = _ONE
                break
            hits[code] += 1
            stepped[(origin >> _ORIGIN) - cursor] = 1
            h = _digest(out, at + _ONE, shape)
            near_at = (h & recent_mask) * width
            # Without a branch: whether a successor is kept cannot be predicted.
            differ = _ZERO
            out[to] = origin
            for w in range(len(shape)):
                word = out[at + u(w + 1)]
                differ |= word ^ recent[near_at + u(w)]
                recent[near_at + u(w)] = word
                out[to + u(w + 1)] = word
            hashes[kept] = h
            kept += u(differ != _ZERO)
        if faulted:
            reason = FAULTED
            break
        transitions += made
        for i in range(kept):
            _prefetch(slots_at + (hashes[u(i)] >> shift) * _BYTES)
        for i in range(kept):
            entry = slots[hashes[u(i)] >> shift]
            _prefetch(states_at + ((entry & _ID_MASK) - _ONE) * row)
        for i in range(kept):
            h = hashes[u(i)]
            at = u(i) * stride
            slot = _find(states, slots, shift, h, out, at + _ONE, shape)
            if slots[slot] == _ZERO:
                slots[slot] = _tag(h) | (count + _ONE)
                for w in range(len(shape)):
                    states[count * width + u(w)] = out[at + u(w + 1)]
                parents[count] = np.uint32(out[at] >> _ORIGIN)
                count += _ONE
        for i in range(size):
            if stepped[u(i)] == 0 and _call_terminal(terminal, states_at + (cursor + u(i)) * row) == 0:
                if numbers[STUCK] == 0:
                    numbers[STUCK_FIRST] = np.int64(cursor + u(i))
                numbers[STUCK] += 1
        cursor += size
    numbers[CURSOR], numbers[STATES] = np.int64(cursor), np.int64(count)
    numbers[TRANSITIONS] = np.int64(transitions)
    return reason


@compiled_loop
def edges(
    expand: Any,
    states: Any,
    slots: Any,
    shift: Any,
    shape: Any,
    positions: Any,
    out: Any,
    sources: Any,
    codes: Any,
    targets: Any,
) -> Any:
    """Expands visited states anew: for each successor, where it came from, by which instance, and its position.

    Returns how many there are; a position is -1 if the successor is not in the set. The last three arrays have room
    for all successors of all `positions`, `out` for those of one state.
    """
    width = u(len(shape))
    stride, row = width + _ONE, width * _BYTES
    states_at, out_at = u(states.ctypes.data), u(out.ctypes.data)
    count = 0
    for number in range(len(positions)):
        position = u(positions[number])
        made = _call_expand(expand, states_at + position * row, np.int64(position), np.int64(1), out_at)  # pyright: ignore
        for i in range(made):
            at = u(i) * stride
            h = _digest(out, at + _ONE, shape)
            slot = _find(states, slots, shift, h, out, at + _ONE, shape)
            sources[count] = np.int64(position)
            codes[count] = np.int32(out[at] & _CODE_MASK)
            targets[count] = np.int64(slots[slot] & _ID_MASK) - 1
            count += 1
    return count
