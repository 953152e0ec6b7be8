"""What there is several of: requests and their rooms, ranks, chunks, slots, and the units of the fault budgets."""

from __future__ import annotations

from ..language import Index


class Request(Index):
    """A request with a transfer: what a client sent, once."""


class Room(Index):
    """A room number, by which both ends name a transfer. Fewer rooms than requests: the number is used again."""


class Owner(Index):
    """Whoever can own memory of decode: the requests, and last the victim, which only wants memory."""

    @classmethod
    def label(cls, value: int, size: int) -> str:
        return "victim" if value == size - 1 else f"request {value}"


class Generation(Index):
    """One hold that a decode rank has armed; ABORTs and acks carry its number. Only counted."""


class Backlog(Index):
    """One chunk in a transfer queue in which chunks are not told apart. Only counted."""


class DecodeRank(Index):
    """A decode rank: a process with a scheduler, a receiver thread and its own pool of slots."""


class PrefillRank(Index):
    """A prefill rank: a process with a scheduler, a bootstrap thread, a transfer worker and a NIC."""


class Chunk(Index):
    """A part of a prompt's KV cache; chunk c of a request goes to the request's c-th slot."""


class Slot(Index):
    """A KV-cache slot of a decode rank. Every prefill rank writes its own part of it."""


class SendFault(Index):
    """One send that may fail; their number is the fault budget."""


class Deferral(Index):
    """One chunk that finds its destination's staging ring full; their number is a budget."""
