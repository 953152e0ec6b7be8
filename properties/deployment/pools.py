"""Whether a KV pool can hold one request as long as its context length.

A request that fits the context length and not the pool is taken and cannot be served: it dies on one of the paths that
the drain exists for. Pure judging: numbers in, verdicts out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

PREFILL = "prefill"
DECODE = "decode"
DYNAMIC = "dynamic"
"""Servers that change sides while they run: they must be able to do what decode does."""
DECODE_RESERVE = 512
"""Tokens that a decode server keeps back for the output of a new request, unless it is told otherwise."""


class GateVerdict(StrEnum):
    """What a gate says of a pool, or of all of them."""

    FAIL = "FAIL"
    UNDETERMINED = "UNDETERMINED"
    OK = "OK"


@dataclass(frozen=True)
class Pool:
    """The KV pool of one rank. Tokens are those of one request: whole, greater than 0."""

    where: str
    """The source, and the line if it has any."""
    side: str
    """`prefill`, `decode`, or what else the source calls it; empty if it does not say."""
    rank: str
    """The rank's name; empty if the source gives none."""
    tokens: int
    context: int
    page: int | None = None
    """Tokens per page; None if not known."""
    server_context: int | None = None
    """The context length that the server itself gives, if it gives one."""
    reserve: int | None = None
    """Tokens that a decode server keeps back for a new request's output; None if not known."""


@dataclass(frozen=True)
class Demand:
    """What a pool must hold beside the context: tokens of output, and slack in tokens or as a share of the rest."""

    output_tokens: int = 0
    slack_tokens: int = 0
    slack_share: Fraction = Fraction(0)


@dataclass(frozen=True)
class Fit:
    """A pool beside what it must hold, in tokens."""

    pool: Pool
    needed: int

    @property
    def margin(self) -> int:
        """Tokens to spare; negative if the pool is short. Exactly enough is enough."""
        return self.pool.tokens - self.needed

    @property
    def verdict(self) -> GateVerdict:
        """OK if the pool holds what it must."""
        return GateVerdict.OK if self.margin >= 0 else GateVerdict.FAIL


@dataclass(frozen=True)
class Gate:
    """All pools, the tightest first, and why something could not be decided."""

    fits: tuple[Fit, ...]
    missing: tuple[str, ...]

    @property
    def verdict(self) -> GateVerdict:
        """FAIL if one pool is short; OK only if there are pools and no source is without."""
        if any(fit.verdict is GateVerdict.FAIL for fit in self.fits):
            return GateVerdict.FAIL
        return GateVerdict.UNDETERMINED if self.missing or not self.fits else GateVerdict.OK


def needed_tokens(pool: Pool, demand: Demand) -> int:
    """Tokens that the longest request takes from the pool.

    Prefill holds the prompt alone; any other side holds the output too, and decode takes a request in only if it can
    keep its reserve back as well. A paged allocator gives whole pages, and the scheduler keeps one page back for that;
    of pages of one token nothing has to be kept back, because the longest prompt that is admitted is a few tokens
    shorter than the context.
    """
    tokens = pool.context + _beside_the_prompt(pool, demand)
    if pool.page is not None and pool.page > 1:
        tokens = (ceil(Fraction(tokens, pool.page)) + 1) * pool.page
    return tokens + demand.slack_tokens + ceil(tokens * demand.slack_share)


def _beside_the_prompt(pool: Pool, demand: Demand) -> int:
    if pool.side == PREFILL:
        return 0
    if pool.side in (DECODE, DYNAMIC):
        return max(demand.output_tokens, DECODE_RESERVE if pool.reserve is None else pool.reserve)
    return demand.output_tokens


def judge_pools(pools: Sequence[Pool], demand: Demand, missing: Sequence[str] = ()) -> Gate:
    """Judges each pool by itself: one that is too small is not helped by the others.

    `missing` names the sources that had no pool in them.
    """
    fits = (Fit(pool, needed_tokens(pool, demand)) for pool in pools)
    return Gate(tuple(sorted(fits, key=lambda fit: (fit.margin, fit.pool.where, fit.pool.rank))), tuple(missing))


def contexts_by_side(pools: Sequence[Pool]) -> dict[str, list[int]]:
    """The context lengths that occur on each side, sorted."""
    found: dict[str, set[int]] = {}
    for pool in pools:
        found.setdefault(pool.side, set()).add(pool.context)
    return {side: sorted(contexts) for side, contexts in sorted(found.items())}
