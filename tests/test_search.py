"""Searches that are cut short, get stuck or meet a fault say so; the visited set is exact while it grows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
import toys
from draincheck.explorer.compile.packing import packing_of
from draincheck.explorer.compile.tracer import most_successors, trace
from draincheck.explorer.search import kernel
from draincheck.explorer.search import search as module
from draincheck.explorer.search.partition import Partition
from draincheck.explorer.search.search import Limits, Progress, SearchInterrupted, compile_check, never_fired, search
from draincheck.explorer.traces.render_terminal import terminal_text
from draincheck.explorer.verdicts.verify import Verdict, exit_code, verify
from draincheck.models.small import reference as reference_properties
from draincheck.models.small.reference import reference
from draincheck.properties.case import Case, Question
from draincheck.properties.small import reference_case
from draincheck.protocol.language import DeclarationError, DomainFault, Index, State, action, field, flag, require, upto
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import Kind, Property, claim, invariant, probe


class Step(Index):
    """A step."""


class Walk(State[None]):
    """A walker."""

    at = field(upto(9), means="where the walker is")


@action("walker")
def forward(s: Walk) -> None:
    """One step on, up to the seventh."""
    require(s.at < 7)
    s.at += 1


@action("walker")
def leap(s: Walk) -> None:
    """Leaps too far."""
    require(s.at == 5)
    s.at += 5


@action("walker")
def sleep(s: Walk) -> None:
    """Never happens."""
    require(s.at == 9)


@action("walker")
def stumble(s: Walk) -> None:
    """Falls from two into a place without a way out."""
    require(s.at == 2)
    s.at = 8


@action("walker")
def jump(s: Walk) -> None:
    """Jumps from six to nine, and back."""
    require(s.at == 6)
    s.at = 9


@invariant
def not_four(s: Walk) -> None:
    """The walker does not come to four."""
    claim(s.at != 4, "the walker is not at four", at=s.at)


def walk(*actions: object, **more: object) -> Model:
    return Model(name="walk", state=Walk, actions=actions, sizes={Step: 1}, **more)  # type: ignore[arg-type]


@invariant
def stays_below_ten(s: Walk) -> None:
    """The walker does not come to ten, as its domain has it."""
    claim(s.at < 10, "the walker is below ten", at=s.at)


@probe
def moved(s: Walk) -> int:
    """The walker has moved."""
    return s.at > 0


def asked_of(model: Model, *properties: Property) -> Case:
    check = Check(model, properties or (stays_below_ten,), (moved,))
    return Case(profile="walk", scenario="test", untimed=Question(check, ("moved",), {}), timed=None, witness="")


def at_seven(s: Walk) -> int:
    """Terminal: the walker has arrived."""
    return s.at == 7


def test_a_deadlock_is_found_with_its_shortest_way() -> None:
    found = search(Check(walk(forward), ()))
    assert found.deadlock is not None
    assert [values[0] for values in found.path_to(found.deadlock)] == list(range(8))
    assert found.complete
    row = verify(asked_of(walk(forward, bounds={"release timer": "off"})))
    assert row.verdict is Verdict.UNDETERMINED and row.trace is not None and row.trace.kind == "deadlock"
    assert len(row.trace) == 7 and exit_code([row]) == 3


def test_a_deadlock_does_not_hide_a_violation_behind_it() -> None:
    """The walker is stuck at 7 unless it leaps from there; what is behind the leap is looked at as well."""

    @invariant
    def not_nine(s: Walk) -> None:
        """The walker does not come to nine."""
        claim(s.at != 9, "the walker is not at nine", at=s.at)

    model = walk(forward, stumble, jump, bounds={"release timer": "off"})
    found = search(Check(model, ()))
    assert found.deadlock is not None and found.path_to(found.deadlock)[-1] == (8,)
    row = verify(Case("walk", "t", Question(Check(model, (not_nine,)), (), {}), None, ""))
    assert row.verdict is Verdict.VIOLATED and row.trace is not None and len(row.trace) == 7


def test_a_declared_terminal_state_is_no_deadlock() -> None:
    found = search(Check(walk(forward, terminal=at_seven), ()))
    assert found.complete and found.states == 8 and found.depth == 7


def test_a_step_that_breaks_the_rules_ends_the_search_with_its_values_and_a_run() -> None:
    model = walk(forward, leap, terminal=at_seven, bounds={"release timer": "off"})
    found = search(Check(model, ()))
    assert found.faulty is not None and isinstance(found.faulty.fault, DomainFault)
    said = "leap(): at may hold 0 .. 9; 10 was assigned"
    assert not found.complete and found.stopped == f"a step breaks the language's rules: {said}"
    row = verify(asked_of(model))
    assert row.verdict is Verdict.UNDETERMINED and row.reasons == (found.stopped,) and exit_code([row]) == 3
    assert row.trace is not None and row.trace.kind == "fault" and str(row.trace.violation) == f"{said} is false"
    assert found.path_to(found.faulty.position) == [(at,) for at in range(len(row.trace) + 1)]


@pytest.mark.parametrize("count_all", [True, False])
def test_a_fault_does_not_hide_the_violation_before_it(count_all: bool) -> None:
    """The walker comes to four and then leaps out of bounds, whether or not the search goes on behind four."""
    check = Check(walk(forward, leap, terminal=at_seven, bounds={"release timer": "off"}), (not_four,))
    found = search(check, until=())
    assert found.faulty is not None and len(found.path_to(found.violated["not_four"])) == 5
    row = verify(Case("walk", "t", Question(check, (), {}), None, "", count_all=count_all))
    assert row.verdict is Verdict.VIOLATED and exit_code([row]) == 1
    assert [(trace.kind, trace.subject) for trace in row.traces] == [
        ("violation", "not_four"),
        ("fault", "no_fault"),
    ]
    assert row.run.reason.startswith("a step breaks the language's rules: leap()")


def test_an_action_that_never_fires_makes_a_pass_undetermined() -> None:
    model = walk(forward, sleep, terminal=at_seven, bounds={"release timer": "off"})
    assert never_fired(search(Check(model, ()))) == ["sleep"]
    row = verify(asked_of(model))
    assert row.verdict is Verdict.UNDETERMINED and row.reasons == ("the action sleep never fired",)
    resting = walk(forward, sleep, terminal=at_seven, bounds={"release timer": "off"}, may_rest=frozenset({"sleep"}))
    assert verify(asked_of(resting)).verdict is Verdict.SAFE


def test_a_probe_that_is_never_reached_makes_a_pass_undetermined() -> None:
    whole = reference_case()
    asked = Question(whole.untimed.check, ("drained_while_held", "more"), {})
    row = verify(Case(profile="r", scenario="s", untimed=asked, timed=None, witness=""))
    assert row.verdict is Verdict.UNDETERMINED and row.reasons == ("more was never reached",)


@pytest.mark.parametrize(
    ("properties", "required", "reason"),
    [
        ((), ("moved",), "no property is asked for"),
        ((stays_below_ten,), (), "no probe is asked for"),
    ],
)
def test_a_question_that_asks_nothing_is_no_pass(
    properties: tuple[Property, ...], required: tuple[str, ...], reason: str
) -> None:
    check = Check(walk(forward, terminal=at_seven), properties, (moved,))
    row = verify(Case("walk", "t", Question(check, required, {}), None, ""))
    assert (row.verdict, row.reasons, exit_code([row])) == (Verdict.UNDETERMINED, (reason,), 3)
    assert verify(asked_of(walk(forward, terminal=at_seven))).verdict is Verdict.SAFE


def test_a_doubt_of_an_earlier_search_is_not_forgotten() -> None:
    """It is about the search without the timer; the later one, which finds something else, has none."""
    delay = replace(not_four, name="never_four", kind=Kind.DELAY)
    check = Check(walk(forward, terminal=at_seven), (not_four,), (moved,))
    idle = Check(walk(forward, sleep, terminal=at_seven), (delay,), (moved,))
    case = Case("walk", "t", Question(idle, ("moved",), {}), Question(check, ("moved",), {}), "")
    row = verify(case)
    assert [each.verdict for each in row.findings] == [Verdict.DELAYS, Verdict.CONDITIONAL]
    assert row.reasons == ("the action sleep never fired",)
    assert row.classes == (Verdict.DELAYS, Verdict.CONDITIONAL, Verdict.UNDETERMINED)
    assert row.verdict is Verdict.DELAYS and exit_code([row]) == 1


def test_a_violation_is_the_nearest_one() -> None:
    found = search(Check(walk(forward, terminal=at_seven), (not_four,)))
    assert found.stopped == "violation found"
    assert len(found.path_to(found.violated["not_four"])) == 5
    whole = search(Check(walk(forward, terminal=at_seven), (not_four,)), until=())
    assert whole.complete and whole.counts["not_four"] == 1


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(states=1000), "limit of 1,000 states reached"),
        (Limits(seconds=1e-9), "time limit of 1e-09 s reached"),
        (Limits(memory=16 << 20), "memory limit of 16 MiB reached"),
    ],
)
def test_a_search_that_is_cut_short_is_undetermined(limits: Limits, reason: str) -> None:
    row = verify(reference_case(), limits)
    assert row.verdict is Verdict.UNDETERMINED
    assert row.reasons == (reason,) and not row.run.complete
    assert exit_code([row]) == 3


@pytest.mark.parametrize("limits", [{"states": 0}, {"seconds": -1.0}, {"memory": 0}])
def test_limits_are_positive(limits: dict[str, int]) -> None:
    with pytest.raises(DeclarationError, match="must be greater than 0"):
        Limits(**limits)


def test_interruption_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def interrupt(self: Partition, *_: object) -> int:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return advance(self, *_)  # type: ignore[arg-type]

    advance = Partition.advance
    monkeypatch.setattr(Partition, "advance", interrupt)
    with pytest.raises(SearchInterrupted) as stopped:
        search(reference_case().untimed.check)
    found = stopped.value.found
    assert found.stopped == "interrupted" and 1 < found.states < 581_821


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRESS_SECONDS", 0.0)
    seen: list[Progress] = []
    search(reference_case().untimed.check, progress=seen.append)
    assert len(seen) > 10
    assert all(a.states <= b.states and a.depth <= b.depth for a, b in pairwise(seen))


def test_doubling_keeps_every_state_findable() -> None:
    """The table that was grown step by step knows the same states as one filled anew."""
    check = Check(reference(), (reference_properties.no_late_write,))
    found = search(check, until=())
    packing = packing_of(check.model.layout)
    partition = Partition(packing.words, 1, 1, 1 << 30)
    for position in range(0, found.states, 997):
        values = found.path_to(position)[-1]
        partition.add_root(packing.pack(values))
        assert found.position_of(values) == position
        assert partition.find(packing.pack(values)) == partition.count - 1


@pytest.mark.parametrize("bits", [18, 19])
def test_doubling_equals_entering_anew(bits: int) -> None:
    chance = np.random.default_rng(5)
    count = int((1 << bits) * 0.7)
    states = np.zeros(count, np.uint64)
    states[:] = chance.permutation(np.arange(1, count + 1, dtype=np.uint64))
    filled = {size: np.zeros(1 << size, np.uint64) for size in (bits, bits + 1)}
    for size, slots in filled.items():
        copy = np.zeros(count, np.uint64)
        for position in range(count):
            word = states[position : position + 1]
            assert kernel.insert(copy, slots, np.uint64(64 - size), word, (0,), position) == -1 - position
    doubled, entered = np.zeros(2 << bits, np.uint64), np.zeros(2 << bits, np.uint64)
    assert kernel.double(filled[bits], doubled, bits)
    kernel.enter(states, entered, np.uint64(63 - bits), (0,), count)
    assert sorted(entered) == sorted(doubled)
    assert sorted(doubled[doubled != 0]) == sorted(filled[bits + 1][filled[bits + 1] != 0])
    for position in range(0, count, 101):
        word = states[position : position + 1]
        assert kernel.lookup(states, doubled, np.uint64(63 - bits), word, (0,)) == position


def test_doubling_gives_up_where_a_run_is_too_long_to_be_sure() -> None:
    full = np.zeros(1 << 10, np.uint64)
    full[100:110] = 1 << 40  # with 10 bits, runs must be shorter than 4
    assert not kernel.double(full, np.zeros(1 << 11, np.uint64), 10)


def test_packing_round_trip_and_the_bit_that_stays_free() -> None:
    for check in (toys.counter(64), toys.counter(63), toys.ring(), toys.arithmetic()):
        packing = packing_of(check.model.layout)
        values = tuple(cell.domain.hi for cell in check.model.layout.cells)
        words = packing.pack(values)
        assert packing.unpack(words) == values
        assert words[0] < 2**63


class Fan(State[None]):
    """A number that a step can set to anything."""

    at = field(upto(60), means="the number")


@action("fan")
def spread(s: Fan) -> None:
    """Any number may come next, and another one after it."""
    s.at = s.choose(range(60)) + s.choose([0, 1])


def test_choices_may_give_a_state_many_more_successors_than_instances() -> None:
    model = Model(name="fan", state=Fan, actions=(spread,), sizes={Step: 1})
    _, (command,) = trace(model)
    assert most_successors(command.tree) == 120
    found = search(Check(model, ()))
    assert (found.states, found.transitions, found.depth) == (61, 61 * 120, 1)


class Huge(State[None]):
    """A number whose third power does not fit into a word."""

    at = field(upto(2**31 - 1), means="the number")


@action("big")
def cube(s: Huge) -> None:
    """Computes too much."""
    require(s.at * s.at * s.at < 5)


@invariant
def starts_elsewhere(s: Walk) -> None:
    """The walker does not begin at 0."""
    claim(s.at > 0, "the walker is past 0", at=s.at)


def test_arithmetic_that_compiled_code_cannot_hold_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"cube\(\): a mul may exceed"):
        search(Check(Model(name="huge", state=Huge, actions=(cube,), sizes={}), ()))


@pytest.mark.parametrize("count_all", [True, False])
def test_the_initial_state_may_violate_a_property(count_all: bool) -> None:
    question = Question(Check(walk(forward, terminal=at_seven), (starts_elsewhere,)), (), {})
    whole = Case(profile="walk", scenario="t", untimed=question, timed=None, witness="", count_all=count_all)
    row = verify(whole)
    assert row.verdict is Verdict.VIOLATED and row.trace is not None and len(row.trace) == 0
    assert "starts_elsewhere" in terminal_text(row.trace)


class Many(State[None]):
    """A number that may begin anywhere."""

    at = field(upto(2**19 - 1), means="the number")


def anywhere(s: Many) -> None:
    s.at = s.choose(range(2**19))


def test_more_initial_states_than_the_first_table_has_slots() -> None:
    found = search(Check(Model(name="many", state=Many, actions=(), sizes={}, start=anywhere), (), deadlock=False))
    assert found.states == 2**19 and found.complete


class Cell(Index):
    """A place."""


class Grid(State[None]):
    """More flags than one run may ask about."""

    on = field(flag, Cell, Step, means="whether it is on")


@action("grid")
def all_on(s: Grid) -> None:
    """Asks about every place."""
    for cell in s.all(Cell):
        for step in s.all(Step):
            require(s.on[cell, step])


def test_a_run_that_asks_too_much_is_refused() -> None:
    model = Model(name="grid", state=Grid, actions=(all_on,), sizes={Cell: 40, Step: 40})
    with pytest.raises(DeclarationError, match=r"all_on\(\): one run asks more than 300 questions"):
        search(Check(model, ()))


class Switches(State[None]):
    """Numbers of which some never change."""

    at = field(upto(9), means="a number that moves")
    off = field(flag, means="never set")
    behind = field(upto(9), means="set only where `off` is")
    farther = field(upto(9), means="set only where `behind` is")
    given = field(upto(9), means="chosen at the start")
    fixed = field(upto(9), means="the same at every start")


@action("s")
def move(s: Switches) -> None:
    """Moves as far as the fixed number, or on where `off` is."""
    require(s.at < s.fixed + s.off + s.behind)
    s.at += 1


@action("s")
def set_behind(s: Switches) -> None:
    """Needs `off`."""
    require(s.off)
    s.behind = s.given


@action("s")
def set_farther(s: Switches) -> None:
    """Needs `behind`."""
    require(s.behind > 0)
    s.farther = 1


def start_switches(s: Switches) -> None:
    s.given = s.choose([3, 4])
    s.fixed = 5


def arrived(s: Switches) -> int:
    """Terminal: the walker is at the fixed number."""
    return s.at == s.fixed + s.farther


@invariant
def fixed_is_five(s: Switches) -> None:
    """The fixed number is five, and the walker does not pass it."""
    claim(s.fixed == 5, "the fixed number is five", fixed=s.fixed)
    claim(s.at <= s.fixed, "the walker has not passed it", at=s.at)


@probe
def is_behind(s: Switches) -> int:
    """Never true."""
    return s.behind > 0


def switches(*actions: object) -> Check:
    model = Model(
        name="switches",
        state=Switches,
        actions=actions,  # type: ignore[arg-type]
        sizes={Step: 1},
        start=start_switches,
        terminal=arrived,
    )
    return Check(model, (fixed_is_five,), (is_behind,))


def test_cells_that_never_change_take_no_bits_and_are_read_all_the_same() -> None:
    check = switches(move, set_behind, set_farther)
    compiled = compile_check(check)
    names = [cell.name for cell in check.model.layout.cells]
    bits = {name: place.bits for name, place in zip(names, compiled.packing.places, strict=True)}
    assert bits == {"at": 4, "off": 0, "behind": 0, "farther": 0, "given": 4, "fixed": 0}
    found, expected = search(compiled, until=()), oracle.explore(check)
    assert (found.states, found.transitions, found.depth) == (expected.states, expected.transitions, expected.depth)
    assert (found.counts, found.hits) == (expected.counts, expected.hits)
    assert found.deadlock is None and expected.deadlocks == 0
    assert found.path_to(found.states - 1)[-1] == (5, 0, 0, 0, 4, 5)
    assert found.position_of((5, 0, 0, 0, 4, 5)) == found.states - 1
    for elsewhere in ((5, 0, 0, 0, 4, 4), (5, 1, 0, 0, 4, 5), (16, 0, 0, 0, 4, 5), (0, 0, 0, 0, 5, 5)):
        assert found.position_of(elsewhere) is None


def test_a_cell_that_one_start_sets_otherwise_is_no_constant() -> None:
    model = switches(move).model
    tracer, commands = trace(model, model.initial_states())
    assert tracer.constants == {1: 0, 2: 0, 3: 0, 5: 5}
    assert [command.reads for command in commands] == [frozenset({0})]
