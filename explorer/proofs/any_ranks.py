"""Proofs for any number of ranks: a theorem whose conditions are checked for the model at hand.

A family is one model with another number of ranks each time. The theorem (docs/proofs.md) says: if the code treats all
ranks alike, then every initial state, every step and every fault of n ranks is, for one rank and each other one, one of
two ranks; and if properties are about each rank by itself, then what is inductive for two ranks is so for any number of
them from two on. One rank alone is proved by itself.

The conditions on code are read from its syntax tree (rank_form.py). Z3 looks at three ranks besides: it would find a
step that is none of two ranks, and a property that is not about each rank, if the reading let one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from ...protocol.language import Index, State
from ...protocol.language.channel import ChannelSpec
from ...protocol.language.model import Model
from ...protocol.language.property import Property
from ...protocol.language.state import FieldSpec
from ..compile.tracer import Command, Fault, Update
from .rank_form import Reader, Refused
from .symbolic import Frame, Meaning, Symbolic, Term, same, z3

TIMEOUT_MILLISECONDS = 60_000


def with_ranks(model: Model, kind: type[Index], ranks: int) -> Model:
    """The member of the model's family that has so many ranks."""
    return replace(model, sizes={**model.sizes, kind: ranks})


def unmet(model: Model, kind: type[Index], properties: Sequence[Property]) -> list[Refused]:
    """Conditions of the theorem that code does not meet, one for each declaration, step and property at most."""
    reader = Reader(with_ranks(model, kind, 2), kind)
    questions: list[Callable[[], None]] = [
        lambda: declarations(model, kind),
        reader.start,
        *(lambda each=each: reader.action(each) for each in model.actions),
        *(lambda each=each: reader.property(each.name, each.function) for each in properties),
    ]
    found: list[Refused] = []
    for question in questions:
        try:
            question()
        except Refused as refused:
            found.append(refused)
    return found


def declarations(model: Model, kind: type[Index]) -> None:
    """Raises Refused unless cells, wires and their domains are the same for all ranks and for all numbers of them."""
    state = model.state
    for name in ("all", "size", "choose", "read", "write", "__init__", "__setattr__", "__getattribute__"):
        if getattr(state, name) is not getattr(State, name):
            raise Refused("form", state.__name__, f"{name} is not that of the language")
    sizes = _Sizes({each: size for each, size in model.sizes.items() if each is not kind})
    for name, declared in {name: getattr(state, name, None) for name in dir(state)}.items():
        where = f"{state.__name__}.{name}"
        if isinstance(declared, FieldSpec):
            domains = [declared.domain]
        elif isinstance(declared, ChannelSpec):
            domains = [each.domain for each in declared.parts]
            if declared.prompt:
                raise Refused("own-rank", where, "while one rank's message waits, no other rank goes on")
            if callable(declared.capacity):
                try:
                    declared.capacity(cast(Any, sizes))
                except (AttributeError, KeyError, TypeError):
                    raise Refused("no-rank-values", where, "its capacity depends on the number of ranks") from None
        else:
            continue
        if any(each.bound is kind for each in domains):
            raise Refused("no-rank-values", where, "it holds a rank, or a number of them")
        if declared.shape.count(kind) > 1:
            raise Refused("own-rank", where, "it relates ranks to each other")


class _Sizes:
    """The sizes of a family, one at a time: there is none for ranks."""

    def __init__(self, sizes: Mapping[type[Index], int]) -> None:
        self._sizes = sizes

    def __getitem__(self, kind: type[Index]) -> int:
        return self._sizes[kind]


@dataclass(frozen=True)
class Places:
    """Where the cells of a model with some ranks lie in the one with a single rank, and the rank that each belongs to:
    None if it belongs to none."""

    rank: tuple[int | None, ...]
    alone: tuple[int, ...]


def places(model: Model, alone: Model, kind: type[Index]) -> Places:
    """Matches the cells of a model with those of the one that has one rank."""
    at = {(cell.field, cell.index): position for position, cell in enumerate(alone.layout.cells)}
    ranks: list[int | None] = []
    matches: list[int] = []
    for cell in model.layout.cells:
        shape = model.layout.tables[cell.field].shape if cell.index else ()
        index = list(cell.index)
        place = shape.index(kind) if kind in shape else None
        ranks.append(None if place is None else index[place])
        if place is not None:
            index[place] = 0
        matches.append(at[cell.field, tuple(index)])
    return Places(tuple(ranks), tuple(matches))


class Family:
    """What Z3 says of those members of a family that have few ranks."""

    def __init__(self, model: Model, kind: type[Index]) -> None:
        self._model = model
        self._kind = kind
        self._one = with_ranks(model, kind, 1)

    @cached_property
    def _two(self) -> Symbolic:
        return Symbolic(with_ranks(self._model, self._kind, 2))

    def _places(self, model: Model) -> Places:
        return places(model, self._one, self._kind)

    def is_empty(self, properties: Sequence[Property]) -> bool:
        """Whether two ranks have no initial state, or no step from a state in which the properties hold.

        The same is then said of more ranks, and of nothing.
        """
        two, frame = self._two, self._two.frame("state")
        solver = _solver(two.within(frame), *(z3.Not(two.fails(each, frame)) for each in properties))
        steps = z3.Or([two.happens(command, frame, command.instance.label) for command in two.commands])
        return not two.initial_states or solver.check(steps) != z3.sat

    def unlike(self) -> list[str]:
        """Cells that no run of two ranks changes, but that are not alike for both."""
        constants, where = self._two.tracer.constants, self._places(self._two.model)
        held: dict[int, set[int | None]] = {}
        for position, alone in enumerate(where.alone):
            held.setdefault(alone, set()).add(constants.get(position))
        return [self._one.layout.cells[alone].name for alone, values in held.items() if len(values) > 1]

    def wide(self, properties: Sequence[Property], ranks: int) -> list[str]:
        """Properties that do not say of so many ranks just what they say of each by itself."""
        one = Symbolic(self._one, constants=False)
        many = Symbolic(with_ranks(self._model, self._kind, ranks), constants=False)
        at = self._at(many.model)
        frame = many.frame("state")
        alone = self._places(self._one)
        views = [
            tuple(
                frame[at[None if whose is None else rank, position]]
                for whose, position in zip(alone.rank, alone.alone, strict=True)
            )
            for rank in range(ranks)
        ]
        found: list[str] = []
        for each in properties:
            solver = _solver(many.within(frame))
            solver.add(many.fails(each, frame) != z3.Or([one.fails(each, view) for view in views]))
            if solver.check() != z3.unsat:
                found.append(each.name)
        return found

    def _at(self, model: Model) -> dict[tuple[int | None, int], int]:
        where = self._places(model)
        return {(rank, alone): at for at, (rank, alone) in enumerate(zip(where.rank, where.alone, strict=True))}

    def projects(self, ranks: int) -> list[str]:
        """Steps of the model with so many ranks that are not, for one rank and each other one, steps of two.

        Decided for every state in which the cells that no run changes are as at the start, reachable or not; the same
        for faults. Empty if there is no such step.
        """
        two = self._two
        many = Symbolic(with_ranks(self._model, self._kind, ranks))
        at, of_two = self._at(many.model), self._places(two.model)
        frame = many.frame("state")
        commands = {command.instance.label: command for command in two.commands}
        found: list[str] = []

        def seen_by(state: Frame, rank: int, other: int) -> Frame:
            owner = {None: None, 0: rank, 1: other}
            return tuple(state[at[owner[whose], alone]] for whose, alone in zip(of_two.rank, of_two.alone, strict=True))

        for command in many.commands:
            kinds = [kind for _, kind in command.instance.action.parameters]
            actors = [command.instance.arguments[place] for place, kind in enumerate(kinds) if kind is self._kind]
            alike = commands[_label_for_first(command, self._kind)]
            after = many.successor(command, frame, "step")

            def follows(rank: int, other: int, alike: Command = alike, after: Frame = after) -> Term:
                before = seen_by(frame, rank, other)
                meaning = Meaning(before, "step")
                parts = [meaning.leads_to(alike.tree, Update)]
                for position, term in enumerate(seen_by(after, rank, other)):
                    new = meaning.after(alike.tree, position) if position in alike.writes else before[position]
                    parts.append(same(new, term))
                return z3.And(parts)

            def faulty(rank: int, other: int, alike: Command = alike) -> Term:
                return Meaning(seen_by(frame, rank, other), "step").leads_to(alike.tree, Fault)

            candidates = actors or range(ranks)
            pairs = {rank: [other for other in range(ranks) if other != rank] for rank in candidates}
            going = z3.Or([z3.And([follows(rank, other) for other in others]) for rank, others in pairs.items()])
            failing = z3.Or([faulty(rank, other) for rank, others in pairs.items() for other in others])
            for kind, claim in ((many.happens, going), (many.faults, failing)):
                solver = _solver(many.within(frame), kind(command, frame, "step"), z3.Not(claim))
                if solver.check() != z3.unsat:
                    found.append(command.instance.label)
        return found


def _solver(*terms: Term) -> Term:
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MILLISECONDS)
    solver.add(*terms)
    return solver


def _label_for_first(command: Command, kind: type[Index]) -> str:
    """The label of the same instance for the first rank."""
    pairs = zip(command.instance.action.parameters, command.instance.arguments, strict=True)
    words = ", ".join(f"{name}={0 if each is kind else value}" for (name, each), value in pairs)
    return f"{command.instance.action.name}({words})"
