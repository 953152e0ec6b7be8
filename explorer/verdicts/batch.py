"""Many cases: those that are known are not searched again, equal ones are searched once, the rest side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...properties.case import Case
from ...protocol.language import DraincheckError
from ..kept.identity import key_of
from ..search.search import OUT_OF_MEMORY, Limits, Progress, memory_share
from .pool import PoolError, search_all
from .results import Result, result_of, row_of
from .store import Store
from .verify import CaseInterrupted, Row, decide, undecided, weigh

FEW = 16
"""So many cases are begun in this process: most are over before a worker has loaded its code."""
PATIENCE_SECONDS = 2.0
"""After this time even a few cases are worth the start of workers."""


@dataclass(frozen=True)
class Status:
    """How far a batch is, in rows, and the searches that run, with their titles."""

    done: int
    rows: int
    running: tuple[tuple[str, Progress], ...]


@dataclass(frozen=True)
class Batch:
    """What is known: a row for each case, or None where an interruption came first."""

    found: tuple[Row | None, ...]
    interrupted: bool

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are known, in the order of the cases."""
        return tuple(row for row in self.found if row)


def verify_all(
    cases: Sequence[Case],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    jobs: int = 1,
    store: Store | None = None,
    watch: Callable[[Status], None] | None = None,
) -> Batch:
    """Decides cases, up to `jobs` at a time. A default limit of memory is shared by those that run together.

    Where something is unknown that matters, its other values are searched as well, and weighed against each other.
    Raises DraincheckError if a model is declared wrongly. Ctrl-C ends it with what is known.
    """
    everything = [each for case in cases for each in (case, *case.alternatives)]
    running = _Running(everything, limits, store, watch)
    interrupted = False
    try:
        running.recall()
        if jobs > 1:
            if len(running.open) <= FEW:
                running.search_here(PATIENCE_SECONDS)
            running.search_side_by_side(jobs)
        running.search_here()
    except KeyboardInterrupt:
        interrupted = True
    return Batch(tuple(_weighed(cases, running.rows)), interrupted)


def _weighed(cases: Sequence[Case], rows: Sequence[Row | None]) -> Iterator[Row | None]:
    """The row of each case, from its own and those of its alternatives behind it; None where its own is not known."""
    at = 0
    for case in cases:
        own, others = rows[at], rows[at + 1 : at + 1 + len(case.alternatives)]
        at += 1 + len(case.alternatives)
        yield weigh(case, own, [row for row in others if row]) if own else None


class _TakesLong(Exception):
    """The searches in this process have used up their time."""


@dataclass
class _Group:
    """Equal cases, by their positions, and the key that they share; a case without a key is alone."""

    key: str | None
    positions: list[int] = field(default_factory=list[int])


class _Running:
    """A batch that is being worked on. `open` are the groups without rows."""

    def __init__(
        self, cases: Sequence[Case], limits: Limits, store: Store | None, watch: Callable[[Status], None] | None
    ) -> None:
        self._cases = cases
        self._limits = limits
        self._store = store
        self._watch = watch
        self._progress: dict[str, tuple[str, Progress]] = {}
        self.rows: list[Row | None] = [None] * len(cases)
        groups: dict[object, _Group] = {}
        for position, case in enumerate(cases):
            key = key_of(case)
            groups.setdefault(key or position, _Group(key)).positions.append(position)
        self.open = list(groups.values())

    def recall(self) -> None:
        """Takes the rows that the store knows."""
        for group in list(self.open):
            result = self._store.read(group.key) if self._store and group.key else None
            if result:
                try:
                    self._fill(group, [row_of(result, self._cases[at], stored=True) for at in group.positions])
                except DraincheckError:
                    continue  # its runs are none: as good as no result, and soon replaced

    def search_here(self, patience: float = float("inf")) -> None:
        """Searches in this process, one case after the other, until none is open or patience ends."""
        until = time.perf_counter() + patience

        def look(title: str, at: Progress) -> None:
            self._show([(title, at)])
            if len(self.open) > 1 and time.perf_counter() > until:
                raise _TakesLong

        while self.open and (len(self.open) == 1 or time.perf_counter() < until):
            group = self.open[0]
            case = self._cases[group.positions[0]]
            try:
                row = decide(case, self._limits, look)
            except _TakesLong:
                return
            except CaseInterrupted as stopped:
                self._found(group, stopped.row)
                raise
            self._found(group, row)

    def _found(self, group: _Group, row: Row) -> None:
        """Takes the row of a group's first case, and makes those of the equal ones."""
        if group.key is None:
            self._fill(group, [row])
            return
        first, *others = group.positions
        result = result_of(row, self._cases[first])
        self._fill(group, [row, *(row_of(result, self._cases[at]) for at in others)])
        self._keep(group.key, result)

    def search_side_by_side(self, jobs: int) -> None:
        """Searches in worker processes; leaves open what needs more memory than its share, or has no key.

        What a worker dies of is searched once more alone, in a worker of its own; then its rows say so.
        """
        groups = {group.key: group for group in self.open if group.key}
        workers = min(jobs, len(groups))
        if workers < 2:
            return
        limits = self._limits if self._limits.memory else replace(self._limits, memory=memory_share(workers))

        def hear(key: str, title: str, at: Progress) -> None:
            self._progress[key] = (title, at)
            self._show(self._progress.values())

        def take(key: str, result: Result | None) -> None:
            group = groups[key]
            self._progress.pop(key, None)
            if result and group in self.open and not (self._limits.memory is None and _short_of_memory(result)):
                self._fill(group, [row_of(result, self._cases[at]) for at in group.positions])
                self._keep(key, result)

        cases = {key: self._cases[group.positions[0]] for key, group in groups.items()}
        listen = hear if self._watch else None
        try:
            lost = search_all(cases, limits, workers, take, listen)
            for key in lost:
                alone = replace(limits, memory=self._limits.memory or memory_share())
                for fate in search_all({key: cases[key]}, alone, 1, take, listen).values():
                    reason = f"its search process died twice (at last: {fate}); it may need more memory than there is"
                    self._fill(groups[key], [undecided(self._cases[at], reason) for at in groups[key].positions])
        except PoolError:
            return  # what is open is searched in this process

    def _fill(self, group: _Group, rows: Sequence[Row]) -> None:
        for position, row in zip(group.positions, rows, strict=True):
            self.rows[position] = row
        self.open.remove(group)
        self._show(self._progress.values())

    def _keep(self, key: str, result: Result) -> None:
        if self._store:
            self._store.write(key, result)

    def _show(self, running: Iterable[tuple[str, Progress]]) -> None:
        if self._watch:
            self._watch(Status(sum(row is not None for row in self.rows), len(self.rows), tuple(running)))


def _short_of_memory(result: Result) -> bool:
    runs = (run for run in (result.run, result.without_timer) if run)
    return any(reason.startswith(OUT_OF_MEMORY) for reason in (*result.reasons, *(run.reason for run in runs)))
