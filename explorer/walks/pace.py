"""How eager each thread and each environment step is in a random run: what is drawn once, and decides each step.

Where all are equally eager, a random run ends early, and nearly always in the same way. Where a NIC or a scheduler is
slow, or a client patient, others come far meanwhile: that is where protocols fail.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from ...protocol.language.check import Check
from .walk import Move, Walk

SLOWEST = 2
"""A thread or environment step is 0 .. so many powers less eager than the most eager one."""
DRAWS = 2**16
"""How many different draws there are of what decides a step."""
STEEPNESS = 4
"""The base of these powers."""


@dataclass(slots=True)
class Possible:
    """A step that is possible now, and its weight."""

    weight: int
    number: int
    move: Move


class Pace:
    """The threads and environment steps of a check, whose eagerness a run draws."""

    def __init__(self, check: Check) -> None:
        instances = check.model.instances
        self.unfair = frozenset(
            number for number, each in enumerate(instances) if each.action.name in check.unfair_actions
        )
        names = [each.lane for each in instances]
        names += [instances[number].action.name for number in sorted(self.unfair)]
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        self._count = len(places)
        self._drawn_by = [
            [places[each.lane], *([places[each.action.name]] if number in self.unfair else [])]
            for number, each in enumerate(instances)
        ]

    def weights(self, temper: int) -> list[int]:
        """The weight of each instance. With temper 0, all are equal; any other one stands for a draw of its own.

        Half of the draws give each thread and each environment step one of a few degrees, an environment step that of
        its thread as well. The others put all in an order, in which the earlier nearly always go first.
        """
        if temper == 0:
            return [1] * len(self._drawn_by)
        chance = Random(temper)
        if chance.random() < 0.5:
            order = chance.sample(range(self._count), self._count)
            return [STEEPNESS ** order[places[-1]] for places in self._drawn_by]
        slowness = [chance.randint(0, SLOWEST) for _ in range(self._count)]
        most = 2 * SLOWEST
        return [STEEPNESS ** (most - sum(slowness[place] for place in places)) for places in self._drawn_by]


def possible_steps(walk: Walk, weights: Sequence[int], excluded: Collection[int]) -> list[Possible]:
    """The steps that the walk can take now, those of some instances excluded, in the order of the model.

    The options of an instance share its weight.
    """
    return [
        Possible(max(1, weights[number] // len(moves)), number, move)
        for number in walk.enabled(excluded)
        for moves in (walk.moves(number),)
        for move in moves
    ]


def pick_of(possible: Sequence[Possible], pick: int, picks: int) -> Possible:
    """The step that a number from 0 to picks - 1 stands for: each as many numbers as its weight; 0 is the first."""
    at = pick * sum(each.weight for each in possible) // picks
    for each in possible:
        at -= each.weight
        if at < 0:
            return each
    return possible[-1]
