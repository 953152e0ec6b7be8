"""How likely a late write is: slots that are freed at the abort, or after a hold, and then used again.

A write lands `tail` seconds after the abort; the slots are used again `hold + reuse` seconds after it, `reuse` being
exponentially distributed. A write that lands then or later corrupts: equality is unsafe. Each probability is there
twice, in closed form (`risk`) and by drawing tails and reuses (`corrupted`); the two share no code. Time is in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

Draws = NDArray[np.float64]

_BATCH = 1_000_000
"""So many trials are drawn at once."""


@dataclass(frozen=True)
class Uniform:
    """The last write lands at any moment up to `longest`: the abort hits a transfer of that length anywhere."""

    longest: float


@dataclass(frozen=True)
class Retry:
    """The last write lands after `start`, the timeout of a transfer, and an exponential time of mean `mean`."""

    start: float
    mean: float


@dataclass(frozen=True, eq=False)
class Measured:
    """The last write lands after one of these times, each as likely as the others."""

    seconds: Draws


Tail = Uniform | Retry | Measured


@dataclass(frozen=True)
class Path:
    """A way an abort can go: its share of all aborts, and when its last write lands."""

    share: float
    tail: Tail


@dataclass(frozen=True)
class Release:
    """When slots are used again: a hold (0: freed at the abort), and the mean of the time after it (0: at once).

    The shares of `paths` add up to at most 1; the other aborts have nothing in flight.
    """

    hold: float
    mean_reuse: float
    paths: tuple[Path, ...]


def risk(release: Release) -> float:
    """The probability that an abort corrupts, in closed form; docs/sizing.md derives it."""
    return math.fsum(path.share * late(path.tail, release.hold, release.mean_reuse) for path in release.paths)


def late(tail: Tail, hold: float, mean_reuse: float) -> float:
    """The probability that a write of this tail lands when the slots are used again, or later."""
    match tail:
        case Uniform(longest):
            return _late_uniform(longest, hold, mean_reuse)
        case Retry(start, mean):
            return _late_retry(start - hold, mean, mean_reuse)
        case Measured(seconds):
            return _late_measured(seconds - hold, mean_reuse)


def _late_uniform(longest: float, hold: float, mean_reuse: float) -> float:
    left = longest - hold
    if left <= 0:
        return 0.0
    return left / longest * (1.0 if mean_reuse == 0 else _before_uniform(left / mean_reuse))


def _before_uniform(length: float) -> float:
    """The probability that a standard exponential time is over before a uniform one up to `length`."""
    if length < 1e-4:  # the closed form would lose its digits
        return length / 2 - length**2 / 6 + length**3 / 24
    return 1 + math.expm1(-length) / length


def _late_retry(lead: float, mean: float, mean_reuse: float) -> float:
    """`lead`: by how much the retries start later than the hold ends."""
    if lead <= 0:
        return math.exp(lead / mean) * mean / (mean + mean_reuse)
    if mean_reuse == 0:
        return 1.0
    return 1 - math.exp(-lead / mean_reuse) * mean_reuse / (mean_reuse + mean)


def _late_measured(left: Draws, mean_reuse: float) -> float:
    """`left`: of each measured time, what is left of it when the hold ends."""
    if mean_reuse == 0:
        return float(np.mean(left >= 0))
    return float(np.mean(-np.expm1(-np.maximum(left, 0) / mean_reuse)))


def corrupted(release: Release, trials: int, seed: tuple[int, ...]) -> int:
    """How many of so many simulated aborts corrupt. The same seed gives the same number."""
    random = np.random.default_rng(seed)
    shares = [path.share for path in release.paths]
    shares.append(max(0.0, 1 - sum(shares)))
    found = 0
    for start in range(0, trials, _BATCH):
        numbers = random.multinomial(min(_BATCH, trials - start), shares)
        for path, number in zip(release.paths, numbers[:-1], strict=True):
            lands = _draw(path.tail, int(number), random)
            used_again = release.hold + random.exponential(release.mean_reuse, int(number))
            found += int(np.count_nonzero(lands >= used_again))
    return found


def _draw(tail: Tail, number: int, random: np.random.Generator) -> Draws:
    match tail:
        case Uniform(longest):
            return random.uniform(0, longest, number)
        case Retry(start, mean):
            return start + random.exponential(mean, number)
        case Measured(seconds):
            return random.choice(seconds, number)


def interval(found: int, trials: int, confidence: float) -> tuple[float, float]:
    """The exact interval (Clopper and Pearson) of a probability of which `found` of `trials` were seen."""
    proportion: Any = stats.binomtest(found, trials).proportion_ci(confidence, method="exact")  # pyright: ignore
    return float(proportion.low), float(proportion.high)


def interval_of_measured(
    tail: Measured, hold: float, mean_reuse: float, confidence: float
) -> tuple[int, tuple[float, float]]:
    """How many measured times reach the end of the hold, and between what the probability `late` lies for that.

    A few measured times say little of the longest ones: none of 100 beyond the hold leaves several per cent possible.
    The interval is that of times which reach the hold; a reuse that is not at once can only make less of them late.
    """
    reaching = int(np.count_nonzero(tail.seconds >= hold))
    low, high = interval(reaching, len(tail.seconds), confidence)
    return reaching, (low if mean_reuse == 0 else 0.0, high)
