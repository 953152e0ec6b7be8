"""Inductive invariants: lemmas that hold at the start, and that no step breaks in a state in which all of them hold.

A lemma is a property like any other, a function of the state made of claims. If the lemmas are inductive, they hold in
every reachable state, however long the run. If one is not, a step out of a state in which all hold breaks it: that is
shown as a trace of one step, and may well begin in a state that no run reaches. Then a further lemma has to say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...protocol.language import EngineDisagreement, Instance, ModelFault
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Property
from ..compile.tracer import Command
from .symbolic import Frame, Symbolic, z3
from .unrolling import NO_FAULT

TIMEOUT_MILLISECONDS = 60_000
UNDECIDED = "not decided"
"""In the place of a lemma's name, where the solver has no answer."""


@dataclass(frozen=True)
class Breach:
    """A lemma that a step breaks though all lemmas hold before it; `step` is None if it fails at the start.

    `states` are those before and after the step, or the initial state; empty if the solver did not decide.
    """

    lemma: str
    step: Instance | None
    states: tuple[Values, ...]


@dataclass(frozen=True)
class Induction:
    """What is known of a set of lemmas: they are inductive, and the language's rules kept, if there is no breach.

    `impossible` names actions that cannot happen in any state in which the lemmas hold.
    """

    lemmas: tuple[str, ...]
    obligations: int
    breaches: tuple[Breach, ...]
    seconds: float
    impossible: tuple[str, ...] = ()

    @property
    def proved(self) -> bool:
        """Whether the lemmas hold in every reachable state."""
        return not self.breaches


Watch = Callable[[int, int], None]


def inductive(
    symbolic: Symbolic,
    lemmas: Sequence[Property],
    *,
    every_breach: bool = False,
    seconds: float | None = None,
    watch: Watch | None = None,
) -> Induction:
    """Decides whether lemmas are inductive: one question for the start and two for each command.

    Ends at the first breach, unless `every_breach`, and after `seconds`: then a step is not decided.
    """
    began = time.perf_counter()
    work = _Induction(symbolic, lemmas, milliseconds(seconds))
    breaches = list(work.at_start())
    obligations = len(lemmas)
    possible = {command.instance.action.name: False for command in symbolic.commands}
    for number, command in enumerate(symbolic.commands):
        if breaches and not every_breach:
            break
        if seconds is not None and time.perf_counter() - began > seconds:
            breaches.append(Breach(UNDECIDED, command.instance, ()))
            break
        breaches += work.of_step(command)
        obligations += len(lemmas) + 1
        possible[command.instance.action.name] |= work.can_happen(command)
        if watch:
            watch(number + 1, len(symbolic.commands))
    names = tuple(each.name for each in lemmas)
    impossible = () if breaches else tuple(name for name, can in possible.items() if not can)
    return Induction(names, obligations, tuple(breaches), time.perf_counter() - began, impossible)


def milliseconds(seconds: float | None) -> int:
    """How long the solver may think about one question."""
    return TIMEOUT_MILLISECONDS if seconds is None else max(1, min(TIMEOUT_MILLISECONDS, int(seconds * 1000)))


def largest_inductive(
    symbolic: Symbolic, lemmas: Sequence[Property], watch: Watch | None = None
) -> tuple[Induction, tuple[Breach, ...]]:
    """Leaves out lemmas that are broken until the others are inductive; with the breaches of those left out.

    The set that remains is the largest inductive one. Ends as well where a step breaks the language's rules, or
    where something was not decided.
    """
    left, lost = list(lemmas), list[Breach]()
    while True:
        found = inductive(symbolic, left, every_breach=True, watch=watch)
        broken = {each.lemma for each in found.breaches} & {each.name for each in left}
        if found.proved or not broken or not left:
            return found, tuple(lost)
        lost += [each for each in found.breaches if each.lemma in broken]
        left = [each for each in left if each.name not in broken]


class _Induction:
    """The questions about a set of lemmas."""

    def __init__(self, symbolic: Symbolic, lemmas: Sequence[Property], timeout: int) -> None:
        self._symbolic = symbolic
        self._lemmas = lemmas
        self._before = symbolic.frame("before")
        self._solver: Any = z3.Solver()
        self._solver.set("timeout", timeout)
        self._solver.add(symbolic.within(self._before))
        for lemma in lemmas:
            self._solver.add(z3.Not(symbolic.fails(lemma, self._before)))

    def at_start(self) -> list[Breach]:
        """Lemmas that fail in an initial state, by direct execution.

        So the lemmas are true together somewhere, and what follows from them is not everything. Raises
        EngineDisagreement where the terms say otherwise.
        """
        return [
            Breach(lemma.name, None, (values,))
            for values in self._symbolic.initial_states
            for lemma in self._lemmas
            if self._fails_at(lemma, values)
        ]

    def _fails_at(self, lemma: Property, values: Values) -> bool:
        """Whether a lemma is false in a state; both executions are asked."""
        directly = lemma.violation(self._symbolic.model, values) is not None
        if z3.is_true(z3.simplify(self._symbolic.fails(lemma, values))) is not directly:
            said = ("true", "false") if directly else ("false", "true")
            raise EngineDisagreement(
                f"{self._symbolic.model.name}: as terms, {lemma.name} is {said[0]}; executed directly, it is {said[1]}"
                f"{self._where(values)}"
            )
        return directly

    def _where(self, values: Values) -> str:
        cells = zip(self._symbolic.model.layout.cells, values, strict=True)
        return f", in the state {', '.join(f'{cell.name} = {value}' for cell, value in cells)}"

    def of_step(self, command: Command) -> list[Breach]:
        """Lemmas that the command breaks, one at least if it breaks any, and whether it breaks the language's rules."""
        symbolic, before, name = self._symbolic, self._before, command.instance.label
        after = symbolic.successor(command, before, name)
        broken = [symbolic.fails(lemma, after) for lemma in self._lemmas]
        found = self._ask(command, NO_FAULT, after, symbolic.faults(command, before, name))
        found += self._ask(command, "", after, z3.And(symbolic.happens(command, before, name), z3.Or(broken)))
        return found

    def can_happen(self, command: Command) -> bool:
        """Whether the command can happen in a state in which all lemmas hold."""
        self._solver.push()
        self._solver.add(self._symbolic.happens(command, self._before, command.instance.label))
        answer = self._solver.check()
        self._solver.pop()
        return answer != z3.unsat

    def _ask(self, command: Command, subject: str, after: Frame, question: Any) -> list[Breach]:
        self._solver.push()
        self._solver.add(question)
        answer = self._solver.check()
        solution = self._solver.model() if answer == z3.sat else None
        self._solver.pop()
        if answer == z3.unsat:
            return []
        if solution is None:
            return [Breach(UNDECIDED, command.instance, ())]
        before = self._symbolic.values(solution, self._before)
        if subject:
            self._confirm(command, before, None)
            return [Breach(subject, command.instance, (before,))]
        states = (before, self._symbolic.values(solution, after))
        self._confirm(command, *states)
        broken = [lemma for lemma in self._lemmas if self._fails_at(lemma, states[1])]
        if not broken:
            raise EngineDisagreement(
                f"{self._symbolic.model.name}: as terms, {command.instance.label} breaks a lemma; executed directly, "
                f"it breaks none{self._where(before)}"
            )
        return [Breach(lemma.name, command.instance, states) for lemma in broken]

    def _confirm(self, command: Command, before: Values, after: Values | None) -> None:
        """Executes a step that the terms claim, to a state or, for None, to a fault. Raises EngineDisagreement."""
        for lemma in self._lemmas:
            self._fails_at(lemma, before)
        model, label = self._symbolic.model, command.instance.label
        if after is None:
            agreed = _breaks_the_rules(model, command.instance, before)
        else:
            agreed = after in [step.values for step in model.lawful_steps_of(command.instance, before)]
        if not agreed:
            claimed = "breaks the rules" if after is None else f"leads to {after}"
            raise EngineDisagreement(
                f"{model.name}: as terms, {label} {claimed}; executed directly, it does not{self._where(before)}"
            )


def _breaks_the_rules(model: Model, instance: Instance, values: Values) -> bool:
    try:
        for _ in model.steps_of(instance, values):
            pass
    except ModelFault:
        return True
    return False
