"""What the tests of the language are written with: a state of a few fields, and a model of it."""

from __future__ import annotations

from draincheck.protocol.language import Index, Message, State, channel, field, flag, ghost, maybe, part, upto
from draincheck.protocol.language.model import Model


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
