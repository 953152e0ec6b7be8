"""Wrong declarations fail when the module is loaded or the model is made, and say what to do."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import pytest
from draincheck.protocol.language import (
    DeclarationError,
    Faults,
    Index,
    Message,
    State,
    action,
    between,
    channel,
    field,
    flag,
    maybe,
    part,
    upto,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import invariant, probe
from world import Note, Prompt, Thing, World, model_of, run


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
    with pytest.raises(DeclarationError, match=r"Full\.c: capacity is 0; allowed are whole numbers from 1 to 4096"):

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
