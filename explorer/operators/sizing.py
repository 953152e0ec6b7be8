"""The commands `size` and `risk`: what a hold costs, and what it saves. docs/sizing.md has the formulas.

The defaults are the assumptions of the article "When Is a KV Cache Slot Actually Free?", and each run prints them.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ...properties.deployment.ranges import Range
from ...protocol.language.errors import DraincheckError
from ..terminal.console import complain, echo, echo_lines, note, print_document, print_wide
from .quantities import (
    BYTES,
    BYTES_PER_SECOND,
    PER_MINUTE,
    SECONDS,
    SHARE,
    TOKENS,
    TOKENS_PER_SECOND,
    Quantity,
    Span,
    WorkingSet,
    WorkingSetType,
)

if TYPE_CHECKING:
    from ...properties.deployment.risk import Tail
    from .sizing_report import Cost, Estimate

SHARED: dict[str, Any] = {"show_default": True}


@click.command()
@click.option(
    "--abort-rate-per-minute",
    "rates",
    type=Span(PER_MINUTE, zero=True),
    multiple=True,
    default=("1", "6"),
    help="Aborts a minute (may be repeated).",
    **SHARED,
)
@click.option(
    "--hold-seconds",
    "holds",
    type=Span(SECONDS),
    multiple=True,
    default=("30", "120"),
    help="The timeout of the hold (may be repeated).",
    **SHARED,
)
@click.option("--context-tokens", type=Span(TOKENS), default="128000", help="What a request reserves.", **SHARED)
@click.option("--kv-bytes-per-token", type=Span(BYTES), default="37.5kB", help="KV cache of a token.", **SHARED)
@click.option("--page-tokens", type=Quantity(TOKENS), default="1", help="Tokens of a page of the pool.", **SHARED)
@click.option("--pool-tokens", type=Span(TOKENS), help="Decode's pool.")
@click.option("--working-set", type=WorkingSetType(), help="What others need of the pool: does it fit?")
@click.option(
    "--drain-seconds",
    type=Span(SECONDS),
    default="12.288ms",
    help="From an abort to its release by acks: what is in flight, and the messages.",
    **SHARED,
)
@click.option("--dead-share", type=Span(SHARE, zero=True), help="Share of the aborts whose ack path is dead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def size(
    ctx: click.Context,
    rates: tuple[Range, ...],
    holds: tuple[Range, ...],
    context_tokens: Range,
    kv_bytes_per_token: Range,
    page_tokens: Fraction,
    pool_tokens: Range | None,
    working_set: WorkingSet | None,
    drain_seconds: Range,
    dead_share: Range | None,
    as_json: bool,
) -> None:
    """Says how much memory aborted requests hold, and when that leaves too little for the others.

    Numbers may have a unit (30s, 37.5kB, 6/min) and may be ranges (30..120), of which every value is meant. The
    verdict is that of dead ack paths, or of the mix that --dead-share says. Exit code 1 if the working set does not
    fit for all values allowed.
    """
    from ...properties.deployment.capacity import Loads
    from .sizing_report import costs, size_document, size_lines, size_table

    if working_set and pool_tokens is None:
        raise click.UsageError("--working-set needs the pool that it is of: add --pool-tokens")
    if pool_tokens:
        _check_reservation(context_tokens, page_tokens, pool_tokens)

    found: list[Cost] = []
    for rate, hold in product(rates, holds):
        loads = Loads(
            aborts_per_second=Range(rate.low / 60, rate.high / 60),
            timeout=hold,
            drain=drain_seconds,
            dead_share=dead_share or Range.exactly(1),
            context_tokens=context_tokens,
            page_tokens=page_tokens,
            bytes_per_token=kv_bytes_per_token,
            pool_tokens=pool_tokens,
            working_set_tokens=working_set.tokens if working_set else None,
            working_set_share=working_set.share if working_set else None,
        )
        found += costs(loads, mixed=dead_share is not None)
    assumed = _assumptions(ctx)
    if as_json:
        print_document(size_document(found, assumed))
    else:
        _print(size_table(found), [*_assumption_lines(assumed), *size_lines(found)])
    sys.exit(1 if any(cost.judged and cost.fits in ("never", "sometimes") for cost in found) else 0)


def _check_reservation(context: Range, page: Fraction, pool: Range) -> None:
    reserved = -(-context.high // page) * page
    if reserved > pool.low:
        raise DraincheckError(
            f"--pool-tokens: {int(pool.low):,} tokens cannot hold one request, which reserves {int(reserved):,} "
            "(--context-tokens in whole pages); expected is a pool that takes at least one"
        )


@click.command()
@click.option(
    "--mean-reuse-seconds",
    "reuses",
    type=Quantity(SECONDS, zero=True),
    multiple=True,
    default=("1ms", "10ms", "100ms", "1s", "10s"),
    help="Mean time until freed slots are used again (may be repeated); 0 is at once.",
    **SHARED,
)
@click.option(
    "--hold-seconds",
    "holds",
    type=Quantity(SECONDS, zero=True),
    multiple=True,
    default=("30", "60", "120", "240"),
    help="How long slots are held (may be repeated); 0 frees them at the abort.",
    **SHARED,
)
@click.option(
    "--context-tokens",
    "contexts",
    type=Quantity(TOKENS),
    multiple=True,
    default=("131072", "1048576"),
    help="What prefill still sends if the abort does not reach it (may be repeated).",
    **SHARED,
)
@click.option("--chunk-tokens", type=Quantity(TOKENS), default="8192", help="Tokens of a chunk.", **SHARED)
@click.option("--kv-bytes-per-token", type=Quantity(BYTES), default="37.5kB", help="KV cache of a token.", **SHARED)
@click.option(
    "--bandwidth-bytes-per-second", type=Quantity(BYTES_PER_SECOND), default="25GB/s", help="Of a transfer.", **SHARED
)
@click.option(
    "--prefill-tokens-per-second", type=Quantity(TOKENS_PER_SECOND), default="20000", help="Of one request.", **SHARED
)
@click.option(
    "--mid-transfer-share",
    type=Quantity(SHARE, zero=True),
    default="100%",
    help="Aborts that come while something is transferred.",
    **SHARED,
)
@click.option(
    "--degraded-share", type=Quantity(SHARE, zero=True), default="5%", help="Of these: writes are retried.", **SHARED
)
@click.option(
    "--silent-share",
    type=Quantity(SHARE, zero=True),
    default="0%",
    help="Of these: the abort does not reach prefill, which sends the longest context to its end.",
    **SHARED,
)
@click.option(
    "--transfer-timeout-seconds",
    type=Quantity(SECONDS, zero=True),
    default="30s",
    help="Before the retries of a degraded abort.",
    **SHARED,
)
@click.option(
    "--mean-retry-seconds", type=Quantity(SECONDS), default="20s", help="Of the exponential retries.", **SHARED
)
@click.option(
    "--reuse-after-hold-seconds",
    type=Quantity(SECONDS, zero=True),
    default="0s",
    help="Mean time until held slots are used again, once released; 0 is at once.",
    **SHARED,
)
@click.option(
    "--durations",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Measured times of degraded aborts instead of the exponential ones: one column of seconds.",
)
@click.option(
    "--durations-from",
    type=click.Choice(("abort", "timeout")),
    help="What these are counted from: the abort, or the end of the transfer timeout.",
)
@click.option(
    "--trials", type=click.IntRange(1, 10**9), default=200_000, help="Simulated aborts of each row.", **SHARED
)
@click.option("--seed", type=click.IntRange(0, 2**63), default=7, help="Of the simulation.", **SHARED)
@click.option(
    "--confidence",
    type=Quantity(SHARE),
    default="99.99%",
    help="That all intervals together hold what they should.",
    **SHARED,
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Draw both curves there."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def risk(
    ctx: click.Context,
    reuses: tuple[Fraction, ...],
    holds: tuple[Fraction, ...],
    contexts: tuple[Fraction, ...],
    chunk_tokens: Fraction,
    kv_bytes_per_token: Fraction,
    bandwidth_bytes_per_second: Fraction,
    prefill_tokens_per_second: Fraction,
    mid_transfer_share: Fraction,
    degraded_share: Fraction,
    silent_share: Fraction,
    transfer_timeout_seconds: Fraction,
    mean_retry_seconds: Fraction,
    reuse_after_hold_seconds: Fraction,
    durations: Path | None,
    durations_from: str | None,
    trials: int,
    seed: int,
    confidence: Fraction,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Says how likely an abort corrupts another request if slots are freed at once, and if they are held.

    Each probability is calculated in closed form and simulated. Exit code 3 if the two disagree. Numbers may have a
    unit (10ms, 25GB/s, 5%).
    """
    from ...properties.deployment.risk import Path as AbortPath
    from ...properties.deployment.risk import Release, Uniform
    from .sizing_report import Asked, estimates, risk_document, risk_lines, risk_table

    if degraded_share + silent_share > 1:
        raise click.UsageError("--degraded-share and --silent-share are more than all aborts; their sum is at most 1")
    if confidence == 1:
        raise click.UsageError("--confidence 100% needs no simulation: every interval is 0 to 1; give less, as 99%")
    if plot and plot.suffix != ".svg":
        raise click.UsageError(f"--plot {plot} does not end in .svg")
    chunk = Uniform(float(chunk_tokens * kv_bytes_per_token / bandwidth_bytes_per_second))
    silent = {context: Uniform(float(context / prefill_tokens_per_second)) for context in contexts}
    degraded = _degraded(durations, durations_from, transfer_timeout_seconds, mean_retry_seconds)
    paths = (
        AbortPath(float(mid_transfer_share * (1 - degraded_share - silent_share)), chunk),
        AbortPath(float(mid_transfer_share * silent_share), silent[max(contexts)]),
        AbortPath(float(mid_transfer_share * degraded_share), degraded),
    )
    share = float(mid_transfer_share)
    asked = [Asked("notified", Release(0, float(reuse), (AbortPath(share, chunk),))) for reuse in reuses]
    asked += [
        Asked("silent", Release(0, float(reuse), (AbortPath(share, tail),)), int(context))
        for context, tail in silent.items()
        for reuse in reuses
    ]
    asked += [Asked("held", Release(float(hold), float(reuse_after_hold_seconds), paths)) for hold in holds]
    assumed = _assumptions(ctx)
    with note() as say:
        found = estimates(asked, trials, seed, float(confidence), say)
    if as_json:
        print_document(risk_document(found, assumed))
    else:
        _print(risk_table(found), [*_assumption_lines(assumed), *risk_lines(found)])
    if plot:
        from .plots import draw

        echo(f"wrote {draw(found, plot)}", err=True)
    _say_disagreement(found)


def _degraded(durations: Path | None, counted_from: str | None, timeout: Fraction, mean_retry: Fraction) -> Tail:
    """The tail of a degraded abort, assumed or measured."""
    from ...properties.deployment.risk import Measured, Retry

    if durations is None:
        if counted_from:
            raise click.UsageError("--durations-from belongs to --durations")
        return Retry(float(timeout), float(mean_retry))
    if counted_from is None:
        raise click.UsageError(
            "--durations needs to know what they are counted from: add --durations-from abort, or --durations-from "
            "timeout if they begin when the transfer timeout is over"
        )
    import numpy as np

    from .durations import load_durations

    before = timeout if counted_from == "timeout" else Fraction(0)
    return Measured(np.array([float(before + each) for each in load_durations(durations)]))


def _say_disagreement(found: list[Estimate]) -> None:
    """Ends the run: exit code 3 if a closed form is outside the interval of its simulation."""
    wrong = [estimate for estimate in found if not estimate.agrees]
    for estimate in wrong:
        complain(
            f"{estimate.asked.words}: closed form {estimate.risk:.6g} is outside "
            f"{estimate.low:.6g} to {estimate.high:.6g}, where the simulation has it; one of the two is wrong"
        )
    sys.exit(3 if wrong else 0)


def _unused(ctx: click.Context) -> set[str]:
    """Options that measured durations stand for. Giving one beside them is an error."""
    if ctx.params.get("durations") is None:
        return set()
    unused = {"mean_retry_seconds"}
    if ctx.params["durations_from"] == "abort":
        unused.add("transfer_timeout_seconds")
    for name in sorted(unused):
        if ctx.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name.replace('_', '-')} is not used with these --durations; leave it away")
    return unused


def _assumptions(ctx: click.Context) -> dict[str, dict[str, Any]]:
    """Every option that the results depend on, with its value and whether it is the default."""
    unused = {"as_json", "plot", *_unused(ctx)}
    return {
        option.opts[0].removeprefix("--"): {
            "value": ctx.params[option.name],
            "default": ctx.get_parameter_source(option.name) == ParameterSource.DEFAULT,
        }
        for option in ctx.command.params
        if option.name and option.name not in unused and ctx.params[option.name] is not None
    }


def _assumption_lines(assumed: dict[str, dict[str, Any]]) -> list[str]:
    from .sizing_report import value_words

    chosen = ", ".join(f"{name} {value_words(each['value'])}" for name, each in assumed.items() if not each["default"])
    default = ", ".join(f"{name} {value_words(each['value'])}" for name, each in assumed.items() if each["default"])
    return [f"{head}: {text}." for head, text in (("Given", chosen), ("Assumed", default)) if text]


def _print(table: Any, lines: list[str]) -> None:

    print_wide(table)
    echo()
    echo_lines(lines)
