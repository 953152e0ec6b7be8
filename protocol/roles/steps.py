"""Where requests and threads can be. The first member of each is where it begins."""

from __future__ import annotations

from enum import IntEnum


class Life(IntEnum):
    """A request on a decode rank."""

    NEW = 0
    PREALLOCATED = 1
    TRANSFERRING = 2
    FAILING = 3
    HELD = 4
    DECODING = 5
    GONE = 6


class Poll(IntEnum):
    """What a decode rank's receiver knows of a room; MISSING once it is cleared."""

    MISSING = 0
    WAITING = 1
    SUCCESS = 2
    FAILED = 3


class VictimLife(IntEnum):
    """The victim: it wants one slot, once."""

    WAITING = 0
    RUNNING = 1
    DONE = 2


class DecodeStep(IntEnum):
    """Where a decode scheduler is within a step that others can interleave with.

    SEND_UNARMED is SEND on a path that never arms the tracker; CRASHED is the end of the scheduler by an exception.
    """

    IDLE = 0
    ARM = 1
    SEND = 2
    DISPOSE = 3
    SEND_UNARMED = 4
    CRASHED = 5


class Engine(IntEnum):
    """Whether decode's engine is paused; it is, once at most."""

    NOT_YET = 0
    PAUSED = 1
    RESUMED = 2


class Status(IntEnum):
    """What a prefill rank knows of a room."""

    MISSING = 0
    BOOTSTRAPPING = 1
    WAITING = 2
    SUCCESS = 3
    FAILED = 4


class Sender(IntEnum):
    """A request on a prefill rank. ABORTED is gone without its room having been cleared."""

    NONE = 0
    QUEUED = 1
    RUNNING = 2
    INFLIGHT = 3
    GONE = 4
    ABORTED = 5


class SchedulerStep(IntEnum):
    """Where a prefill scheduler is within opening a room, putting a chunk or clearing a room."""

    IDLE = 0
    PUT = 1
    POP_STATUS = 2
    POP_INFOS = 3
    CHECK_DRAIN = 4
    SEND_ACK = 5
    OPEN = 6
    DEAD = 7


class BootstrapStep(IntEnum):
    """Where a bootstrap thread is within handling an ABORT."""

    IDLE = 0
    MARK = 1
    REGISTER = 2
    CHECK_DRAIN = 3
    SEND_ACK = 4
    ANSWER = 5
    DEAD = 6


class WorkerStep(IntEnum):
    """Where a transfer worker is within a chunk."""

    IDLE = 0
    TAKEN = 1
    TO_COUNT = 2
    COUNTED = 3
    TO_POST = 4
    POSTED = 5
    SENT = 6
    CONCLUDE = 7
    FAILED = 8
    REPORT = 9
    UNCOUNT = 10
    CHECK_DRAIN = 11
    SEND_ACK = 12
    AUX_POSTED = 13
    AUX_SENT = 14
    DEAD = 15
    LOOK_AT_END = 16
    TEAR_DOWN = 17


class Fate(IntEnum):
    """What becomes of the write of a call that has failed."""

    LIVE = 0
    DEAD = 1


class SendFailure(IntEnum):
    """How a send fails: it ends in an error, or it is refused when it is posted, perhaps in part."""

    ERROR = 0
    REJECTED_POST = 1


class Restore(IntEnum):
    """The part of a prompt that a decode rank fetches from its host tier while the rest is transferred."""

    RUNNING = 0
    DONE = 1
    FAILED = 2


class Copy(IntEnum):
    """The copying of a decoding request's pages to the host tier."""

    NONE = 0
    RUNNING = 1
    DONE = 2
