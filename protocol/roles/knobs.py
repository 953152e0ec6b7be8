"""The points at which releases and backends differ, as far as the roles below behave by them."""

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

    @property
    def acks_drain(self) -> bool:
        """Whether prefill acknowledges the drain: it can, and the feature is on."""
        return self.hold_enabled and self.drain_ack
