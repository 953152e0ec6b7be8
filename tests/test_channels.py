"""Channels: order, capacity, faults, and delivery without delay."""

from __future__ import annotations

import pytest
import toys
from draincheck.protocol.language import (
    ChannelFault,
    Faults,
    IndexFault,
    ModelFault,
    State,
    action,
    channel,
    flag,
    part,
    require,
)
from draincheck.protocol.language.model import Model
from world import Note, Prompt, Thing, World, model_of, run


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
