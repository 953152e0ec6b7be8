"""Bad inputs and faults, for every command: no traceback, no hang, no wrong exit code, no orphan."""

from __future__ import annotations

import pytest
from bad_inputs import Case, End, Tally, faults_of, report, run_all


@pytest.mark.slow
def test_nothing_that_is_fed_to_a_command_ends_otherwise_than_it_should() -> None:
    tally = run_all()
    assert tally.ran.total() > 1000
    assert not tally.worst, "\n".join([report(tally), *tally.worst])


def test_a_few_of_them() -> None:
    tally = run_all("arguments: gate")
    assert tally.ran["arguments"] > 50
    assert not tally.worst, "\n".join(tally.worst)


def test_what_must_not_be_is_seen() -> None:
    case = Case("", [])
    assert faults_of(case, End(2, "draincheck: no\n", 0)) == []
    assert faults_of(case, End(None, "", 0)) == ["hangs"]
    assert faults_of(case, End(1, "", 0)) == ["wrong exit codes"]
    assert faults_of(case, End(2, "Traceback (most recent call last):\n", 0)) == ["tracebacks"]
    assert faults_of(case, End(2, "", 1)) == ["orphans"]
    assert faults_of(case, End(2, "\x1b[2J", 0)) == ["control characters"]
    assert faults_of(case, End(2, f"draincheck: {'x' * 20_000}\n", 0)) == ["long messages"]
    tally = Tally()
    tally.add("some", case, End(1, "so it was", 0))
    assert tally.worst == ["wrong exit codes: : exit code 1, right are [2]: so it was"]
    assert "| some | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in report(tally)
