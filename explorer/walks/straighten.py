"""The shortest run to a failure by nothing but the actions that another run is made of.

Leaving steps out ends where none can be left out; the same failure may still be nearer, in another slot or on another
rank. A search among so few actions is small, and it is given up where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.language.model import Model, Step, Values

MOST_STATES = 20_000


def straightened(
    model: Model, initial: Values, taken: Sequence[Step], still_fails: Callable[[Values], bool]
) -> list[Step]:
    """A run with fewer steps than `taken` that ends where `still_fails`, or `taken` if none was found.

    Actions that do not happen in `taken` do not happen in it. Breadth first, up to MOST_STATES states.
    """
    actions = {step.instance.action.name for step in taken}
    instances = [instance for instance in model.instances if instance.action.name in actions]
    before: dict[Values, Step | None] = {initial: None}
    sources: dict[Values, Values] = {}
    level = [initial]
    for _ in range(len(taken) - 1):
        following: list[Values] = []
        for values in level:
            for instance in instances:
                for step in model.steps_of(instance, values):
                    if step.values in before:
                        continue
                    before[step.values], sources[step.values] = step, values
                    if still_fails(step.values):
                        return _path(before, sources, step.values)
                    following.append(step.values)
            if len(before) > MOST_STATES:
                return list(taken)
        level = following
    return list(taken)


def _path(before: dict[Values, Step | None], sources: dict[Values, Values], values: Values) -> list[Step]:
    steps: list[Step] = []
    while (step := before[values]) is not None:
        steps.append(step)
        values = sources[values]
    return steps[::-1]
