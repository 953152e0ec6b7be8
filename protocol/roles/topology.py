"""Who talks to whom, and which room number a request has. Fixed for a model.

common/conn.py: CommonKVManager._resolve_rank_mapping.
"""

from __future__ import annotations

from collections.abc import Sequence

from .indices import DecodeRank, PrefillRank, Request, Room
from .state import Drain


def room_of(s: Drain, request: int) -> int:
    """The room number of a request: its own, or the one that all share."""
    return request if s.size(Room) == s.size(Request) else 0


def numbers_come_again(s: Drain) -> bool:
    """Whether a room number can be used again, so that what one life leaves meets the next."""
    return s.knobs.reuse != "never"


def same_room(s: Drain, room: int) -> Sequence[int]:
    """The requests that have the room number."""
    return [request for request in s.all(Request) if s.size(Room) == 1 or request == room]


def partners(s: Drain, decode: int) -> Sequence[int]:
    """The prefill ranks that a decode rank tells where to write, dummies included."""
    return [decode] if s.knobs.paired else s.all(PrefillRank)


def served(s: Drain, prefill: int) -> Sequence[int]:
    """The decode ranks that tell a prefill rank where to write."""
    return [prefill] if s.knobs.paired else s.all(DecodeRank)


def writes(s: Drain, prefill: int) -> bool:
    """Whether the prefill rank writes to decode at all: a dummy does not, and some backends transfer nothing."""
    return s.knobs.decode.transfers and (not s.knobs.dummies or prefill == 0)


def writers(s: Drain, decode: int) -> Sequence[int]:
    """The prefill ranks that write to a decode rank."""
    return [prefill for prefill in partners(s, decode) if writes(s, prefill)]
