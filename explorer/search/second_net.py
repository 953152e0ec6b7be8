"""The second net: states that a search found are executed directly, and what compiled code says of them is compared.

Compiled code, the tracer in front of it and the visited set behind it can all be wrong. Direct execution uses none of
them. All of a small search is executed again, of a large one the states that matter most and a sample; a difference
is never a verdict, but an error of its own.
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import gcd
from typing import TypeVar

import numpy as np

from ...protocol.language import EngineDisagreement, Instance, ModelFault
from ...protocol.language.check import Check
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Property
from ..compile.native import FAULT_BIT, ORIGIN_SHIFT, Native
from ..compile.packing import Packing

ALWAYS = 32
"""States that are executed directly however long it takes."""
AT_MOST = 4096
SECONDS = 0.1
SHARE = 0.05
"""No further state is begun after so long, or after this share of the time that the search took."""

Words = tuple[int, ...]
"""A packed state."""
TERMINAL, STUCK = "the terminal predicate", "stuck states"
NOTHING_COUNTS = "no result of this model counts; please report this"
FAULT = "a fault"
"""What an instance comes to where it breaks the rules of the language."""
Outcome = list[Values] | str
"""The states that an instance leads to, in the order of its choices, or FAULT."""


class OneState:
    """The compiled code of a check, asked about one state at a time."""

    def __init__(self, check: Check, packing: Packing, successors: int, native: Native) -> None:
        self.check, self.packing, self._native = check, packing, native
        self._width = packing.words + 1
        self._out = np.empty(max(1, successors) * self._width, np.uint64)
        self._expand = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_uint64] * 4))(native.expand)
        self._terminal = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(native.terminal)
        self._predicates = len(check.properties) + len(check.probes)

    def outcomes(self, words: Words) -> list[Outcome]:
        """What each instance leads to."""
        found: list[list[Values]] = [[] for _ in self.check.model.instances]
        faulty: set[int] = set()
        state = np.array(words, np.uint64)
        made = self._expand(state.ctypes.data, 0, 1, self._out.ctypes.data)
        for origin, *successor in self._out[: made * self._width].reshape(made, self._width).tolist():
            code = origin & ((1 << ORIGIN_SHIFT) - 1)
            if code & FAULT_BIT:
                faulty.add(code ^ FAULT_BIT)
            else:
                found[code].append(self.packing.unpack(successor))
        return [FAULT if code in faulty else states for code, states in enumerate(found)]

    def answers(self, words: Words) -> list[bool]:
        """The answers to `questions`, in their order."""
        check, state = self.check, np.array(words, np.uint64)
        counts, word = (ctypes.c_uint64 * max(1, self._predicates))(), ctypes.c_uint64()
        at = state.ctypes.data
        self._native.observe(at, 0, 1, 0, ctypes.addressof(counts), ctypes.addressof(word))
        predicates = [bool(count) for count in counts[: self._predicates]]
        self._native.mark(at, 0, 1, ctypes.addressof(word))
        pending = [bool(word.value >> number & 1) for number in range(len(check.promises))]
        return [*predicates, *pending, *([bool(self._terminal(at))] if check.deadlock else ())]


@dataclass
class Executed:
    """How many states were executed directly, in how many seconds, and what it came to in all of them together.

    `counts` is for each action how many steps it gives, for each question of `questions` in how many states the answer
    is yes, and for STUCK how many have no step and are not terminal.
    """

    states: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])

    def add_up(self, check: Check, hits: Mapping[str, int], counts: Mapping[str, int], stuck: int) -> None:
        """Compares what all states of a search came to with its counts. Raises EngineDisagreement where they differ."""
        found = {**hits, STUCK: stuck}
        found |= {f"property {each.name}": counts[each.name] for each in check.properties}
        found |= {f"probe {each.name}": counts[each.name] for each in check.probes}
        for what, number in found.items():
            if self.counts[what] != number:
                raise EngineDisagreement(
                    f"{check.model.name}: {what} counts {self.counts[what]:,} in direct execution of all states and "
                    f"{number:,} in the search; {NOTHING_COUNTS}"
                )


def execute_again(
    compiled: OneState,
    states: Iterable[tuple[Words, bool]],
    known: Callable[[Values], bool] = lambda values: True,
    searched: float = 0.0,
) -> Executed:
    """Executes states directly until the time is over, and compares; the search has taken `searched` seconds.

    With each state comes whether it was expanded: then `known` must be true of all its successors. Raises
    EngineDisagreement for a difference.
    """
    began, done = time.perf_counter(), Executed()
    for words, expanded in states:
        done.seconds = time.perf_counter() - began
        if done.states == AT_MOST or (done.states >= ALWAYS and done.seconds > max(SECONDS, SHARE * searched)):
            break
        _compare(compiled, words, known if expanded else lambda values: True, done)
        done.states += 1
    done.seconds = time.perf_counter() - began
    return done


def sample(first: Iterable[int], count: int) -> Iterator[int]:
    """Positions 0 .. count-1, each once: `first`, and then the others in an order that is even wherever it ends."""
    stride = max(1, round(count * 0.6180339887))
    while gcd(stride, count) > 1:
        stride += 1
    given: set[int] = set()
    for position in chain(first, (number * stride % count for number in range(count))):
        if 0 <= position < count and position not in given:
            given.add(position)
            yield position


def only_compiled(model: Model, instance: Instance) -> EngineDisagreement:
    """The fault of an instance that breaks the rules of the language in compiled code alone."""
    return EngineDisagreement(
        f"{model.name}: {instance.label} breaks the rules of the language as compiled code, and not in direct "
        f"execution; {NOTHING_COUNTS}"
    )


def questions(check: Check, values: Values) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What is asked of a state, by direct execution: does a property fail, a probe hold, is a promise pending, may the
    state have no step."""
    model = check.model
    for prop in check.properties:
        yield f"property {prop.name}", partial(_fails, check, prop, values)
    for probe in check.probes:
        yield f"probe {probe.name}", partial(probe.holds, model, values)
    for promise in check.promises:
        yield f"promise {promise.name}", partial(promise.is_pending, model, values)
    if check.deadlock:
        yield TERMINAL, partial(model.is_terminal, values)


def _compare(compiled: OneState, words: Words, known: Callable[[Values], bool], done: Executed) -> None:
    check, values = compiled.check, compiled.packing.unpack(words)
    stuck, answer = True, False
    for instance, found in zip(check.model.instances, compiled.outcomes(words), strict=True):
        expected = _executed(check, values, instance.label, partial(_outcome, check, instance, values))
        shown = partial(_shown, check, values)
        if expected != found:
            raise _difference(check, values, instance.label, shown(expected), shown(found))
        for after in expected if isinstance(expected, list) else ():
            if not known(after):
                raise _difference(check, values, instance.label, shown([after]), "never seen")
            done.counts[instance.action.name] += 1
        stuck = stuck and not expected
    for (label, ask), found in zip(questions(check, values), compiled.answers(words), strict=True):
        answer = _executed(check, values, label, ask)
        if answer != found:
            raise _difference(check, values, label, str(answer), str(found))
        done.counts[label] += answer
    done.counts[STUCK] += check.deadlock and stuck and not answer  # the last answer is that of the terminal predicate


def _fails(check: Check, prop: Property, values: Values) -> bool:
    return prop.violation(check.model, values) is not None


def _outcome(check: Check, instance: Instance, values: Values) -> Outcome:
    try:
        return [step.values for step in check.model.steps_of(instance, values)]
    except ModelFault:
        return FAULT


T = TypeVar("T")


def _executed(check: Check, values: Values, label: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except Exception as error:  # ours too: what the tracer took does not break the rules when it is executed
        raise _difference(check, values, label, f"{type(error).__name__}: {error}", "no such thing") from error


def _difference(check: Check, values: Values, label: str, expected: str, found: str) -> EngineDisagreement:
    cells = check.model.layout.cells
    state = ", ".join(
        f"{cell.name} = {cell.domain.show(value)}"
        for cell, value in zip(cells, values, strict=True)
        if value != cell.domain.start
    )
    return EngineDisagreement(
        f"{check.model.name}: {label} differs between direct execution ({expected}) and compiled code ({found}) "
        f"in the state [{state}]; {NOTHING_COUNTS}"
    )


def _shown(check: Check, before: Values, outcome: Outcome) -> str:
    """The states behind a step, each by what it changes."""
    if isinstance(outcome, str):
        return outcome

    def one(after: Values) -> str:
        cells = zip(check.model.layout.cells, before, after, strict=True)
        return ", ".join(f"{cell.name} = {new}" for cell, old, new in cells if old != new) or "nothing changes"

    return "; or ".join(map(one, outcome)) or "not possible"
