"""Prometheus text as pools and as counts of releases, by prometheus-client's parser.

Metric names are taken without the engine's prefix (`engine:name`). Each line is parsed by itself, so that what is
wrong has a line number. A value that cannot be right is refused; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from math import inf, isfinite

from prometheus_client.parser import text_string_to_metric_families

from ...properties.deployment.pools import Pool
from ...properties.deployment.releases import OUTCOMES, Counts, Durations, Edge, Labels
from .sources import SourceError, name_of

POOL = "max_total_num_tokens"
CONTEXT = "context_len"
PAGE = "page_size"
RELEASES = "decode_deferred_kv_release_total"
SECONDS = "decode_deferred_kv_release_seconds"
BUCKET, COUNT, SUM = f"{SECONDS}_bucket", f"{SECONDS}_count", f"{SECONDS}_sum"
HELD = "num_decode_deferred_kv_release_reqs"
OURS = (POOL, CONTEXT, PAGE, RELEASES, BUCKET, COUNT, SUM, HELD)

_RENAMED = re.compile(rf"[A-Za-z0-9]+_(?:{POOL}|{RELEASES}|{SECONDS}_\w+|{HELD})")

EXACT = 2**53
"""From here on not every whole number has a value of its own in the text's 64 bits."""

MAX_EXPONENT = 18
"""Of ten, in seconds: what is larger or smaller is no duration, and would be long to write out."""

RANK_LABELS = ("dp_rank", "pp_rank", "tp_rank", "moe_ep_rank")


@dataclass(frozen=True)
class Sample:
    """One line of one of our metrics."""

    where: str
    name: str
    labels: Labels
    value: float

    def label(self, name: str) -> str | None:
        """The value of a label; None without it."""
        return dict(self.labels).get(name)

    def without(self, name: str) -> Labels:
        """The labels but one: what tells ranks apart."""
        return tuple(pair for pair in self.labels if pair[0] != name)


@dataclass(frozen=True)
class Scrape:
    """The samples of our metrics in one text."""

    name: str
    samples: tuple[Sample, ...]
    renamed: str = ""
    """The first metric that has the name of one of ours behind another word and an underscore."""

    def of(self, name: str) -> list[Sample]:
        """The samples of one metric, in the order of the text."""
        return [sample for sample in self.samples if sample.name == name]


def parse(source: str, text: str) -> Scrape:
    """Reads a text.

    Raises SourceError for a line that is not Prometheus text, a last line without an end, and a series twice.
    """
    name = name_of(source)
    if text.lstrip().startswith("<"):
        raise SourceError(
            f"{name}, line 1: a page of HTML or XML; expected Prometheus text: does the URL end in /metrics?"
        )
    lines = text.split("\n")
    if lines[-1].strip():
        raise SourceError(
            f"{name}, line {len(lines)}: the last line has no end, so the text may be cut off within it; "
            "expected a line feed after each line"
        )
    samples: list[Sample] = []
    renamed = ""
    for number, line in enumerate(lines, 1):
        for sample in _parse_line(f"{name}, line {number}", line):
            if sample.name in OURS:
                samples.append(sample)
            elif not renamed and _RENAMED.fullmatch(sample.name):
                renamed = sample.name
    _refuse_repetition(samples)
    return Scrape(name, tuple(samples), renamed)


def gateway_hint(scrape: Scrape) -> list[str]:
    """What to do about a text whose names a gateway has changed: it may leave out servers, and does not say so."""
    if not scrape.renamed or scrape.samples:
        return []
    return [
        f"{scrape.name}: {scrape.renamed} is a name as a gateway writes it that collects metrics of servers, of those "
        "that answer; scrape each server itself"
    ]


def _parse_line(where: str, line: str) -> list[Sample]:
    try:
        families = list(text_string_to_metric_families(line))
        values = [float(sample.value) for family in families for sample in family.samples]
    except (ValueError, IndexError, ArithmeticError):
        shown = line.strip()[:60]
        raise SourceError(f'{where}: {shown!r} is not Prometheus text; expected name{{label="value"}} number') from None
    samples = [sample for family in families for sample in family.samples]
    return [
        Sample(where, sample.name.rpartition(":")[2], tuple(sorted(sample.labels.items())), value)
        for sample, value in zip(samples, values, strict=True)
    ]


def _refuse_repetition(samples: Iterable[Sample]) -> None:
    seen: dict[tuple[str, Labels], Sample] = {}
    for sample in samples:
        first = seen.setdefault((sample.name, sample.labels), sample)
        if first is not sample:
            raise SourceError(
                f"{sample.where}: {sample.name} with these labels was given before ({first.where}); expected each "
                f"series once: scrape each process by itself, or with a label that tells them apart"
            )


def pools(scrape: Scrape, context: int | None, page: int | None, reserve: int | None) -> list[Pool]:
    """The pool of each rank. `context` and `page` go before what the server says; None leaves it to the server.

    `reserve` is decode's, in tokens, which no metric has.

    Raises SourceError if a value is no whole number greater than 0, or a pool has no context length.
    """
    contexts = {sample.labels: _count(sample, least=1) for sample in scrape.of(CONTEXT)}
    pages = {sample.labels: _count(sample, least=1) for sample in scrape.of(PAGE)}
    found: list[Pool] = []
    for sample in scrape.of(POOL):
        tokens = _count(sample, least=1)
        own = contexts.get(sample.labels)
        window = context or own
        if window is None:
            raise SourceError(f"{sample.where}: {POOL} without a {CONTEXT} with the same labels; give --context")
        found.append(
            Pool(
                where=sample.where,
                side=sample.label("engine_type") or "",
                rank=rank_name(sample.labels),
                tokens=tokens,
                context=window,
                page=page or pages.get(sample.labels),
                server_context=own,
                reserve=reserve,
            )
        )
    return found


def rank_name(labels: Labels) -> str:
    """The rank's own labels, and every other one but the model's and the engine's."""
    known = dict(labels)
    ranks = [f"{name}={known[name]}" for name in RANK_LABELS if name in known]
    others = [
        f"{name}={value}"
        for name, value in labels
        if value and name not in RANK_LABELS and name not in ("model_name", "engine_type")
    ]
    return " ".join([*ranks, *others])


def counts(scrape: Scrape) -> list[Counts]:
    """What each rank has counted; a rank is a label set without `outcome` and `le`, sorted by name.

    Raises SourceError if a value cannot be right: no whole number, negative, an unknown outcome, buckets that fall.
    """
    outcomes: dict[Labels, dict[str, int]] = {}
    for sample in scrape.of(RELEASES):
        outcomes.setdefault(sample.without("outcome"), {})[_outcome(sample)] = _count(sample)
    held = {sample.labels: _count(sample) for sample in scrape.of(HELD)}
    durations = _durations(scrape)
    ranks = sorted({*outcomes, *held, *durations}, key=lambda labels: [_natural(pair) for pair in labels])
    return [Counts(rank, outcomes.get(rank, {}), durations.get(rank), held.get(rank)) for rank in ranks]


def _natural(pair: tuple[str, str]) -> tuple[str, int, str]:
    """Sorts rank 2 before rank 10."""
    name, value = pair
    return name, int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1, value


def _outcome(sample: Sample) -> str:
    outcome = sample.label("outcome")
    expected = f"expected one of {', '.join(OUTCOMES)}"
    if outcome is None:
        raise SourceError(f"{sample.where}: {sample.name} has no label outcome; {expected}")
    if outcome not in OUTCOMES:
        raise SourceError(f"{sample.where}: {sample.name} has the unknown outcome {outcome!r}; {expected}")
    return outcome


def _durations(scrape: Scrape) -> dict[Labels, Durations]:
    buckets: dict[Labels, list[tuple[Edge, Sample]]] = {}
    for sample in scrape.of(BUCKET):
        buckets.setdefault(sample.without("le"), []).append((_edge(sample), sample))
    totals = {sample.labels: sample for sample in scrape.of(COUNT)}
    sums = {sample.labels: _seconds(sample) for sample in scrape.of(SUM)}
    for labels, sample in totals.items():
        if labels not in buckets:
            raise SourceError(f"{sample.where}: {COUNT} without a {BUCKET} with the same labels; expected the buckets")
    return {
        labels: _histogram(sorted(found, key=lambda pair: pair[0]), totals.get(labels), sums.get(labels))
        for labels, found in buckets.items()
    }


def _histogram(found: Sequence[tuple[Edge, Sample]], total: Sample | None, seconds: float | None) -> Durations:
    """A histogram from its buckets, sorted by edge."""
    edges = tuple(edge for edge, _ in found)
    cumulative = tuple(_count(sample) for _, sample in found)
    for (edge, sample), (next_edge, next_sample) in pairwise(found):
        if edge == next_edge:
            raise SourceError(f"{next_sample.where}: {BUCKET} has the edge {float(edge):g} twice; expected each once")
        if next_sample.value < sample.value:
            raise SourceError(
                f"{next_sample.where}: {BUCKET} falls from {sample.value:g} to {next_sample.value:g}; expected counts "
                "that are cumulated over the edges"
            )
    if edges[-1] != inf:
        raise SourceError(f'{found[-1][1].where}: {BUCKET} ends at {float(edges[-1]):g}; expected one with le="+Inf"')
    if total is not None and _count(total) != cumulative[-1]:
        raise SourceError(f"{total.where}: {COUNT} is {total.value:g}, but the buckets end at {cumulative[-1]}")
    return Durations(edges, cumulative, seconds)


def _edge(sample: Sample) -> Edge:
    """The upper edge that the text writes, exactly: as a float, 0.1 would be above a limit of 0.1."""
    text = sample.label("le")
    expected = "expected an upper edge in seconds"
    if text is None:
        raise SourceError(f"{sample.where}: {BUCKET} has no label le; {expected}")
    try:
        edge = Decimal(text)
    except InvalidOperation:
        raise SourceError(f"{sample.where}: {BUCKET} has le={text!r}; {expected}") from None
    if edge == Decimal("Infinity"):
        return inf
    if not edge.is_finite() or edge < 0 or not -MAX_EXPONENT <= edge.adjusted() <= MAX_EXPONENT:
        raise SourceError(f"{sample.where}: {BUCKET} has le={text!r}; {expected}")
    return Fraction(edge)


def _count(sample: Sample, least: int = 0) -> int:
    value = sample.value
    if not isfinite(value) or value != int(value) or not least <= value < EXACT:
        expected = "greater than 0" if least else "that is not negative"
        raise SourceError(f"{sample.where}: {sample.name} is {value:g}; expected a whole number {expected}")
    return int(value)


def _seconds(sample: Sample) -> float:
    if not isfinite(sample.value) or sample.value < 0:
        raise SourceError(f"{sample.where}: {SUM} is {sample.value:g}; expected seconds that are not negative")
    return sample.value
