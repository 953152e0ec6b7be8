"""The model of language.md as a file of its own, for own-models.md: a lock that a server gives to workers."""

from enum import IntEnum

from draincheck import (
    NONE,
    Check,
    Faults,
    Index,
    Message,
    Model,
    State,
    action,
    channel,
    claim,
    field,
    ghost,
    ghost_code,
    invariant,
    maybe,
    part,
    probe,
    require,
)


class Worker(Index):
    """A process. The model chooses how many there are; values are 0, 1, ..."""


class Phase(IntEnum):
    """What a worker does."""

    IDLE = 0
    WORKING = 1


class Grant(Message):
    """The right to use the resource, on its way to a worker."""

    worker = part(Worker)


class Lock(State[None]):
    """The state. Each field says its domain, its shape and its meaning."""

    phase = field(Phase, Worker, means="what the worker does")
    holder = field(maybe(Worker), means="whom the server has given the lock, or none")
    grants = channel(Grant, capacity=2, means="server to workers")
    worked = ghost(maybe(Worker), means="who worked last; no worker knows")


@action("server")
def grant(s: Lock) -> None:
    """The server gives the free lock to any worker."""
    require(s.holder == NONE)
    worker = s.choose(Worker)
    s.holder = worker
    s.grants[()].send(worker=worker)


@action("worker")
def begin(s: Lock) -> None:
    """The worker that the grant names begins."""
    note = s.grants[()].receive()
    s.phase[note.worker] = Phase.WORKING
    remember(s, note.worker)


@ghost_code
def remember(s: Lock, worker: int) -> None:
    """Ghosts are kept by code that may look at everything, and that nothing else can depend on."""
    s.worked = worker


@action("worker {worker}")
def end(s: Lock, worker: Worker) -> None:
    """The worker stops, and the lock is free."""
    require(s.phase[worker] == Phase.WORKING)
    s.phase[worker] = Phase.IDLE
    s.holder = NONE


@invariant
def one_at_a_time(s: Lock) -> None:
    """At most one worker works."""
    working = 0
    for worker in s.all(Worker):
        working = working + (s.phase[worker] == Phase.WORKING)
    claim(working <= 1, "at most one worker works", working=working)


@probe
def second_worker_has_worked(s: Lock) -> int:
    """Without this a pass would say little."""
    return s.worked == 1


def lock(faults: Faults) -> Check:
    model = Model(
        name="lock",
        state=Lock,
        actions=(grant, begin, end),
        sizes={Worker: 2},
        faults={"grants": faults},
        terminal=lambda s: s.holder != NONE,  # a grant that is lost is lost
    )
    return Check(model, (one_at_a_time,), (second_worker_has_worked,))


lossy = lock(Faults(loss=1))
twice = lock(Faults(duplication=1))
