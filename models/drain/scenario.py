"""Scenarios: what happens to the transfers, and in which topology. The environment of a check, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...protocol.language import DeclarationError

LARGEST = 8
"""More of anything than this, slots excepted, is taken for a mistake."""

LARGEST_POOL = 64
"""Slots of a decode rank: enough for the largest number of the largest requests."""

TRACED_QUEUE = 16
TRACED_POOL = 8
TRACED_FANS = 1000
"""Combinations of queue lengths that a traced step meets which sends to every prefill rank."""

ENDS = (
    "disconnect",
    "early-disconnect",
    "waiting-timeout",
    "bootstrap-timeout",
    "partial-publish",
    "prefill-abort",
    "router-cancel",
    "router-death",
    "router-drop",
    "reject",
    "restore-failure",
    "checksum-mismatch",
    "preemption",
    "node-failure",
    "worker-death",
)
"""The ways in which a request can end before its time, apart from failing sends. Each is an action of its own."""

EVENTS = ("flush", "compaction", "pause", "role-switch", "prefill-restart", "decode-restart")
"""What else may happen to decode's memory."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An environment: which ends and faults may come, and how many of what there are.

    `ends` and `events` are of ENDS and EVENTS. `rooms` are requests; with `reuse` all have one room number and follow
    each other as in Setting. `slots` is the pool of a decode rank; None makes
    it just large enough for one request, so that its slots are reused at once. `paired`, `dummies` and `stages` are
    as in Setting. With endless `lives`, requests, victims, generations and failing sends have no number, and with
    `endless_chunks` neither have chunks: such a model can be run and proved, but not searched. `partial` lets one part
    of a call fail while its siblings go on. `peer` says that prefill has another release, the one that a profile names
    as its peer.
    Raises DeclarationError for a size that cannot be meant. Larger sizes can be run than can be searched.
    """

    name: str
    sentence: str
    ends: tuple[str, ...] = ("disconnect",)
    events: tuple[str, ...] = ()
    send_faults: int = 0
    partial: bool = False
    deferrals: int = 0
    lost_controls: int = 0
    lost_reports: int = 0
    doubled_reports: int = 0
    swapped_reports: int = 0
    split_status: bool = False
    metadata: bool = False
    hisparse: bool = False
    host_copies: bool = False
    peer: bool = False
    paired: bool = False
    dummies: bool = False
    stages: bool = False
    reuse: Literal["early", "ended", "late"] | None = None
    lives: Literal["one", "endless"] = "one"
    endless_chunks: bool = False
    rooms: int = 1
    ranks: int = 1
    decode_ranks: int = 1
    chunks: int = 2
    slots: int | None = None

    def __post_init__(self) -> None:
        for kind, names, known in (("end", self.ends, ENDS), ("event", self.events, EVENTS)):
            for name in names:
                if name not in known:
                    raise DeclarationError(f"no {kind} is called {name}; known are {', '.join(known)}")
        sizes = {
            "rooms": self.rooms,
            "prefill ranks": self.ranks,
            "decode ranks": self.decode_ranks,
            "chunks": self.chunks,
            "slots": self.pool,
        }
        for name, size in sizes.items():
            largest = LARGEST_POOL if name == "slots" else LARGEST
            if not 1 <= size <= largest:
                raise DeclarationError(f"{name} is {size}; allowed are whole numbers from 1 to {largest}")
        budgets = {
            "failing sends": self.send_faults,
            "deferred chunks": self.deferrals,
            "lost messages to prefill": self.lost_controls,
            "lost messages to decode": self.lost_reports,
            "doubled messages to decode": self.doubled_reports,
            "swapped messages to decode": self.swapped_reports,
        }
        for name, budget in budgets.items():
            if not 0 <= budget <= LARGEST:
                raise DeclarationError(f"{name} is {budget}; allowed are 0 to {LARGEST}")
        if self.pool < self.chunks:
            raise DeclarationError(f"{self.chunks} chunks need as many slots; the pool has {self.pool}")
        if self.endless_chunks and (self.rooms > 1 or self.deferrals):
            raise DeclarationError(f"{self.name}: endless chunks need one room, and no deferred ones")
        if self.reuse and self.lives == "endless":
            raise DeclarationError(f"{self.name}: in endless lives every room number is used again; leave reuse out")
        if self.paired and self.ranks != self.decode_ranks:
            raise DeclarationError(
                f"{self.name} pairs each decode rank with a prefill rank; "
                f"there are {self.decode_ranks} and {self.ranks}: give the same number of both"
            )

    @property
    def untraceable(self) -> str:
        """Why a model of these sizes can only be run directly; empty if it can be traced, and so searched."""
        if self.rooms * self.chunks > TRACED_QUEUE:
            return f"{self.rooms} rooms of {self.chunks} chunks: the transfer queue takes at most {TRACED_QUEUE}"
        if self.pool > TRACED_POOL:
            return f"slots is {self.pool}; a search takes at most {TRACED_POOL}"
        to_prefill, to_decode = (2 * self.rooms + 1) ** self.ranks, (3 * self.rooms + 1) ** self.decode_ranks
        if to_prefill > TRACED_FANS or to_decode > TRACED_FANS:
            return (
                f"{self.rooms} rooms on {self.ranks} prefill and {self.decode_ranks} decode ranks "
                "are too many to be traced"
            )
        return ""

    @property
    def pool(self) -> int:
        """Slots of a decode rank's pool."""
        return self.chunks if self.slots is None else self.slots


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="abort", sentence="the client goes while writes are in flight"),
        Scenario(
            name="failed-send",
            sentence="a send fails while its write stays live, and the client may go",
            send_faults=1,
        ),
        Scenario(
            name="writers",
            sentence="two prefill ranks write for one decode rank, and a part of a send of one of them fails",
            ends=(),
            send_faults=1,
            partial=True,
            ranks=2,
            chunks=1,
        ),
        Scenario(
            name="siblings",
            sentence="one part of a call fails while another part of it is in flight",
            send_faults=1,
            partial=True,
            chunks=1,
        ),
        Scenario(
            name="fan-out",
            sentence="one prefill rank writes to two decode ranks, and the client goes",
            decode_ranks=2,
            chunks=1,
        ),
        Scenario(
            name="staging",
            sentence="a staging ring is full, so a chunk is put back after writes of it were posted; the client may go",
            decode_ranks=2,
            chunks=1,
            deferrals=1,
        ),
        Scenario(
            name="stages",
            sentence="two pipeline stages of decode, each with its own prefill stage; the client goes",
            decode_ranks=2,
            ranks=2,
            paired=True,
            stages=True,
            chunks=1,
        ),
        Scenario(
            name="dummies",
            sentence="two prefill ranks of which one is a dummy that writes nothing; the client goes",
            ranks=2,
            dummies=True,
            chunks=1,
        ),
        Scenario(
            name="reuse",
            sentence="a room number is used again once its first request has ended; the client may go each time",
            rooms=2,
            reuse="ended",
            chunks=1,
        ),
        Scenario(
            name="late-reuse",
            sentence="a room number is used again once prefill has nothing left of its first request",
            rooms=2,
            reuse="late",
            chunks=1,
        ),
        Scenario(
            name="early-reuse",
            sentence="a room number is used again while the slots of its first request are held",
            rooms=2,
            reuse="early",
            chunks=1,
            slots=2,
        ),
        Scenario(
            name="timeouts",
            sentence="decode or prefill waits too long, or the client goes before decode has reserved anything",
            ends=("waiting-timeout", "bootstrap-timeout", "early-disconnect"),
            chunks=1,
        ),
        Scenario(
            name="prefill-abort",
            sentence="prefill alone gives a request up, and decode waits",
            ends=("prefill-abort", "waiting-timeout"),
        ),
        Scenario(
            name="router",
            sentence="the client goes, and the router tells both ends or only one",
            ends=("router-cancel",),
            chunks=1,
        ),
        Scenario(
            name="router-death",
            sentence="the client goes, and the router may die after it has told prefill and before it tells decode",
            ends=("router-cancel", "router-death"),
            chunks=1,
        ),
        Scenario(
            name="router-drop",
            sentence="prefill gives a request up, and the router drops the decode half",
            ends=("prefill-abort", "router-drop"),
        ),
        Scenario(
            name="partial-publish",
            sentence="decode's metadata reach one of two prefill ranks; the socket to the other fails",
            ends=("partial-publish",),
            ranks=2,
            chunks=1,
        ),
        Scenario(
            name="rejected",
            sentence="prefill rejects a request at its intake",
            ends=("reject",),
        ),
        Scenario(
            name="lost-message",
            sentence="a message from decode to prefill is lost; the client goes",
            lost_controls=1,
            chunks=1,
        ),
        Scenario(
            name="lost-report",
            sentence="a message from prefill to decode is lost or comes twice; the client goes",
            lost_reports=1,
            doubled_reports=1,
            chunks=1,
        ),
        Scenario(
            name="reconnect",
            sentence="a connection to decode is made anew, so that two messages change places; the client goes",
            swapped_reports=1,
        ),
        Scenario(
            name="worker-death",
            sentence="a transfer worker ends by an exception; the client may go",
            ends=("disconnect", "worker-death"),
            chunks=1,
        ),
        Scenario(
            name="node-failure",
            sentence="a prefill process dies with a write in flight, and the heartbeat finds it",
            ends=("disconnect", "node-failure"),
            chunks=1,
        ),
        Scenario(
            name="metadata",
            sentence="the metadata buffer is reserved, written and freed with the slots; the client goes",
            metadata=True,
            chunks=1,
        ),
        Scenario(
            name="flush",
            sentence="decode clears its pools when it takes itself for idle; the client goes",
            events=("flush",),
            chunks=1,
        ),
        Scenario(
            name="pause",
            sentence="decode is paused for a while, and clears its pools if it takes itself for idle; the client goes",
            events=("pause", "flush"),
            chunks=1,
        ),
        Scenario(
            name="role-switch",
            sentence="decode becomes a prefill instance when it takes itself for idle; the client goes",
            events=("role-switch",),
            chunks=1,
        ),
        Scenario(
            name="prefill-restart",
            sentence="a prefill process dies with a write in flight, and is started anew",
            ends=("disconnect", "node-failure"),
            events=("prefill-restart",),
            chunks=1,
        ),
        Scenario(
            name="decode-restart",
            sentence="the decode process is started anew, and prefill hears nothing of it; the client may go",
            events=("decode-restart",),
            chunks=1,
        ),
        Scenario(
            name="compaction",
            sentence="unified memory moves pages while a request is held; the client goes",
            events=("compaction",),
            chunks=1,
            slots=2,
        ),
        Scenario(
            name="hisparse",
            sentence="the destination is host memory that is freed on its own; the client goes",
            hisparse=True,
            chunks=1,
        ),
        Scenario(
            name="restore",
            sentence="one of two decode ranks cannot fetch its part of the prompt from the host tier",
            ends=("restore-failure",),
            decode_ranks=2,
            chunks=1,
        ),
        Scenario(
            name="offload",
            sentence="a decoding request is retracted while its pages are copied to the host tier",
            ends=("preemption",),
            host_copies=True,
            chunks=1,
        ),
        Scenario(
            name="checksum",
            sentence="one of two decode ranks finds a checksum that does not match",
            ends=("checksum-mismatch",),
            decode_ranks=2,
            chunks=1,
        ),
        Scenario(
            name="mixed",
            sentence="prefill runs the next release, with its own way to acknowledge; the client goes",
            peer=True,
            chunks=1,
        ),
        Scenario(
            name="split-status",
            sentence="the client goes, and a rank that opens a room looks at its status and writes it in two steps",
            split_status=True,
        ),
    )
}
"""The scenarios by name."""

DEFAULT = ("abort", "failed-send")
"""Those that `draincheck verify` runs unless others are named; `--all` runs every one."""
