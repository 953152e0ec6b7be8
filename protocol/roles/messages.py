"""What travels between threads, processes and NICs."""

from __future__ import annotations

from enum import IntEnum

from ..language import Message, flag, part, upto
from .indices import Chunk, Generation, Request, Room, Slot


class ControlKind(IntEnum):
    """A message from a decode rank to a prefill rank."""

    METADATA = 0
    ABORT = 1


class ReportKind(IntEnum):
    """A message from a prefill rank to a decode rank."""

    SUCCESS = 0
    FAILED = 1
    ABORT_ACK = 2
    AUX_DATA = 3


class WriteKind(IntEnum):
    """What a write carries: KV cache for a slot, or the metadata content for the request's metadata buffer."""

    KV = 0
    AUX = 1


class Control(Message):
    """Decode tells a prefill rank about a room; an ABORT may carry a generation, 0 for none.

    Metadata name the memory of one request, `request`; prefill keeps where to write, and decides nothing by it.
    """

    kind = part(ControlKind)
    room = part(Room)
    generation = part(upto(Generation))
    request = part(Request)


class Report(Message):
    """A prefill rank tells decode about a room; an ack carries the generation of its ABORT.

    AUX_DATA is metadata content over TCP, for the metadata buffer of `request`.
    """

    kind = part(ReportKind)
    room = part(Room)
    generation = part(upto(Generation))
    request = part(Request)


class QueuedChunk(Message):
    """A chunk in the transfer queue: the pages of prefill to read are those of `request`.

    The worker looks at its room by number; nothing tells it one life of the number from another. `counted` is kept
    when a staging chunk is put back.
    """

    request = part(Request)
    chunk = part(Chunk)
    last = part(flag)
    counted = part(flag)


class Write(Message):
    """A work request on a queue pair: where it will land was fixed when it was posted.

    It carries the KV cache of `request`, to memory that was meant for `addressee`.
    """

    kind = part(WriteKind)
    request = part(Request)
    addressee = part(Request)
    chunk = part(Chunk)
    slot = part(Slot)
