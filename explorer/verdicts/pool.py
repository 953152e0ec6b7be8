"""Searches side by side: each case in a worker process, which sends back its result as data.

A case is made anew in the worker from its source, and the worker's key for it must be the one that was asked for:
another model, or other code, gives no result. A worker that dies takes nothing with it but the search that it was at,
and none outlives the process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from multiprocessing import connection, forkserver
from pathlib import Path
from types import FrameType
from typing import Any, cast

from ...properties.case import Case
from ...protocol.language import DraincheckError
from ..kept.identity import key_of
from ..search.search import OUT_OF_MEMORY, Limits, Progress
from ..traces.storage import case_from
from .results import Result, result_of
from .verify import CaseInterrupted, decide

LOOK_SECONDS = 0.1
"""Between two looks at what the workers say."""
GRACE_SECONDS = 1.0
"""How long interrupted workers may take to say what they know."""
FIRST = f"{__package__}.fork_server"

Take = Callable[[str, Result | None], None]
"""Is given a key and its result, or None if its worker has died."""
Hear = Callable[[str, str, Progress], None]
"""Is given a key, the title of a search for it, and where it is."""


class PoolError(Exception):
    """No worker can be started."""


def available_cores(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: those of its affinity, and no more than its control group pays for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (int(part) for part in (group / "cpu.max").read_text("ascii").split())
    except (ValueError, OSError):  # no control group, or one without a limit, which says "max"
        return cores
    return max(1, min(cores, ceil(quota / period)))


@dataclass
class _Worker:
    """A process that searches, the line to it, and the key that it is at."""

    process: Any
    line: Any
    key: str | None = None

    @property
    def fate(self) -> str:
        """How a process that is no more has ended."""
        self.process.join(GRACE_SECONDS)
        code = self.process.exitcode or 0
        return f"killed by signal {-code}" if code < 0 else "gone"


def search_all(
    cases: Mapping[str, Case], limits: Limits, workers: int, take: Take, hear: Hear | None
) -> dict[str, str]:
    """Searches the cases, by their keys, in so many worker processes, and gives `take` each result when it is there.

    Returns the keys whose worker has died, or has run out of memory, and how. Ctrl-C ends the searches, gives `take`
    what is known, and then is raised. Raises PoolError if no worker can be started.
    """
    crew: list[_Worker] = []
    waiting, lost = dict(cases), dict[str, str]()
    try:
        while waiting or any(each.key for each in crew):
            _give(crew, waiting, limits, workers, tells=hear is not None)
            for worker in _ready(crew, LOOK_SECONDS):
                _listen(worker, crew, take, hear, lost)
        return lost
    except KeyboardInterrupt:
        _interrupt(crew)
        until = time.monotonic() + GRACE_SECONDS
        while any(each.key for each in crew) and time.monotonic() < until:
            for worker in _ready(crew, LOOK_SECONDS):
                _listen(worker, crew, take, None, lost)
        raise
    finally:
        for worker in crew:
            worker.line.close()
            with suppress(ProcessLookupError):  # not process.kill(): it takes all for dead once the fork server is
                os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.join()


def _give(crew: list[_Worker], waiting: dict[str, Case], limits: Limits, workers: int, *, tells: bool) -> None:
    """Gives each idle worker a search; there are no more workers than searches."""
    while waiting:
        worker = next((each for each in crew if each.key is None), None)
        if worker is None and len(crew) >= workers:
            return
        if worker is None:
            with _interrupts_later():  # a worker that is half started could not be ended
                worker = _start(tells)
                crew.append(worker)
        key = next(iter(waiting))
        with suppress(OSError):  # it has died, and its line says so when it is listened to
            worker.line.send((key, _source(waiting[key]), limits))
        worker.key = key
        del waiting[key]


def _ready(crew: list[_Worker], seconds: float) -> list[_Worker]:
    """The workers that have said something, or have died."""
    busy = {each.line: each for each in crew if each.key}
    return [busy[line] for line in connection.wait(list(busy), seconds) if line in busy]


def _listen(worker: _Worker, crew: list[_Worker], take: Take, hear: Hear | None, lost: dict[str, str]) -> None:
    """Takes what a worker says. Raises what went wrong in it, unless it was memory."""
    key = worker.key
    assert key is not None
    try:
        said: Any = worker.line.recv()
    except (EOFError, OSError):
        crew.remove(worker)
        worker.line.close()
        lost[key] = worker.fate
        take(key, None)
        return
    if isinstance(said, tuple):
        if hear:
            title, at = cast(tuple[str, Progress], said)
            hear(key, title, at)
        return
    worker.key = None
    if isinstance(said, MemoryError):
        lost[key] = OUT_OF_MEMORY[1]
        take(key, None)
    elif isinstance(said, BaseException):
        raise said
    elif said is not None:
        take(key, said)


def _start(tells: bool) -> _Worker:
    """A new worker. Raises PoolError."""
    for _ in range(2):  # the fork server may just have died: then there is a new one
        ours, theirs = multiprocessing.Pipe()
        try:
            process = _context().Process(target=_work, args=(theirs, tells), daemon=True)
            process.start()
        except (OSError, EOFError):
            ours.close()
            continue
        finally:
            theirs.close()
        return _Worker(process, ours)
    raise PoolError("no search process can be started")


def _context() -> Any:
    """How processes start: forked by a server that has loaded the code once, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    multiprocessing.set_forkserver_preload([FIRST, __name__])
    with _handling_interrupts(signal.SIG_IGN):  # the server inherits it: a terminal sends Ctrl-C to all processes
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


def _source(case: Case) -> dict[str, object]:
    return dict((case.timed or case.untimed).source)


def _interrupt(crew: list[_Worker]) -> None:
    for worker in crew:
        with suppress(ProcessLookupError):
            os.kill(worker.process.pid, signal.SIGINT)


@contextmanager
def _interrupts_later() -> Generator[None]:
    """Raises KeyboardInterrupt at the end of the block if Ctrl-C came within it."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    with _handling_interrupts(note):
        yield
    if came:
        raise KeyboardInterrupt


@contextmanager
def _handling_interrupts(handler: Any) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one is interrupted
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# What follows runs in a worker.


class _Told:
    """Whether this worker was told to stop."""

    stopped = False


def _work(line: Any, tells: bool) -> None:
    """Searches what comes along the line until that is closed."""
    signal.signal(signal.SIGINT, _stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            key, source, limits = line.recv()
        except (EOFError, OSError):
            return
        try:
            said: object = _search(key, source, limits, partial(_tell, line, tells))
        except Exception as error:
            said = error
        try:
            line.send(said)
        except OSError:
            return
        except Exception:  # an error that cannot be sent
            line.send(RuntimeError(repr(said)))


def _end_with_parent() -> None:
    """Ends this process when the one that wants its results is no more, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: noted only, for an exception could come in the midst of the compiler; `_tell` ends the search."""
    _Told.stopped = True


def _search(key: str, source: Mapping[str, object], limits: Limits, tell: Callable[[str, Progress], None]) -> object:
    """The result of a case; None if there is no more time for it."""
    if _Told.stopped:
        return None
    case = case_from(source)
    if key_of(case) != key:
        raise DraincheckError("the code of draincheck has changed while it ran; start it again")
    try:
        row = decide(case, limits, tell)
    except CaseInterrupted as stopped:
        row = stopped.row
    except KeyboardInterrupt:
        return None
    return result_of(row, case)


def _tell(line: Any, tells: bool, title: str, at: Progress) -> None:
    """Says where a search is, and ends it with what it knows, as Ctrl-C does, if this worker was told to stop."""
    if _Told.stopped:
        raise KeyboardInterrupt
    if tells:
        line.send((title, at))
