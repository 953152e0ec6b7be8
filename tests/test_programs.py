"""Random programs, in the language and just outside it, are equal in all executions, or refused with a sentence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from executions import Outcomes, outcomes_of
from programs import pieces, programs

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")  # such as `is` with a number

SEEDS = 5
MANY_SEEDS = 200
"""Of 17 programs each; for the slow test."""


def shares(done: Outcomes) -> Counter[str]:
    return Counter(equal=len(done.equal), refused=len(done.refused), different=len(done.different))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_programs_are_equal_or_refused(seed: int, tmp_path: Path) -> None:
    done = outcomes_of(programs(seed, strange=0.15), tmp_path, seed)
    assert not done.different, str(done)
    assert done.equal


@pytest.mark.parametrize("seed", range(2))
def test_programs_of_the_language_are_mostly_accepted(seed: int, tmp_path: Path) -> None:
    done = outcomes_of(programs(1000 + seed, strange=0), tmp_path, seed)
    assert not done.different, str(done)
    assert len(done.equal) > 3 * len(done.refused)


def test_pieces_outside_of_the_language_are_equal_or_refused(tmp_path: Path) -> None:
    done = outcomes_of(pieces(0)[::20], tmp_path, 0, states=15, terms=1)
    assert not done.different, str(done)
    assert done.equal and done.refused


@pytest.mark.slow
def test_many_programs(tmp_path: Path) -> None:
    total = Counter[str]()
    for seed in range(MANY_SEEDS):
        done = outcomes_of(programs(10_000 + seed, strange=0.15), tmp_path, seed)
        assert not done.different, str(done)
        total += shares(done)
    print(dict(total))


@pytest.mark.slow
def test_all_pieces(tmp_path: Path) -> None:
    total = Counter[str]()
    every = pieces(1)
    for first in range(0, len(every), 40):
        done = outcomes_of(every[first : first + 40], tmp_path, first, states=20, terms=1)
        assert not done.different, str(done)
        total += shares(done)
    print(dict(total))
