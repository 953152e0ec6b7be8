"""What `size` and `risk` found: tables for people, JSON documents for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.table import Table

from ...properties.deployment.capacity import (
    Held,
    Load,
    Loads,
    heaviest,
    held,
    lightest,
    pages_per_request,
    request_tokens,
)
from ...properties.deployment.ranges import Range
from ...properties.deployment.risk import Measured, Release, corrupted, interval, interval_of_measured, risk
from .quantities import WorkingSet

VERSION = 1
PER = 10_000
"""Risks are also said as so many of this many aborts."""

Number = Fraction | float | int


@dataclass(frozen=True)
class Cost:
    """What one ack path costs: the lightest and the heaviest load of the ranges, and what they hold."""

    acks: str
    """`dead`, `healthy`, or `mixed`."""
    judged: bool
    """Whether the verdict is that of this path."""
    loads: Loads
    lightest: Load
    heaviest: Load
    least: Held
    most: Held

    @property
    def fits(self) -> str | None:
        """Whether the working set fits: `always`, `sometimes`, `never`; None if that is not asked."""
        if self.most.fits is None:
            return None
        if self.most.fits:
            return "always"
        return "sometimes" if self.least.fits else "never"


def costs(loads: Loads, *, mixed: bool) -> list[Cost]:
    """The cost with dead ack paths and beside it with healthy ones, and of the mix of the loads if it is asked."""
    shares = {"healthy": Range.exactly(0), "dead": Range.exactly(1)}
    if mixed:
        shares["mixed"] = loads.dead_share
    judged = "mixed" if mixed else "dead"
    found: list[Cost] = []
    for acks, share in shares.items():
        these = replace(loads, dead_share=share)
        light, heavy = lightest(these), heaviest(these)
        found.append(Cost(acks, acks == judged, these, light, heavy, held(light), held(heavy)))
    return found


def size_table(found: Sequence[Cost]) -> Table:
    """A line for each rate, hold and state of the ack path."""
    with_pool = found[0].least.pool_share is not None
    with_verdict = found[0].fits is not None
    headings = ["aborts/min", "hold", "acks", "held", "tokens"]
    headings += ["of pool"] * with_pool
    headings += ["too little from", "after", "of the time", "fits"] * with_verdict
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        result.add_column(heading, justify="left" if heading in ("acks", "fits") else "right", no_wrap=True)
    for cost in found:
        least, most = cost.least, cost.most
        cells = [
            _between(_per_minute(cost.loads.aborts_per_second), _plain),
            _between(cost.loads.timeout, seconds_words),
            cost.acks,
            _between((least.bytes, most.bytes), bytes_words),
            _between((least.tokens, most.tokens), _grouped),
        ]
        if with_pool:
            cells.append(_between((least.pool_share, most.pool_share), share_words))
        if with_verdict:
            cells.append(f"{_between(_both(most.critical_rate, least.critical_rate, 60), _plain)}/min")
            cells.append(_between((most.seconds_until_short, least.seconds_until_short), seconds_words))
            cells.append(_between((least.short_share, most.short_share), share_words))
            cells.append((cost.fits or "") + " *" * cost.judged)
        result.add_row(*cells)
    return result


def size_lines(found: Sequence[Cost]) -> list[str]:
    """What the table means."""
    first = found[0]
    request = (request_tokens(first.lightest), request_tokens(first.heaviest))
    size = (request[0] * first.lightest.bytes_per_token, request[1] * first.heaviest.bytes_per_token)
    lines = [
        f"A request reserves {_between(request, _grouped)} tokens, {_between(size, bytes_words)}.",
        "held: the average once aborts have come for as long as a hold lasts; a GB is 10^9 bytes.",
        "acks: with dead ones every hold lasts until its timeout; with healthy ones until the drain.",
    ]
    if any(cost.judged and (cost.most.pool_share or 0) > 1 for cost in found):
        lines.append("More than the pool has cannot be held: requests wait for memory before it comes to that.")
    if first.fits is not None:
        lines += [
            "too little from: more aborts than that hold so much, on average, that the working set does not fit.",
            "after: from the beginning of the aborts until then; never if the working set fits.",
            "of the time: how often too little is left if aborts come independently, more at one time than at another.",
            "fits: on average, for all values of the ranges; * is the verdict.",
        ]
        if any(cost.judged and cost.fits == "always" and (cost.most.short_share or 0) > 0.01 for cost in found):
            lines.append("It fits on average only: more than 1 % of the time too little is left.")
    return lines


def size_document(found: Sequence[Cost], assumed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON document of `size`; each quantity is a list of its least and its greatest value."""
    return {
        "format": "draincheck-size",
        "version": VERSION,
        "assumptions": _json_assumptions(assumed),
        "rows": [_size_row(cost) for cost in found],
    }


def _size_row(cost: Cost) -> dict[str, Any]:
    least, most, light, heavy = cost.least, cost.most, cost.lightest, cost.heaviest
    return {
        "abort_rate_per_minute": _pair(*_per_minute(cost.loads.aborts_per_second)),
        "hold_seconds": _pair(cost.loads.timeout.low, cost.loads.timeout.high),
        "acks": cost.acks,
        "dead_share": _pair(cost.loads.dead_share.low, cost.loads.dead_share.high),
        "mean_hold_seconds": _pair(least.mean_hold, most.mean_hold),
        "pages_per_request": _pair(pages_per_request(light), pages_per_request(heavy)),
        "request_bytes": _pair(
            request_tokens(light) * light.bytes_per_token, request_tokens(heavy) * heavy.bytes_per_token
        ),
        "held_requests": _pair(least.requests, most.requests),
        "held_pages": _pair(least.pages, most.pages),
        "held_tokens": _pair(least.tokens, most.tokens),
        "held_bytes": _pair(least.bytes, most.bytes),
        "held_pool_share": _pair(least.pool_share, most.pool_share),
        "working_set_tokens": _pair(light.working_set_tokens, heavy.working_set_tokens),
        "critical_rate_per_minute": _pair(*_both(most.critical_rate, least.critical_rate, 60)),
        "seconds_until_short": None
        if cost.fits is None
        else [_float(most.seconds_until_short), _float(least.seconds_until_short)],
        "short_share_of_time": _pair(least.short_share, most.short_share),
        "fits": cost.fits,
        "judged": cost.judged,
    }


@dataclass(frozen=True)
class Asked:
    """A probability that is asked: `notified` and `silent` free slots at the abort, `held` after a hold."""

    case: str
    release: Release
    context_tokens: int | None = None
    """What prefill still sends, where it is `silent`."""

    @property
    def words(self) -> str:
        """The case, for people."""
        if self.case == "held":
            return f"held {seconds_words(self.release.hold)}"
        told = "prefill is told" if self.case == "notified" else f"not told, {self.context_tokens:,} tokens"
        return f"freed at abort, {told}"


@dataclass(frozen=True)
class Estimate:
    """A probability in closed form, and what the simulation says of it."""

    asked: Asked
    risk: float
    corrupted: int
    trials: int
    low: float
    high: float
    """The interval of the simulation."""
    reaching: int | None
    """How many measured times reach the end of the hold; None without measured ones."""
    measured: tuple[float, float] | None
    """Between what the risk lies, as far as the measured times tell."""

    @property
    def agrees(self) -> bool:
        """Whether the closed form is within the interval of the simulation."""
        return self.low <= self.risk <= self.high


def estimates(
    asked: Sequence[Asked], trials: int, seed: int, confidence: float, say: Callable[[str], None]
) -> list[Estimate]:
    """Each probability both ways; `say` is told what is being simulated.

    All intervals together hold what they should with the confidence (Bonferroni).
    """
    each = 1 - (1 - confidence) / len(asked)
    found: list[Estimate] = []
    for number, this in enumerate(asked):
        say(f"{number + 1} of {len(asked)}: {this.words}")
        bad = corrupted(this.release, trials, (seed, number))
        low, high = interval(bad, trials, each)
        reaching, measured = _measured(this.release, each)
        found.append(Estimate(this, risk(this.release), bad, trials, low, high, reaching, measured))
    return found


def _measured(release: Release, confidence: float) -> tuple[int | None, tuple[float, float] | None]:
    """The interval of the whole risk that comes from there being only so many measured times."""
    for path in release.paths:
        if isinstance(path.tail, Measured):
            rest = risk(replace(release, paths=tuple(other for other in release.paths if other is not path)))
            reaching, (low, high) = interval_of_measured(path.tail, release.hold, release.mean_reuse, confidence)
            return reaching, (rest + path.share * low, rest + path.share * high)
    return None, None


def risk_table(found: Sequence[Estimate]) -> Table:
    """A line for each probability."""
    measured = any(estimate.measured for estimate in found)
    headings = ["slots", "mean reuse", "risk", f"of {PER:,}", "simulated", "interval"] + ["measured"] * measured
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        result.add_column(heading, justify="left" if heading == "slots" else "right", no_wrap=True)
    for estimate in found:
        cells = [
            estimate.asked.words,
            seconds_words(estimate.asked.release.mean_reuse) if estimate.asked.release.mean_reuse else "at once",
            share_words(estimate.risk),
            _of_many(estimate.risk),
            _of_many(estimate.corrupted / estimate.trials),
            _between((estimate.low, estimate.high), _of_many) + " DISAGREES" * (not estimate.agrees),
        ]
        if measured:
            cells.append(
                "-" if estimate.measured is None else " to ".join(f"{PER * x:,.4g}" for x in estimate.measured)
            )
        result.add_row(*cells)
    return result


def risk_lines(found: Sequence[Estimate]) -> list[str]:
    """What the table means."""
    lines = [f"slots: the tails of writes are {_tails(found)}."]
    lines.append(f"of {PER:,}: so many of {PER:,} aborts corrupt another request; simulated: the same from draws.")
    lines.append("interval: where the simulation has it; all intervals of the run together, with the confidence said.")
    if any(estimate.measured for estimate in found):
        lines.append("measured: where it can be, as there are only so many measured times, with the same confidence.")
    if any(estimate.reaching == 0 for estimate in found):
        lines.append("No measured time reaches some of the holds. That is no proof that none can: see measured.")
    return lines


def _tails(found: Sequence[Estimate]) -> str:
    tails: dict[str, str] = {}
    for estimate in found:
        asked = estimate.asked
        longest = getattr(asked.release.paths[0].tail, "longest", 0.0)
        if asked.case == "notified":
            tails["notified"] = f"up to {seconds_words(longest)} (a chunk) where prefill is told"
        elif asked.case == "silent":
            tails[f"{asked.context_tokens}"] = f"up to {seconds_words(longest)} for {asked.context_tokens:,} tokens"
    return ", ".join(tails.values())


def risk_document(found: Sequence[Estimate], assumed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON document of `risk`."""
    return {
        "format": "draincheck-risk",
        "version": VERSION,
        "assumptions": _json_assumptions(assumed),
        "agree": all(estimate.agrees for estimate in found),
        "rows": [_risk_row(estimate) for estimate in found],
    }


def _risk_row(estimate: Estimate) -> dict[str, Any]:
    asked = estimate.asked
    return {
        "case": asked.case,
        "context_tokens": asked.context_tokens,
        "hold_seconds": asked.release.hold,
        "mean_reuse_seconds": asked.release.mean_reuse,
        "risk": estimate.risk,
        "trials": estimate.trials,
        "corrupted": estimate.corrupted,
        "simulated": estimate.corrupted / estimate.trials,
        "interval": [estimate.low, estimate.high],
        "agrees": estimate.agrees,
        "durations_reaching": estimate.reaching,
        "measured_interval": None if estimate.measured is None else list(estimate.measured),
    }


def bytes_words(value: Number) -> str:
    """An amount of memory with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            return f"{float(value):.4g} {unit}" if abs(value) < 10_000 else f"{float(value):,.0f} {unit}"
        value = value / 1000
    raise AssertionError("the last unit takes everything")


def seconds_words(value: Number) -> str:
    """A time in seconds, or milliseconds if it is short."""
    return f"{float(value):.4g} s" if value == 0 or value >= 1 else f"{1000 * float(value):.4g} ms"


def share_words(value: Number) -> str:
    """A share in per cent."""
    percent = 100 * float(value)
    if 0 < percent < 0.0001:
        return "< 0.0001 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if percent == 0 or percent >= 0.1 else f"{percent:.2g} %"


def value_words(value: Any) -> str:
    """The value of an option, in the unit of its name."""
    if isinstance(value, tuple):
        return " and ".join(value_words(each) for each in value)  # pyright: ignore
    if isinstance(value, WorkingSet):
        return value_words(value.tokens or value.share)
    if isinstance(value, Range):
        return _between(value, _plain)
    return _plain(value) if isinstance(value, Fraction | float | int) else str(value)


def _plain(value: Number) -> str:
    number = float(value)
    return f"{number:.0f}" if number == int(number) and number < 1e15 else f"{number:.6g}"


def _of_many(share: Number) -> str:
    many = PER * float(share)
    return f"{many:,.0f}" if many >= 1000 else f"{many:.4g}"


def _grouped(value: Number) -> str:
    return f"{float(value):,.0f}"


def _between(ends: Range | tuple[Number | None, Number | None], words: Callable[[Number], str]) -> str:
    low, high = (ends.low, ends.high) if isinstance(ends, Range) else ends
    first, last = ("never" if end is None else words(end) for end in (low, high))
    return first if first == last else f"{first} to {last}"


def _both(low: Number | None, high: Number | None, factor: int) -> tuple[Number | None, Number | None]:
    return (None if low is None else low * factor, None if high is None else high * factor)


def _per_minute(rate: Range) -> tuple[Fraction, Fraction]:
    return rate.low * 60, rate.high * 60


def _float(value: Number | None) -> float | None:
    return None if value is None else float(value)


def _pair(low: Number | None, high: Number | None) -> list[float] | None:
    return None if low is None or high is None else [float(low), float(high)]


def _json_assumptions(assumed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: {"value": _json(each["value"]), "default": each["default"]} for name, each in assumed.items()}


def _json(value: Any) -> Any:
    match value:
        case tuple():
            return [_json(each) for each in value]  # pyright: ignore
        case WorkingSet(tokens, share):
            return {"tokens": _json(tokens), "share": _json(share)}
        case Range(low, high):
            return [float(low), float(high)]
        case Fraction():
            return float(value)
        case Path():
            return str(value)
        case _:
            return value
