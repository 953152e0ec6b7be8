"""The oracle: breadth-first search in plain Python over tuples. Slow, and short enough to be believed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from draincheck.models.model import Values
from draincheck.properties.check import Check


@dataclass
class Found:
    """What every engine must find as well."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    violated: dict[str, int] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    deadlocks: int = 0


def explore(check: Check) -> Found:
    """Explores everything; `violated` and `reached` give the depth of the nearest state."""
    model = check.model
    found = Found(
        counts={each.name: 0 for each in (*check.properties, *check.probes)},
        hits={action.name: 0 for action in model.all_actions},
    )
    depths: dict[Values, int] = dict.fromkeys(model.initial_states(), 0)
    queue = deque(depths)
    while queue:
        values = queue.popleft()
        depth = found.depth = depths[values]
        for prop in check.properties:
            if prop.violation(model, values):
                found.counts[prop.name] += 1
                found.violated.setdefault(prop.name, depth)
        for probe in check.probes:
            if probe.holds(model, values):
                found.counts[probe.name] += 1
                found.reached.setdefault(probe.name, depth)
        steps = list(model.steps(values))
        if not steps and not model.is_terminal(values):
            found.deadlocks += 1
        for step in steps:
            found.transitions += 1
            found.hits[step.instance.action.name] += 1
            if step.values not in depths:
                depths[step.values] = depth + 1
                queue.append(step.values)
    found.states = len(depths)
    return found
