"""The commands of an operator: `draincheck gate` before a rollout, `draincheck metrics` after it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..terminal.console import echo, echo_lines, print_document, print_wide

if TYPE_CHECKING:
    from rich.table import Table

    from ...properties.deployment.pools import Demand, Pool
    from ...properties.deployment.releases import Thresholds
    from ..terminal.web import Asking
    from .operate_report import Reading
    from .prometheus import Scrape
    from .startup_log import Stated

F = TypeVar("F", bound=Callable[..., Any])
SIDES = ("prefill", "decode")
EXIT_CODES = {"OK": 0, "HEALTHY": 0, "FAIL": 1, "UNHEALTHY": 1, "UNDETERMINED": 3}
MAX_DIGITS = 15
DEFAULT_TIMEOUT = 10
MAX_TIMEOUT = 86_400


def _tokens(least: int) -> Callable[[str], int]:
    """The type of an option: a whole number in digits only: a comma means different things to different people."""

    def number(text: str) -> int:
        if not re.fullmatch(rf"[0-9]{{1,{MAX_DIGITS}}}", text) or int(text) < least:
            raise click.BadParameter(f"{text!r}: expected a whole number from {least}, in digits only")
        return int(text)

    return number


def _number(most: int | None = None, *, zero: bool = True) -> Callable[[str], Fraction]:
    """The type of an option: a decimal number that is not negative, kept exactly."""

    def number(text: str) -> Fraction:
        found = _decimal(text)
        if found is None or (most is not None and found > most) or not (found or zero):
            upper = f" to {most}" if most is not None else ""
            raise click.BadParameter(f"{text!r}: expected a number from {0 if zero else 'more than 0'}{upper}")
        return found

    return number


def _decimal(text: str) -> Fraction | None:
    plain = re.fullmatch(rf"[0-9]{{1,{MAX_DIGITS}}}(\.[0-9]{{1,{MAX_DIGITS}}})?|\.[0-9]{{1,{MAX_DIGITS}}}", text)
    return Fraction(text) if plain else None


def _asked_of_urls(command: F) -> F:
    """The options that say how a URL is asked."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Send what is in it to each URL, as a bearer token; the variable DRAINCHECK_TOKEN does the same.",
        ),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="'NAME: VALUE'|@FILE",
            help="Send a header to each URL, or each line of a file (may be repeated).",
        ),
        click.option(
            "--timeout",
            type=_number(MAX_TIMEOUT, zero=False),
            default=str(DEFAULT_TIMEOUT),
            metavar="SECONDS",
            show_default=True,
            help="Wait so long for the whole answer of a URL.",
        ),
    ):
        command = option(command)
    return command


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


@click.command()
@click.option("--pool", "pools", multiple=True, metavar="[SIDE=]N", help="Tokens of a KV pool (may be repeated).")
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="[SIDE=]FILE",
    help='A start-up log with max_total_num_tokens and context_len, or "-" (may be repeated).',
)
@click.option(
    "--metrics",
    "scrapes",
    multiple=True,
    metavar="SOURCE",
    help='Prometheus text with max_total_num_tokens: a file, "-", or a URL (may be repeated).',
)
@click.option("--context", type=_tokens(1), metavar="N", help="Context length, instead of what log or metrics say.")
@click.option(
    "--output-tokens",
    type=_tokens(0),
    metavar="N",
    default="0",
    help="Output beyond the context, if the context length is of the prompt alone; prefill does not hold it.",
)
@click.option("--page-size", type=_tokens(1), metavar="N", help="Tokens per page, instead of what log or metrics say.")
@click.option(
    "--decode-reserve",
    type=_tokens(0),
    metavar="N",
    help="Tokens that decode keeps back for a request's output, instead of what the log says (not known: 512).",
)
@click.option("--slack", metavar="N|P%", default="0", help="More tokens, or so many percent more, must be there.")
@_asked_of_urls
@_json
def gate(
    pools: tuple[str, ...],
    logs: tuple[str, ...],
    scrapes: tuple[str, ...],
    context: int | None,
    output_tokens: int,
    page_size: int | None,
    decode_reserve: int | None,
    slack: str,
    timeout: Fraction,
    headers: tuple[str, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Checks that each KV pool can hold a request as long as the context length; a gate before a rollout.

    SIDE is prefill or decode. The tightest pool decides. Exit codes: 0 all pools suffice, 1 one does not, 2 the input
    is wrong, 3 a source has no pool in it.
    """
    from ...properties.deployment.pools import judge_pools
    from .operate_report import gate_document, gate_sentences, gate_table
    from .prometheus import gateway_hint
    from .prometheus import pools as scraped_pools
    from .startup_log import Stated

    if not (pools or logs or scrapes):
        raise click.UsageError("give --pool N with --context N, or --log FILE, or --metrics SOURCE")
    _refuse_shared_input([*(_sided(log)[1] for log in logs), *scrapes])
    asking = _asking(scrapes, timeout, headers, token_file)
    demand = _demand(output_tokens, slack)
    stated = Stated(context=context, page=page_size, reserve=decode_reserve)
    found = [_stated_pool(text, stated) for text in pools]
    missing: list[str] = []
    scraped = [_scrape(source, asking) for source in scrapes]
    for name, more in [
        *(_log_pools(log, stated) for log in logs),
        *((scrape.name, scraped_pools(scrape, context, page_size, decode_reserve)) for scrape in scraped),
    ]:
        found += more
        missing += [] if more else [name]
    result = judge_pools(found, demand, missing)
    hints = [hint for scrape in scraped for hint in gateway_hint(scrape)]
    if as_json:
        print_document(gate_document(result, demand, hints))
    else:
        _print(gate_table(result) if result.fits else None, gate_sentences(result, demand, hints))
    sys.exit(EXIT_CODES[result.verdict])


def _demand(output_tokens: int, slack: str) -> Demand:
    from ...properties.deployment.pools import Demand

    share = _decimal(slack.removesuffix("%")) if slack.endswith("%") else None
    if share is not None:
        return Demand(output_tokens, slack_share=share / 100)
    number = _decimal(slack)
    if number is None or number.denominator != 1:
        raise click.UsageError(f"--slack {slack!r}: expected tokens (8192) or a percentage (5%)")
    return Demand(output_tokens, slack_tokens=int(number))


def _sided(text: str) -> tuple[str, str]:
    """A side, empty without one, and what it is the side of."""
    side, equals, rest = text.partition("=")
    return (side, rest) if equals and side in SIDES else ("", text)


def _stated_pool(text: str, stated: Stated) -> Pool:
    from ...properties.deployment.pools import Pool

    side, number = _sided(text)
    if stated.context is None:
        raise click.UsageError(f"--pool {text}: give --context N too")
    try:
        tokens = _tokens(1)(number)
    except click.BadParameter as error:
        raise click.UsageError(f"--pool {error.message}, with prefill= or decode= before it if you like") from None
    return Pool("--pool", side, "", tokens, stated.context, stated.page, reserve=stated.reserve)


def _log_pools(text: str, stated: Stated) -> tuple[str, list[Pool]]:
    from .sources import name_of, read_lines
    from .startup_log import pools

    side, source = _sided(text)
    return name_of(source), pools(source, read_lines(source), replace(stated, side=side))


def _asking(sources: Sequence[str], timeout: Fraction, headers: Sequence[str], token_file: Path | None) -> Asking:
    from ..terminal.web import Asking, headers_of, is_address

    if any(map(is_address, sources)):
        return Asking(float(timeout), headers_of(headers, token_file))
    if headers or token_file:
        raise click.UsageError("--header and --token-file are sent to URLs; no source is one")
    return Asking(float(timeout))


def _scrape(source: str, asking: Asking) -> Scrape:
    from .prometheus import parse
    from .sources import read_text

    return parse(source, read_text(source, asking))


@click.command()
@click.argument("source")
@click.argument("second", required=False)
@click.option(
    "--min-drained",
    type=_number(1),
    default="0.99",
    show_default=True,
    metavar="SHARE",
    help="So many of a rank's releases must have drained, from 0 to 1.",
)
@click.option(
    "--max-p99",
    type=_number(zero=False),
    metavar="SECONDS",
    help="99 % of a rank's holds must not have been longer (an edge of the histogram decides it best).",
)
@click.option("--max-held", type=_tokens(0), metavar="N", help="No more holds may be open, over all ranks.")
@click.option("--interval", type=_number(zero=False), metavar="SECONDS", help="Time between the scrapes, for rates.")
@click.option("--idle-ok", is_flag=True, help="A rank that released nothing is well if another one did.")
@_asked_of_urls
@_json
def metrics(
    source: str,
    second: str | None,
    min_drained: Fraction,
    max_p99: Fraction | None,
    max_held: int | None,
    interval: Fraction | None,
    idle_ok: bool,
    timeout: Fraction,
    headers: tuple[str, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Judges how decode's holds end, per rank and in total, from one scrape or from what changed between two.

    SOURCE is Prometheus text: a file, "-", or a URL. SECOND is a newer one of the same ranks. Exit codes: 0 healthy,
    1 not healthy, 2 the input is wrong, 3 not known: no data is not healthy.
    """
    from ...properties.deployment.releases import Thresholds
    from .operate_report import metrics_document, metrics_sentences, metrics_table

    if interval is not None and second is None:
        raise click.UsageError("--interval is the time between two scrapes; give SECOND too")
    given = [each for each in (source, second) if each is not None]
    _refuse_shared_input(given)
    asking = _asking(given, timeout, headers, token_file)
    scrapes = [_scrape(each, asking) for each in given]
    reading = _reading(scrapes, Thresholds(min_drained, max_p99, max_held, idle_ok), interval)
    if as_json:
        print_document(metrics_document(reading))
    else:
        _print(metrics_table(reading) if reading.report.ranks else None, metrics_sentences(reading))
    sys.exit(EXIT_CODES[reading.report.health])


def _reading(scrapes: Sequence[Scrape], asked: Thresholds, interval: Fraction | None) -> Reading:
    from ...properties.deployment.releases import changes, judge_releases
    from .operate_report import Reading
    from .prometheus import counts, gateway_hint

    counted = [counts(scrape) for scrape in scrapes]
    changed = changes(counted[0], counted[1]) if len(counted) == 2 else []
    ranks = [change.counts for change in changed] if len(counted) == 2 else counted[0]
    report = judge_releases(ranks, asked)
    judged = {rank.counts.labels for rank in report.ranks}
    return Reading(
        report=report,
        asked=asked,
        sources=tuple(scrape.name for scrape in scrapes),
        interval_seconds=interval,
        changes=tuple(change for change in changed if change.counts.labels in judged),
        hints=tuple(hint for scrape in scrapes for hint in gateway_hint(scrape)),
    )


def _refuse_shared_input(sources: Sequence[str]) -> None:
    if list(sources).count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only; put one of the sources into a file")


def _print(table: Table | None, sentences: Sequence[str]) -> None:
    """A table as wide as it is, and sentences below it."""
    if table is not None:
        print_wide(table)
        echo()
    echo_lines(sentences)
