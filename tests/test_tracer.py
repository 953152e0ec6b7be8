"""Traced commands mean what the functions do, also in states that no run reaches."""

from __future__ import annotations

import random

import pytest
import toys
from draincheck.explorer.compile.expression import evaluate
from draincheck.explorer.compile.tracer import (
    Answer,
    Blocked,
    Choice,
    Command,
    Decision,
    Fault,
    Tree,
    Update,
    count_leaves,
    trace,
)
from draincheck.models.catalogue.profile import headlines, load_profile
from draincheck.models.drain.circumstances import Timer
from draincheck.models.drain.closed import drain_model
from draincheck.models.drain.scenario import SCENARIOS
from draincheck.models.small.reference import reference
from draincheck.protocol.language import (
    Action,
    DeclarationError,
    GhostFault,
    Index,
    ModelFault,
    State,
    action,
    field,
    flag,
    ghost,
    require,
    upto,
)
from draincheck.protocol.language.model import Model, Values


def drain_of(profile: str, scenario: str) -> Model:
    knobs = load_profile(profile).knobs
    return drain_model(profile, knobs, knobs, SCENARIOS[scenario], timer=Timer.ANY)


MODELS = [
    toys.ring().model,
    toys.arithmetic().model,
    reference(1),
    *(drain_of(name, "failed-send") for name in headlines()),
    *(drain_of("sglang-0.5.23-mooncake", name) for name in SCENARIOS if name != "mixed"),
]


def leaves(tree: Tree, state: Values) -> list[Tree]:
    """The leaves that a state comes to: several where a choice lies on the way."""
    match tree:
        case Decision(condition, then, otherwise):
            return leaves(then if evaluate(condition, state) else otherwise, state)
        case Choice(options):
            return [leaf for option in options for leaf in leaves(option, state)]
        case leaf:
            return [leaf]


def successors(command: Command, state: Values) -> list[Values]:
    """What the command does in a state. Raises ModelFault where it says that the rules are broken."""
    found: list[Values] = []
    for leaf in leaves(command.tree, state):
        if isinstance(leaf, Fault):
            raise ModelFault(leaf.message)
        if isinstance(leaf, Update):
            values = list(state)
            for position, value in leaf.writes:
                values[position] = evaluate(value, state)
            found.append(tuple(values))
        else:
            assert isinstance(leaf, Blocked)
    return found


def direct(model: Model, command: Command, state: Values) -> list[Values]:
    return [step.values for step in model.steps_of(command.instance, state)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name.replace(" ", ""))
def test_commands_equal_functions_in_any_state(model: Model) -> None:
    chance = random.Random(7)
    _, commands = trace(model)
    compared = faults = 0
    for _ in range(150):
        state = tuple(chance.randint(cell.domain.lo, cell.domain.hi) for cell in model.layout.cells)
        for command in commands:
            try:
                expected = direct(model, command, state)
            except ModelFault:
                faults += 1
                with pytest.raises(ModelFault):
                    successors(command, state)
                continue
            assert successors(command, state) == expected, command.instance.label
            compared += len(expected)
    assert compared > 0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name.replace(" ", ""))
def test_read_and_write_sets_cover_what_the_functions_touch(model: Model) -> None:
    """A cell outside the read set cannot change what an instance does; one outside the write set stays."""
    chance = random.Random(11)
    _, commands = trace(model)
    state = model.initial_states()[0]
    for _ in range(40):
        steps = list(model.steps(state))
        if not steps:
            break
        state = chance.choice(steps).values
        for command in chance.sample(commands, min(10, len(commands))):
            other = tuple(
                value if position in command.reads else chance.randint(cell.domain.lo, cell.domain.hi)
                for position, (value, cell) in enumerate(zip(state, model.layout.cells, strict=True))
            )
            here, there = direct(model, command, state), direct(model, command, other)
            assert len(here) == len(there)
            for before, after in zip(here, there, strict=True):
                for position in range(len(state)):
                    if position not in command.writes:
                        assert before[position] == state[position]
                        assert after[position] == other[position]
                    elif before[position] != state[position]:
                        assert before[position] == after[position]


class Place(Index):
    """Somewhere."""


class Tiny(State[None]):
    """Two numbers."""

    n = field(upto(2), means="a number")
    at = field(upto(3), Place, means="numbers by place")
    secret = ghost(flag, means="what nobody knows")


@action("t")
def overflow(s: Tiny) -> None:
    """Counts without looking."""
    s.n += 1


@action("t")
def stray(s: Tiny) -> None:
    """Uses a number as an index that it may exceed."""
    s.at[s.n] = 1


@action("t")
def divide(s: Tiny) -> None:
    """Uses an operator that the language does not have."""
    number = s.n  # what it holds is seen when it is traced
    s.n = number // 2


def test_faults_are_leaves_of_the_tree_and_only_where_they_can_happen() -> None:
    model = Model(name="tiny", state=Tiny, actions=(overflow, stray), sizes={Place: 2})
    _, (overflowing, straying) = trace(model)
    for n in range(3):
        state = (n, 0, 0, 0)
        assert [type(leaf) for leaf in leaves(overflowing.tree, state)] == [Fault if n == 2 else Update]
        assert [type(leaf) for leaf in leaves(straying.tree, state)] == [Fault if n == 2 else Update]


@action("t")
def look_up(s: Tiny) -> None:
    """Looks a field up by its hash."""
    require({1: 0, 2: 1}[s.n])


@action("t")
def mask(s: Tiny) -> None:
    """Takes a bit of a number."""
    number = s.n
    require(number & 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [(look_up, "a field is looked up in a set"), (mask, "& and | join truth values")],
)
def test_what_would_mean_something_else_when_traced_is_refused(function: Action, message: str) -> None:
    model = Model(name="tiny", state=Tiny, actions=(function,), sizes={Place: 2})
    with pytest.raises(DeclarationError, match=message):
        trace(model)


def test_an_operator_outside_the_language_is_named() -> None:
    model = Model(name="tiny", state=Tiny, actions=(divide,), sizes={Place: 2})
    with pytest.raises(DeclarationError, match=r"divide\(\).*//.*no part of the language; it has"):
        trace(model)


@action("t")
def peep(s: Tiny) -> None:
    """Decides by a ghost, where no run comes."""
    require(s.n == 2)
    require(s.secret)


def test_a_ghost_read_is_found_without_reaching_it() -> None:
    model = Model(name="tiny", state=Tiny, actions=(peep,), sizes={Place: 2})
    with pytest.raises(GhostFault, match=r"peep\(\): protocol code reads the ghost field secret"):
        trace(model)


@action("t")
def contradict(s: Tiny) -> None:
    """Asks of an index what cannot all be true, and joins constants with fields."""
    if (s.n == 0) & (s.n > 0):
        s.at[s.n] = 1
    require((1 == 2) < s.n + 1)


def test_contradictions_and_constants_are_compiled() -> None:
    from draincheck.explorer.search.search import search
    from draincheck.protocol.language.check import Check

    model = Model(name="tiny", state=Tiny, actions=(contradict,), sizes={Place: 2})
    assert search(Check(model, (), deadlock=False)).states == 1


@action("t")
def ask_twice(s: Tiny) -> None:
    """Asks for what it knows already."""
    if s.n == 1 and s.n != 1:
        s.at[0] = 3
    if s.n < 2:
        if s.n <= 1:
            s.at[0] = 1
        else:
            s.at[0] = 2


def test_known_answers_are_not_asked_again() -> None:
    model = Model(name="tiny", state=Tiny, actions=(ask_twice,), sizes={Place: 2})
    _, (command,) = trace(model)
    values = {leaf.writes for leaf in _all_leaves(command.tree) if isinstance(leaf, Update)}
    assert values == {((1, 1),), ()}
    assert count_leaves(command.tree) == 3


def _all_leaves(tree: Tree) -> list[Tree]:
    if isinstance(tree, Decision):
        return _all_leaves(tree.then) + _all_leaves(tree.otherwise)
    return [tree]


def test_predicates_answer() -> None:
    check = toys.ring()
    from draincheck.explorer.compile.tracer import Tracer

    tracer = Tracer(check.model)
    initial = check.model.initial_states()[0]
    assert leaves(tracer.fails(toys.in_order), initial) == [Answer(False)]
    assert leaves(tracer.holds(toys.second_node_has_three), initial) == [Answer(False)]
