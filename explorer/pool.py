"""Searches side by side: each case in a worker process, which sends back its result as data.

A case is made anew in the worker from its source, and the worker's key for it must be the one that was asked for:
another model, or other code, gives no result.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from multiprocessing import forkserver
from pathlib import Path
from types import FrameType
from typing import Any

from ..properties.cases import Case
from ..protocol.language import DraincheckError
from .identity import key_of
from .results import Result, result_of
from .search import Limits, Progress
from .storage import case_from
from .verify import decide

LOOK_SECONDS = 0.1
"""Between two looks at what the workers say."""
GRACE_SECONDS = 5.0
"""How long interrupted workers may take to say what they know."""

Take = Callable[[str, Result], None]
"""Is given a key and its result; more than once if it was interrupted."""
Hear = Callable[[str, str, Progress], None]
"""Is given a key, the title of a search for it, and where it is."""


class PoolError(Exception):
    """A worker is gone."""


def available_cores(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: those of its affinity, and no more than its control group pays for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (int(part) for part in (group / "cpu.max").read_text("ascii").split())
    except (ValueError, OSError):  # no control group, or one without a limit, which says "max"
        return cores
    return max(1, min(cores, ceil(quota / period)))


def search_all(cases: Mapping[str, Case], limits: Limits, workers: int, take: Take, hear: Hear | None) -> None:
    """Searches the cases, by their keys, in so many worker processes, and gives `take` each result when it is there.

    Ctrl-C ends the searches, gives `take` what is known, and then is raised. Raises PoolError if a worker dies.
    """
    context = _context()
    news = context.SimpleQueue()
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, _begin, (news if hear else None,))
    waiting: dict[Future[Result | None], str] = {}
    started: set[Any] = set()
    try:
        with _interrupts_later():  # a worker that is half started could not be ended
            waiting |= {pool.submit(_search, key, _source(case), limits): key for key, case in cases.items()}
            started |= set(multiprocessing.active_children()) - others
        while waiting:
            done, _ = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
            while hear and not news.empty():
                hear(*news.get())
            _take(done, waiting, take)
        pool.shutdown()
    except KeyboardInterrupt:
        running = [each for each in waiting if not each.cancel()]
        _interrupt(started)
        with suppress(BrokenProcessPool):
            _take(wait(running, GRACE_SECONDS).done, waiting, take)
        raise
    except BrokenProcessPool:
        raise PoolError(
            "a search process has died, most likely killed for want of memory (--jobs 1 searches one case at a time)"
        ) from None
    finally:
        for process in started:
            process.kill()
            process.join()
        pool.shutdown(wait=False, cancel_futures=True)


def _context() -> Any:
    """How processes start: forked by a server that has loaded the code once, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    multiprocessing.set_forkserver_preload([__name__])
    with _handling_interrupts(signal.SIG_IGN):  # the server inherits it: a terminal sends Ctrl-C to all processes
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


def _source(case: Case) -> dict[str, object]:
    return dict((case.timed or case.untimed).source)


def _take(done: set[Future[Any]], waiting: dict[Future[Any], str], take: Take) -> None:
    for each in sorted(done, key=lambda each: each.exception() is not None):  # what is known comes first
        result = each.result()
        if result is not None:
            take(waiting[each], result)
        del waiting[each]


def _interrupt(processes: set[Any]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)


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


class _Worker:
    """The state of this worker: where its news go, and whether it was told to stop."""

    news: Any = None
    stopped = False


def _begin(news: Any) -> None:
    _Worker.news = news
    signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: noted only, for an exception could come in the midst of the compiler; `_tell` ends the search."""
    _Worker.stopped = True


def _search(key: str, source: Mapping[str, object], limits: Limits) -> Result | None:
    """The result of a case; None if there is no more time for it."""
    if _Worker.stopped:
        return None
    case = case_from(source)
    if key_of(case) != key:
        raise DraincheckError("the code of draincheck has changed while it ran; start it again")
    return result_of(decide(case, limits, partial(_tell, key)), case)


def _tell(key: str, title: str, at: Progress) -> None:
    """Says where a search is, and ends it with what it knows, as Ctrl-C does, if this worker was told to stop."""
    if _Worker.stopped:
        raise KeyboardInterrupt
    if _Worker.news:
        _Worker.news.put((key, title, at))
