"""`size` and `risk`: the article's figures, closed forms against integrals and draws, monotonicity, bad input."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.operators import sizing_report
from draincheck.explorer.operators.durations import load_durations
from draincheck.explorer.operators.quantities import (
    BYTES,
    BYTES_PER_SECOND,
    PER_MINUTE,
    SECONDS,
    SHARE,
    TOKENS,
    TOKENS_PER_SECOND,
    Kind,
    QuantityError,
    quantity,
    span,
    working_set,
)
from draincheck.properties.deployment.capacity import (
    Load,
    Loads,
    heaviest,
    held,
    lightest,
    mean_hold,
    pages_per_request,
    request_tokens,
    seconds_until,
    share_of_time_above,
)
from draincheck.properties.deployment.ranges import Range
from draincheck.properties.deployment.risk import (
    Measured,
    Release,
    Retry,
    Tail,
    Uniform,
    corrupted,
    interval,
    interval_of_measured,
    late,
    risk,
)
from draincheck.properties.deployment.risk import Path as AbortPath
from draincheck.protocol.language import DraincheckError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

DOCS = Path(__file__).parents[1] / "docs"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def rows(*arguments: object, exit_code: int = 0) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == exit_code, result.output
    document = json.loads(result.stdout)
    assert (document["format"], document["version"]) == (f"draincheck-{arguments[0]}", 1)
    return document["rows"]


# Capacity


def test_the_articles_table_of_capacities() -> None:
    table = {
        (row["abort_rate_per_minute"][0], row["hold_seconds"][0]): row["held_bytes"]
        for row in rows("size")
        if row["acks"] == "dead"
    }
    assert table == {
        (1, 30): [2.4e9] * 2,
        (1, 120): [9.6e9] * 2,
        (6, 30): [14.4e9] * 2,
        (6, 120): [57.6e9] * 2,
    }


def test_the_articles_reservations() -> None:
    assert rows("size")[0]["request_bytes"] == [4.8e9] * 2
    assert rows("size", "--context-tokens", 800_000)[0]["request_bytes"] == [30e9] * 2


def test_the_document_shows_the_table_that_is_printed() -> None:
    shown = (DOCS / "sizing.md").read_text("utf-8").split("```\naborts/min")[1].split("```")[0].splitlines()[1:]
    printed = [line.rstrip() for line in run("size").stdout.splitlines()]
    assert len(shown) == 8
    for line in shown:
        assert line in printed


def load(**changes: Any) -> Load:
    """6 aborts a minute of 128,000 tokens, held for 120 s, in a pool of 2,000,000 of which 60 % are needed."""
    base = Load(
        aborts_per_second=Fraction(1, 10),
        timeout=Fraction(120),
        drain=Fraction(1, 50),
        dead_share=Fraction(1),
        context_tokens=Fraction(128_000),
        page_tokens=Fraction(1),
        bytes_per_token=Fraction(37_500),
        pool_tokens=Fraction(2_000_000),
        working_set_tokens=Fraction(1_200_000),
    )
    return replace(base, **{name: None if value is None else Fraction(value) for name, value in changes.items()})


def test_a_storm_by_hand() -> None:
    storm = held(load())
    assert (storm.requests, storm.tokens, storm.fits) == (12, 1_536_000, False)
    assert storm.pool_share == Fraction(1_536, 2_000)
    assert storm.critical_rate == Fraction(800_000, 120 * 128_000)
    assert storm.seconds_until_short == Fraction(800_000, 12_800)  # 62.5 s


def test_the_verdict_changes_exactly_at_the_critical_rate() -> None:
    edge = held(load()).critical_rate
    assert edge is not None
    at_it, above = held(load(aborts_per_second=edge)), held(load(aborts_per_second=edge * Fraction(1_000_001, 10**6)))
    assert at_it.fits and at_it.seconds_until_short is None
    assert not above.fits and above.seconds_until_short is not None


def test_a_working_set_larger_than_the_pool_never_fits() -> None:
    for rate in (0, 1):
        storm = held(load(aborts_per_second=rate, working_set_tokens=2_000_001))
        assert (storm.fits, storm.critical_rate, storm.seconds_until_short, storm.short_share) == (False, 0, 0, 1.0)


def test_without_aborts_nothing_is_held() -> None:
    quiet = held(load(aborts_per_second=0))
    assert (quiet.tokens, quiet.fits, quiet.seconds_until_short, quiet.short_share) == (0, True, None, 0.0)


def test_what_is_not_asked_is_not_answered() -> None:
    assert held(load(working_set_tokens=None)).fits is None
    unknown = held(load(pool_tokens=None, working_set_tokens=None))
    assert (unknown.pool_share, unknown.critical_rate, unknown.seconds_until_short) == (None, None, None)


def test_the_last_page_counts_whole() -> None:
    paged = load(context_tokens=129, page_tokens=64)
    assert (pages_per_request(paged), request_tokens(paged)) == (3, 192)
    assert held(paged).pages == 12 * 3


def test_the_timer_ends_a_drain_that_takes_longer() -> None:
    assert mean_hold(load(dead_share=0, drain=500)) == 120
    assert mean_hold(load(dead_share=Fraction(1, 4), drain=20)) == Fraction(120 + 3 * 20, 4)


positive = st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=100)
shares = st.fractions(min_value=0, max_value=1, max_denominator=50)
tokens = st.integers(1, 5000)
loads_of_any_kind = st.builds(
    Load,
    aborts_per_second=st.one_of(st.just(Fraction(0)), positive),
    timeout=positive,
    drain=positive,
    dead_share=shares,
    context_tokens=tokens.map(Fraction),
    page_tokens=st.integers(1, 64).map(Fraction),
    bytes_per_token=positive,
    pool_tokens=st.integers(5000, 10**7).map(Fraction),
    working_set_tokens=st.integers(0, 10**7).map(Fraction),
)


@given(
    loads_of_any_kind, positive, st.sampled_from([field.name for field in fields(Load) if field.name != "page_tokens"])
)
def test_more_of_anything_but_pool_holds_more_and_leaves_less(less: Load, more: Fraction, name: str) -> None:
    value = getattr(less, name) + (math.ceil(more) if "tokens" in name else more)
    changed = replace(less, **{name: min(value, Fraction(1)) if name == "dead_share" else value})
    low, high = (held(changed), held(less)) if name == "pool_tokens" else (held(less), held(changed))
    assert low.bytes <= high.bytes and low.tokens <= high.tokens and low.requests <= high.requests
    assert low.pool_share is not None and high.pool_share is not None and low.pool_share <= high.pool_share
    assert low.critical_rate is not None and high.critical_rate is not None and low.critical_rate >= high.critical_rate
    assert low.short_share is not None and high.short_share is not None and low.short_share <= high.short_share + 1e-12
    assert low.fits or not high.fits
    assert high.seconds_until_short is None or (low.seconds_until_short or math.inf) >= high.seconds_until_short or (
        low.seconds_until_short == 0
    )  # fmt: skip


def held_at(this: Load, seconds: Fraction) -> Fraction:
    """Tokens held so long after the beginning of a storm, by counting what came and has not gone."""
    inflow = this.aborts_per_second * request_tokens(this)
    dead, healthy = this.dead_share, 1 - this.dead_share
    return inflow * (dead * min(seconds, this.timeout) + healthy * min(seconds, this.drain, this.timeout))


@given(loads_of_any_kind)
def test_the_moment_of_a_storm_is_where_what_is_held_reaches_the_rest(this: Load) -> None:
    assert this.pool_tokens is not None and this.working_set_tokens is not None
    free = this.pool_tokens - this.working_set_tokens
    moment = seconds_until(this, free)
    if moment is None:
        assert held(this).fits and held_at(this, 2 * this.timeout) <= free
    elif free < 0:
        assert moment == 0
    else:
        assert held_at(this, moment) == free < held_at(this, moment + Fraction(1, 10**9))
        assert not held(this).fits


@given(loads_of_any_kind)
def test_what_is_held_at_last_is_the_rule(this: Load) -> None:
    assert held_at(this, this.timeout) == held(this).tokens


@given(st.fractions(0, 30, max_denominator=20), st.fractions(0, 40, max_denominator=7))
def test_the_share_of_time_is_the_tail_of_a_poisson_distribution(mean: Fraction, requests: Fraction) -> None:
    below = math.fsum(
        math.exp(-float(mean)) * float(mean) ** k / math.factorial(k) for k in range(math.floor(requests) + 1)
    )
    assert share_of_time_above(mean, requests) == pytest.approx(1 - below, abs=1e-12)


def test_the_share_of_time_is_what_random_aborts_give() -> None:
    random = np.random.default_rng(1)
    storm = load(dead_share=Fraction(1, 2), drain=20, working_set_tokens=2_000_000 - 10 * 128_000)
    times = np.cumsum(random.exponential(10.0, 400_000))
    ends = times + np.where(random.random(times.size) < 0.5, 120.0, 20.0)
    moments = random.uniform(1000, times[-1], 20_000)
    number = np.searchsorted(times, moments) - np.searchsorted(np.sort(ends), moments)
    expected = held(storm).short_share
    assert expected is not None
    low, high = interval(int(np.count_nonzero(number > 10)), 20_000, 0.9999)
    assert low <= expected <= high


@st.composite
def ranges(draw: st.DrawFn, least: Fraction, most: Fraction) -> Range:
    ends = sorted(draw(st.lists(st.fractions(least, most, max_denominator=20), min_size=2, max_size=2)))
    return Range(*ends)


@given(st.data())
def test_every_load_of_the_ranges_is_between_the_two_corners(data: st.DataObject) -> None:
    def between(low: int | Fraction, high: int) -> Range:
        return data.draw(ranges(Fraction(low), Fraction(high)))

    as_share = data.draw(st.booleans())
    these = Loads(
        aborts_per_second=between(0, 10),
        timeout=between(1, 100),
        drain=between(Fraction(1, 10), 100),
        dead_share=between(0, 1),
        context_tokens=between(1, 1000),
        page_tokens=Fraction(16),
        bytes_per_token=between(1, 100),
        pool_tokens=between(2000, 100_000),
        working_set_tokens=None if as_share else between(0, 100_000),
        working_set_share=between(0, 1) if as_share else None,
    )

    def inside(span: Range) -> Fraction:
        return span.low + (span.high - span.low) * data.draw(shares)

    assert these.pool_tokens
    pool = inside(these.pool_tokens)
    needed = these.working_set_tokens or these.working_set_share
    assert needed
    one = held(
        Load(
            inside(these.aborts_per_second),
            inside(these.timeout),
            inside(these.drain),
            inside(these.dead_share),
            inside(these.context_tokens),
            these.page_tokens,
            inside(these.bytes_per_token),
            pool,
            inside(needed) * (pool if as_share else 1),
        )
    )
    least, most = held(lightest(these)), held(heaviest(these))
    assert least.bytes <= one.bytes <= most.bytes
    for name in ("pool_share", "short_share"):
        assert getattr(least, name) <= getattr(one, name) + 1e-12 <= getattr(most, name) + 2e-12
    assert one.critical_rate is not None and least.critical_rate is not None and most.critical_rate is not None
    assert most.critical_rate <= one.critical_rate <= least.critical_rate
    early, moment, late_ = (
        math.inf if each.seconds_until_short is None else each.seconds_until_short for each in (most, one, least)
    )
    assert early <= moment <= late_
    assert (least.fits or not one.fits) and (one.fits or not most.fits)


STORM = ("size", "--pool-tokens", 2_000_000, "--working-set", "60%", "--abort-rate-per-minute", 6)


def test_the_exit_code_is_the_verdict() -> None:
    assert run("size", "--pool-tokens", 2_000_000).exit_code == 0
    assert run(*STORM, "--hold-seconds", 30).exit_code == 0
    assert run(*STORM, "--hold-seconds", 120).exit_code == 1
    assert run(*STORM, "--hold-seconds", "30..120").exit_code == 1
    assert run(*STORM, "--hold-seconds", 120, "--dead-share", "50%").exit_code == 0
    assert run(*STORM, "--hold-seconds", 120, "--dead-share", "50%..90%").exit_code == 1


def test_the_storm_as_text() -> None:
    text = run(*STORM, "--hold-seconds", 120).stdout
    (dead,) = [line.split() for line in text.splitlines() if " dead " in line and "/min" in line]
    assert dead == ["6", "120", "s", "dead", "57.6", "GB", "1,536,000", "76.8", "%", "3.125/min", "62.5", "s",
                    "95.4", "%", "never", "*"]  # fmt: skip
    (healthy,) = [line for line in text.splitlines() if " healthy " in line and "/min" in line]
    assert "always" in healthy and "*" not in healthy
    assert "Given: abort-rate-per-minute 6, hold-seconds 120, pool-tokens 2000000, working-set 0.6." in text
    assert "Assumed: context-tokens 128000, kv-bytes-per-token 37500, page-tokens 1, drain-seconds 0.012288." in text


def test_a_pool_that_fits_on_average_only_says_so() -> None:
    assert "It fits on average only" in run(*STORM, "--hold-seconds", 60).stdout
    assert "It fits on average only" not in run(*STORM, "--hold-seconds", 120, "--dead-share", "1%").stdout


def test_more_than_the_pool_is_said() -> None:
    assert "More than the pool has" in run("size", "--pool-tokens", 1_500_000).stdout
    assert "More than the pool has" not in run("size", "--pool-tokens", 1_600_000).stdout


def test_the_largest_and_smallest_numbers_give_numbers() -> None:
    extreme = rows("size", "--abort-rate-per-minute", "1e-99..1e18", "--hold-seconds", "1e-99..1e18",
                   "--drain-seconds", "1e-99..1e18", "--pool-tokens", "128000..1e18", "--working-set", "0..1e18",
                   "--kv-bytes-per-token", "1e-99..1e18", exit_code=1)  # fmt: skip
    for row in extreme:
        assert row["fits"] == "sometimes" and row["short_share_of_time"] == [0, 1]
    for hold in ("0", "1e-99", "1e18"):
        for reuse in ("0", "1e-99", "1e18"):
            found = rows("risk", "--trials", 10, "--hold-seconds", hold, "--mean-reuse-seconds", reuse,
                         "--reuse-after-hold-seconds", reuse, "--mean-retry-seconds", "1e-99")  # fmt: skip
            assert all(0 <= row["risk"] <= 1 for row in found)


def test_ranges_give_intervals() -> None:
    (row,) = [
        row for row in rows(*STORM, "--hold-seconds", "30..120", "--dead-share", "0..1", exit_code=1) if row["judged"]
    ]
    assert row["acks"] == "mixed" and row["fits"] == "sometimes"
    assert row["held_tokens"] == [pytest.approx(0.1 * 0.012288 * 128_000), 1_536_000]
    assert row["seconds_until_short"] == [62.5, None]


def test_units_do_not_matter() -> None:
    one = rows("size", "--abort-rate-per-minute", "0.1/s", "--hold-seconds", "2min", "--context-tokens", "125Ki")
    other = rows("size", "--abort-rate-per-minute", "6", "--hold-seconds", "120s", "--context-tokens", "128_000")
    assert one == other


# Quantities


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("30", SECONDS, 30),
        ("1.5e1", SECONDS, 15),
        ("30 s", SECONDS, 30),
        ("12.288ms", SECONDS, Fraction("0.012288")),
        ("2min", SECONDS, 120),
        ("6/min", PER_MINUTE, 6),
        ("0.1/s", PER_MINUTE, 6),
        ("37.5kB", BYTES, 37_500),
        ("37.5KiB", BYTES, 38_400),
        ("1GB", BYTES, 10**9),
        ("1GiB", BYTES, 2**30),
        ("25GB/s", BYTES_PER_SECOND, 25 * 10**9),
        ("20000/s", TOKENS_PER_SECOND, 20_000),
        ("128Ki", TOKENS, 131_072),
        ("1_048_576", TOKENS, 1_048_576),
        ("5%", SHARE, Fraction(1, 20)),
        ("1", SHARE, 1),
    ],
)
def test_quantities(text: str, kind: Kind, value: Fraction) -> None:
    assert quantity(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("37.5KB", BYTES, "could be a power of 1,000 or of 1,024"),
        ("37.5K", BYTES, "could be a power of 1,000 or of 1,024"),
        ("25Gb/s", BYTES_PER_SECOND, "could be bits"),
        ("128K", TOKENS, "could be a power of 1,000 or of 1,024"),
        ("2m", SECONDS, "could be minutes or milliseconds"),
        ("6/m", PER_MINUTE, "could be per minute or per millisecond"),
        ("30x", SECONDS, "no unit 'x' here"),
        ("30 GB", SECONDS, "no unit 'GB' here"),
        ("nan", SECONDS, "is not a number"),
        ("inf", SECONDS, "is not a number"),
        ("", SECONDS, "is not a number"),
        ("1,5", SECONDS, "no unit ',5' here"),
        ("1.", SECONDS, "no unit '.' here"),
        ("٣", SECONDS, "is not a number"),
        ("-1", SECONDS, "must be greater than 0"),
        ("0", SECONDS, "must be greater than 0"),
        ("1e19", SECONDS, "is too large"),
        ("1e999999999", SECONDS, "no unit '9999999' here"),
        ("9" * 100, SECONDS, "is not a number"),
        ("1.5", TOKENS, "is not a whole number of tokens"),
        ("5", SHARE, "is too large; the most is 1"),
        ("101%", SHARE, "is too large; the most is 1"),
        ("1..2", SECONDS, "is a range; give one number"),
    ],
)
def test_quantities_that_are_refused(text: str, kind: Kind, message: str) -> None:
    with pytest.raises(QuantityError) as error:
        quantity(text, kind)
    assert message in str(error.value)


def test_spans() -> None:
    assert span("30..120", SECONDS) == Range(Fraction(30), Fraction(120))
    assert span("500ms .. 1s", SECONDS) == Range(Fraction(1, 2), Fraction(1))
    assert span("3", SECONDS).known
    assert span("0..40%", SHARE, zero=True) == Range(Fraction(0), Fraction(2, 5))
    for text, message in (
        ("120..30", "begins above its end"),
        ("30..120s", "a unit at one end only"),
        ("30..", "is not a number"),
        ("..30", "is not a number"),
        ("1..2..3", "is a range; give one number"),
        ("1...2", "is not a number"),
    ):
        with pytest.raises(QuantityError, match=message):
            span(text, SECONDS)


@given(st.text(max_size=12), st.sampled_from([SECONDS, PER_MINUTE, TOKENS, BYTES, SHARE]))
def test_any_text_is_a_range_or_refused(text: str, kind: Kind) -> None:
    try:
        found = span(text, kind, zero=True)
    except QuantityError:
        return
    assert 0 <= found.low <= found.high <= kind.largest


def test_a_working_set_is_tokens_or_a_share_with_its_sign() -> None:
    assert working_set("60%").share == Range.exactly(Fraction(3, 5))
    assert working_set("400000..500000").tokens == Range(Fraction(400_000), Fraction(500_000))
    with pytest.raises(QuantityError, match="give tokens as 400000, or a share of the pool as 60%"):
        working_set("0.6")


# Risk


def survival(tail: Tail, x: float) -> float:
    """P(X >= x)."""
    match tail:
        case Uniform(longest):
            return min(1.0, max(0.0, (longest - x) / longest))
        case Retry(start, mean):
            return min(1.0, math.exp(-(x - start) / mean)) if x > start else 1.0
        case Measured(seconds):
            return float(np.mean(seconds >= x))


def kinks(tail: Tail) -> list[float]:
    """Where the survival function bends or jumps, or falls steeply."""
    match tail:
        case Uniform(longest):
            return [longest]
        case Retry(start, mean):
            return [start + mean * width for width in (0, 1, 5, 20)]
        case Measured(seconds):
            return [float(each) for each in seconds]


def integral(tail: Tail, hold: float, mean_reuse: float) -> float:
    """P(X >= hold + R), by integration over R."""
    if mean_reuse == 0:
        return survival(tail, hold)
    end = 40 * mean_reuse
    breaks = sorted({0.0, end, mean_reuse, *(kink - hold for kink in kinks(tail) if 0 < kink - hold < end)})
    return math.fsum(
        integrate.quad(lambda r: math.exp(-r / mean_reuse) / mean_reuse * survival(tail, hold + r), a, b, limit=200)[0]
        for a, b in pairwise(breaks)
    )


times = st.floats(0.01, 100)
tails = st.one_of(
    st.builds(Uniform, times),
    st.builds(Retry, st.floats(0, 50), times),
    st.lists(st.floats(0, 50), min_size=1, max_size=6).map(lambda each: Measured(np.array(each))),
)
holds = st.one_of(st.just(0.0), st.floats(0, 120))
reuses = st.one_of(st.just(0.0), times)


@settings(max_examples=150, deadline=None)
@given(tails, holds, reuses)
def test_closed_forms_are_the_integrals(tail: Tail, hold: float, mean_reuse: float) -> None:
    assert late(tail, hold, mean_reuse) == pytest.approx(integral(tail, hold, mean_reuse), abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(tails, holds, reuses, st.floats(0, 1), st.integers(0, 2**32))
def test_closed_forms_are_what_draws_give(tail: Tail, hold: float, reuse: float, share: float, seed: int) -> None:
    release = Release(hold, reuse, (AbortPath(share, tail),))
    low, high = interval(corrupted(release, 20_000, (seed,)), 20_000, 1 - 1e-9)
    assert low <= risk(release) <= high


@given(tails, holds, reuses, times)
def test_longer_holds_and_later_reuse_are_never_worse(tail: Tail, hold: float, reuse: float, more: float) -> None:
    now = late(tail, hold, reuse)
    assert 0 <= now <= 1
    assert late(tail, hold + more, reuse) <= now + 1e-12
    assert late(tail, hold, reuse + more) <= now + 1e-12


@given(times, times, holds)
def test_longer_tails_are_never_better(length: float, more: float, hold: float) -> None:
    assert late(Uniform(length), hold, 1.0) <= late(Uniform(length + more), hold, 1.0) + 1e-12
    assert late(Retry(length, 5.0), hold, 1.0) <= late(Retry(length + more, 5.0), hold, 1.0) + 1e-12
    assert late(Retry(5.0, length), hold, 1.0) <= late(Retry(5.0, length + more), hold, 1.0) + 1e-12


def test_the_uniform_form_has_no_jump_where_its_series_begins() -> None:
    below, above = (late(Uniform(1.0), 0.0, 1 / x) for x in (1e-4 * (1 - 1e-9), 1e-4))
    assert below == pytest.approx(above, rel=1e-8)
    assert late(Uniform(1.0), 0.0, 1e15) == pytest.approx(0.5e-15, rel=1e-12)


def test_a_write_at_the_moment_of_release_is_late() -> None:
    tail = Measured(np.array([30.0, 60.0]))
    assert (late(tail, 30.0, 0.0), late(tail, 60.0, 0.0), late(tail, 60.1, 0.0)) == (1.0, 0.5, 0.0)
    assert corrupted(Release(60.0, 0.0, (AbortPath(1.0, Measured(np.array([60.0]))),)), 100, (1,)) == 100


def test_paths_add_up_and_the_rest_is_safe() -> None:
    told, retried = AbortPath(0.3, Uniform(10.0)), AbortPath(0.2, Retry(30.0, 20.0))
    both = Release(5.0, 0.0, (told, retried))
    assert risk(both) == pytest.approx(0.3 * 0.5 + 0.2)
    low, high = interval(corrupted(both, 2_500_000, (3,)), 2_500_000, 0.9999)  # more than are drawn at once
    assert low <= risk(both) <= high and high - low < 0.004


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    seen = [interval(int(k), 50, 0.9) for k in random.binomial(50, 0.07, 2000)]
    assert sum(low <= 0.07 <= high for low, high in seen) >= 0.9 * 2000
    assert interval(0, 100, 0.95)[0] == 0 and interval(0, 100, 0.95)[1] == pytest.approx(1 - 0.025 ** (1 / 100))


@pytest.fixture(scope="module")
def default_rows() -> dict[tuple[Any, ...], dict[str, Any]]:
    return {
        (row["case"], row["context_tokens"], row["hold_seconds"], row["mean_reuse_seconds"]): row
        for row in rows("risk")
    }


def test_43_per_cent_at_10_ms(default_rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """The article rounds to 43 %; its program with its numbers gives 42.4 %, and 43 % with KB read as KiB."""
    row = default_rows["notified", None, 0, 0.01]
    assert row["risk"] == pytest.approx(0.43, abs=0.01)
    assert row["risk"] == pytest.approx(1 - 0.01 / 0.012288 * (1 - math.exp(-1.2288)))
    assert row["interval"][0] <= 0.424335 <= row["interval"][1]  # the article's program, seed 7
    binary = rows("risk", "--kv-bytes-per-token", "37.5KiB", "--mean-reuse-seconds", "10ms")[0]
    assert round(binary["risk"], 2) == 0.43 and binary["interval"][0] <= 0.43 <= binary["interval"][1]


def test_near_certain_if_prefill_is_not_told_unless_reuse_takes_seconds(
    default_rows: dict[tuple[Any, ...], dict[str, Any]],
) -> None:
    for context in (131_072, 1_048_576):
        assert default_rows["silent", context, 0, 0.01]["risk"] > 0.99
        assert default_rows["silent", context, 0, 10]["risk"] < 0.9
    text = run("risk", "--trials", 100).stdout
    for figure in ("12.29 ms", "6.554 s", "52.43 s"):  # the article: 12.3 ms, 6.6 s, 52.4 s
        assert figure in text


@pytest.mark.parametrize(("hold", "article", "rounded"), [(30, 500, 500), (60, 113, 112), (120, 6, 6), (240, 0, 0)])
def test_the_articles_holds(
    default_rows: dict[tuple[Any, ...], dict[str, Any]], hold: int, article: int, rounded: int
) -> None:
    row = default_rows["held", None, hold, 0]
    assert round(10_000 * row["risk"]) == rounded
    assert row["interval"][0] <= article / 10_000 <= row["interval"][1]
    if article in (113, 0):  # counts of 200,000 trials; the others are rounded too coarsely for that
        low, high = interval(article * 20, 200_000, 0.95)
        assert low <= row["risk"] <= high


def test_everything_agrees_by_default(default_rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    assert len(default_rows) == 19 and all(row["agrees"] for row in default_rows.values())


def test_a_seed_gives_the_same_again_and_another_one_something_else() -> None:
    quick = ("risk", "--trials", 5000)
    assert rows(*quick) == rows(*quick)
    assert rows(*quick) != rows(*quick, "--seed", 8)


def test_a_hold_of_0_is_freed_at_the_abort() -> None:
    first, *_, last = rows(
        "risk", "--hold-seconds", 0, "--reuse-after-hold-seconds", "10ms", "--mean-reuse-seconds", "10ms",
        "--degraded-share", 0, "--context-tokens", 1000,
    )  # fmt: skip
    assert (first["case"], last["case"]) == ("notified", "held")
    assert first["risk"] == pytest.approx(last["risk"])


def test_shares_of_aborts() -> None:
    (*_, held_row) = rows("risk", "--hold-seconds", 30, "--silent-share", "10%", "--mid-transfer-share", "50%")
    expected = 0.5 * (0.05 + 0.1 * (1 - 30 / 52.4288))
    assert held_row["risk"] == pytest.approx(expected)


def test_disagreement_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing_report, "risk", lambda release: min(1.0, 1.2 * risk(release)))
    result = run("risk", "--hold-seconds", 60, "--mean-reuse-seconds", "10ms")
    assert result.exit_code == 3
    assert "held 60 s: closed form 0.0133878 is outside" in result.stderr
    assert "DISAGREES" in result.stdout


# Measured durations


def durations(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "measured.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_measured_durations_take_the_place_of_the_assumed_ones(tmp_path: Path) -> None:
    path = durations(tmp_path, '\ufeff30.5\r\n61\n 1e2 \n"120"\n')
    by_hold = {
        row["hold_seconds"]: row
        for row in rows("risk", "--durations", path, "--durations-from", "abort")
        if row["case"] == "held"
    }
    assert [by_hold[hold]["risk"] for hold in (30, 60, 120, 240)] == pytest.approx([0.05, 0.0375, 0.0125, 0])
    assert [by_hold[hold]["durations_reaching"] for hold in (30, 60, 120, 240)] == [4, 3, 1, 0]
    low, high = by_hold[240]["measured_interval"]
    assert low == 0 and high > 0.025  # four times say little
    assert "That is no proof" in run("risk", "--durations", path, "--durations-from", "abort").stdout
    assert all(row["agrees"] for row in by_hold.values())


def test_durations_after_the_timeout_are_added_exactly(tmp_path: Path) -> None:
    """0.1 + 0.7 is less than 0.8 in binary; a write at the very moment of the release must count."""
    path = durations(tmp_path, "0.1\n")
    (*_, row) = rows(
        "risk", "--durations", path, "--durations-from", "timeout", "--transfer-timeout-seconds", "0.7",
        "--hold-seconds", "0.8",
    )  # fmt: skip
    assert row["risk"] == pytest.approx(0.05) and row["durations_reaching"] == 1


def test_exponential_durations_give_nearly_what_is_assumed(tmp_path: Path) -> None:
    drawn = np.random.default_rng(2).exponential(20.0, 20_000)
    path = durations(tmp_path, "\n".join(f"{each:.6f}" for each in drawn))
    for row in rows("risk", "--durations", path, "--durations-from", "timeout", "--hold-seconds", 60):
        if row["case"] == "held":
            low, high = row["measured_interval"]
            assert low <= 0.05 * math.exp(-1.5) <= high and high - low < 0.003


def test_the_interval_of_measured_ones_is_wider_at_its_lower_end_if_reuse_is_not_at_once() -> None:
    tail = Measured(np.array([10.0] * 50 + [100.0] * 50))
    assert interval_of_measured(tail, 60.0, 0.0, 0.95)[1] == interval(50, 100, 0.95)
    reaching, (low, high) = interval_of_measured(tail, 60.0, 30.0, 0.95)
    assert (reaching, low) == (50, 0.0) and low <= late(tail, 60.0, 30.0) <= high


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected is one number of seconds a line"),
        ("seconds\n1\n", "line 1: 'seconds' is not a number; expected is one number of seconds, and no heading"),
        ("1\n2\nx\n", "line 3: 'x' is not a number"),
        ("1\n\n2\n", "line 2: the line is empty"),
        ("1\n2,5\n", "line 2: the line has 2 columns; expected is one number of seconds, with a decimal point"),
        ("1\n-2\n", "line 2: -2 is no duration"),
        ("1\nnan\n", "line 2: 'nan' is not a number"),
        ("1\ninf\n", "line 2: 'inf' is not a number"),
        ("1\n30s\n", "line 2: '30s' is not a number"),
        ("1\n1e10\n", "line 2: 1e+10 is no duration; expected are 0 to 1,000,000,000 seconds"),
        ('1\n"2\n3"\n', "line 3: '2\\n3' is not a number"),
        ("1\n" + "9" * 200_000, "line 2: field larger than field limit"),
        (b"1\n\xff\n", "line 2: is not UTF-8"),
        (b"1\n\x00\n", "line 2: '\\x00' is not a number"),
    ],
)
def test_bad_files_of_durations(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = durations(tmp_path, text)
    with pytest.raises(DraincheckError) as error:
        load_durations(path)
    assert message in str(error.value) and str(error.value).startswith(str(path))
    result = run("risk", "--durations", path, "--durations-from", "abort")
    assert result.exit_code == 2 and message in result.stderr and "Traceback" not in result.output


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing.csv"):
        result = run("risk", "--durations", path, "--durations-from", "abort")
        assert result.exit_code == 2 and f"{path}: cannot be read" in result.stderr


# The commands


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("size", "--hold-seconds", "0"), "--hold-seconds: '0' is not allowed; it must be greater than 0"),
        (("size", "--hold-seconds", "-1"), "--hold-seconds: '-1' is not allowed"),
        (("size", "--hold-seconds", "nan"), "--hold-seconds: 'nan' is not a number"),
        (("size", "--hold-seconds", "120..30"), "begins above its end"),
        (("size", "--abort-rate-per-minute", "-1"), "it must be 0 or more"),
        (("size", "--context-tokens", "128K"), "--context-tokens: '128K': K could be a power of 1,000 or of 1,024"),
        (("size", "--kv-bytes-per-token", "37.5KB"), "write the number out, or with B, kB"),
        (("size", "--page-tokens", "16..64"), "--page-tokens: '16..64' is a range; give one number"),
        (("size", "--page-tokens", "0"), "must be greater than 0"),
        (("size", "--pool-tokens", "0"), "must be greater than 0"),
        (("size", "--working-set", "60%"), "--working-set needs the pool that it is of: add --pool-tokens"),
        (("size", "--pool-tokens", "1000000", "--working-set", "0.6"), "or a share of the pool as 60%"),
        (("size", "--pool-tokens", "1000000", "--working-set", "120%"), "is too large; the most is 1"),
        (("size", "--pool-tokens", "681280", "--context-tokens", "1Mi"), "681,280 tokens cannot hold one request"),
        (("size", "--dead-share", "5"), "is too large; the most is 1"),
        (("size", "--drain-seconds", ""), "is not a number"),
        (("risk", "--hold-seconds", "30..60"), "--hold-seconds: '30..60' is a range; give one number"),
        (("risk", "--hold-seconds", "-1"), "it must be 0 or more"),
        (("risk", "--mean-retry-seconds", "0"), "must be greater than 0"),
        (("risk", "--bandwidth-bytes-per-second", "25Gb/s"), "could be bits"),
        (("risk", "--degraded-share", "60%", "--silent-share", "50%"), "their sum is at most 1"),
        (("risk", "--trials", "0"), "0 is not in the range"),
        (("risk", "--confidence", "0"), "must be greater than 0"),
        (("risk", "--confidence", "100%"), "--confidence 100% needs no simulation"),
        (("risk", "--durations", "x.csv"), "add --durations-from abort"),
        (("risk", "--durations-from", "abort"), "--durations-from belongs to --durations"),
        (("risk", "--plot", "risk.png"), "--plot risk.png does not end in .svg"),
    ],
)
def test_bad_input_is_named_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output and not result.stdout


def test_options_that_measured_durations_stand_for(tmp_path: Path) -> None:
    measured = ("risk", "--durations", durations(tmp_path, "1\n"), "--durations-from")
    for more, name in (
        (("abort", "--mean-retry-seconds", 20), "--mean-retry-seconds"),
        (("timeout", "--mean-retry-seconds", 20), "--mean-retry-seconds"),
        (("abort", "--transfer-timeout-seconds", 30), "--transfer-timeout-seconds"),
    ):
        result = run(*measured, *more)
        assert result.exit_code == 2 and f"{name} is not used with these --durations" in result.stderr
    assert "mean-retry-seconds" not in run(*measured, "abort", "--trials", 10).stdout


@pytest.mark.parametrize("command", ["size", "risk"])
def test_every_field_of_the_documents_is_described(command: str, tmp_path: Path) -> None:
    text = (DOCS / "json.md").read_text("utf-8")
    start = text.index(f"# The JSON document of `draincheck {command} --json`")
    section = text[start:].split("\n# ")[0]
    document = json.loads(run(command, "--json").stdout)
    for name in (*document, *document["rows"][0]):
        assert f"`{name}`" in section, name


@pytest.mark.parametrize("command", ["size", "risk"])
def test_every_option_is_described(command: str) -> None:
    text = (DOCS / "sizing.md").read_text("utf-8")
    for option in main.commands[command].params:
        if option.name not in ("as_json", "help"):
            assert f"`{option.opts[0]}" in text, option.opts


def test_assumptions_say_what_was_given() -> None:
    document = json.loads(run(*STORM, "--json").stdout)
    assert document["assumptions"]["pool-tokens"] == {"value": [2e6, 2e6], "default": False}
    assert document["assumptions"]["working-set"]["value"] == {"tokens": None, "share": [0.6, 0.6]}
    assert document["assumptions"]["hold-seconds"] == {"value": [[30, 30], [120, 120]], "default": True}


# Plots


def test_a_plot_has_both_curves_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    for path in (first, second):
        result = run("risk", "--trials", 1000, "--plot", path, "--mean-reuse-seconds", 0, "--mean-reuse-seconds", 1)
        assert result.exit_code == 0 and f"wrote {path}" in result.stderr
    text = first.read_text("utf-8")
    for words in ("hold (s)", "mean time until they are used again (s)", "prefill is told", "1,048,576 tokens"):
        assert words in text
    assert text == second.read_text("utf-8")


def test_plots_of_a_single_point(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "a.svg"
    only = ("--hold-seconds", 0, "--mean-reuse-seconds", 0, "--context-tokens", 8192)
    assert run("risk", "--trials", 10, "--plot", path, *only).exit_code == 0
    assert "<svg" in path.read_text("utf-8")


def test_a_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("risk", "--trials", 10, "--plot", tmp_path / "a.svg")
    assert result.exit_code == 2
    assert "drawing needs matplotlib" in result.stderr and "pip install 'draincheck[plots]'" in result.stderr


def test_a_plot_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("risk", "--trials", 10, "--plot", tmp_path / "gone" / "a.svg")
    assert result.exit_code == 2 and "cannot be written" in result.stderr
