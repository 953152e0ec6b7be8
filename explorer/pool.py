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
from pathlib import Path
from types import FrameType
from typing import Any

from ..properties.cases import Case
from ..protocol.language import DraincheckError
from .identity import key_of
from .results import Result, result_of
from .search import Limits, Progress
from .storage import case_from
from .verify import verify

LOOK_SECONDS = 0.1
"""Between two looks at what the workers say."""
GRACE_SECONDS = 5.0
"""How long interrupted workers may take to say what they know."""

Take = Callable[[str, Result], None]
"""Is given a key and its result; more than once if it was interrupted."""
Hear = Callable[[str, str, Progress], None]
"""Is given a key, the title of a search for it, and where it is."""


class PoolError(Exception):
    """A worker is gone: killed by the system, most likely for want of memory."""


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
    context = multiprocessing.get_context(_start_method())
    news = context.SimpleQueue()
    others = set(multiprocessing.active_children())
    with _without_interrupts():  # workers inherit this: a terminal sends Ctrl-C to them too, even before they are ready
        pool = ProcessPoolExecutor(workers, context, _begin, (news if hear else None,))
        waiting = {pool.submit(_search, key, _source(case), limits): key for key, case in cases.items()}
    started = set(multiprocessing.active_children()) - others
    try:
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
        raise PoolError("a search process was killed, most likely for want of memory") from None
    finally:
        for process in started:
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _start_method() -> str:
    """A server that has loaded the code once and forks workers where there is one, else fresh processes."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.set_forkserver_preload([__name__])
    return "forkserver"


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
def _without_interrupts() -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one is interrupted
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# What follows runs in a worker.


class _Worker:
    """The state of this worker: where its news go, whether it searches now, and whether it was told to stop."""

    news: Any = None
    searching = False
    stopped = False


def _begin(news: Any) -> None:
    _Worker.news = news
    signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: ends the search that runs, if one does, and all that would come."""
    first, _Worker.stopped = not _Worker.stopped, True
    if first and _Worker.searching:
        raise KeyboardInterrupt


def _search(key: str, source: Mapping[str, object], limits: Limits) -> Result | None:
    """The result of a case; None if it was interrupted before anything was known."""
    case = case_from(source)
    if key_of(case) != key:
        raise DraincheckError("the code of draincheck has changed while it ran; start it again")
    try:
        _Worker.searching = True
        if _Worker.stopped:
            return None
        return result_of(verify(case, limits, partial(_tell, key) if _Worker.news else None), case)
    except KeyboardInterrupt:
        return None
    finally:
        _Worker.searching = False


def _tell(key: str, title: str, at: Progress) -> None:
    _Worker.news.put((key, title, at))
