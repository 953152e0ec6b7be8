"""The commands of an operator: the articles' figures, verdicts per rank, real formats, and bad input."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import inf
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.operators import prometheus, startup_log
from draincheck.properties.deployment.pools import Demand, GateVerdict, Pool, judge_pools, needed_tokens
from draincheck.properties.deployment.releases import (
    OUTCOMES,
    Counts,
    Durations,
    Health,
    Thresholds,
    add,
    changes,
    judge_releases,
)
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

ROOT = Path(__file__).parents[1]
POOL, CONTEXT = 681_280, 1_048_576

ARTICLE = """sglang:decode_deferred_kv_release_total{outcome="drained",tp_rank="0"} 9712
sglang:decode_deferred_kv_release_total{outcome="timeout",tp_rank="0"} 41
sglang:decode_deferred_kv_release_total{outcome="error",tp_rank="0"} 3
"""

CALL_ARGUMENTS = (
    "[2026-10-16 00:04:58] server_args=ServerArgs(model_path='m', page_size={page}, hisparse_page_size=3, "
    "{reserve}disaggregation_mode='{mode}')"
)
DICT_ARGUMENTS = (
    "[2026-10-16 00:04:58] server_args={{'model_path': 'm', 'page_size': {page}, 'hisparse_page_size': 3, "
    "{reserve}'disaggregation_mode': '{mode}'}}"
)


def sizes_line(pool: object, context: object = CONTEXT, rank: str = "") -> str:
    """The line that a server process prints when it is ready."""
    return (
        f"[2026-10-16 00:05:01{rank}] max_total_num_tokens={pool}, chunked_prefill_size=8192, "
        f"max_prefill_tokens=16384, max_running_requests=48, context_len={context}, available_gpu_mem=9.87 GB"
    )


def run(*arguments: object, text: str | None = None) -> Result:
    result = CliRunner().invoke(main, [str(each) for each in arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def gate(*arguments: object, text: str | None = None) -> dict[str, Any]:
    result = run("gate", *arguments, "--json", text=text)
    assert result.exit_code in (0, 1, 3), result.output
    document = json.loads(result.stdout)
    assert (document["format"], document["version"]) == ("draincheck-gate", 1)
    assert {"OK": 0, "FAIL": 1, "UNDETERMINED": 3}[document["verdict"]] == result.exit_code
    return document


def metrics(*arguments: object, text: str | None = None) -> dict[str, Any]:
    result = run("metrics", *arguments, "--json", text=text)
    assert result.exit_code in (0, 1, 3), result.output
    document = json.loads(result.stdout)
    assert (document["format"], document["version"]) == ("draincheck-metrics", 1)
    assert {"HEALTHY": 0, "UNHEALTHY": 1, "UNDETERMINED": 3}[document["verdict"]] == result.exit_code
    return document


def refused(*arguments: object, text: str | None = None) -> str:
    """The message of input that is refused: exit code 2, nothing on standard output."""
    result = run(*arguments, text=text)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return result.stderr.strip().splitlines()[-1]


def releases(counted: dict[str, tuple[int, int, int]], held: dict[str, int] | None = None, **common: str) -> str:
    """Prometheus text with the outcomes of each tensor rank."""
    labels = "".join(f'{name}="{value}",' for name, value in common.items())
    lines = [
        f'sglang:decode_deferred_kv_release_total{{{labels}outcome="{outcome}",tp_rank="{rank}"}} {count}.0'
        for rank, counts in counted.items()
        for outcome, count in zip(OUTCOMES, counts, strict=True)
    ]
    lines += [
        f'sglang:num_decode_deferred_kv_release_reqs{{{labels}tp_rank="{rank}"}} {count}.0'
        for rank, count in (held or {}).items()
    ]
    return "".join(f"{line}\n" for line in lines)


def exposition(ranks: int = 2) -> tuple[str, CollectorRegistry]:
    """What a server exposes, by the library it uses; ranks with a dozen holds each."""
    registry = CollectorRegistry()
    labels = ["model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank"]
    counter = Counter("sglang:decode_deferred_kv_release_total", "d", [*labels, "outcome"], registry=registry)
    edges = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
    seconds = Histogram("sglang:decode_deferred_kv_release_seconds", "d", labels, buckets=edges, registry=registry)
    held = Gauge("sglang:num_decode_deferred_kv_release_reqs", "d", labels, registry=registry)
    pool = Gauge("sglang:max_total_num_tokens", "d", labels, registry=registry)
    context = Gauge("sglang:context_len", "d", labels, registry=registry)
    page = Gauge("sglang:page_size", "d", labels, registry=registry)
    for rank in range(ranks):
        values = {"model_name": 'a "b" \\ c', "engine_type": "decode", "tp_rank": rank, "pp_rank": 0, "moe_ep_rank": 0}
        for _ in range(12):
            counter.labels(**values, outcome="drained").inc()
            seconds.labels(**values).observe(0.003)
        held.labels(**values).set(rank)
        pool.labels(**values).set(2_000_000 - rank)
        context.labels(**values).set(CONTEXT)
        page.labels(**values).set(64)
    return generate_latest(registry).decode(), registry


# ---------------------------------------------------------------------------------------------------------- gate


def test_the_article_s_pool_is_short_by_its_figures() -> None:
    result = run("gate", "--pool", POOL, "--context", CONTEXT)
    assert result.exit_code == 1
    assert "FAIL: the pool holds 681,280 tokens, needed are 1,048,576: short by 367,296, 35.0 %" in result.stdout
    assert "the pool is 65.0 % of it" in result.stdout


def test_the_article_s_other_pool_is_enough() -> None:
    document = gate("--log", "-", text=sizes_line(2_040_000) + "\n")
    assert document["verdict"] == "OK"
    assert document["pools"][0]["margin_tokens"] == 2_040_000 - CONTEXT


def test_exactly_enough_is_enough_and_one_less_is_not() -> None:
    assert gate("--pool", 4096, "--context", 4096)["verdict"] == "OK"
    assert gate("--pool", 4095, "--context", 4096)["verdict"] == "FAIL"


def test_pages_are_whole_and_one_is_kept_back() -> None:
    assert needed_tokens(Pool("", "", "", 1, context=4096, page=64), Demand()) == 4096 + 64
    assert needed_tokens(Pool("", "", "", 1, context=4097, page=64), Demand()) == 4160 + 64
    assert needed_tokens(Pool("", "", "", 1, context=4097, page=1), Demand()) == 4097
    assert gate("--pool", 4159, "--context", 4096, "--page-size", 64)["verdict"] == "FAIL"
    assert gate("--pool", 4160, "--context", 4096, "--page-size", 64)["verdict"] == "OK"


def test_output_is_held_by_decode_and_not_by_prefill() -> None:
    pools = ("--pool", "prefill=1000", "--pool", "decode=1200", "--context", 1000)
    assert gate(*pools, "--decode-reserve", 0, "--output-tokens", 200)["verdict"] == "OK"
    document = gate(*pools, "--decode-reserve", 0, "--output-tokens", 201)
    assert [(fit["side"], fit["verdict"]) for fit in document["pools"]] == [("decode", "FAIL"), ("prefill", "OK")]
    assert gate("--pool", 1200, "--context", 1000, "--output-tokens", 201)["verdict"] == "FAIL"


def test_decode_keeps_a_reserve_which_is_said_when_it_is_not_known() -> None:
    short = gate("--pool", "decode=1511", "--context", 1000)
    assert short["verdict"] == "FAIL"
    assert any("512 tokens were taken" in note for note in short["notes"])
    assert gate("--pool", "decode=1512", "--context", 1000)["verdict"] == "OK"
    assert needed_tokens(Pool("", "dynamic", "", 1, 1000), Demand(output_tokens=600)) == 1600


@pytest.mark.parametrize(
    ("slack", "enough"), [("24", 1024), ("2.5%", 1025), ("0.01%", 1001), ("0", 1000), ("0%", 1000)]
)
def test_slack_in_tokens_and_in_percent_is_exact_and_rounded_up(slack: str, enough: int) -> None:
    assert gate("--pool", enough, "--context", 1000, "--slack", slack)["verdict"] == "OK"
    assert gate("--pool", enough - 1, "--context", 1000, "--slack", slack)["verdict"] == "FAIL"


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 50))
def test_the_smallest_pool_decides_in_any_order(tokens: list[int], context: int) -> None:
    pools = [Pool(str(at), "prefill", "", size, context) for at, size in enumerate(tokens)]
    result = judge_pools(pools, Demand())
    assert (result.verdict is GateVerdict.OK) == (min(tokens) >= context)
    assert result.fits[0].pool.tokens == min(tokens)
    random.shuffle(pools)
    assert judge_pools(pools, Demand()).fits == result.fits


@given(
    st.integers(1, 2000),
    st.integers(1, 200),
    st.integers(1, 70),
    st.integers(0, 40),
    st.sampled_from(["prefill", "decode", ""]),
)
def test_more_demand_never_needs_less(context: int, more: int, page: int, output: int, side: str) -> None:
    pool = Pool("", side, "", 1, context, page, reserve=7)
    needed = needed_tokens(pool, Demand(output))
    assert needed >= context
    assert needed_tokens(replace(pool, context=context + more), Demand(output)) >= needed
    assert needed_tokens(pool, Demand(output + more)) >= needed
    assert needed_tokens(replace(pool, page=None), Demand(output)) <= needed
    assert needed_tokens(pool, Demand(output, slack_tokens=more)) == needed + more
    assert needed_tokens(pool, Demand(output, slack_share=Fraction(more, 100))) >= needed


@pytest.mark.parametrize("arguments", [CALL_ARGUMENTS, DICT_ARGUMENTS], ids=["call", "dictionary"])
def test_a_log_tells_side_ranks_and_page_size(arguments: str, tmp_path: Path) -> None:
    path = tmp_path / "prefill.log"
    lines = [
        arguments.format(mode="prefill", page=64, reserve=""),
        "[2026-10-16 00:05:00 TP0] Load weight end. type=M, dtype=bf16, avail mem=20.1 GB",
        sizes_line(1_048_640, rank=" DP0 PP0 TP0 EP0"),
        sizes_line(POOL, rank=" DP0 PP1 TP0 EP0"),
        "[2026-10-16 00:05:09] The server is fired up and ready to roll!",
    ]
    path.write_text("\n".join(lines), "utf-8")
    document = gate("--log", path)
    assert document["verdict"] == "FAIL"
    short, enough = document["pools"]
    assert (short["side"], short["rank"], short["page_tokens"]) == ("prefill", "DP0 PP1 TP0 EP0", 64)
    assert short["where"] == f"{path}, line 4"
    assert (enough["rank"], enough["margin_tokens"], enough["verdict"]) == ("DP0 PP0 TP0 EP0", 0, "OK")


@pytest.mark.parametrize(
    ("arguments", "reserve"),
    [(CALL_ARGUMENTS, "num_reserved_decode_tokens=2048, "), (DICT_ARGUMENTS, "'num_reserved_decode_tokens': 2048, ")],
    ids=["call", "dictionary"],
)
def test_a_decode_log_tells_its_reserve(arguments: str, reserve: str) -> None:
    text = f"{arguments.format(mode='decode', page=1, reserve=reserve)}\n{sizes_line(3047, 1000)}\n"
    assert gate("--log", "-", text=text)["pools"][0]["needed_tokens"] == 3048
    assert gate("--log", "-", "--decode-reserve", 2047, text=text)["pools"][0]["needed_tokens"] == 3047


def test_a_log_of_both_sides_tells_neither() -> None:
    both = [CALL_ARGUMENTS.format(mode=mode, page=1, reserve="") for mode in ("prefill", "decode")]
    text = "\n".join([both[0], sizes_line(1000, 900), both[1], sizes_line(1000, 900), ""])
    (pool,) = gate("--log", "-", "--output-tokens", 50, text=text)["pools"]
    assert (pool["side"], pool["needed_tokens"]) == (None, 950)
    assert "prefill" in refused("gate", "--log", "decode=-", text=text)


def test_the_side_of_a_log_may_be_said_but_not_against_the_log(tmp_path: Path) -> None:
    bare = tmp_path / "bare.log"
    bare.write_text(sizes_line(2_000_000), "utf-8")
    assert gate("--log", f"decode={bare}")["pools"][0]["side"] == "decode"
    text = f"{CALL_ARGUMENTS.format(mode='null', page=1, reserve='')}\n{sizes_line(5)}"
    assert gate("--log", "-", text=text)["pools"][0]["side"] == "unified"
    assert "given as decode, but its server arguments say unified" in refused("gate", "--log", "decode=-", text=text)


def test_the_servers_own_warning_counts_as_well() -> None:
    warning = (
        "[2026-10-30 01:00:00 TP3] KV pool holds 500000 tokens, fewer than --context-length 1048576. One full-length "
        "request cannot fit, so long requests will be refused or truncated at serving time."
    )
    document = gate("--log", "-", text=f"{sizes_line(2_000_000, rank=' TP0')}\n{warning}\n")
    assert document["verdict"] == "FAIL"
    assert (document["pools"][0]["rank"], document["pools"][0]["pool_tokens"]) == ("TP3", 500_000)


def test_prefixes_of_containers_and_json_loggers_do_no_harm() -> None:
    text = f"prefill-0  | {sizes_line(10, 7, ' TP0')}\n" + json.dumps({"log": sizes_line(9, 7, " TP0")}) + "\n"
    pools = startup_log.pools("-", enumerate(text.splitlines(), 1), startup_log.Stated())
    assert [(pool.tokens, pool.context, pool.rank) for pool in pools] == [(10, 7, "TP0"), (9, 7, "TP0")]


def test_without_a_pool_nothing_is_decided(tmp_path: Path) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("starting\n", "utf-8")
    document = gate("--log", empty)
    assert (document["verdict"], document["missing"]) == ("UNDETERMINED", [str(empty)])
    assert gate("--log", empty, "--pool", 10, "--context", 10)["verdict"] == "UNDETERMINED"
    assert gate("--log", empty, "--pool", 9, "--context", 10)["verdict"] == "FAIL"
    assert gate("--metrics", "-", text=ARTICLE)["verdict"] == "UNDETERMINED"
    assert run("gate", "--log", empty).stdout.startswith("UNDETERMINED: no pool was found")


def test_metrics_tell_pool_context_and_page_of_each_rank() -> None:
    text, _ = exposition()
    document = gate("--metrics", "-", text=text)
    assert document["verdict"] == "OK"
    first = document["pools"][0]
    assert (first["side"], first["rank"]) == ("decode", "pp_rank=0 tp_rank=1 moe_ep_rank=0")
    assert (first["pool_tokens"], first["server_context_tokens"], first["page_tokens"]) == (1_999_999, CONTEXT, 64)
    assert first["needed_tokens"] == CONTEXT + 512 + 64


def test_the_context_of_the_option_goes_first_and_that_is_said() -> None:
    document = gate("--log", "-", "--context", 1000, text=sizes_line(1500))
    assert (document["verdict"], document["pools"][0]["server_context_tokens"]) == ("OK", CONTEXT)
    assert any("instead of the server's own 1,048,576" in note for note in document["notes"])
    text = 'x:max_total_num_tokens{engine_type="prefill"} 5\n'
    assert gate("--metrics", "-", "--context", 5, text=text)["verdict"] == "OK"
    assert "give --context" in refused("gate", "--metrics", "-", text=text)


def test_what_the_verdict_leaves_open_is_said(tmp_path: Path) -> None:
    prefill = tmp_path / "prefill.log"
    prefill.write_text(sizes_line(2_000_000), "utf-8")
    notes = gate("--log", f"prefill={prefill}")["notes"]
    assert any("no decode pool was given" in note for note in notes)
    assert any("page size not known" in note for note in notes)
    notes = gate("--log", f"prefill={prefill}", "--log", "decode=-", text=sizes_line(2_000_000, 131_072))["notes"]
    assert any("decode 131,072; prefill 1,048,576" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        ((), None, "give --pool"),
        (("--pool", "5"), None, "give --context"),
        (("--pool", "1e6", "--context", "5"), None, "'1e6': expected a whole number from 1"),
        (("--pool", "decode=", "--context", "5"), None, "expected a whole number"),
        (("--pool", "0", "--context", "5"), None, "expected a whole number from 1"),
        (("--pool", "-5", "--context", "5"), None, "expected a whole number from 1"),
        (("--pool", "5", "--context", "1,048,576"), None, "digits only"),
        (("--pool", "5", "--context", "5", "--slack", "-1"), None, "expected tokens (8192) or a percentage (5%)"),
        (("--pool", "5", "--context", "5", "--slack", "nan%"), None, "expected tokens"),
        (("--pool", "5", "--context", "5", "--slack", "1.5"), None, "expected tokens"),
        (("--log", "-", "--metrics", "-"), "", "standard input (-) can be read once only"),
        (("--log", "no/such.log"), None, "no/such.log: cannot be read: No such file"),
        (("--log", "."), None, "cannot be read: Is a directory"),
        (("--log", "http://localhost/log"), None, "not from a URL"),
        (("--log", "-"), sizes_line("six"), "standard input, line 1: max_total_num_tokens is 'six'"),
        (("--log", "-"), "\n" + sizes_line(5, "None"), "line 2: context_len is 'None'; expected a whole number"),
        (("--log", "-"), sizes_line(-5), "is '-5'"),
        (("--log", "-"), sizes_line(0), "is '0'"),
        (("--log", "-"), "max_total_num_tokens=5, chunk", "line 1: max_total_num_tokens without context_len"),
        (("--log", "-"), "a\nb\0c", "line 2: a NUL byte"),
        (("--metrics", "-"), "x:max_total_num_tokens NaN\n", "line 1: max_total_num_tokens is nan"),
        (("--metrics", "-"), "x:max_total_num_tokens 0\n", "is 0; expected a whole number greater than 0"),
        (("--metrics", "-"), "x:max_total_num_tokens 1.5\n", "is 1.5"),
        (("--metrics", "-"), "x:max_total_num_tokens +Inf\n", "is inf"),
    ],
)
def test_bad_input_of_the_gate_is_one_line(arguments: tuple[str, ...], text: str | None, said: str) -> None:
    assert said in refused("gate", *arguments, text=text)


# ------------------------------------------------------------------------------------------------------- metrics


def test_the_article_s_sample_holds_at_its_figures() -> None:
    result = run("metrics", "-", text=ARTICLE)
    assert result.exit_code == 0
    assert "HEALTHY: 99.5 % of 9,756 releases drained" in result.stdout
    assert metrics("-", "--min-drained", 0.95, text=ARTICLE)["verdict"] == "HEALTHY"
    assert metrics("-", "--min-drained", 0.996, text=ARTICLE)["verdict"] == "UNHEALTHY"
    document = metrics("-", text=ARTICLE)
    assert document["total"]["outcomes"] == {"drained": 9712, "timeout": 41, "error": 3}
    assert document["total"]["drained_share"] == 9712 / 9756


def test_one_rank_that_times_out_is_not_outweighed() -> None:
    text = releases({"0": (100_000, 0, 0), "1": (10, 5, 0)})
    document = metrics("-", text=text)
    assert document["verdict"] == "UNHEALTHY"
    assert [rank["verdict"] for rank in document["ranks"]] == ["HEALTHY", "UNHEALTHY"]
    assert document["total"]["drained_share"] > 0.999
    assert document["total"]["verdict"] == "HEALTHY"
    assert any("1 of 2 ranks say nothing but drained" in note for note in document["notes"])


def test_the_threshold_is_exact() -> None:
    text = releases({"0": (99, 1, 0)})
    assert metrics("-", "--min-drained", "0.99", text=text)["verdict"] == "HEALTHY"
    assert metrics("-", "--min-drained", "0.990000000000001", text=text)["verdict"] == "UNHEALTHY"


def test_no_data_is_not_healthy() -> None:
    for text in ("", "# nothing\n", "process_cpu_seconds_total 5\n", releases({}, {"0": 0})):
        document = metrics("-", text=text)
        assert document["verdict"] == "UNDETERMINED"
    assert "no data" in run("metrics", "-", text="").stdout
    zeros = releases({"0": (0, 0, 0)})
    assert metrics("-", text=zeros)["verdict"] == "UNDETERMINED"
    assert metrics("-", "--idle-ok", text=zeros)["verdict"] == "UNDETERMINED"


def test_an_idle_rank_matters_unless_it_is_allowed() -> None:
    text = releases({"0": (100, 0, 0)}, {"0": 0, "1": 0})
    assert metrics("-", text=text)["verdict"] == "UNDETERMINED"
    assert metrics("-", "--idle-ok", text=text)["verdict"] == "HEALTHY"
    stuck = releases({"0": (100, 0, 0)}, {"0": 0, "1": 3})
    document = metrics("-", "--idle-ok", text=stuck)
    assert document["verdict"] == "UNDETERMINED"
    assert document["ranks"][1]["reasons"] == ["no release counted; 3 held"]


def test_prefill_engines_are_left_out_if_they_counted_nothing() -> None:
    text = releases({}, {"0": 0}, engine_type="prefill") + releases({"0": (100, 0, 0)}, engine_type="decode")
    document = metrics("-", text=text)
    assert (document["verdict"], document["left_out"], len(document["ranks"])) == ("HEALTHY", 1, 1)
    assert metrics("-", text=releases({}, {"0": 0}, engine_type="prefill"))["verdict"] == "UNDETERMINED"
    odd = releases({"0": (1, 9, 0)}, engine_type="prefill")
    assert metrics("-", text=odd)["verdict"] == "UNHEALTHY"


def test_what_the_library_exposes_is_understood() -> None:
    text, registry = exposition()
    document = metrics("-", text=text)
    assert document["verdict"] == "HEALTHY"
    rank = document["ranks"][1]
    assert rank["labels"]["model_name"] == 'a "b" \\ c'
    assert (rank["releases"], rank["held"], rank["median_seconds"], rank["p99_seconds"]) == (
        12,
        1,
        [0.001, 0.005],
        [0.001, 0.005],
    )
    assert rank["mean_seconds"] == pytest.approx(0.003)
    assert document["total"]["held"] == 1
    label_names = dict.fromkeys(rank["labels"])
    assert "outcome" not in label_names
    assert (
        registry.get_sample_value("sglang:decode_deferred_kv_release_total", {**rank["labels"], "outcome": "drained"})
        == rank["outcomes"]["drained"]
    )


def histogram(counts: dict[str, int], seconds: float = 1.0) -> str:
    lines = [f'x:decode_deferred_kv_release_seconds_bucket{{le="{edge}"}} {count}' for edge, count in counts.items()]
    lines += [
        f"x:decode_deferred_kv_release_seconds_sum {seconds}",
        f"x:decode_deferred_kv_release_seconds_count {list(counts.values())[-1]}",
        f'x:decode_deferred_kv_release_total{{outcome="drained"}} {list(counts.values())[-1]}',
    ]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("limit", "verdict"), [("1", "HEALTHY"), ("2", "HEALTHY"), ("0.1", "UNHEALTHY"), ("0.5", "UNDETERMINED")]
)
def test_durations_are_judged_as_far_as_the_buckets_go(limit: str, verdict: str) -> None:
    text = histogram({"0.1": 50, "1": 99, "+Inf": 100})
    assert metrics("-", "--max-p99", limit, text=text)["verdict"] == verdict


@given(st.lists(st.floats(0, 3), min_size=1, max_size=120), st.sampled_from([Fraction(1, 2), Fraction(99, 100)]))
def test_a_quantile_is_in_the_bucket_of_the_plain_one(holds: list[float], share: Fraction) -> None:
    edges = (0.5, 1.0, 2.0, inf)
    durations = Durations(edges, tuple(sum(hold <= edge for hold in holds) for edge in edges))
    plain = next(hold for at, hold in enumerate(sorted(holds), 1) if at >= share * len(holds))
    between = durations.quantile(share)
    assert between is not None
    assert between[0] <= plain <= between[1] and (plain > between[0] or not between[0])


def test_durations_beyond_the_last_edge_have_no_upper_bound() -> None:
    text = histogram({"60": 0, "+Inf": 10})
    document = metrics("-", "--max-p99", 60, text=text)
    assert (document["verdict"], document["total"]["p99_seconds"]) == ("UNHEALTHY", [60, None])
    assert metrics("-", "--max-p99", 100, text=text)["verdict"] == "UNDETERMINED"
    assert metrics("-", "--max-p99", 100, text=ARTICLE)["verdict"] == "UNDETERMINED"


def test_held_slots_are_judged_over_all_ranks() -> None:
    text = releases({"0": (9, 0, 0), "1": (9, 0, 0)}, {"0": 2, "1": 3})
    assert metrics("-", "--max-held", 5, text=text)["verdict"] == "HEALTHY"
    assert metrics("-", "--max-held", 4, text=text)["verdict"] == "UNHEALTHY"
    assert metrics("-", "--max-held", 4, text=ARTICLE)["verdict"] == "UNDETERMINED"


def two(tmp_path: Path, older: str, newer: str) -> tuple[Path, Path]:
    paths = tmp_path / "older.txt", tmp_path / "newer.txt"
    for path, text in zip(paths, (older, newer), strict=True):
        path.write_text(text, "utf-8")
    return paths


def test_two_scrapes_judge_what_happened_in_between(tmp_path: Path) -> None:
    paths = two(tmp_path, releases({"0": (100_000, 0, 0)}), releases({"0": (100_010, 30, 0)}))
    assert metrics(paths[1])["verdict"] == "HEALTHY"
    document = metrics(*paths, "--interval", 60)
    assert document["verdict"] == "UNHEALTHY"
    assert document["total"]["outcomes"] == {"drained": 10, "timeout": 30, "error": 0}
    assert document["total"]["releases_per_second"] == pytest.approx(40 / 60)
    assert "releases/s" in run("metrics", *paths, "--interval", 60).stdout
    assert metrics(*paths)["total"]["releases_per_second"] is None


def test_nothing_in_between_is_no_data(tmp_path: Path) -> None:
    same = releases({"0": (100, 0, 0)}, {"0": 2})
    document = metrics(*two(tmp_path, same, same))
    assert (document["verdict"], document["ranks"][0]["reasons"]) == ("UNDETERMINED", ["no release counted; 2 held"])


def test_a_reset_is_noticed_and_said(tmp_path: Path) -> None:
    document = metrics(
        *two(tmp_path, releases({"0": (100, 9, 0), "1": (5, 0, 0)}), releases({"0": (120, 1, 0), "1": (6, 0, 0)}))
    )
    assert [rank["reset"] for rank in document["ranks"]] == [True, False]
    assert document["ranks"][0]["outcomes"] == {"drained": 120, "timeout": 1, "error": 0}
    assert any("tp_rank=0: counters went down" in note for note in document["notes"])


def test_a_reset_shows_in_the_histogram_too(tmp_path: Path) -> None:
    older, newer = histogram({"1": 9, "+Inf": 10}), histogram({"1": 5, "+Inf": 20})
    assert metrics(*two(tmp_path, older, newer))["ranks"][0]["reset"]
    newer = histogram({"2": 9, "+Inf": 20})
    assert metrics(*two(tmp_path, older, newer))["ranks"][0]["reset"]


def test_a_rank_that_vanished_is_not_healthy_even_if_idle_ranks_are(tmp_path: Path) -> None:
    paths = two(tmp_path, releases({"0": (5, 0, 0), "1": (5, 0, 0)}), releases({"0": (9, 0, 0)}))
    document = metrics(*paths, "--idle-ok")
    assert (document["verdict"], document["ranks"][1]["reset"]) == ("UNDETERMINED", True)


def test_a_rank_that_the_older_scrape_does_not_know_is_said(tmp_path: Path) -> None:
    document = metrics(*two(tmp_path, releases({"0": (5, 0, 0)}), releases({"0": (9, 0, 0), "1": (5, 0, 0)})))
    assert [rank["releases"] for rank in document["ranks"]] == [4, 5]
    assert [note for note in document["notes"] if "older scrape" in note] == [
        "tp_rank=1: not in the older scrape; what is counted is since it started"
    ]


def test_ranks_of_prefill_that_vanish_are_nobody_s_business(tmp_path: Path) -> None:
    decode = releases({"0": (5, 0, 0)}), releases({"0": (9, 0, 0)})
    gone = releases({}, {"7": 0}, engine_type="prefill")
    document = metrics(*two(tmp_path, decode[0] + gone, decode[1]))
    assert document["verdict"] == "HEALTHY"
    assert not any("restarted" in note for note in document["notes"])


def test_a_text_that_may_be_cut_off_is_refused() -> None:
    healthy = releases({"0": (900, 0, 0)})
    cut = healthy + 'x:decode_deferred_kv_release_total{outcome="timeout",tp_rank="1"} 1'
    assert "line 4: the last line has no end" in refused("metrics", "-", text=cut)
    assert metrics("-", text=cut + "56\n")["verdict"] == "UNHEALTHY"


def test_a_histogram_that_disagrees_with_the_counter_is_said() -> None:
    text = histogram({"1": 10, "+Inf": 10}).replace('outcome="drained"} 10', 'outcome="drained"} 12')
    assert any("the histogram has 10 releases, the counter 12" in note for note in metrics("-", text=text)["notes"])


counted = st.fixed_dictionaries({}, optional={name: st.integers(0, 30) for name in OUTCOMES})
buckets = st.none() | st.lists(st.integers(0, 9), min_size=3, max_size=3)


@st.composite
def some_ranks(draw: st.DrawFn) -> list[Counts]:
    ranks: list[Counts] = []
    for number in range(draw(st.integers(0, 4))):
        steps = draw(buckets)
        durations = None
        if steps is not None:
            cumulative = (steps[0], steps[0] + steps[1], sum(steps))
            durations = Durations((0.5, 2.0, inf), cumulative, draw(st.integers(0, 99)) * 0.25)
        ranks.append(Counts((("tp_rank", str(number)),), draw(counted), durations, draw(st.none() | st.integers(0, 5))))
    return ranks


@given(some_ranks())
def test_the_total_is_the_sum_over_ranks(ranks: list[Counts]) -> None:
    total = add(ranks)
    assert total.total == sum(rank.total for rank in ranks)
    for name in OUTCOMES:
        assert total.outcomes[name] == sum(rank.outcomes.get(name, 0) for rank in ranks)
    with_durations = [rank.durations for rank in ranks if rank.durations]
    assert (total.durations.count if total.durations else 0) == sum(each.count for each in with_durations)
    assert (total.held or 0) == sum(rank.held or 0 for rank in ranks)


@given(some_ranks(), st.fractions(0, 1), st.booleans())
def test_healthy_means_that_every_rank_and_the_total_are(ranks: list[Counts], least: Fraction, idle_ok: bool) -> None:
    report = judge_releases(ranks, Thresholds(least, idle_ok=idle_ok))
    shares = [rank.drained for rank in ranks]
    if report.health is Health.HEALTHY:
        assert any(share is not None for share in shares)
        assert all(share >= least if share is not None else idle_ok for share in shares)
        assert report.total.counts.drained is not None and report.total.counts.drained >= least
    elif report.health is Health.UNHEALTHY:
        assert any(share is not None and share < least for share in shares)
    if not idle_ok and ranks and all(share is not None for share in shares):
        assert report.health is not Health.UNDETERMINED


def plus(rank: Counts, more: Counts) -> Counts:
    """The rank later, when it has counted as much again as the other one."""
    outcomes = {name: rank.outcomes.get(name, 0) + more.outcomes.get(name, 0) for name in OUTCOMES}
    durations = add([rank, more]).durations
    return Counts(rank.labels, outcomes, durations, more.held)


@given(some_ranks(), some_ranks())
def test_what_was_counted_in_between_comes_out(older: list[Counts], steps: list[Counts]) -> None:
    between = {rank.labels: rank for rank in steps}
    still = [rank for rank in older if rank.labels in between]
    newer = [plus(rank, between[rank.labels]) for rank in still]
    for rank, change in zip(still, changes(still, newer), strict=True):
        assert not change.reset
        step = between[rank.labels]
        assert {name: n for name, n in change.counts.outcomes.items() if n} == {
            n: c for n, c in step.outcomes.items() if c
        }
        if step.durations is not None and change.counts.durations is not None:
            assert change.counts.durations.cumulative == step.durations.cumulative


@given(some_ranks(), some_ranks())
def test_a_change_is_never_negative(older: list[Counts], newer: list[Counts]) -> None:
    found = changes(older, newer)
    assert {change.counts.labels for change in found} == {rank.labels for rank in (*older, *newer)}
    for change in found:
        assert all(count >= 0 for count in change.counts.outcomes.values())
        if change.counts.durations:
            cumulative = change.counts.durations.cumulative
            assert list(cumulative) == sorted(cumulative) and cumulative[0] >= 0


def as_text(ranks: list[Counts]) -> list[str]:
    lines: list[str] = []
    for rank in ranks:
        own = ",".join(f'{name}="{value}"' for name, value in rank.labels)
        lines += [f'e:{prometheus.RELEASES}{{{own},outcome="{name}"}} {count}' for name, count in rank.outcomes.items()]
        if rank.held is not None:
            lines.append(f"e:{prometheus.HELD}{{{own}}} {rank.held}.0")
        if rank.durations:
            for edge, count in zip(rank.durations.edges, rank.durations.cumulative, strict=True):
                lines.append(f'e:{prometheus.BUCKET}{{le="{"+Inf" if edge == inf else edge}",{own}}} {count}')
            lines += [f"e:{prometheus.COUNT}{{{own}}} {rank.durations.count}"]
            lines += [f"e:{prometheus.SUM}{{{own}}} {rank.durations.seconds}"]
    return lines


@given(some_ranks(), st.randoms(use_true_random=False))
def test_text_is_read_back_in_any_order_of_lines(ranks: list[Counts], chance: random.Random) -> None:
    lines = [*as_text(ranks), "# HELP e:x y", "", "other 5"]
    chance.shuffle(lines)
    known = [rank for rank in ranks if rank.outcomes or rank.held is not None or rank.durations]
    assert prometheus.counts(prometheus.parse("text", "".join(f"{line}\n" for line in lines))) == known


@given(st.text(alphabet='e:{}="abc_ \n\t019.+-naInf#<\\,', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        prometheus.counts(prometheus.parse("text", text + "\n"))
    except prometheus.SourceError as error:
        assert str(error).startswith("text, line ")


TOTAL = "x:decode_deferred_kv_release_total"
SECONDS = "x:decode_deferred_kv_release_seconds"
BUCKET, COUNT, SUM = f"{SECONDS}_bucket", f"{SECONDS}_count", f"{SECONDS}_sum"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{TOTAL}{{outcome="drained"}} NaN\n', "line 1: decode_deferred_kv_release_total is nan; expected a whole"),
        (f'\n{TOTAL}{{outcome="drained"}} -1\n', "line 2: decode_deferred_kv_release_total is -1"),
        (f'{TOTAL}{{outcome="drained"}} 1.5\n', "is 1.5"),
        (f'{TOTAL}{{outcome="drained"}} 1e300\n', "expected a whole number"),
        (f'{TOTAL}{{outcome="drained"}} {"9" * 400}\n', "is not Prometheus text"),
        (f"{TOTAL} 5\n", "has no label outcome; expected one of drained, timeout, error"),
        (f'{TOTAL}{{outcome="Drained"}} 5\n', "unknown outcome 'Drained'"),
        (
            f'{TOTAL}{{outcome="error",a="1"}} 5\n{TOTAL}{{a="1",outcome="error"}} 5\n',
            "line 2: decode_deferred_kv_release_total with these labels was given before (standard input, line 1)",
        ),
        (f'{TOTAL}{{outcome="drained" 5\n', "is not Prometheus text"),
        (f'{TOTAL}{{outcome="drained"}}\n', "is not Prometheus text"),
        ("a 1\nnot metrics at all\n", "line 2: 'not metrics at all' is not Prometheus text"),
        ("<!DOCTYPE html>\n<html></html>", "a page of HTML or XML; expected Prometheus text"),
        ('{"status": "ok"}', "line 1"),
        ("a\0b", "line 1: a NUL byte; this is a binary file"),
        (f'{BUCKET}{{le="1"}} 5\n', 'expected one with le="+Inf"'),
        (f'{BUCKET}{{le="1"}} 5\n{BUCKET}{{le="+Inf"}} 4\n', "seconds_bucket falls from 5 to 4"),
        (f'{BUCKET}{{le="1"}} 5\n{BUCKET}{{le="1.0"}} 5\n', "seconds_bucket has the edge 1 twice"),
        (f'{BUCKET}{{le="x"}} 5\n', "has le='x'"),
        (f"{BUCKET} 5\n", "has no label le"),
        (f'{BUCKET}{{le="+Inf"}} 5\n{COUNT} 6\n', "seconds_count is 6, but the buckets end at 5"),
        (f"{COUNT} 6\n", "expected the buckets"),
        (f'{BUCKET}{{le="+Inf"}} 5\n{SUM} -1\n', "line 2: decode_deferred_kv_release_seconds_sum is -1"),
        ("x:num_decode_deferred_kv_release_reqs -1\n", "line 1: num_decode_deferred_kv_release_reqs is -1"),
    ],
)  # fmt: skip
def test_bad_metrics_are_one_line_that_names_the_line(text: str, said: str) -> None:
    message = refused("metrics", "-", text=text)
    assert message.startswith("draincheck: standard input, line ")
    assert said in message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such-file",), "no-such-file: cannot be read: No such file or directory"),
        (("-", "-"), "standard input (-) can be read once only"),
        (("-", "--interval", "60"), "give SECOND too"),
        (("-", "--min-drained", "99"), "'99': expected a number from 0 to 1"),
        (("-", "--min-drained", "nan"), "expected a number from 0 to 1"),
        (("-", "--max-p99", "0"), "expected a number from more than 0"),
        (("-", "--timeout", "999999999999999"), "expected a number from more than 0 to 86400"),
        (("-", "--max-held", "few"), "expected a whole number from 0"),
        (("http://[bad/metrics",), "http://[bad/metrics: this is no address"),
        (("http://127.0.0.1:1/metrics",), "http://127.0.0.1:1/metrics: cannot be reached: Connection refused"),
    ],
)
def test_bad_arguments_of_metrics_are_one_line(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused("metrics", *arguments, text="")


@pytest.mark.parametrize(
    "edge", ["0.001", "0.002", "0.005", "0.01", "0.02", "0.025", "0.05", "0.1", "0.2", "0.4", "1e-1"]
)
def test_a_limit_at_an_edge_of_the_histogram_is_decided(edge: str) -> None:
    drained = f'{TOTAL}{{outcome="drained"}} 100\n'
    below = f'{BUCKET}{{le="{edge}"}} 100\n{BUCKET}{{le="+Inf"}} 100\n'
    above = f'{BUCKET}{{le="{edge}"}} 0\n{BUCKET}{{le="+Inf"}} 100\n'
    limit = {"1e-1": "0.1"}.get(edge, edge)
    assert metrics("-", "--max-p99", limit, text=drained + below)["verdict"] == "HEALTHY"
    assert metrics("-", "--max-p99", limit, text=drained + above)["verdict"] == "UNHEALTHY"


@pytest.mark.parametrize("edge", ["nan", "-1", "1e999999999", "-inf", "1e-99", "0x1", ""])
def test_an_edge_that_is_no_duration_is_refused(edge: str) -> None:
    assert f"has le='{edge}'" in refused("metrics", "-", text=f'{BUCKET}{{le="{edge}"}} 1\n')


def test_metrics_that_a_gateway_has_renamed_point_at_the_servers() -> None:
    text = 'engine_decode_deferred_kv_release_total{outcome="drained",worker_addr="http://a"} 5\n'
    (note,) = metrics("-", text=text)["notes"]
    assert "engine_decode_deferred_kv_release_total is a name as a gateway writes it" in note
    assert "scrape each server itself" in note
    assert any(
        "scrape each server" in note for note in gate("--metrics", "-", text="engine_max_total_num_tokens 5\n")["notes"]
    )
    assert metrics("-", text="a_page_size 5\n")["notes"] == [
        "no decode rank in it: release without these metrics, metrics not enabled, or a prefill server?"
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("localhost:30000/metrics", "if it is an address, write http://localhost:30000/metrics"),
        ("[::1]:30000", "if it is an address, write http://[::1]:30000"),
        ("decode-0.example/metrics", "write http://decode-0.example/metrics"),
        (
            "ftp://u:secret@host/metrics",
            "ftp://***@host/metrics: there is no such file; of addresses",
        ),
        ("http:/localhost/metrics", "write http://"),
    ],
)
def test_what_looks_like_an_address_gets_a_hint(source: str, said: str) -> None:
    message = refused("metrics", source)
    assert said in message and "secret" not in message


def test_a_closed_standard_input_is_one_line() -> None:
    program = f"exec {sys.executable} -c 'from draincheck.explorer.commands.cli import main; main()' metrics - <&-"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "draincheck: standard input: it is closed; give a file or a URL\n"


def test_a_file_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.txt"
    path.write_bytes(b'a 1\nb{c="\xe9"} 1\n')
    assert refused("metrics", path) == f"draincheck: {path}, line 2: not UTF-8; expected a text of metrics"
    path.write_bytes(b"\xef\xbb\xbf" + ARTICLE.encode())
    assert metrics(path)["verdict"] == "HEALTHY"


class _Server(BaseHTTPRequestHandler):
    """Metrics, a missing page, a page, an answer that breaks off, and one that is none."""

    def do_GET(self) -> None:
        text, length = {
            "/metrics": (ARTICLE, len(ARTICLE)),
            "/short": (ARTICLE, len(ARTICLE) + 9),
            "/page": ("<html>sign in</html>", 20),
            "/slow": ("", 0),
        }.get(self.path, ("", -1))
        if self.path == "/slow":
            self.server.wait.wait(20)  # type: ignore[attr-defined]
        self.send_response(200 if length >= 0 else 404)
        self.send_header("Content-Length", str(max(length, 0)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Server) as serving:
        serving.wait = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.wait.set()  # type: ignore[attr-defined]
        serving.shutdown()
        thread.join()


def test_urls_are_read_and_what_is_wrong_with_them_is_said(server: str) -> None:
    assert metrics(f"{server}/metrics")["sources"] == [f"{server}/metrics"]
    assert f"{server}/gone: the server answered 404" in refused("metrics", f"{server}/gone")
    assert f"{server}/page, line 1: a page of HTML" in refused("metrics", f"{server}/page")
    assert f"{server}/short: the answer broke off" in refused("metrics", f"{server}/short")
    assert "no whole answer within 0.2 s" in refused("metrics", f"{server}/slow", "--timeout", "0.2")


# ----------------------------------------------------------------------------------------------------- documents


def fields_of(document: Any) -> set[str]:
    """Names of all fields, but those that are somebody's labels."""
    if isinstance(document, dict):
        return {
            name
            for key, value in document.items()
            for name in ({key} | (set() if key == "labels" else fields_of(value)))
        }
    return {name for each in document for name in fields_of(each)} if isinstance(document, list) else set()


def test_every_json_field_is_documented() -> None:
    pages = re.split(r"^# ", (ROOT / "docs" / "json.md").read_text("utf-8"), flags=re.MULTILINE)
    text, _ = exposition()
    for command, document in (("gate", gate("--metrics", "-", text=text)), ("metrics", metrics("-", text=text))):
        (page,) = [page for page in pages if page.startswith(f"The JSON document of `draincheck {command} --json`")]
        missing = {name for name in fields_of(document) if f"`{name}`" not in page}
        assert not missing, command


EXAMPLE = re.compile(
    r"```console\n(?P<files>(?:\$ cat \S+\n(?:[^$\n][^\n]*\n)+)*)\$ draincheck (?P<line>[^\n]*)\n(?P<output>.*?)```",
    re.DOTALL,
)


def test_the_examples_in_the_documents_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    examples = list(EXAMPLE.finditer(page))
    assert len(examples) == page.count("```console") >= 3
    for example in examples:
        for name, text in re.findall(r"\$ cat (\S+)\n((?:[^$\n][^\n]*\n)+)", example["files"]):
            Path(name).write_text(text, "utf-8")
        printed = run(*example["line"].split()).stdout
        assert [line.rstrip() for line in printed.splitlines()] == example["output"].splitlines()


def test_help_does_not_load_what_the_commands_need() -> None:
    program = (
        "import sys; from draincheck.explorer.commands.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('prometheus_client', 'urllib.request', 'rich', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert " gate " in done.stdout and " metrics " in done.stdout
