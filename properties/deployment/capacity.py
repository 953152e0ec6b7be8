"""What holds cost: the memory that aborted requests keep, and when too little is left for the others.

Numbers are fractions, so that a pool which just fits is told from one that does not. Time is in seconds, memory in
tokens of KV cache. Every result is monotone in every input, so the results of ranges are those of two corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from .ranges import Range


@dataclass(frozen=True)
class Load:
    """Aborts, how long each holds its slots, and the pool that the slots are of."""

    aborts_per_second: Fraction
    timeout: Fraction
    """The hold of an abort whose ack never comes, in seconds."""
    drain: Fraction
    """From an abort to the release by acks, in seconds."""
    dead_share: Fraction
    """The share of aborts whose ack path is dead."""
    context_tokens: Fraction
    """The reservation of a request."""
    page_tokens: Fraction
    bytes_per_token: Fraction
    pool_tokens: Fraction | None
    working_set_tokens: Fraction | None
    """What other requests need of the pool."""


@dataclass(frozen=True)
class Held:
    """What a load holds once it has lasted longer than the hold. Averages, as aborts come one by one."""

    requests: Fraction
    pages: Fraction
    tokens: Fraction
    bytes: Fraction
    pool_share: Fraction | None
    mean_hold: Fraction
    critical_rate: Fraction | None
    """The most aborts a second with which the working set still fits; None if that is not asked."""
    seconds_until_short: Fraction | None
    """From the first abort until too little is left for the working set; None if that never happens, or not asked."""
    short_share: float | None
    """The share of time in which too little is left if aborts come independently (Poisson)."""
    fits: bool | None
    """Whether the working set fits beside what is held on average; None if that is not asked."""


def pages_per_request(load: Load) -> int:
    """Pages of a reservation: the last one counts whole."""
    return math.ceil(load.context_tokens / load.page_tokens)


def request_tokens(load: Load) -> Fraction:
    """Tokens that a reservation takes from the pool."""
    return pages_per_request(load) * load.page_tokens


def mean_hold(load: Load) -> Fraction:
    """Seconds that an abort holds its slots, on average: the timer ends a drain that takes longer."""
    healthy = min(load.drain, load.timeout)
    return load.dead_share * load.timeout + (1 - load.dead_share) * healthy


def held(load: Load) -> Held:
    """What the load holds: rate x hold x pages per request, and what that leaves."""
    hold = mean_hold(load)
    requests = load.aborts_per_second * hold
    tokens = requests * request_tokens(load)
    free = _free_tokens(load)
    return Held(
        requests=requests,
        pages=requests * pages_per_request(load),
        tokens=tokens,
        bytes=tokens * load.bytes_per_token,
        pool_share=None if load.pool_tokens is None else tokens / load.pool_tokens,
        mean_hold=hold,
        critical_rate=None if free is None else max(free, Fraction(0)) / (hold * request_tokens(load)),
        seconds_until_short=None if free is None else seconds_until(load, free),
        short_share=None if free is None else share_of_time_above(requests, free / request_tokens(load)),
        fits=None if free is None else tokens <= free,
    )


def _free_tokens(load: Load) -> Fraction | None:
    """What may be held at most; negative if the working set is larger than the pool."""
    if load.pool_tokens is None or load.working_set_tokens is None:
        return None
    return load.pool_tokens - load.working_set_tokens


def seconds_until(load: Load, tokens: Fraction) -> Fraction | None:
    """Seconds from the start of a storm until more than `tokens` are held; None if it never comes to that.

    What is held grows with every abort until the first holds end by acks, then with those of dead ack paths only,
    and no more once the timer ends these.
    """
    if tokens < 0:
        return Fraction(0)
    inflow = load.aborts_per_second * request_tokens(load)
    healthy = min(load.drain, load.timeout)
    if inflow * mean_hold(load) <= tokens:
        return None
    if tokens <= inflow * healthy:
        return tokens / inflow
    return healthy + (tokens - inflow * healthy) / (inflow * load.dead_share)


def share_of_time_above(mean: Fraction, requests: Fraction) -> float:
    """How often more than `requests` are held at once, of `mean` on average, if aborts come independently.

    The number held is then Poisson distributed, whatever the distribution of the hold (M/G/infinity).
    """
    if requests < 0:
        return 1.0
    return float(special.pdtrc(math.floor(requests), float(mean)))  # pyright: ignore


@dataclass(frozen=True)
class Loads:
    """A load of which only ranges are known. The page size must be known, and the working set may be a share."""

    aborts_per_second: Range
    timeout: Range
    drain: Range
    dead_share: Range
    context_tokens: Range
    page_tokens: Fraction
    bytes_per_token: Range
    pool_tokens: Range | None
    working_set_tokens: Range | None
    working_set_share: Range | None
    """Instead of tokens: of the pool."""


def heaviest(loads: Loads) -> Load:
    """The load of the ranges that holds most and leaves least."""
    return _corner(loads, lambda span: span.high, lambda span: span.low)


def lightest(loads: Loads) -> Load:
    """The load of the ranges that holds least and leaves most."""
    return _corner(loads, lambda span: span.low, lambda span: span.high)


def _corner(loads: Loads, end: Callable[[Range], Fraction], end_of_pool: Callable[[Range], Fraction]) -> Load:
    """The load at one end of every range, and at the other end of the pool's."""
    pool = None if loads.pool_tokens is None else end_of_pool(loads.pool_tokens)
    working_set = None if loads.working_set_tokens is None else end(loads.working_set_tokens)
    if loads.working_set_share is not None and pool is not None:
        working_set = end(loads.working_set_share) * pool
    return Load(
        aborts_per_second=end(loads.aborts_per_second),
        timeout=end(loads.timeout),
        drain=end(loads.drain),
        dead_share=end(loads.dead_share),
        context_tokens=end(loads.context_tokens),
        page_tokens=loads.page_tokens,
        bytes_per_token=end(loads.bytes_per_token),
        pool_tokens=pool,
        working_set_tokens=working_set,
    )
