"""Whether decode's holds end as they should: by acks of all prefill ranks, not by the timer.

Every rank counts its own view. One release can be `drained` on one rank and `timeout` on another, and a rank that holds
only for a peer always says `drained`: so each rank is judged, and the total never outweighs one of them. Pure judging:
counts in, verdicts out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import ceil

DRAINED = "drained"
OUTCOMES = (DRAINED, "timeout", "error")
WITHOUT_HOLDS = ("prefill", "unified")
"""Engine types that never hold a slot for a remote writer."""

Edge = Fraction | float
"""Of a histogram, in seconds: exactly as the text has it, so that it can be compared with a limit; or infinity."""

Labels = tuple[tuple[str, str], ...]
"""Labels of a rank, sorted by name, without those that tell series of one rank apart."""


class Health(StrEnum):
    """What is said of a rank, or of all of them."""

    UNHEALTHY = "UNHEALTHY"
    UNDETERMINED = "UNDETERMINED"
    HEALTHY = "HEALTHY"


@dataclass(frozen=True)
class Durations:
    """A histogram of seconds held: for each upper edge, ascending and ending with infinity, how many are not above."""

    edges: tuple[Edge, ...]
    cumulative: tuple[int, ...]
    seconds: float | None = None
    """Sum over all holds; None if not known."""

    @property
    def count(self) -> int:
        """How many holds."""
        return self.cumulative[-1]

    def quantile(self, share: Fraction) -> tuple[Edge, Edge] | None:
        """The edges between which the quantile lies: above the first, not above the second; None without holds."""
        if not self.count:
            return None
        wanted = max(1, ceil(self.count * share))
        at = next(i for i, count in enumerate(self.cumulative) if count >= wanted)
        return (self.edges[at - 1] if at else Fraction(0)), self.edges[at]


@dataclass(frozen=True)
class Counts:
    """What one rank has counted since it started, or between two scrapes."""

    labels: Labels
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many releases ended so; an outcome that never happened may be absent."""
    durations: Durations | None = None
    held: int | None = None
    """Holds that are open at the time of the (newer) scrape; None if the rank does not say."""

    @property
    def total(self) -> int:
        """Releases of all outcomes."""
        return sum(self.outcomes.values())

    @property
    def drained(self) -> Fraction | None:
        """The share that ended by acks; None without a release."""
        return Fraction(self.outcomes.get(DRAINED, 0), self.total) if self.total else None


@dataclass(frozen=True)
class Thresholds:
    """What is asked for. Shares are of 1; None switches a threshold off."""

    min_drained: Fraction
    max_p99_seconds: Fraction | None = None
    max_held: int | None = None
    idle_ok: bool = False
    """Ranks that released nothing do not matter, as long as another one did."""


@dataclass(frozen=True)
class Judged:
    """A rank, or the total of all, with the verdict and what there is to say about it."""

    counts: Counts
    health: Health
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """All ranks, the total, and the verdict of both."""

    ranks: tuple[Judged, ...]
    total: Judged
    left_out: int
    """Ranks that cannot hold anything: engines that are no decode engines, with nothing counted."""

    @property
    def health(self) -> Health:
        """The worst of the ranks and the total."""
        return _worst_of([self.total.health, *(rank.health for rank in self.ranks)])


@dataclass(frozen=True)
class Change:
    """What a rank counted between two scrapes, and whether its counters began anew in between."""

    counts: Counts
    reset: bool
    new: bool = False
    """The older scrape does not know the rank: what it counted is since it started."""


def judge_releases(ranks: Sequence[Counts], asked: Thresholds) -> Report:
    """Judges each rank and the total. A rank without a release is not healthy, and neither is a total without."""
    relevant = [rank for rank in ranks if not _holds_nothing(rank)]
    total = add(relevant)
    judged = tuple(Judged(rank, *_judge_rank(rank, asked, idle_ok=asked.idle_ok)) for rank in relevant)
    return Report(judged, Judged(total, *_judge_total(total, asked)), len(ranks) - len(relevant))


def _holds_nothing(rank: Counts) -> bool:
    return dict(rank.labels).get("engine_type") in WITHOUT_HOLDS and not rank.total and not rank.held


def _judge_rank(rank: Counts, asked: Thresholds, *, idle_ok: bool) -> tuple[Health, tuple[str, ...]]:
    drained = rank.drained
    if drained is None:
        if idle_ok and _idle(rank):
            return Health.HEALTHY, ("released nothing, which was allowed",)
        still = f"; {rank.held:,} held" if rank.held else ""
        return Health.UNDETERMINED, (f"no release counted{still}",)
    findings = [_judge_p99(rank.durations, asked.max_p99_seconds)]
    if drained < asked.min_drained:
        missing = f"{rank.total - rank.outcomes.get(DRAINED, 0):,} of {rank.total:,} releases did not drain"
        findings.append((Health.UNHEALTHY, missing))
    return _worst(findings)


def _idle(rank: Counts) -> bool:
    """Whether the rank is there and holds nothing: one that has vanished between two scrapes is not idle."""
    return not rank.held and (rank.held is not None or bool(rank.outcomes))


def _judge_total(total: Counts, asked: Thresholds) -> tuple[Health, tuple[str, ...]]:
    health, reasons = _judge_rank(total, asked, idle_ok=False)
    findings = [(health, reason) for reason in reasons or ("",)]
    if asked.max_held is not None:
        if total.held is None:
            findings.append((Health.UNDETERMINED, "no rank says how many holds are open"))
        elif total.held > asked.max_held:
            findings.append((Health.UNHEALTHY, f"{total.held:,} holds are open, more than {asked.max_held:,}"))
    return _worst(findings)


def _judge_p99(durations: Durations | None, limit: Fraction | None) -> tuple[Health, str]:
    if limit is None:
        return Health.HEALTHY, ""
    between = durations.quantile(Fraction(99, 100)) if durations else None
    if between is None:
        return Health.UNDETERMINED, "no durations"
    above, up_to = between
    if up_to <= limit:
        return Health.HEALTHY, ""
    if above >= limit:
        return Health.UNHEALTHY, f"the 99th percentile is above {float(above):g} s, asked are {float(limit):g} s"
    within = f"between {float(above):g} and {float(up_to):g} s"
    return Health.UNDETERMINED, f"the 99th percentile is {within}, which does not decide {float(limit):g} s"


def _worst(findings: Sequence[tuple[Health, str]]) -> tuple[Health, tuple[str, ...]]:
    """The worst health, and every reason for less than healthy."""
    return _worst_of([health for health, _ in findings]), tuple(reason for _, reason in findings if reason)


def _worst_of(found: Sequence[Health]) -> Health:
    return next(health for health in Health if health in found)


def remarks(report: Report) -> list[str]:
    """What a reader should know beside the verdicts."""
    counted = [rank for rank in report.ranks if rank.counts.total]
    said: list[str] = []
    if len(counted) == 1:
        said.append("only one rank has counted releases; every rank counts its own view, and the others may differ")
    if len(counted) > 1:
        said.append("the total counts a release once for each rank that held for it")
    only_drained = [rank for rank in counted if rank.counts.drained == 1]
    if only_drained and len(only_drained) < len(counted):
        said.append(
            f"{len(only_drained)} of {len(counted)} ranks say nothing but drained; that is no evidence that they are "
            "well, because a rank that holds only for a peer always says so"
        )
    if report.total.counts.outcomes.get("error"):
        said.append("error: the release itself failed, and its slots may never come back")
    said += [
        f"{_words(rank.counts.labels)}: the histogram has {rank.counts.durations.count:,} releases, the counter "
        f"{rank.counts.total:,}"
        for rank in report.ranks
        if rank.counts.durations is not None and rank.counts.durations.count != rank.counts.total
    ]
    return said


def _words(labels: Labels) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels) or "the rank without labels"


def add(ranks: Sequence[Counts]) -> Counts:
    """The sum over ranks. Durations are summed if all ranks that have any have the same edges."""
    outcomes = {name: sum(rank.outcomes.get(name, 0) for rank in ranks) for name in OUTCOMES}
    held = [rank.held for rank in ranks if rank.held is not None]
    durations = [rank.durations for rank in ranks if rank.durations is not None]
    return Counts((), outcomes, _add_durations(durations), sum(held) if held else None)


def _add_durations(durations: Sequence[Durations]) -> Durations | None:
    if len({each.edges for each in durations}) != 1:
        return None
    columns = zip(*(each.cumulative for each in durations), strict=True)
    seconds = [each.seconds for each in durations if each.seconds is not None]
    known = len(seconds) == len(durations)
    return Durations(durations[0].edges, tuple(map(sum, columns)), sum(seconds) if known else None)


def changes(older: Sequence[Counts], newer: Sequence[Counts]) -> list[Change]:
    """What each rank counted from the older scrape to the newer one.

    A counter that went down, or that is gone, was reset; then all that the rank counts now is since the reset. A rank
    that is in the older scrape only comes out with nothing counted, as reset.
    """
    before = {rank.labels: rank for rank in older}
    after = {rank.labels: rank for rank in newer}
    gone = [labels for labels in before if labels not in after]
    found = [
        _change(before[labels], rank) if labels in before else Change(rank, reset=False, new=True)
        for labels, rank in after.items()
    ]
    return found + [Change(Counts(labels), reset=True) for labels in gone]


def _change(before: Counts, after: Counts) -> Change:
    if _was_reset(before, after):
        return Change(after, reset=True)
    outcomes = {name: count - before.outcomes.get(name, 0) for name, count in after.outcomes.items()}
    return Change(Counts(after.labels, outcomes, _less(after.durations, before.durations), after.held), reset=False)


def _was_reset(before: Counts, after: Counts) -> bool:
    if any(after.outcomes.get(name, 0) < count for name, count in before.outcomes.items()):
        return True
    if before.durations is None:
        return False
    if after.durations is None or after.durations.edges != before.durations.edges:
        return True
    return _falls(before.durations, after.durations)


def _falls(before: Durations, after: Durations) -> bool:
    """Whether a bucket, not cumulated, holds less than before."""
    change = [new - old for old, new in zip(before.cumulative, after.cumulative, strict=True)]
    return any(step < 0 for step in (change[0], *(b - a for a, b in pairwise(change))))


def _less(after: Durations | None, before: Durations | None) -> Durations | None:
    if after is None or before is None:
        return after
    cumulative = tuple(new - old for new, old in zip(after.cumulative, before.cumulative, strict=True))
    seconds = None if after.seconds is None or before.seconds is None else after.seconds - before.seconds
    return Durations(after.edges, cumulative, seconds)
