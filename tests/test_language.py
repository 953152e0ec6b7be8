"""Steps on a state: what they may do, and how they say what they may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from draincheck.explorer.compile.tracer import Tracer
from draincheck.protocol.language import (
    NONE,
    Action,
    DeclarationError,
    DomainFault,
    GhostFault,
    IndexFault,
    ModelFault,
    State,
    action,
    between,
    field,
    ghost_code,
    require,
)
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import claim, invariant, probe
from world import Thing, World, model_of, run


def test_a_counter_that_may_be_negative_begins_at_0() -> None:
    class Ledger(State[None]):
        balance = field(between(-2, 3), means="may be overdrawn")
        debt = field(between(-5, -3), means="is overdrawn")

    model = Model(name="l", state=Ledger, actions=(), sizes={})
    assert model.layout.initial == [0, -3]
    with pytest.raises(DeclarationError, match=r"between\(3, 2\): the bound must be .* whole number in 3"):
        between(3, 2)


def test_fields_begin_at_0_or_none() -> None:
    model = model_of()
    state = model.state_of(model.layout.initial)
    assert isinstance(state, World)
    assert (state.level, state.chosen, state.on[0], state.post[1].length) == (0, NONE, 0, 0)


def test_a_value_out_of_its_domain_names_field_and_action() -> None:
    @action("t")
    def rise(s: World) -> None:
        """Too much."""
        s.level = 4

    with pytest.raises(DomainFault, match=r"rise\(\): level may hold 0 \.\. 3; 4 was assigned"):
        run(rise)


def test_an_index_out_of_range_names_field_and_action() -> None:
    @action("t")
    def reach(s: World) -> None:
        """Looks at what it has not chosen."""
        require(s.on[s.chosen])

    with pytest.raises(IndexFault, match=r"reach\(\): on has no element at Thing -1 \(it has 0 \.\. 1\)"):
        run(reach)


def test_protocol_code_may_not_read_a_ghost() -> None:
    @action("t")
    def peep(s: World, thing: Thing) -> None:
        """Decides by a ghost."""
        require(s.truth[thing])

    with pytest.raises(GhostFault, match=r"peep\(thing=0\): protocol code reads the ghost field truth"):
        run(peep)


def test_ghost_code_touches_only_ghosts_and_decides_nothing() -> None:
    @ghost_code
    def meddle(s: World) -> None:
        s.level = 1

    @ghost_code
    def decide(s: World) -> None:
        require(s.truth[0])

    @ghost_code
    def pick(s: World) -> None:
        s.truth[s.choose(Thing)] = True

    @ghost_code
    def tell(s: World) -> None:
        return s.truth[0]  # type: ignore[return-value]

    for function, message in (
        (meddle, "ghost code assigns level"),
        (decide, "ghost code decide uses require"),
        (pick, "ghost code may not choose"),
        (tell, "ghost code tell returns a value"),
    ):
        with pytest.raises(GhostFault, match=message):
            run(Action("step", function, (), "t", ""))


def test_ghost_code_may_read_and_write_ghosts() -> None:
    @ghost_code
    def note(s: World, thing: int) -> None:
        s.truth[thing] = not s.truth[thing]

    @action("t")
    def work(s: World, thing: Thing) -> None:
        """Works and is noted."""
        s.on[thing] = True
        note(s, thing)

    assert len(run(work)) == 2


def test_a_property_changes_nothing() -> None:
    @invariant
    def pushy(s: World) -> None:
        """Pushes."""
        s.level = 1

    with pytest.raises(ModelFault, match="property pushy: a property may not change the state; it assigns level"):
        pushy.violation(model_of(), model_of().layout.initial)


def test_a_violation_names_the_false_conjunct_with_values() -> None:
    @invariant
    def low(s: World) -> None:
        """The level is low, and nothing is chosen."""
        claim(s.chosen == NONE, "nothing is chosen", chosen=s.chosen)
        claim(s.level < 2, "the level is below 2", level=s.level)

    model = model_of()
    values = list(model.layout.initial)
    assert low.violation(model, values) is None
    values[model.layout.base["level"]] = 3
    assert str(low.violation(model, values)) == "the level is below 2 is false: level = 3"


def test_choose_makes_a_transition_of_each_option() -> None:
    @action("t")
    def pick(s: World) -> None:
        """Chooses twice; the second choice depends on the first."""
        s.level = s.choose([1, 2])
        if s.level == 2:
            s.chosen = s.choose(Thing)

    assert len(run(pick)) == 3


def test_initial_states_may_be_several() -> None:
    def start(s: World) -> None:
        s.level = s.choose([0, 2])
        s.chosen = s.choose(Thing)

    assert len(model_of(start=start).initial_states()) == 4


def test_a_name_that_is_no_field_cannot_be_assigned() -> None:
    @action("t")
    def misspell(s: World) -> None:
        """Assigns something else."""
        s.levle = 2  # type: ignore[attr-defined]

    with pytest.raises(ModelFault, match=r"misspell\(\): World declares no field levle, which is assigned"):
        run(misspell)


def assign_a_table(s: World) -> None:
    s.on = 1  # type: ignore[assignment]


def assign_a_channel(s: World) -> None:
    s.post = 1  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (assign_a_table, "on is a table; assign one of its elements"),
        (assign_a_channel, "post is a channel; send into it"),
        (lambda s: require(s.on), "on is a table, and has no value"),
        (lambda s: require(s.on == 1), "on is a table, and has no value"),
        (lambda s: require(1 in s.on), "on is a table, and has no value"),
        (lambda s: require(s.post), "post has no value"),
        (lambda s: require(s.post[0]), "post has no value; look at its length"),
        (lambda s: [7][s.level + 1], "IndexError: list index out of range"),
    ],
)
def test_what_is_no_value_is_not_taken_for_one(use: Callable[[World], object], message: str) -> None:
    def function(s: World) -> None:
        use(s)

    with pytest.raises(ModelFault, match=f"step\\(\\): {message}"):
        run(Action("step", function, (), "t", ""))


def test_properties_and_predicates_are_what_they_should_be() -> None:
    @invariant
    def answers(s: World) -> int:
        """Returns instead of claiming."""
        return s.level == 0

    @invariant
    def guards(s: World) -> None:
        """Uses a guard."""
        require(s.level == 3)

    @probe
    def silent(s: World) -> None:
        """Says nothing."""

    @probe
    def chooses(s: World) -> int:
        """Chooses."""
        return s.choose([0, 1])

    model = model_of()
    for prop, message in ((answers, "it returns nothing: say what"), (guards, "it may not use require")):
        with pytest.raises(DeclarationError, match=f"property {prop.name}: {message}"):
            prop.violation(model, model.layout.initial)
        with pytest.raises(DeclarationError, match=f"property {prop.name}: {message}"):
            Tracer(model).fails(prop)
    for asked, message in ((silent, "it returns nothing"), (chooses, "may not choose")):
        with pytest.raises(DeclarationError, match=message):
            asked.holds(model, model.layout.initial)
        with pytest.raises(DeclarationError, match=message):
            Tracer(model).holds(asked)


@action("t")
def assign_nothing(s: World) -> None:
    """Assigns no whole number."""
    s.level = None  # type: ignore[assignment]


def test_only_whole_numbers_are_assigned() -> None:
    with pytest.raises(ModelFault, match=r"level is assigned None, which is no whole number"):
        run(assign_nothing)
