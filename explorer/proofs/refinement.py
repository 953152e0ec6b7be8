"""A model with finer steps against one with coarser ones: is every step of the first a step of the second, or none?

Both have the same state class and sizes. A view says which state of the coarse model a state of the fine one stands
for: a function that changes the one into the other, written like an action. If initial states stand for initial states,
every step of the fine model for a step of the coarse one or for none at all, and every failure for a failure, then what
is safe in the coarse model is safe in the fine one, for runs of any length.

Z3 decides it on the guarded commands, for every state in which some lemmas hold. These must be inductive in the fine
model (induction.py): only then do they hold wherever a run comes. A step without a counterpart may begin in a state
that no run reaches, as in an induction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product, zip_longest
from typing import Any

from ...protocol.language import Action, DeclarationError, Instance, ModelFault, execute
from ...protocol.language.model import Model, Values
from ...protocol.language.property import ClaimFailed, Property, claim
from ..compile.tracer import Choice, Command, Decision, Fault, Tree
from ..traces.trace import Trace, induction_trace
from .induction import UNDECIDED, milliseconds
from .symbolic import Frame, Meaning, Symbolic, Term, same, z3

View = Callable[[Any], None]
"""Changes a state of the fine model into the state of the coarse one that it stands for."""

INITIAL = "initial state"
RULES = "the language's rules"
STEP = "step"


@dataclass(frozen=True)
class Unmatched:
    """Something of the fine model without a counterpart in the coarse one.

    `subject` is STEP, RULES (the step is a fault in the fine model only), INITIAL, the name of a property that fails in
    the fine model only, or UNDECIDED. `states` are those of the fine model: before and after the step, or one.
    """

    subject: str
    step: Instance | None
    states: tuple[Values, ...]


@dataclass(frozen=True)
class Refinement:
    """What is known of a fine model and a coarse one: the first refines the second if nothing is unmatched."""

    obligations: int
    unmatched: tuple[Unmatched, ...]
    seconds: float


Watch = Callable[[int, int], None]


def unmatched(
    fine: Symbolic,
    coarse: Symbolic,
    view: View,
    lemmas: Sequence[Property] = (),
    properties: Sequence[Property] = (),
    *,
    seconds: float | None = None,
    watch: Watch | None = None,
) -> Refinement:
    """Every step of the fine model that is none of the coarse one through the view, and what else has no counterpart.

    `lemmas` are assumed of the fine model's states. After `seconds`, a step is not decided.
    Raises DeclarationError if the two have different cells.
    """
    began = time.perf_counter()
    if fine.model.layout.cells != coarse.model.layout.cells:
        raise DeclarationError(f"{fine.model.name} and {coarse.model.name} have different cells; a view needs the same")
    work = _Refinement(fine, coarse, view, lemmas, milliseconds(seconds))
    found = [*work.of_start(), *(each for prop in properties for each in work.of_property(prop))]
    for number, command in enumerate(fine.commands, 1):
        if seconds is not None and time.perf_counter() - began > seconds:
            found.append(Unmatched(UNDECIDED, command.instance, ()))
            break
        found += work.of_step(command)
        if watch:
            watch(number, len(fine.commands))
    obligations = 1 + len(properties) + 2 * len(fine.commands)
    return Refinement(obligations, tuple(found), time.perf_counter() - began)


def seen(model: Model, view: View, values: Values) -> Values:
    """The state that a state of the fine model stands for, by direct execution. Raises ModelFault if it is none."""
    state = execute(_instance(view), model.state_of(values))
    if state is None:
        raise ModelFault("the state stands for none", _instance(view).label)
    return tuple(state.values)


def unmatched_trace(fine: Model, coarse: Model, view: View, found: Unmatched) -> Trace:
    """The trace of a step without a counterpart, executed directly; in the coarse model too.

    Raises ReplayError if the coarse model does take the step.
    """
    before = seen(fine, view, found.states[0])

    def is_matched(s: Any) -> None:
        try:
            after = seen(fine, view, tuple(s.values))
        except ModelFault as fault:
            raise ClaimFailed(f"the state stands for one of {coarse.name} ({fault})", {}) from None
        matched = after == before or any(step.values == after for step in coarse.steps(before))
        claim(matched, f"{coarse.name} has this step, or none is needed")

    sentence = f"Every step is, for the view, one of {coarse.name}, or none."
    prop = Property("step by step", sentence, is_matched)
    return induction_trace(fine, prop, found.states, {}, found.step)


def _instance(view: View) -> Instance:
    return Instance(Action(getattr(view, "__name__", "view"), view, (), "view", ""), ())


class _Refinement:
    """The questions about two models and a view."""

    def __init__(self, fine: Symbolic, coarse: Symbolic, view: View, lemmas: Sequence[Property], timeout: int) -> None:
        self._fine = fine
        self._coarse = coarse
        self._view = view
        self._seeing = fine.tracer.command(_instance(view))
        for at in self._seeing.writes & fine.tracer.constants.keys():
            cell = fine.model.layout.cells[at].name
            raise DeclarationError(f"{fine.model.name}: the view changes {cell}, which never changes in this model")
        if len(without_choices(self._seeing.tree)) > 1:
            raise DeclarationError(f"{fine.model.name}: the view may not choose; a state stands for one state")
        self._choiceless = [replace(each, tree=tree) for each in coarse.commands for tree in without_choices(each.tree)]
        self._before = fine.frame("before")
        self._seen_before = self._seen(self._before)
        self._solver: Any = fine.solver()
        self._solver.set("timeout", timeout)
        self._solver.add(fine.within(self._before))
        self._solver.add(*(z3.Not(fine.fails(lemma, self._before)) for lemma in lemmas))
        # That each state stands for one that the coarse model reaches is what is being proved, step by step.
        self._solver.add(fine.happens(self._seeing, self._before))
        self._solver.add(*(same(self._seen_before[at], value) for at, value in coarse.tracer.constants.items()))

    def _seen(self, frame: Frame) -> Frame:
        return self._fine.successor(self._seeing, frame)

    def of_start(self) -> list[Unmatched]:
        """Initial states that stand for no initial state, by direct execution."""
        starts = self._coarse.initial_states
        return [
            Unmatched(INITIAL, None, (values,))
            for values in self._fine.initial_states
            if seen(self._fine.model, self._view, values) not in starts
        ]

    def of_property(self, prop: Property) -> list[Unmatched]:
        """The property fails in a state, and not in the one that it stands for."""
        fails = self._fine.fails(prop, self._before)
        return self._ask(prop.name, None, self._before, fails, z3.Not(self._coarse.fails(prop, self._seen_before)))

    def of_step(self, command: Command) -> list[Unmatched]:
        """The command does, or breaks the rules, where the coarse model does nothing of the kind."""
        fine, before, choices = self._fine, self._before, command.instance.label
        after = fine.successor(command, before, choices)
        seen_after = self._seen(after)
        stands = fine.happens(self._seeing, after)
        happens = fine.happens(command, before, choices)
        faults = (fine.faults(command, before, choices), *(z3.Not(each) for each in self._faults()))
        found = self._ask(RULES, command, before, *faults)
        alike = [each for each in self._choiceless if each.instance.label == command.instance.label]
        for candidates in (alike, self._choiceless):  # nearly every step is matched by the one of its own name
            ways = [_agree(self._seen_before, seen_after), *(self._leads(each, seen_after) for each in candidates)]
            missing = self._ask(STEP, command, after, happens, z3.Not(z3.And(stands, z3.Or(ways))))
            if not missing:
                return found
        return [*found, *missing]

    def _faults(self) -> Iterator[Term]:
        meaning = Meaning(self._seen_before)
        return (meaning.leads_to(each.tree, Fault) for each in self._choiceless)

    def _leads(self, command: Command, after: Frame) -> Term:
        """The coarse command leads from what is seen before to what is seen after."""
        happens = self._coarse.happens(command, self._seen_before)
        return z3.And(happens, _agree(self._coarse.successor(command, self._seen_before), after))

    def _ask(self, subject: str, command: Command | None, after: Frame, *question: Term) -> list[Unmatched]:
        self._solver.push()
        self._solver.add(*question)
        answer = self._solver.check()
        solution = self._solver.model() if answer == z3.sat else None
        self._solver.pop()
        step = command.instance if command else None
        if answer == z3.unsat:
            return []
        if solution is None:
            return [Unmatched(UNDECIDED, step, ())]
        frames = (self._before,) if after is self._before else (self._before, after)
        return [Unmatched(subject, step, tuple(self._fine.values(solution, frame) for frame in frames))]


def _agree(frame: Frame, other: Frame) -> Term:
    return z3.And([same(a, b) for a, b in zip(frame, other, strict=True) if a is not b])


def without_choices(tree: Tree) -> list[Tree]:
    """The trees that are left when every choice is made beforehand, in each way."""
    return [_choosing(tree, way) for way in product(*map(range, _most_options(tree)))]


def _most_options(tree: Tree) -> list[int]:
    """The largest number of options of the first choice on a path, of the second, and so on."""
    match tree:
        case Decision(_, then, otherwise):
            return _longer(_most_options(then), _most_options(otherwise))
        case Choice(options):
            return [len(options), *reduce(_longer, map(_most_options, options))]
        case _:
            return []


def _longer(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [max(pair) for pair in zip_longest(a, b, fillvalue=0)]


def _choosing(tree: Tree, way: Sequence[int]) -> Tree:
    match tree:
        case Decision(condition, then, otherwise):
            return Decision(condition, _choosing(then, way), _choosing(otherwise, way))
        case Choice(options):
            return _choosing(options[min(way[0], len(options) - 1)], way[1:])
        case _:
            return tree
