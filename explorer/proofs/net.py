"""The second net of proofs: terms against direct execution, in states that runs come to, before anything is proved.

What Z3 claims to break is executed, and so is every run that it finds. A claim that nothing breaks has no run to
execute; so in some states every step and every property is compared beforehand. Terms that differ decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from ...protocol.language import EngineDisagreement, Instance, ModelFault
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Property
from ..compile.tracer import Choice, Command, Decision, Tree
from .symbolic import Symbolic, z3

STATES = 16
STEPS = 60
SEED = 20261201
"""Always the same states: a proof is the same each time."""


def require_agreement(symbolic: Symbolic, properties: Sequence[Property], states: int = STATES) -> None:
    """Compares properties, and steps that do not choose, in some states of random runs.

    Raises EngineDisagreement where they differ.
    """
    commands = [each for each in symbolic.commands if not _chooses(each.tree)]
    for values in _on_runs(symbolic.model, states):
        for prop in properties:
            directly = prop.violation(symbolic.model, values) is not None
            if z3.is_true(z3.simplify(symbolic.fails(prop, values))) is not directly:
                raise _difference(symbolic.model, prop.name, values)
        for command in commands:
            if _as_terms(symbolic, command, values) != _directly(symbolic.model, command.instance, values):
                raise _difference(symbolic.model, command.instance.label, values)


FAULT = "a fault"


def _as_terms(symbolic: Symbolic, command: Command, values: Values) -> Values | str | None:
    """Where the command leads: a state, FAULT, or nowhere."""
    if z3.is_true(z3.simplify(symbolic.faults(command, values))):
        return FAULT
    if not z3.is_true(z3.simplify(symbolic.happens(command, values))):
        return None
    return tuple(_number(each) for each in symbolic.successor(command, values))


def _number(term: Any) -> int:
    if isinstance(term, int):
        return term
    value = z3.simplify(term)
    if z3.is_bool(value):
        return int(z3.is_true(value))
    return int(value.as_signed_long() if z3.is_bv(value) else value.as_long())


def _directly(model: Model, instance: Instance, values: Values) -> Values | str | None:
    try:
        return next((step.values for step in model.steps_of(instance, values)), None)
    except ModelFault:
        return FAULT


def _on_runs(model: Model, states: int) -> Iterator[Values]:
    """States that random runs come to, spread over them."""
    chance = Random(SEED)
    initial = model.initial_states()
    values, taken = chance.choice(initial), 0
    for _ in range(states):
        yield values
        for _ in range(chance.randrange(1, max(2, STEPS // states + 2))):
            enabled = [step for each in model.instances for step in model.lawful_steps_of(each, values)]
            taken += 1
            if not enabled or taken > STEPS:
                values, taken = chance.choice(initial), 0
                break
            values = chance.choice(enabled).values


def _chooses(tree: Tree) -> bool:
    """Whether a step has options: which are taken is no term of the state."""
    if isinstance(tree, Decision):
        return _chooses(tree.then) or _chooses(tree.otherwise)
    return isinstance(tree, Choice)


def _difference(model: Model, what: str, values: Values) -> EngineDisagreement:
    cells = zip(model.layout.cells, values, strict=True)
    state = ", ".join(f"{cell.name} = {cell.domain.show(value)}" for cell, value in cells if value != cell.domain.start)
    return EngineDisagreement(
        f"{model.name}: {what} differs between terms and direct execution in the state [{state}]; nothing is proved"
    )
