"""Proofs for any number of prefill ranks: the steps of two ranks, quantified over ranks.

Ranks are elements of a sort of which nothing is said, not even how many there are. What a rank keeps is a function of
the rank, and a lemma about one rank is said of all. A step has a rank that acts (or, in a step that all ranks take
together, one whose condition was asked for), and every other rank goes along with it just as the second of two ranks
does. So the steps are those of the model with two ranks, traced from the same functions:

    step of command c:   for some rank a, for every other rank r: c leads from (shared, a, r) to (shared', a', r')

That the model with n ranks takes no other step is the lemma of projection. `projects` decides it for a given n: every
step of n ranks is, for one of them and each other one, a step of two. docs/proofs.md argues it for every n.

The questions are of a decidable kind: quantified are only ranks, universally, and no function leads to a rank. So it is
enough to look at the ranks that a question names; Z3 finds that out by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..models.model import Model
from ..properties.property import Property
from ..protocol.language import DeclarationError, Index
from .induction import Breach, Induction
from .symbolic import Frame, Meaning, Symbolic, Term, same, z3
from .tracer import Command, Fault, Update
from .unrolling import NO_FAULT

TIMEOUT_MILLISECONDS = 60_000
ModelOf = Callable[[int], Model]
"""Makes the model with a number of ranks."""


@dataclass(frozen=True)
class Places:
    """Where the cells of a model with some ranks lie in the one with fewer.

    `rank` is the rank that a cell belongs to, None if it belongs to none; `alone` is its position in the model with one
    rank.
    """

    rank: tuple[int | None, ...]
    alone: tuple[int, ...]


def places(model: Model, alone: Model, kind: type[Index]) -> Places:
    """Matches the cells of a model with those of the one that has one rank. Raises DeclarationError if they differ."""
    at = {(cell.field, cell.index): position for position, cell in enumerate(alone.layout.cells)}
    ranks: list[int | None] = []
    matches: list[int] = []
    for cell in model.layout.cells:
        shape = model.layout.tables[cell.field].shape if cell.index else ()
        of_ranks = [place for place, each in enumerate(shape) if each is kind]
        if len(of_ranks) > 1:
            raise DeclarationError(f"{model.name}: {cell.field} relates ranks to each other; this cannot be quantified")
        index = list(cell.index)
        ranks.append(index[of_ranks[0]] if of_ranks else None)
        for place in of_ranks:
            index[place] = 0
        matches.append(at[cell.field, tuple(index)])
    return Places(tuple(ranks), tuple(matches))


class AnyRanks:
    """A family of models, one for each number of ranks, as one question to Z3."""

    def __init__(self, model_of: ModelOf, kind: type[Index]) -> None:
        self._kind = kind
        self._model_of = model_of
        self._one = Symbolic(model_of(1), constants=False)
        self._two = Symbolic(model_of(2))
        self._places = places(self._two.model, self._one.model, kind)
        self._sort: Any = z3.DeclareSort(kind.__name__)
        at = zip(self._places.rank, self._places.alone, strict=True)
        self._local = {alone for rank, alone in at if rank is not None}
        constants = self._two.tracer.constants
        self._constants = {
            alone: constants[position]
            for position, alone in enumerate(self._places.alone)
            if all(other in constants for other, same_one in enumerate(self._places.alone) if same_one == alone)
        }

    def rank(self, name: str) -> Term:
        """Some rank."""
        return z3.Const(name, self._sort)

    def frame(self, name: str, rank: Term) -> Frame:
        """The state as one rank sees it: what it shares with the others, and what it keeps itself."""

        def local(position: int, term: Term) -> Term:
            if position in self._constants:
                return self._constants[position]
            if position not in self._local or isinstance(term, int):
                return term
            return z3.Function(f"{term} of", self._sort, term.sort())(rank)

        return tuple(local(position, term) for position, term in enumerate(self._one.frame(name)))

    def pair(self, acting: Frame, other: Frame) -> Frame:
        """The state of the model with two ranks that two ranks see."""
        at = zip(self._places.rank, self._places.alone, strict=True)
        return tuple(other[alone] if rank == 1 else acting[alone] for rank, alone in at)

    def acting_commands(self) -> list[Command]:
        """The commands of two ranks, of those that one rank takes only the ones of the first."""
        chosen: list[Command] = []
        for command in self._two.commands:
            kinds = [kind for _, kind in command.instance.action.parameters]
            at = [command.instance.arguments[place] for place, kind in enumerate(kinds) if kind is self._kind]
            if not at or at == [0]:
                chosen.append(command)
        return chosen

    def inductive(self, lemmas: Sequence[Property], watch: Callable[[int, int], None] | None = None) -> Induction:
        """Decides whether lemmas about one rank are inductive for two ranks and more, whatever their number.

        The model with one rank is a question of its own (induction.py). A breach has no states: the model with two
        ranks shows one (the questions are the same, but for the quantifiers).
        """
        began = time.perf_counter()
        commands = self.acting_commands()
        breaches: list[Breach] = []
        for number, command in enumerate(commands):
            breaches += self._of_step(command, lemmas)
            if watch:
                watch(number + 1, len(commands))
        obligations = len(lemmas) + len(commands) * (len(lemmas) + 1)
        names = tuple(each.name for each in lemmas)
        return Induction(names, obligations, tuple(breaches), time.perf_counter() - began)

    def _of_step(self, command: Command, lemmas: Sequence[Property]) -> Iterator[Breach]:
        acting, other, anyone = self.rank("acting"), self.rank("other"), self.rank("anyone")
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MILLISECONDS)
        frame = self.frame("before", anyone)
        holds = [z3.Not(self._one.fails(lemma, frame)) for lemma in lemmas]
        solver.add(z3.ForAll([anyone], z3.And(self._one.within(frame), *holds)))
        solver.add(acting != other)
        before = self.pair(self.frame("before", acting), self.frame("before", other))
        for subject, question in (
            (NO_FAULT, Meaning(before, "step").leads_to(command.tree, Fault)),
            ("", z3.And(self._step(command, acting), self._is_broken(lemmas))),
        ):
            solver.push()
            solver.add(question)
            answer = solver.check()
            solver.pop()
            if answer != z3.unsat:
                found = "not decided" if answer == z3.unknown else subject or "a lemma"
                yield Breach(found, command.instance, ())

    def _step(self, command: Command, acting: Term) -> Term:
        """The command leads from the frames before to those after, for the acting rank and every other one."""
        other = self.rank("any other")
        before = self.pair(self.frame("before", acting), self.frame("before", other))
        after = self.pair(self.frame("after", acting), self.frame("after", other))
        meaning = Meaning(before, "step")
        parts = [meaning.leads_to(command.tree, Update)]
        for position, term in enumerate(after):
            if isinstance(term, int):
                continue
            new = meaning.after(command.tree, position) if position in command.writes else before[position]
            parts.append(same(term, new))
        return z3.ForAll([other], z3.Implies(other != acting, z3.And(parts)))

    def _is_broken(self, lemmas: Sequence[Property]) -> Term:
        frame = self.frame("after", self.rank("breaking"))
        return z3.Or([self._one.fails(lemma, frame) for lemma in lemmas])

    def not_about_one(self, lemmas: Sequence[Property]) -> list[str]:
        """Lemmas that do not say of two ranks just what they say of each: nothing is proved with these."""
        first, second = self.rank("first"), self.rank("second")
        frames = self.frame("state", first), self.frame("state", second)
        both = self.pair(*frames)
        found: list[str] = []
        for lemma in lemmas:
            solver = z3.Solver()
            solver.add(*(self._one.within(frame) for frame in frames))
            alone = z3.Or([self._one.fails(lemma, frame) for frame in frames])
            solver.add(self._two.fails(lemma, both) != alone)
            if solver.check() != z3.unsat:
                found.append(lemma.name)
        return found

    def projects(self, ranks: int) -> list[str]:
        """Steps of the model with so many ranks that are not, for one rank and each other one, steps of two.

        Decided for every state, reachable or not; the same for faults. Empty if there is no such step.
        """
        many = Symbolic(self._model_of(ranks))
        where = places(many.model, self._one.model, self._kind)
        position_of = {(rank, alone): at for at, (rank, alone) in enumerate(zip(where.rank, where.alone, strict=True))}
        frame = many.frame("state")
        two = {command.instance.label: command for command in self.acting_commands()}
        found: list[str] = []

        def seen_by(state: Frame, rank: int, other: int) -> Frame:
            at = zip(self._places.rank, self._places.alone, strict=True)
            owner = {None: None, 0: rank, 1: other}
            return tuple(state[position_of[owner[each], alone]] for each, alone in at)

        for command in many.commands:
            kinds = [kind for _, kind in command.instance.action.parameters]
            actors = [command.instance.arguments[place] for place, kind in enumerate(kinds) if kind is self._kind]
            alike = two[_label_for_first(command, self._kind)]
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
                solver = z3.Solver()
                solver.set("timeout", TIMEOUT_MILLISECONDS)
                solver.add(many.within(frame), kind(command, frame, "step"), z3.Not(claim))
                if solver.check() != z3.unsat:
                    found.append(command.instance.label)
        return found


def _label_for_first(command: Command, kind: type[Index]) -> str:
    """The label of the same instance for the first rank."""
    pairs = zip(command.instance.action.parameters, command.instance.arguments, strict=True)
    words = ", ".join(f"{name}={0 if each is kind else value}" for (name, each), value in pairs)
    return f"{command.instance.action.name}({words})"
