"""Wrong declarations fail at once and say what to do; wrong steps are errors that name field and action."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import pytest
import toys
from draincheck.explorer.tracer import Tracer
from draincheck.models.model import Model
from draincheck.properties.check import Check
from draincheck.properties.property import claim, invariant, probe
from draincheck.protocol.language import (
    NONE,
    Action,
    ChannelFault,
    DeclarationError,
    DomainFault,
    Faults,
    GhostFault,
    Index,
    IndexFault,
    Message,
    ModelFault,
    State,
    action,
    between,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    require,
    upto,
)


class Thing(Index):
    """A thing."""


class Note(Message):
    """A note."""

    about = part(Thing)


class World(State[None]):
    """A few fields."""

    level = field(upto(3), means="a level")
    chosen = field(maybe(Thing), means="a thing, or none")
    on = field(flag, Thing, means="whether the thing is on")
    truth = ghost(flag, Thing, means="what is really so")
    post = channel(Note, Thing, capacity=2, means="notes to a thing")


class Prompt(State[None]):
    """A channel without delay, and something else."""

    n = field(upto(3), means="a number")
    quick = channel(Note, capacity=1, means="delivered at once", prompt=True)


def model_of(*actions: object, things: int = 2, **more: object) -> Model:
    return Model(name="world", state=World, actions=actions, sizes={Thing: things}, **more)  # type: ignore[arg-type]


def run(function: object, things: int = 2) -> list[tuple[int, ...]]:
    model = model_of(function, things=things)
    return [step.values for step in model.steps(model.layout.initial)]


# Declarations


def test_a_field_says_what_it_means() -> None:
    with pytest.raises(DeclarationError, match=r"Blank\.x: say in one line what the field means"):

        class Blank(State[None]):
            x = field(flag, means=" ")


def test_a_field_name_of_the_language_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"Taken\.choose: this name is taken"):

        class Taken(State[None]):
            choose = field(flag, means="a clash")


def test_a_domain_must_be_one() -> None:
    with pytest.raises(DeclarationError, match=r"Odd\.x: 'seven' is no domain; use an Index type"):

        class Odd(State[None]):
            x = field("seven", means="wrong")  # type: ignore[arg-type]


def test_an_enumeration_counts_from_zero() -> None:
    class Gap(IntEnum):
        A = 1
        B = 3

    with pytest.raises(DeclarationError, match=r"Gappy\.x: Gap must number its members 0, 1, 2"):

        class Gappy(State[None]):
            x = field(Gap, means="wrong")


def test_a_shape_takes_index_types() -> None:
    with pytest.raises(DeclarationError, match=r"Shapeless\.x: the shape takes index types"):

        class Shapeless(State[None]):
            x = field(flag, int, means="wrong")  # type: ignore[arg-type]


def test_an_action_has_a_docstring_a_state_and_index_parameters() -> None:
    with pytest.raises(DeclarationError, match="action silent: say in a docstring"):

        @action("t")
        def silent(s: World) -> None: ...

    with pytest.raises(DeclarationError, match="action stateless: the first parameter is the state"):

        @action("t")
        def stateless(n: int) -> None:
            """Nothing."""

    with pytest.raises(DeclarationError, match="action loose: annotate n with an index type"):

        @action("t")
        def loose(s: World, n: int) -> None:
            """Nothing."""

    class Local(State[None]):
        x = field(flag, means="a flag")

    with pytest.raises(DeclarationError, match="action near: Local is not known where the action stands"):

        @action("t")
        def near(s: Local) -> None:
            """Nothing."""

    with pytest.raises(DeclarationError, match=r"its lane names \{rank\}, which is no parameter"):

        @action("t {rank}")
        def lost(s: World) -> None:
            """Nothing."""


def test_a_channel_has_a_sensible_capacity_and_carries_something() -> None:
    with pytest.raises(DeclarationError, match=r"Full\.c: capacity is 0; allowed are whole numbers from 1 to 16"):

        class Full(State[None]):
            c = channel(Note, capacity=0, means="none")

    class Empty(Message):
        pass

    with pytest.raises(DeclarationError, match="Empty carries nothing"):

        class Mute(State[None]):
            c = channel(Empty, capacity=1, means="nothing")


@pytest.mark.parametrize("size", [0, -1, 65, 10**9, True])
def test_sizes_are_checked(size: int) -> None:
    with pytest.raises(DeclarationError, match=f"size of Thing is {size}; allowed are whole numbers from 1 to 64"):
        model_of(things=size)


def test_a_missing_size_is_named() -> None:
    with pytest.raises(DeclarationError, match="no size is given for Thing"):
        Model(name="w", state=World, actions=(), sizes={}).layout  # noqa: B018


def test_faults_for_a_channel_that_is_not_there() -> None:
    with pytest.raises(DeclarationError, match="faults are given for pots; the channels are: post"):
        model_of(faults={"pots": Faults(loss=1)})
    with pytest.raises(DeclarationError, match="fault budget loss=-1"):
        Faults(loss=-1)


def test_two_actions_of_one_name_and_unknown_resting_actions() -> None:
    @action("t")
    def go(s: World) -> None:
        """Goes."""

    with pytest.raises(DeclarationError, match="two actions are called go"):
        model_of(go, go)
    with pytest.raises(DeclarationError, match="may_rest names stop"):
        model_of(go, may_rest=frozenset({"stop"}))


def test_properties_and_probes_have_a_sentence() -> None:
    with pytest.raises(DeclarationError, match="property bare: say in a docstring"):

        @invariant
        def bare(s: World) -> None: ...

    with pytest.raises(DeclarationError, match="probe bare: say in a docstring"):

        @probe
        def bare(s: World) -> int:  # type: ignore[no-redef]
            return 0


# Steps


def test_a_counter_that_may_be_negative_begins_at_0() -> None:
    class Ledger(State[None]):
        balance = field(between(-2, 3), means="may be overdrawn")
        debt = field(between(-5, -3), means="is overdrawn")

    model = Model(name="l", state=Ledger, actions=(), sizes={})
    assert model.layout.initial == [0, -3]
    with pytest.raises(DeclarationError, match=r"between\(3, 2\): the bound must be .* whole number in 3"):
        between(3, 2)


def test_fields_start_at_the_lowest_value() -> None:
    assert dict(zip([c.name for c in model_of().layout.cells], model_of().layout.initial, strict=True)) | {
        "level": 0,
        "chosen": NONE,
    } == dict(zip([c.name for c in model_of().layout.cells], model_of().layout.initial, strict=True))


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


# Channels


def test_a_channel_is_first_in_first_out() -> None:
    model = model_of()
    state = model.state_of(model.layout.initial)
    assert isinstance(state, World)
    state.post[1].send(about=1)
    state.post[1].send(about=0)
    assert [state.post[1].receive().about, state.post[1].receive().about] == [1, 0]
    assert state.values == model.layout.initial
    assert state.post[0].length == 0


def test_a_full_channel_is_a_fault() -> None:
    @action("t")
    def flood(s: World) -> None:
        """Sends too much."""
        for _ in range(3):
            s.post[0].send(about=0)

    with pytest.raises(ChannelFault, match=r"flood\(\): post\[0\] is full \(2\); give the channel a larger"):
        run(flood)


def test_receiving_from_an_empty_channel_is_disabled() -> None:
    @action("t")
    def take(s: World) -> None:
        """Takes a note."""
        s.post[0].receive()

    assert run(take) == []


def test_a_message_has_all_its_parts() -> None:
    @action("t")
    def scribble(s: World) -> None:
        """Sends something else."""
        s.post[0].send(color=1)

    with pytest.raises(ModelFault, match=r"scribble\(\): a message of post has about; given: color"):
        run(scribble)


def received(faults: Faults) -> set[tuple[int, ...]]:
    """The sequences of numbers that the ring's receiver can get."""
    model = toys.ring(faults, nodes=1).model
    sequences: set[tuple[int, ...]] = set()
    stack = [(model.initial_states()[0], ())]
    while stack:
        values, sequence = stack.pop()
        steps = list(model.steps(values))
        if not steps:
            sequences.add(sequence)
        for step in steps:
            got = tuple(e.parts["value"] for e in step.events if e.kind == "receive")
            stack.append((step.values, sequence + got))
    return sequences


def test_faults_of_channels() -> None:
    assert received(Faults()) == {(1, 2, 3)}
    assert received(Faults(loss=1)) == {(1, 2, 3), (2, 3), (1, 3), (1, 2)}
    duplicated = received(Faults(duplication=1))
    assert {(1, 2, 3), (1, 1, 2, 3), (1, 2, 1, 3), (1, 2, 3, 1), (1, 2, 3, 3)} <= duplicated
    assert all(3 <= len(each) <= 4 and set(each) == {1, 2, 3} for each in duplicated)
    assert received(Faults(reordering=1)) == {(1, 2, 3), (2, 1, 3), (1, 3, 2)}


def test_a_prompt_channel_lets_nothing_else_happen() -> None:
    @action("t")
    def ask(s: Prompt) -> None:
        """Sends."""
        s.quick[()].send(about=0)

    @action("t")
    def answer(s: Prompt) -> None:
        """Receives."""
        s.quick[()].receive()

    @action("t")
    def idle(s: Prompt) -> None:
        """Does something else."""
        require(s.n < 3)
        s.n += 1

    model = Model(name="prompt", state=Prompt, actions=(ask, answer, idle), sizes={Thing: 1})
    (asked,) = [s for s in model.steps(model.layout.initial) if s.instance.action.name == "ask"]
    assert [step.instance.action.name for step in model.steps(asked.values)] == ["answer"]


# What Python would let pass


def test_a_name_that_is_no_field_cannot_be_assigned() -> None:
    @action("t")
    def misspell(s: World) -> None:
        """Assigns something else."""
        s.levle = 2  # type: ignore[attr-defined]

    with pytest.raises(ModelFault, match=r"misspell\(\): World declares no field levle, which is assigned"):
        run(misspell)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s: setattr(s, "on", 1), "on is a table; assign one of its elements"),
        (lambda s: setattr(s, "post", 1), "post is a channel; send into it"),
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


class Elsewhere(State[None]):
    """Another state class."""

    x = field(flag, means="a flag")


@action("t")
def stranger(s: Elsewhere) -> None:
    """Acts on another state."""


@action("t")
def telling(s: World) -> int:
    """Returns something."""
    return 1


@action("t")
def assign_half(s: World) -> None:
    """Assigns no whole number."""
    s.level = 0.5  # type: ignore[assignment]


def plain(s: World) -> None:
    """Is not decorated."""


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: upto(2.5), r"upto\(2\.5\): the bound must be an index type or a whole number"),
        (lambda: upto("a"), r"upto\('a'\): the bound must be"),
        (lambda: between(0.5, 2), r"between\(0\.5, 2\): the lower bound must be a whole number"),
        (lambda: maybe(3), "3 is no index type; subclass Index"),
        (lambda: maybe(Index), "is no index type"),
        (lambda: Faults(loss=1.5), r"fault budget loss=1\.5"),
        (lambda: model_of(things=2.0), r"size of Thing is 2\.0; allowed"),
        (lambda: model_of(things="2"), "size of Thing is '2'; allowed"),
        (lambda: model_of(plain), "is no action; decorate it"),
        (lambda: model_of(stranger), "stranger acts on Elsewhere, not on World"),
        (lambda: run(telling), r"telling\(\): an action returns nothing"),
        (lambda: Check(model_of(), (plain,)), "is no property"),
        (lambda: action("a {")(plain), r"its lane 'a \{' cannot be read"),
        (
            lambda: type("C", (State,), {"values": channel(Note, capacity=1, means="m")}),
            r"C\.values: this name is taken",
        ),
        (lambda: type("C", (State,), {"c": channel(Note, capacity=1.5, means="m")}), r"C\.c: capacity is 1\.5"),
        (lambda: type("C", (State,), {"c": channel(Note, 3, capacity=1, means="m")}), r"C\.c: the shape takes index"),
        (
            lambda: Model(name="p", state=Prompt, actions=(), sizes={Thing: 1}, faults={"quick": Faults(loss=1)}),
            "quick: a prompt channel delivers at once",
        ),
        (lambda: type("M", (Message,), {"parts": part(flag)}), r"M\.parts: this name is taken"),
    ],
)
def test_wrong_declarations_are_named(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


def test_an_action_takes_no_star() -> None:
    with pytest.raises(DeclarationError, match="action starred: it takes the state and indices"):

        @action("t")
        def starred(s: World, *things: Thing) -> None:
            """Takes any number."""


def test_only_whole_numbers_are_assigned() -> None:
    with pytest.raises(ModelFault, match=r"level is assigned 0\.5, which is no whole number"):
        run(assign_half)


class Letter(Note):
    """A note with a page number."""

    page = part(flag)


class Post(State[None]):
    """Two prompt channels, and messages with inherited parts."""

    first = channel(Letter, capacity=1, means="one", prompt=True)
    second = channel(Letter, capacity=1, means="another", prompt=True)


@action("t")
def write_both(s: Post) -> None:
    """Sends on both."""
    s.first[()].send(about=1, page=1)
    s.second[()].send(about=0, page=0)


@action("t")
def read_first(s: Post) -> None:
    """Receives from one."""
    s.first[()].receive()


@action("t")
def read_second(s: Post) -> None:
    """Receives from the other."""
    s.second[()].receive()


def test_messages_on_two_prompt_channels_are_received_one_after_the_other() -> None:
    model = Model(name="post", state=Post, actions=(write_both, read_first, read_second), sizes={Thing: 2})
    (sent,) = model.steps(model.layout.initial)
    assert [step.instance.action.name for step in model.steps(sent.values)] == ["read_first", "read_second"]


def test_a_single_channel_has_no_index_and_places_are_not_negative() -> None:
    model = Model(name="post", state=Post, actions=(), sizes={Thing: 2})
    state = model.state_of(model.layout.initial)
    assert isinstance(state, Post)
    with pytest.raises(IndexFault, match="first takes 0 indices, not 1"):
        state.first[0].send(about=0, page=0)
    with pytest.raises(ChannelFault, match="has no message at place -1"):
        state.first[()].remove(-1)
