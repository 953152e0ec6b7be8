"""The points at which releases and backends differ, and the topology in which a release runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Settled values of the knobs that the roles read. A profile (models/) gives them, with evidence."""

    hold_enabled: bool
    hold_causes: Literal["none", "decode_initiated", "all"]
    arm_order: Literal["never", "after", "before"]
    gen_tags: bool
    drain_ack: bool
    ack_target: Literal["none", "single", "broadcast", "per_endpoint"]
    ack_target_survives_clear: bool
    inactive_register: Literal["never", "if_counted", "always"]
    failed_terminal: bool
    reopen_resets: bool
    abort_handled: bool
    poison_on_error: bool
    poison_on_rejected_post: bool
    err_implies_quiet: bool
    failed_chunk_uncounted: bool
    count_point: Literal["before_test", "after_test"]
    wait_for_siblings: bool
    posts_at_once: bool
    defer_waits: bool
    release_agreement: Literal["rank_local", "tp"]
    second_clear: Literal["room", "own_life"]
    restore_failure: Literal["frees", "rank_local", "agreed"]
    retraction_waits: bool
    hisparse_held: bool
    idle_counts_holds: bool
    compaction_sees_holds: bool
    aux_channel: Literal["in_chunk", "fifo_tcp", "unordered_tcp"]
    reject: Literal["handed_off", "after_forward", "at_door"]
    checksum: Literal["absent", "local_drop", "agreed_drop"]
    router_aborts: Literal["one_leg", "both_legs"]
    caches_failed: bool
    role_switch: bool
    transfers: bool
    receiver_complete: bool
    teardown: Literal["never", "concluded", "concluded_or_gone"]
    aux_after_kv: bool

    @property
    def acks_drain(self) -> bool:
        """Whether the feature is on at this end, and the backend can acknowledge a drain."""
        return self.hold_enabled and self.drain_ack

    @property
    def holds(self) -> bool:
        """Whether decode holds slots after some failure."""
        return self.hold_enabled and self.hold_causes != "none"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The releases at both ends, and what the topology and the features in use make of them.

    `paired` lets decode rank i talk to prefill rank i only; otherwise every decode rank talks to every prefill rank.
    `dummies` makes all pairings but those with prefill rank 0 dummies, to which nothing is written. `stages` makes
    decode's ranks pipeline stages, which agree on no release. `reuse` says when a room number can be used again, if at
    all: while the slots of its former request are still held, once the request has ended at both ends, or once prefill
    has nothing left of it. What matters only then, the worker's teardown and the gate of the metadata, is part of the
    model only then. `staging` puts chunks back whose ring is full, and commits once all have arrived. `endless` gives
    a request any number of chunks, which are not told apart; there is then one request only. `concludes_apart` takes
    the receiver's last step apart, so that every step is about one prefill rank or about all of them alike. The others
    switch features on.
    """

    decode: Knobs
    prefill: Knobs
    paired: bool = False
    dummies: bool = False
    stages: bool = False
    metadata: bool = False
    staging: bool = False
    hisparse: bool = False
    restore: bool = False
    router: bool = False
    router_drops: bool = False
    reuse: Literal["never", "early", "ended", "late"] = "never"
    endless: bool = False
    concludes_apart: bool = False

    @property
    def releases_together(self) -> bool:
        """Whether decode's ranks agree on holding and on the end of a hold."""
        return self.decode.release_agreement == "tp" and not self.stages
