"""Random models, false ones on purpose among them, through every engine: none finds less, and none proves more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import oracle
import pytest
from draincheck.explorer.proofs.unrolling import Bounds
from draincheck.explorer.search.liveness import decide_promises
from draincheck.explorer.search.search import search
from draincheck.explorer.verdicts.proofs import Method, Verdict, prove_bounded, prove_by_induction
from draincheck.properties.case import Question
from random_models import Drawn, draw

SEEDS = (0, 1, 2, 3, 5, 49)
"""With faults and without; in the last one the solver's solution has no constants at all."""
DEPTH = 5
LEMMA_STATES = 60
"""Up to so many states the strongest invariant is short enough to be asked for."""

Seen = Counter[str]


def by_search(drawn: Drawn) -> None:
    """The same states, counts and distances; to a fault, and no farther."""
    expected, found = drawn.found, search(drawn.check, until=())
    distances = {name: len(found.path_to(at)) - 1 for name, at in found.violated.items()}
    if expected.fault is None:
        assert found.complete and distances == expected.violated
        assert (found.states, found.transitions, found.depth) == (expected.states, expected.transitions, expected.depth)
        assert (found.counts, found.hits) == (expected.counts, expected.hits)
        return
    assert found.faulty is not None and len(found.path_to(found.faulty.position)) - 1 == expected.fault
    near = {name: depth for name, depth in expected.violated.items() if depth <= expected.fault}
    assert near.items() <= distances.items() <= expected.violated.items()


def by_promises(drawn: Drawn) -> None:
    """Kept or broken as the oracle says; TLA+, for which a step that changes nothing is none, breaks no more."""
    if drawn.found.fault is not None:
        return
    outcomes = decide_promises(search(drawn.check, until=()))
    steps = oracle.every_step(drawn.check)
    broken = {name for name, outcome in outcomes.items() if outcome.lasso}
    assert broken == oracle.broken_promises(drawn.check, steps)
    assert oracle.broken_promises(drawn.check, oracle.steps_that_change(steps)) <= broken


def by_terms(drawn: Drawn, method: Method, seen: Seen) -> None:
    """A run of the right length where one fails nearby; a proof only where none does, and no step breaks the rules."""
    expected = {**drawn.found.violated, "no_fault": drawn.found.fault}
    question = Question(drawn.check, (), {})
    for result in prove_bounded(question, [*drawn.check.properties, None], method, Bounds(DEPTH, 20)):
        (subject,), verdict = result.subjects, result.verdict
        distance = expected.get(subject)
        seen[f"{method} {verdict}"] += 1
        if verdict is Verdict.VIOLATED:
            assert result.trace is not None and len(result.trace) == distance
        elif verdict is Verdict.PROVED:
            assert method is not Method.BMC and distance is None and drawn.found.fault is None
        elif method is not Method.SPACER and "time limit" not in result.detail:
            assert distance is None or distance > DEPTH


def by_lemmas(drawn: Drawn, seen: Seen) -> None:
    """With the strongest invariant as a lemma whatever is true is proved, and nothing else ever."""
    expected, properties = drawn.found, drawn.check.properties
    for lemmas in ((), properties, (drawn.lemma,)):
        for goal in properties:
            result = prove_by_induction(drawn.check.model, lemmas, [goal])
            seen[f"induction {result.verdict}"] += 1
            true = goal.name not in expected.violated and expected.fault is None
            if result.verdict is Verdict.PROVED:
                assert true and not set(result.lemmas) & expected.violated.keys()
            elif lemmas == (drawn.lemma,):
                assert not true


def compare(seed: int, folder: Path, seen: Seen) -> None:
    """Draws a model and asks every engine about it."""
    drawn = draw(seed, folder)
    assert "never_here" in drawn.found.violated and "is_reachable" not in drawn.found.violated, drawn.text
    assert drawn.planted is None or drawn.found.fault is not None
    seen["models"] += 1
    seen["models with a fault"] += drawn.found.fault is not None
    try:
        by_search(drawn)
        by_promises(drawn)
        for method in (Method.BMC, Method.K_INDUCTION, Method.SPACER):
            by_terms(drawn, method, seen)
        if drawn.found.states <= LEMMA_STATES:
            by_lemmas(drawn, seen)
    except BaseException as error:
        error.add_note(f"seed {seed}:\n{drawn.text}")
        raise


def test_all_engines_say_the_same_of_random_models(tmp_path: Path) -> None:
    seen = Seen()
    for seed in SEEDS:
        compare(seed, tmp_path, seen)
    assert all(seen[f"{method} VIOLATED"] for method in (Method.BMC, Method.K_INDUCTION, Method.SPACER)), seen
    assert all(seen[f"{method} PROVED"] for method in (Method.K_INDUCTION, Method.SPACER, Method.INDUCTION)), seen
    assert seen["models with a fault"], seen


@pytest.mark.slow
def test_all_engines_say_the_same_of_many_random_models(tmp_path: Path) -> None:
    seen = Seen()
    for seed in range(1_000, 1_121):
        compare(seed, tmp_path, seen)
    assert seen["models"] == 121 and seen["models with a fault"] > 20
