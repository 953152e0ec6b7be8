"""What `draincheck gate` and `draincheck metrics` print: tables, sentences and JSON documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from rich.table import Table
from rich.text import Text

from ...properties.deployment.pools import (
    DECODE,
    DECODE_RESERVE,
    DYNAMIC,
    PREFILL,
    Demand,
    Fit,
    Gate,
    GateVerdict,
    Pool,
    contexts_by_side,
)
from ...properties.deployment.releases import (
    OUTCOMES,
    Change,
    Counts,
    Durations,
    Health,
    Judged,
    Report,
    Thresholds,
    remarks,
)
from ..terminal.console import text_cell
from .prometheus import rank_name

GATE_FORMAT = "draincheck-gate"
METRICS_FORMAT = "draincheck-metrics"
VERSION = 1
MEDIAN, TAIL = Fraction(1, 2), Fraction(99, 100)
SIDES = (PREFILL, DECODE)

_GATE_STYLE: Mapping[GateVerdict, str] = {
    GateVerdict.FAIL: "bold red",
    GateVerdict.UNDETERMINED: "magenta",
    GateVerdict.OK: "green",
}
_HEALTH_STYLE: Mapping[Health, str] = {
    Health.UNHEALTHY: "bold red",
    Health.UNDETERMINED: "magenta",
    Health.HEALTHY: "green",
}


@dataclass(frozen=True)
class Reading:
    """The report of one or two scrapes, with what it was made of."""

    report: Report
    asked: Thresholds
    sources: tuple[str, ...]
    interval_seconds: Fraction | None
    changes: tuple[Change, ...]
    """What each rank of the report counted between two scrapes; empty for one scrape."""
    hints: tuple[str, ...] = ()
    """What to do about the sources."""


def gate_table(gate: Gate) -> Table:
    """A row for each pool, the tightest first."""
    table = _table(("source", "side", "rank", "pool", "context", "needed", "to spare", "verdict"), right=range(3, 7))
    for fit in gate.fits:
        pool = fit.pool
        table.add_row(
            text_cell(pool.where),
            text_cell(pool.side or "-"),
            text_cell(pool.rank or "-"),
            f"{pool.tokens:,}",
            f"{pool.context:,}",
            f"{fit.needed:,}",
            f"{fit.margin:,}",
            Text(fit.verdict, style=_GATE_STYLE[fit.verdict]),
        )
    return table


def gate_sentences(gate: Gate, demand: Demand, hints: Sequence[str] = ()) -> list[str]:
    """The verdict, decided by the tightest pool, and what else there is to know, with hints on the sources."""
    return [_gate_verdict(gate), *gate_notes(gate, demand), *hints]


def _gate_verdict(gate: Gate) -> str:
    if not gate.fits:
        return f"{gate.verdict}: no pool was found"
    fit = gate.fits[0]
    name = " ".join(part for part in (fit.pool.side, fit.pool.rank) if part)
    sizes = f"{name + ': ' if name else ''}the pool holds {fit.pool.tokens:,} tokens, needed are {fit.needed:,}"
    if fit.verdict is GateVerdict.FAIL:
        return (
            f"{gate.verdict}: {sizes}: short by {-fit.margin:,}, {_percent(-fit.margin, fit.needed)}; the pool is "
            f"{_percent(fit.pool.tokens, fit.needed)} of it. Lower the context length or grow the pool"
        )
    return f"{gate.verdict}: {sizes}: {fit.margin:,} to spare in the tightest pool"


def gate_notes(gate: Gate, demand: Demand) -> list[str]:
    """What the verdict leaves open or rests on."""
    pools = [fit.pool for fit in gate.fits]
    said = [f"{name}: no pool in it" for name in gate.missing]
    sides = {pool.side for pool in pools}
    said += [
        f"no {side} pool was given; both sides must hold a request" for side in SIDES if sides and _lacks(sides, side)
    ]
    own = {pool.server_context for pool in pools if pool.server_context is not None} - {pool.context for pool in pools}
    said += [f"--context {pools[0].context:,} is taken instead of the server's own {each:,}" for each in sorted(own)]
    contexts = contexts_by_side(pools)
    if len({length for lengths in contexts.values() for length in lengths}) > 1:
        each = "; ".join(
            f"{side or 'side unknown'} {', '.join(f'{n:,}' for n in found)}" for side, found in contexts.items()
        )
        said.append(f"context lengths differ ({each}): a request between them is refused by some servers only")
    if any(pool.page is None for pool in pools):
        said.append(
            "page size not known, so no page was added; give --page-size to count whole pages and the one kept back"
        )
    if any(pool.side in (DECODE, DYNAMIC) and pool.reserve is None for pool in pools):
        said.append(f"decode's reserve is not known: {DECODE_RESERVE} tokens were taken; give --decode-reserve")
    if demand.output_tokens and sides - set(SIDES):
        said.append("where the side is not known the output counts, as on decode")
    return said


def _lacks(sides: set[str], side: str) -> bool:
    return side not in sides and bool(sides & set(SIDES)) and sides <= set(SIDES)


def gate_document(gate: Gate, demand: Demand, hints: Sequence[str] = ()) -> dict[str, Any]:
    """The document of `draincheck gate --json`."""
    return {
        "format": GATE_FORMAT,
        "version": VERSION,
        "verdict": gate.verdict,
        "output_tokens": demand.output_tokens,
        "slack_tokens": demand.slack_tokens,
        "slack_share": float(demand.slack_share),
        "pools": [_fit_document(fit) for fit in gate.fits],
        "missing": list(gate.missing),
        "notes": [*gate_notes(gate, demand), *hints],
    }


def _fit_document(fit: Fit) -> dict[str, Any]:
    pool: Pool = fit.pool
    return {
        "verdict": fit.verdict,
        "where": pool.where,
        "side": pool.side or None,
        "rank": pool.rank or None,
        "pool_tokens": pool.tokens,
        "context_tokens": pool.context,
        "server_context_tokens": pool.server_context,
        "page_tokens": pool.page,
        "reserve_tokens": pool.reserve,
        "needed_tokens": fit.needed,
        "margin_tokens": fit.margin,
        "pool_share": pool.tokens / fit.needed,
    }


def metrics_table(reading: Reading) -> Table:
    """A row for each rank, and one for the total if there are several ranks."""
    headings = ["engine", "rank", "drained", "of releases", "timeout", "error", "held", "median s", "99 % s", "verdict"]
    if reading.interval_seconds:
        headings.insert(-1, "releases/s")
    table = _table(headings, right=range(2, len(headings) - 1))
    ranks = reading.report.ranks
    for judged in ranks:
        known = dict(judged.counts.labels)
        table.add_row(*_cells(known.get("engine_type", "-"), rank_name(judged.counts.labels) or "-", judged, reading))
    if len(ranks) > 1:
        table.add_row(*_cells("total", "", reading.report.total, reading))
    return table


def _cells(engine: str, rank: str, judged: Judged, reading: Reading) -> list[str | Text]:
    counts = judged.counts
    cells: list[str | Text] = [
        text_cell(engine),
        text_cell(rank),
        _percent(counts.drained.numerator, counts.drained.denominator) if counts.drained is not None else "-",
        f"{counts.total:,}",
        f"{counts.outcomes.get('timeout', 0):,}",
        f"{counts.outcomes.get('error', 0):,}",
        "-" if counts.held is None else f"{counts.held:,}",
        _edge_words(counts.durations, MEDIAN),
        _edge_words(counts.durations, TAIL),
    ]
    if reading.interval_seconds:
        cells.append(f"{float(counts.total / reading.interval_seconds):.3g}")
    return [*cells, Text(judged.health, style=_HEALTH_STYLE[judged.health])]


def _edge_words(durations: Durations | None, share: Fraction) -> str:
    between = durations.quantile(share) if durations else None
    if between is None:
        return "-"
    above, up_to = between
    return f"<= {float(up_to):g}" if isfinite(up_to) else f"> {float(above):g}"


def metrics_sentences(reading: Reading) -> list[str]:
    """The verdict with its reasons, and what else there is to know."""
    return [_metrics_verdict(reading), *_reasons(reading.report), *metrics_notes(reading)]


def _metrics_verdict(reading: Reading) -> str:
    report, counts = reading.report, reading.report.total.counts
    asked = f"{float(reading.asked.min_drained * 100):g} %"
    if counts.drained is None:
        return f"{report.health}: no data: no release was counted"
    share = f"{_percent(counts.drained.numerator, counts.drained.denominator)} of {counts.total:,} releases drained"
    return f"{report.health}: {share}; asked are {asked} of each rank"


def _reasons(report: Report) -> list[str]:
    lines = [
        f"{rank_name(rank.counts.labels) or 'the rank'}: {reason}" for rank in report.ranks for reason in rank.reasons
    ]
    return lines + [f"total: {reason}" for reason in report.total.reasons if report.ranks]


def metrics_notes(reading: Reading) -> list[str]:
    """What the verdict leaves open or rests on."""
    said = remarks(reading.report)
    said += [
        f"{rank_name(change.counts.labels) or 'the rank'}: counters went down or are gone: restarted in between "
        "(or the scrapes are in the wrong order); what is counted is since the restart"
        for change in reading.changes
        if change.reset
    ]
    said += [
        f"{rank_name(change.counts.labels) or 'the rank'}: not in the older scrape; what is counted is since it started"
        for change in reading.changes
        if change.new
    ]
    if len(reading.sources) == 2 and reading.interval_seconds is None:
        said.append("give --interval SECONDS for rates")
    if reading.report.left_out:
        said.append(f"{reading.report.left_out} ranks left out: no decode engines, nothing counted")
    if not reading.report.ranks:
        unknown = "no decode rank in it: release without these metrics, metrics not enabled, or a prefill server?"
        said += reading.hints or [unknown]
    return said


def metrics_document(reading: Reading) -> dict[str, Any]:
    """The document of `draincheck metrics --json`."""
    asked = reading.asked
    reset = {change.counts.labels for change in reading.changes if change.reset}
    return {
        "format": METRICS_FORMAT,
        "version": VERSION,
        "verdict": reading.report.health,
        "sources": list(reading.sources),
        "interval_seconds": None if reading.interval_seconds is None else float(reading.interval_seconds),
        "min_drained": float(asked.min_drained),
        "max_p99_seconds": None if asked.max_p99_seconds is None else float(asked.max_p99_seconds),
        "max_held": asked.max_held,
        "idle_ok": asked.idle_ok,
        "total": _judged_document(reading.report.total, reading.interval_seconds),
        "ranks": [
            {
                "labels": dict(rank.counts.labels),
                "reset": rank.counts.labels in reset,
                **_judged_document(rank, reading.interval_seconds),
            }
            for rank in reading.report.ranks
        ],
        "left_out": reading.report.left_out,
        "notes": metrics_notes(reading),
    }


def _judged_document(judged: Judged, interval: Fraction | None) -> dict[str, Any]:
    counts = judged.counts
    return {
        "verdict": judged.health,
        "reasons": list(judged.reasons),
        "releases": counts.total,
        "outcomes": {name: counts.outcomes.get(name, 0) for name in OUTCOMES},
        "drained_share": None if counts.drained is None else float(counts.drained),
        "releases_per_second": None if interval is None else float(counts.total / interval),
        "held": counts.held,
        "mean_seconds": _mean(counts),
        "median_seconds": _between(counts.durations, MEDIAN),
        "p99_seconds": _between(counts.durations, TAIL),
    }


def _mean(counts: Counts) -> float | None:
    durations = counts.durations
    if durations is None or durations.seconds is None or not durations.count:
        return None
    return durations.seconds / durations.count


def _between(durations: Durations | None, share: Fraction) -> list[float | None] | None:
    between = durations.quantile(share) if durations else None
    return None if between is None else [float(between[0]), float(between[1]) if isfinite(between[1]) else None]


def _percent(part: int, whole: int) -> str:
    """A share with one decimal, rounded so that less than all never reads as all, nor more than nothing as nothing."""
    tenths = round(Fraction(part * 1000, whole))
    if 0 < part < whole:
        tenths = min(max(tenths, 1), 999)
    return f"{tenths // 10}.{tenths % 10} %"


def _table(headings: Sequence[str], right: range) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at in right else "left", no_wrap=True)
    return table
