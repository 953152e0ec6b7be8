"""The transfer queue of a prefill rank, from its scheduler to its worker.

mooncake/conn.py: add_transfer_request, transfer_worker. Where a request has any number of chunks, the queue is kept as
two numbers: how many chunks wait, and whether the last one does, which is always behind the others.
"""

from __future__ import annotations

from ..language import require
from .indices import Chunk
from .messages import QueuedChunk
from .state import Drain


def put(s: Drain, prefill: int, request: int, chunk: int, last: int) -> None:
    """The scheduler hands a chunk over; nothing counts it yet."""
    if not s.knobs.endless:
        s.queue[prefill].send(request=request, chunk=chunk, last=last, counted=False)
    elif last:
        s.last_waits[prefill] = True
    else:
        s.backlog[prefill] += 1


def take(s: Drain, prefill: int) -> QueuedChunk:
    """The worker takes the oldest chunk; disabled while there is none. Of endless chunks, it can be for any slot."""
    if not s.knobs.endless:
        return s.queue[prefill].receive()
    last = s.backlog[prefill] == 0
    if last:
        require(s.last_waits[prefill])
        s.last_waits[prefill] = False
    else:
        s.backlog[prefill] -= 1
    chunk = s.choose(s.all(Chunk))
    return QueuedChunk({"request": 0, "chunk": chunk, "last": last, "counted": False})


def has_waiting(s: Drain, prefill: int) -> int:
    """Whether a chunk waits."""
    return (s.queue[prefill].length != 0) | (s.backlog[prefill] != 0) | (s.last_waits[prefill] != 0)


def has_waiting_of(s: Drain, prefill: int, request: int) -> int:
    """Whether a chunk of the request waits."""
    endless = (s.backlog[prefill] != 0) | (s.last_waits[prefill] != 0)
    return s.queue[prefill].some(lambda chunk: chunk.request == request) | endless
