"""The guarded commands as Z3 terms: the same steps as direct execution, and the same verdicts as exhaustive search."""

from __future__ import annotations

import random
from dataclasses import replace

import oracle
import pytest
import toys
from draincheck.explorer.proofs.horn import spacer
from draincheck.explorer.proofs.induction import inductive
from draincheck.explorer.proofs.symbolic import Symbolic, z3
from draincheck.explorer.proofs.unrolling import Bounds, bounded_check, induction
from draincheck.explorer.search.search import Exploration, search
from draincheck.explorer.traces.trace import follow, induction_trace
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.endless import endless_model
from draincheck.properties.drain.cases import drain_case, scenario_with
from draincheck.protocol.language import (
    UNBOUNDED,
    DeclarationError,
    Faults,
    Index,
    State,
    action,
    between,
    field,
    flag,
    require,
    upto,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from draincheck.protocol.language.property import claim, invariant
from test_engines import reference_check


def drain_check(profile: str, scenario: str, *, timed: bool = False) -> Check:
    case = drain_case(load_profile(profile), scenario_with(scenario, {"chunks": 1}), timer=timed)
    question = case.timed if timed else case.untimed
    assert question is not None
    return question.check


TOYS = [
    toys.ring(),
    toys.ring(Faults(loss=1)),
    toys.ring(Faults(duplication=1)),
    toys.ring(Faults(reordering=2)),
    toys.ring(Faults(loss=1, duplication=1, reordering=1), nodes=3),
    toys.counter(5),
    toys.arithmetic(),
    toys.door(turns=True),
    reference_check(rooms=1, ranks=1, chunks=2, slots=2),
    reference_check(1, rooms=1, ranks=2, chunks=1, slots=1),
    reference_check(2, rooms=2, ranks=1, chunks=1, slots=1),
]
"""Models small enough that every method decides them."""

VIOLATED = [
    drain_check("sglang-0.5.18-mooncake", "abort"),
    drain_check("sglang-0.5.20-mooncake", "failed-send"),
    drain_check("sglang-0.5.23-mooncake", "abort", timed=True),
    drain_check("sglang-0.5.19-mooncake", "flush"),
]
SAFE = [drain_check("sglang-0.5.22-mori", name) for name in ("rejected", "offload", "checksum")]


def name_of(check: Check) -> str:
    return check.model.name.replace(" ", "")


def random_states(model: Model, count: int, seed: int = 20261130) -> list[Values]:
    """States on random runs."""
    chance, states = random.Random(seed), list[Values]()
    while len(states) < count:
        values = chance.choice(model.initial_states())
        for _ in range(25):
            states.append(values)
            steps = list(model.steps(values))
            if not steps:
                break
            values = chance.choice(steps).values
    return chance.sample(states, count)


def successors_by_z3(symbolic: Symbolic, values: Values) -> set[Values]:
    """Every state that a step leads to, one solution after the other."""
    before, after = symbolic.frame("before"), symbolic.frame("after")
    solver = symbolic.solver()
    solver.add(symbolic.is_state(before, values), symbolic.step(before, after, "step"))
    found: set[Values] = set()
    while solver.check() == z3.sat:
        state = symbolic.values(solver.model(), after)
        assert state not in found
        found.add(state)
        solver.add(z3.Not(symbolic.is_state(after, state)))
    return found


@pytest.mark.parametrize("check", [*TOYS, *VIOLATED, *SAFE], ids=name_of)
@pytest.mark.parametrize("integers", [False, True], ids=["vectors", "integers"])
def test_steps_are_those_of_direct_execution(check: Check, integers: bool) -> None:
    symbolic = Symbolic(check.model, integers=integers)
    for values in random_states(check.model, 6):
        expected = {step.values for step in check.model.steps(values)}
        assert successors_by_z3(symbolic, values) == expected


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_steps_of_endless_lives_are_those_of_direct_execution(ranks: int) -> None:
    model = endless_model(load_profile("sglang-0.5.23-mooncake"), ranks=ranks, slots=2, late_timer=True)
    symbolic = Symbolic(model)
    assert not symbolic.bounded
    for values in random_states(model, 6):
        assert successors_by_z3(symbolic, values) == {step.values for step in model.steps(values)}


@pytest.mark.parametrize("check", [*TOYS, *VIOLATED], ids=name_of)
def test_properties_are_those_of_direct_execution(check: Check) -> None:
    symbolic = Symbolic(check.model)
    frame = symbolic.frame("state")
    for values in random_states(check.model, 8):
        for prop in check.properties:
            solver = symbolic.solver()
            solver.add(symbolic.is_state(frame, values), symbolic.fails(prop, frame))
            assert (solver.check() == z3.sat) == (prop.violation(check.model, values) is not None)


def distance(found: Exploration, name: str) -> int | None:
    """Steps to the nearest state that violates a property."""
    return len(found.path_to(found.violated[name])) - 1 if name in found.violated else None


@pytest.mark.parametrize(
    "check",
    [*TOYS, pytest.param(replace(SAFE[0], properties=SAFE[0].properties[:2]), marks=pytest.mark.slow)],
    ids=name_of,
)
def test_bounded_checking_to_the_end_equals_search(check: Check) -> None:
    """To the depth of the model nothing is left out, so the verdicts are the same, and the distances."""
    found, symbolic = search(replace(check, deadlock=False), until=()), Symbolic(check.model)
    for prop in check.properties:
        asked = bounded_check(symbolic, prop, Bounds(found.depth))
        assert (asked.depth if asked.states else None) == distance(found, prop.name)
        if asked.states:
            assert len(follow(check.model, asked.states)) == asked.depth
            assert prop.violation(check.model, asked.states[-1])
    assert not bounded_check(symbolic, None, Bounds(found.depth)).states


@pytest.mark.parametrize("check", VIOLATED, ids=name_of)
def test_bounded_checking_finds_the_shortest_run(check: Check) -> None:
    found, symbolic = search(replace(check, deadlock=False), until=()), Symbolic(check.model)
    name, length = min(((name, distance(found, name)) for name in found.violated), key=lambda each: each[1] or 0)
    assert length is not None
    prop = next(each for each in check.properties if each.name == name)
    assert not bounded_check(symbolic, prop, Bounds(length - 1)).states
    asked = bounded_check(symbolic, prop, Bounds(length))
    assert asked.depth == length and len(asked.states) == length + 1
    assert len(follow(check.model, asked.states)) == length
    assert prop.violation(check.model, asked.states[-1])
    assert all(prop.violation(check.model, values) is None for values in asked.states[:-1])


@pytest.mark.parametrize("check", TOYS, ids=name_of)
def test_k_induction_equals_search(check: Check) -> None:
    """With simple paths every property is decided; without, some are not, but none is decided otherwise."""
    found, symbolic = search(replace(check, deadlock=False), until=()), Symbolic(check.model)
    for prop in check.properties:
        violated = prop.name in found.violated
        asked = induction(symbolic, prop, Bounds(30), simple_path=True)
        assert asked.proved == (not violated) and bool(asked.states) == violated
        plain = induction(symbolic, prop, Bounds(12, 5))
        assert not (plain.proved and violated) and not (plain.states and not violated)
        for each in (asked, plain):
            if each.states:
                assert len(follow(check.model, each.states)) == each.depth == distance(found, prop.name)


@pytest.mark.parametrize(
    "check",
    [
        *(check for check in TOYS[:-1] if check.model.name != "arithmetic"),
        pytest.param(TOYS[-1], marks=pytest.mark.slow),
    ],
    ids=name_of,
)
def test_spacer_equals_search(check: Check) -> None:
    found = search(replace(check, deadlock=False), until=())
    for prop in check.properties:
        asked = spacer(check.model, prop, 60)
        violated = prop.name in found.violated
        assert (asked.holds, asked.fails) == (not violated, violated), asked.stopped


def test_spacer_says_when_it_gives_up() -> None:
    asked = spacer(reference_check().model, reference_check().properties[0], 0.2)
    assert not asked.holds and not asked.fails
    assert "Spacer" in asked.stopped


class Pair(State[None]):
    """Two flags."""

    x = field(flag, means="the first")
    y = field(flag, means="the second")


@action("a")
def hand_on(s: Pair) -> None:
    """The second takes what the first had, and the first is set."""
    before = s.x
    s.x = True
    s.y = before


@invariant
def alike(s: Pair) -> None:
    """Both are the same."""
    claim(s.x == s.y, "the flags are the same", x=s.x, y=s.y)


PAIR = Model(name="pair", state=Pair, actions=(hand_on,), sizes={})


def test_a_step_reads_what_was_before_it() -> None:
    """Whoever takes the new value of the first for the old one finds both set, and believes the property."""
    symbolic = Symbolic(PAIR)
    frame = symbolic.frame("before")
    after = symbolic.successor(symbolic.commands[0], frame)
    chained = symbolic.successor(symbolic.commands[0], (after[0], frame[1]))  # the trap: y from the new x
    solver = z3.Solver()
    solver.add(symbolic.fails(alike, chained))
    assert solver.check() == z3.unsat
    solver = z3.Solver()
    solver.add(z3.Not(symbolic.fails(alike, frame)), symbolic.fails(alike, after))
    assert solver.check() == z3.sat
    for simple_path in (False, True):
        asked = induction(symbolic, alike, Bounds(5), simple_path=simple_path)
        assert not asked.proved and asked.states == ((0, 0), (1, 0))
    assert spacer(PAIR, alike, 10).fails


def start_apart(s: Pair) -> None:
    """The flags differ from the start."""
    s.x = True


def test_a_failure_at_the_start_is_seen() -> None:
    model = replace(PAIR, name="apart", start=start_apart)
    for asked in (bounded_check(Symbolic(model), alike, Bounds(0)), induction(Symbolic(model), alike, Bounds(0))):
        assert asked.states == ((1, 0),) and asked.depth == 0


class Count(State[None]):
    """A counter that goes up."""

    count = field(upto(9), means="how far it has counted")


@action("a")
def count_up(s: Count) -> None:
    """One more."""
    require(s.count < 9)
    s.count += 1


@invariant
def below_seven(s: Count) -> None:
    """The counter is below 7."""
    claim(s.count < 7, "it is below 7", count=s.count)


COUNT = Model(name="count", state=Count, actions=(count_up,), sizes={}, terminal=lambda s: s.count == 9)


def test_a_trace_has_every_state_up_to_the_failure() -> None:
    """Seven steps, eight states, of which the last one fails: a row that is one state short shows no failure."""
    symbolic = Symbolic(COUNT)
    assert not bounded_check(symbolic, below_seven, Bounds(6)).states
    assert bounded_check(symbolic, below_seven, Bounds(7)).states == tuple((n,) for n in range(8))
    assert induction(symbolic, below_seven, Bounds(7)).states == tuple((n,) for n in range(8))
    assert below_seven.violation(COUNT, (6,)) is None and below_seven.violation(COUNT, (7,))


def test_what_is_in_the_way_of_a_proof_is_a_row_of_steps() -> None:
    @invariant
    def never_four(s: Count) -> None:
        """The counter is not 4."""
        claim(s.count != 4, "it is not 4")

    def start_high(s: Count) -> None:
        """The counter begins above 4."""
        s.count = 5

    model = replace(COUNT, name="high", start=start_high)
    asked = induction(Symbolic(model), never_four, Bounds(1))
    assert not asked.proved and asked.induction == ((2,), (3,), (4,)) and not asked.states
    shown = induction_trace(model, never_four, asked.induction, {})
    assert [step.label for step in shown.steps] == ["count_up()", "count_up()"]
    assert shown.kind == "induction" and shown.begins == ("count = 2",)
    assert induction(Symbolic(model), never_four, Bounds(9)).proved  # nothing leads to 0, so five in a row do not exist


def test_a_fault_is_found_like_a_failure() -> None:
    @action("a")
    def count_on(s: Count) -> None:
        """One more, without looking."""
        s.count += 1

    model = replace(COUNT, name="overflow", actions=(count_on,))
    asked = bounded_check(Symbolic(model), None, Bounds(12))
    assert asked.depth == 9 and asked.states[-1] == (9,)
    assert not bounded_check(Symbolic(COUNT), None, Bounds(12)).states


class Steps(Index):
    """Steps without number."""


class Endless(State[None]):
    """Counters that never end."""

    n = field(upto(Steps), means="how far it has counted")
    twice = field(upto(Steps), means="twice as far")
    low = field(between(-3, Steps), means="three behind")


@action("a")
def count_without_end(s: Endless) -> None:
    """One more, whatever there was."""
    s.n += 1
    s.twice = 2 * s.n
    s.low = s.n - 3 if s.twice - s.n > s.n * 0 else -3


def at_the_mark(s: Endless) -> None:
    """It begins where the number lies that stands for "no bound"."""
    s.n = UNBOUNDED
    s.twice = 2 * UNBOUNDED


ENDLESS_COUNT = Model(name="endless", state=Endless, actions=(count_without_end,), sizes={Steps: UNBOUNDED})


@invariant
def below_the_mark(s: Endless) -> None:
    """The counter is at most the number that stands for "no bound"."""
    claim(s.n <= UNBOUNDED, "it is at most 2**61", n=s.n)


def test_a_counter_without_bound_has_none_in_any_execution() -> None:
    for values in ((UNBOUNDED, 0, 0), (2**70, 2**71, 5)):
        expected = {step.values for step in ENDLESS_COUNT.steps(values)}
        assert expected == {(values[0] + 1, 2 * values[0] + 2, values[0] - 2)}
        assert successors_by_z3(Symbolic(ENDLESS_COUNT), values) == expected
    asked = induction(Symbolic(ENDLESS_COUNT), below_the_mark, Bounds(3))
    assert not asked.proved and asked.induction[-1][0] == UNBOUNDED + 1
    assert induction_trace(ENDLESS_COUNT, below_the_mark, asked.induction, {}).violation
    assert not inductive(Symbolic(ENDLESS_COUNT), [below_the_mark]).proved
    assert not spacer(ENDLESS_COUNT, below_the_mark, 2).holds
    beyond = replace(ENDLESS_COUNT, start=at_the_mark)
    for found in (
        bounded_check(Symbolic(beyond), below_the_mark, Bounds(2)),
        induction(Symbolic(beyond), below_the_mark),
    ):
        assert found.depth == 1 and found.states[-1][0] == UNBOUNDED + 1
    assert spacer(beyond, below_the_mark, 20).fails
    with pytest.raises(DeclarationError, match="the field n has no greatest value, and a search needs one"):
        search(Check(ENDLESS_COUNT, ()))


class Fixed(State[None]):
    """A cell with one value only, and two with more."""

    only = field(upto(0), means="always 0")
    a = field(upto(3), means="a number")
    b = field(upto(3), means="another")


@action("f")
def differ(s: Fixed) -> None:
    """The cell with one value is given a difference, which is 0 or breaks the rules."""
    require(s.a == s.b)
    s.only = s.a - s.b
    s.a = s.choose([1, 2])


def test_a_cell_with_one_value_may_be_given_one_in_terms() -> None:
    model = Model(name="fixed", state=Fixed, actions=(differ,), sizes={}, terminal=lambda s: 1)
    for integers in (False, True):
        for values in ((0, 2, 2), (0, 1, 3)):
            symbolic = Symbolic(model, constants=False, integers=integers)
            assert successors_by_z3(symbolic, values) == {step.values for step in model.steps(values)}
    assert search(Check(model, ())).states == oracle.explore(Check(model, ())).states == 3


def test_a_solution_without_constants_is_a_solution() -> None:
    """Nothing changes in this model, so there is nothing to say of its only state, in which the property is false."""

    @action("a")
    def stay(s: Pair) -> None:
        """Nothing happens."""
        require(s.x)

    model = replace(PAIR, name="still", actions=(stay,), start=start_apart)
    for asked in (bounded_check(Symbolic(model), alike, Bounds(3)), induction(Symbolic(model), alike, Bounds(3))):
        assert asked.states == ((1, 0),) and asked.depth == 0 and not asked.proved
    found = spacer(model, alike, 20)
    assert found.fails and not found.holds
    assert not inductive(Symbolic(model), [alike]).proved


def test_wrong_bounds_are_refused() -> None:
    with pytest.raises(DeclarationError, match="the depth is -1"):
        Bounds(-1)
    with pytest.raises(DeclarationError, match="the time limit is 0; it must be greater than 0"):
        Bounds(3, 0)


def test_a_time_limit_gives_what_is_known_by_then() -> None:
    asked = bounded_check(Symbolic(reference_check().model), reference_check().properties[0], Bounds(200, 1.5))
    assert not asked.states and "time limit of 1.5 s reached" in asked.stopped
    assert 0 <= asked.depth < 200
