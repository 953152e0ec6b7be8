"""The oracle: breadth-first search in plain Python over tuples. Slow, and short enough to be believed.

Promises are decided another way than by the engine: a counter goes through the fair instances and waits for each to be
disabled or to happen; a promise is broken where the counter can go round for ever while the promise is pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx
from draincheck.protocol.language import ModelFault
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Step, Values


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
    fault: int | None = None


def explore(check: Check) -> Found:
    """Explores everything; `violated` and `reached` give the depth of the nearest state, `fault` that of the nearest
    in which a step breaks the language's rules. Such a step leads nowhere."""
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
        try:
            steps = list(model.steps(values))
        except ModelFault:
            found.fault = depth if found.fault is None else found.fault
            steps = [step for each in model.instances for step in model.lawful_steps_of(each, values)]
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


def every_step(check: Check) -> dict[Values, list[Step]]:
    """All reachable states with their steps."""
    model = check.model
    steps: dict[Values, list[Step]] = {}
    queue = deque(model.initial_states())
    while queue:
        values = queue.popleft()
        if values not in steps:
            steps[values] = list(model.steps(values))
            queue.extend(step.values for step in steps[values])
    return steps


def steps_that_change(steps: Mapping[Values, Sequence[Step]]) -> dict[Values, list[Step]]:
    """Only the steps that TLA+ knows: what changes nothing is no step of its runs, and none that fairness asks for."""
    return {values: [step for step in taken if step.values != values] for values, taken in steps.items()}


def broken_promises(check: Check, steps: Mapping[Values, Sequence[Step]]) -> set[str]:
    """The promises that some fair run leaves pending for ever; `steps` are those of `every_step`."""
    fair = [each for each in check.model.instances if each.action.name in check.fair_actions]
    enabled = {values: {step.instance for step in taken} for values, taken in steps.items()}
    broken: set[str] = set()
    for promise in check.promises:
        pending = {values for values in steps if promise.is_pending(check.model, values)}
        rounds = nx.DiGraph()
        for values in pending:
            rounds.add_edge((values, len(fair)), (values, 0))
            for step in steps[values]:
                for waiting, instance in enumerate(fair):
                    satisfied = step.instance == instance or instance not in enabled[values]
                    if step.values in pending:
                        rounds.add_edge((values, waiting), (step.values, waiting + satisfied))
        ends = any(not enabled[values] & set(fair) for values in pending)
        loops = any(
            len(part) > 1 and any(waiting == len(fair) for _, waiting in part)
            for part in nx.strongly_connected_components(rounds)
        )
        if ends or loops:
            broken.add(promise.name)
    return broken
