"""Promises, decided on the explored graph: is there a fair run in which a promise is pending for ever?

Such a run ends in a state where no fair step is possible, or it stays in one strongly connected component of the
pending states. In a component there is a fair run if and only if each fair instance is disabled in one of its states or
taken by one of its steps: a run that visits all states and steps of the component again and again is then fair, and
a run that stays in a part of it is no fairer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse  # pyright: ignore[reportMissingTypeStubs]
from scipy.sparse import csgraph  # pyright: ignore[reportMissingTypeStubs]

from ...protocol.language import Instance
from ...protocol.language.model import Values
from .search import OUT_OF_MEMORY, Exploration, Limits, StateGraph

STATES_AT_ONCE = 1 << 12
MARKS_AT_ONCE = 1 << 20
BYTES_PER_STATE = 56
BYTES_PER_EDGE = 64
"""What deciding takes, at the most, for each pending state and each step out of one."""

Numbers = np.ndarray[Any, np.dtype[Any]]
sparse_: Any = sparse
csgraph_: Any = csgraph


@dataclass(frozen=True)
class Lasso:
    """A run that breaks a promise: its states, and the instances of the steps behind `states[loop]`.

    The last state is `states[loop]` again; without such steps, the run ends there.
    """

    states: list[Values]
    loop: int
    instances: tuple[Instance, ...]


@dataclass(frozen=True)
class Outcome:
    """What is known of a promise: in how many states it is pending, and a run that breaks it, if there is one.

    `unknown` says why the promise could not be decided, and is empty if it was. `edges` counts the steps out of
    pending states.
    """

    pending: int = 0
    edges: int = 0
    lasso: Lasso | None = None
    unknown: str = ""


class _GivenUp(Exception):
    """A limit was reached."""


@dataclass(frozen=True)
class _Region:
    """The pending states, numbered in the order of discovery, and the steps out of them in the order of their source.

    A step has the number of its source, the code of its instance, and the number of its target, -1 if the promise is
    not pending there.
    """

    positions: Numbers
    sources: Numbers
    codes: Numbers
    targets: Numbers

    @cached_property
    def _begins(self) -> Numbers:
        """Where the steps out of each state begin, and at last where they end."""
        return np.searchsorted(self.sources, np.arange(len(self.positions) + 1))

    def steps_from(self, number: int) -> Iterator[tuple[int, int]]:
        """The steps out of one state, as (code, target)."""
        begin, end = self._begins[number : number + 2]
        yield from zip(self.codes[begin:end].tolist(), self.targets[begin:end].tolist(), strict=True)


def decide_promises(found: Exploration, limits: Limits = Limits()) -> dict[str, Outcome]:  # noqa: B008 - frozen
    """Decides the promises of a check, once its search is over; the time limit holds for each promise.

    A promise is undecided if not all states were expanded, or if a limit is reached.
    """
    return {promise.name: _decide(found, number, limits) for number, promise in enumerate(found.check.promises)}


def _decide(found: Exploration, number: int, limits: Limits) -> Outcome:
    if not found.complete or found.graph is None:
        return Outcome(unknown=f"not all states are known: {found.stopped}")
    deadline = time.perf_counter() + limits.seconds if limits.seconds else float("inf")
    try:
        region = _region(found.graph, found.states, number, deadline)
        lasso = _lasso(found, region) if len(region.positions) else None
    except _GivenUp as reason:
        return Outcome(unknown=str(reason))
    except MemoryError:
        return Outcome(unknown=OUT_OF_MEMORY[1])
    return Outcome(len(region.positions), len(region.sources), lasso)


def _region(graph: StateGraph, states: int, number: int, deadline: float) -> _Region:
    """The pending states of a promise. Raises _GivenUp if they do not fit into the memory or the time."""
    positions = _pending(graph, states, number)
    parts: list[tuple[Numbers, Numbers, Numbers]] = []
    edges = 0
    for begin in range(0, len(positions), STATES_AT_ONCE):
        sources, codes, targets = graph.edges_from(positions[begin : begin + STATES_AT_ONCE])
        if (targets < 0).any():
            raise AssertionError("a step leads to a state that the search has not found; please report this")
        parts.append((_numbers(positions, sources), codes, _numbers(positions, targets)))
        edges += len(sources)
        if len(positions) * BYTES_PER_STATE + edges * BYTES_PER_EDGE > graph.spare:
            raise _GivenUp(f"memory limit reached with {edges:,} steps out of {len(positions):,} pending states")
        if time.perf_counter() > deadline:
            raise _GivenUp(f"time limit reached with {edges:,} steps out of {len(positions):,} pending states")
    columns = zip(*parts, strict=True) if parts else ([np.empty(0, np.int32)] for _ in range(3))
    return _Region(positions, *(np.concatenate(column) for column in columns))


def _pending(graph: StateGraph, states: int, number: int) -> Numbers:
    found = [np.empty(0, np.int64)]
    for begin in range(0, states, MARKS_AT_ONCE):
        marks = graph.marks(begin, min(states, begin + MARKS_AT_ONCE))
        found.append(np.flatnonzero(marks >> np.uint64(number) & np.uint64(1)) + begin)
    return np.concatenate(found)


def _numbers(positions: Numbers, wanted: Numbers) -> Numbers:
    """Where each of some positions stands among the sorted `positions`, or -1."""
    at = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return np.where(positions[at] == wanted, at, -1).astype(np.int32)


def _lasso(found: Exploration, region: _Region) -> Lasso | None:
    """A fair run that ends, or stays, in the region: if any ends there one of these, and each time the nearest."""
    check = found.check
    instances = check.model.instances
    fair = np.array([instance.action.name in check.fair_actions for instance in instances], bool)
    moves = np.zeros(len(region.positions), bool)
    moves[region.sources[fair[region.codes]]] = True
    if not moves.all():
        states = found.path_to(int(region.positions[np.argmin(moves)]))
        return Lasso(states, len(states) - 1, ())
    components = _components(region)
    start = _first_in_fair_component(region, components, fair)
    if start is None:
        return None
    states = found.path_to(int(region.positions[start]))
    cycle = _cycle(region, components, fair, start)
    around = [found.state_at(int(region.positions[target])) for _, target in cycle]
    return Lasso([*states, *around], len(states) - 1, tuple(instances[code] for code, _ in cycle))


def _components(region: _Region) -> Numbers:
    """The strongly connected component of each state, by number."""
    size = len(region.positions)
    inside = region.targets >= 0
    counts = np.bincount(region.sources[inside], minlength=size)
    begins = np.concatenate(([0], np.cumsum(counts)))
    matrix = sparse_.csr_array((np.ones(begins[-1], np.int8), region.targets[inside], begins), shape=(size, size))
    _, labels = csgraph_.connected_components(matrix, directed=True, connection="strong")
    return labels


def _first_in_fair_component(region: _Region, components: Numbers, fair: Numbers) -> int | None:
    """The first state, in the order of discovery, of a component that a fair run can stay in."""
    home = components[region.sources].astype(np.int64)
    inner = (region.targets >= 0) & (components[region.targets] == home)
    cyclic = np.unique(home[inner])
    keys = home * len(fair) + region.codes  # a component and an instance
    required = fair[region.codes] & np.isin(home, cyclic)
    # An instance that chooses has several steps out of a state, one behind the other; it is counted once.
    first = np.ones(len(keys), bool)
    first[1:] = (region.sources[1:] != region.sources[:-1]) | (region.codes[1:] != region.codes[:-1])
    enabled, times = np.unique(keys[required & first], return_counts=True)
    always = enabled[times == np.bincount(components)[enabled // len(fair)]]
    starved = np.setdiff1d(always, keys[inner]) // len(fair)
    members = np.isin(components, np.setdiff1d(cyclic, starved))
    return int(np.argmax(members)) if members.any() else None


def _cycle(region: _Region, components: Numbers, fair: Numbers, start: int) -> list[tuple[int, int]]:
    """A fair cycle from a state through its component, as (code, target) of each step.

    It goes to the nearest step or state that satisfies an instance which is not yet satisfied, until all are.
    """

    def enabled(number: int) -> set[int]:
        return {code for code, _ in region.steps_from(number) if fair[code]}

    cycle: list[tuple[int, int]] = []
    owed = enabled(start)
    while owed:
        at = cycle[-1][1] if cycle else start
        wanted = frozenset(owed)
        part = _nearest(region, components, at, lambda code, to, w=wanted: code in w or not w <= enabled(to))
        for code, target in part:
            owed = (owed - {code}) & enabled(target)
        cycle += part
    if not cycle or cycle[-1][1] != start:
        at = cycle[-1][1] if cycle else start
        cycle += _nearest(region, components, at, lambda _, target: target == start)
    return cycle


def _nearest(
    region: _Region, components: Numbers, start: int, wanted: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """The shortest way from a state to a wanted step within its component, that step included."""
    came: dict[int, tuple[int, int]] = {}  # the step that a state was first reached by, as (source, code)
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for code, target in region.steps_from(at):
            if target < 0 or components[target] != components[start]:
                continue
            if wanted(code, target):
                way = [(code, target)]
                while at != start:
                    source, by = came[at]
                    way.append((by, at))
                    at = source
                return way[::-1]
            if target != start and target not in came:
                came[target] = at, code
                queue.append(target)
    raise AssertionError("a fair component has a way to each of its steps; please report this")
