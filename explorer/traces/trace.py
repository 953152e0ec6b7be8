"""A trace: a run of a model, executed directly, with everything that a diagram of it shows.

A trace cannot be built without executing it: whatever an engine claims, `follow` finds for each pair of states
the step that leads from one to the other, by running the model's own functions on integers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path

from ...protocol.language import Access, Domain, DraincheckError, Event, Instance, ModelFault, flag
from ...protocol.language.check import Check
from ...protocol.language.model import Model, SlotView, Step, Values
from ...protocol.language.property import Probe, Promise, Property, Violation


class ReplayError(DraincheckError):
    """A claimed run is none: the model, executed directly, does not take it."""


@dataclass(frozen=True)
class Change:
    """A cell that a step changes, with its values in words."""

    cell: str
    before: str
    after: str
    ghost: bool


@dataclass(frozen=True)
class Arrow:
    """Something that goes from one lane to another in a step."""

    source: str
    target: str
    text: str


@dataclass(frozen=True)
class TraceStep:
    """One step: who does what (`sentence` is the first of the action's docstring), and what it changes."""

    number: int
    label: str
    lane: str
    sentence: str
    choice: str
    arrow: Arrow | None
    sends: tuple[str, ...]
    changes: tuple[Change, ...]
    slots: tuple[SlotView, ...]
    values: Values


@dataclass(frozen=True)
class Trace:
    """A run from an initial state, why it is shown, and how to make it again.

    `kind` is "violation", "witness", "deadlock", "fault", "promise" or "induction"; `subject` names the property, probe
    or promise and `sentence` says it. An induction begins in a state that need not be reachable. `source` describes the
    check so that a saved trace can be executed again (see storage.py).
    `pending` lists messages that are still on their way at the end.

    `begins` describes the first state where it is no initial one: the cells that are not as they begin.

    A broken promise has a `loop`: the steps behind the first `loop` ones repeat for ever; if there are none, the run
    ends. `unfair` names the actions that need not happen in it, even if they always can.
    """

    model: str
    kind: str
    subject: str
    sentence: str
    violation: Violation | None
    initial: Values
    initial_slots: tuple[SlotView, ...]
    steps: tuple[TraceStep, ...]
    lanes: tuple[str, ...]
    pending: tuple[str, ...]
    bounds: Mapping[str, str]
    taken: tuple[Step, ...]
    cells: tuple[str, ...]
    source: Mapping[str, object] = field(default_factory=dict[str, object])
    loop: int | None = None
    unfair: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)

    def __bool__(self) -> bool:
        return True  # a run of no steps is one too: the initial state may violate a property

    def __str__(self) -> str:
        """The sequence diagram, as in a terminal of 120 columns."""
        from .render_terminal import terminal_text

        return terminal_text(self)

    def save(self, path: str | Path) -> Path:
        """Writes the run into a file; the suffix says how: .svg, .png, .pdf, .dot, .mmd, .itf.json, .txt, .py (a test),
        .json (to be executed again). Raises DraincheckError."""
        from .formats import save_as

        return save_as(self, path)


def follow(model: Model, states: Sequence[Values], last: Sequence[Instance] = ()) -> list[Step]:
    """The steps along a sequence of states, the last ones by the given instances.

    Raises ReplayError if it is no run of the model.
    """
    if not states or states[0] not in model.initial_states():
        raise ReplayError(f"{model.name}: the run does not begin in an initial state")
    free = len(states) - 1 - len(last)
    return [
        _step_between(model, number, here, there, (last[number - free - 1],) if number > free else model.instances)
        for number, (here, there) in enumerate(pairwise(states), 1)
    ]


def _step_between(model: Model, number: int, here: Values, there: Values, instances: Sequence[Instance]) -> Step:
    for instance in instances:
        for step in model.lawful_steps_of(instance, here):  # what another step does wrong here is another matter
            if step.values == there:
                return step
    raise ReplayError(f"{model.name}: no action leads to the state after step {number}; the run is none")


def rerun(model: Model, initial: Values, taken: Sequence[tuple[str, Sequence[int]]]) -> list[Step]:
    """Executes labelled steps with their choices from an initial state. Raises ReplayError where one is disabled."""
    if initial not in model.initial_states():
        raise ReplayError(f"{model.name}: the run does not begin in an initial state")
    instances = {instance.label: instance for instance in model.instances}
    values, steps = initial, list[Step]()
    for number, (label, chosen) in enumerate(taken, 1):
        if label not in instances:
            raise ReplayError(f"{model.name}: step {number} is {label}, which the model does not have")
        for step in model.lawful_steps_of(instances[label], values):
            if step.chosen == tuple(chosen):
                steps.append(step)
                values = step.values
                break
        else:
            raise ReplayError(f"{model.name}: step {number}, {label}, cannot happen there")
    return steps


def violation_trace(
    model: Model, prop: Property, initial: Values, taken: Sequence[Step], source: Mapping[str, object]
) -> Trace:
    """The trace of a violation. Raises ReplayError if the property holds in its last state."""
    last = taken[-1].values if taken else initial
    violation = prop.violation(model, last)
    if violation is None:
        raise ReplayError(f"{model.name}: {prop.name} holds at the end of the run that is said to violate it")
    return _trace(model, "violation", prop.name, prop.sentence, violation, initial, taken, source)


def witness_trace(
    model: Model, probe: Probe, initial: Values, taken: Sequence[Step], source: Mapping[str, object]
) -> Trace:
    """The trace of a run that reaches what a probe looks for. Raises ReplayError if it does not."""
    if not probe.holds(model, taken[-1].values if taken else initial):
        raise ReplayError(f"{model.name}: the run does not reach {probe.name}")
    return _trace(model, "witness", probe.name, probe.sentence, None, initial, taken, source)


def fault_in(check: Check, values: Values) -> ModelFault | None:
    """The first fault of a step that is tried in a state, or of a property that is asked there."""
    model = check.model
    try:
        for _ in model.steps(values):
            pass
        for prop in check.properties:
            prop.violation(model, values)
    except ModelFault as fault:
        return fault
    return None


def fault_trace(check: Check, initial: Values, taken: Sequence[Step], source: Mapping[str, object]) -> Trace:
    """The trace to a state in which a step breaks the rules of the language. Raises ReplayError if none does."""
    fault = fault_in(check, taken[-1].values if taken else initial)
    if fault is None:
        raise ReplayError(f"{check.model.name}: no step breaks the rules at the end of the run")
    sentence = "No step breaks the rules of the language."
    violation = Violation("no_fault", str(fault), {})
    return _trace(check.model, "fault", "no_fault", sentence, violation, initial, taken, source)


def deadlock_trace(model: Model, initial: Values, taken: Sequence[Step], source: Mapping[str, object]) -> Trace:
    """The trace to a state without a step that is not terminal. Raises ReplayError if it is neither."""
    last = taken[-1].values if taken else initial
    if model.is_terminal(last) or next(model.steps(last), None) is not None:
        raise ReplayError(f"{model.name}: the run does not end in a deadlock")
    sentence = "Some step is possible in every state that is not terminal."
    return _trace(model, "deadlock", "no_deadlock", sentence, None, initial, taken, source)


def promise_trace(
    check: Check, promise: Promise, initial: Values, taken: Sequence[Step], loop: int, source: Mapping[str, object]
) -> Trace:
    """The trace of a fair run that breaks a promise: its steps behind the first `loop` ones repeat for ever.

    Without such steps, the run ends. Raises ReplayError unless the promise is pending from there on, and the run fair.
    """
    model = check.model
    if not 0 <= loop <= len(taken):
        raise ReplayError(f"{model.name}: the loop of {promise.name} begins outside the run")
    around = [initial, *(step.values for step in taken)][loop:]
    if around[0] != around[-1]:
        raise ReplayError(f"{model.name}: the loop of {promise.name} does not lead back to where it begins")
    if not all(promise.is_pending(model, values) for values in around):
        raise ReplayError(f"{model.name}: {promise.name} is not pending all along the run that is said to break it")
    happening = {step.instance for step in taken[loop:]}
    for instance in model.instances:
        owed = instance.action.name in check.fair_actions and instance not in happening
        if owed and all(next(model.steps_of(instance, values), None) is not None for values in around):
            raise ReplayError(f"{model.name}: the run is not fair: {instance.label} can always happen and never does")
    made = _trace(model, "promise", promise.name, promise.sentence, None, initial, taken, source)
    return replace(made, loop=loop, unfair=check.unfair_actions)


def induction_trace(
    model: Model,
    prop: Property,
    states: Sequence[Values],
    source: Mapping[str, object],
    instance: Instance | None = None,
) -> Trace:
    """The trace of a row of states that is in the way of a proof; it may begin in a state that no run reaches.

    Raises ReplayError if it is no row of steps, or the property holds in its last state.
    """
    taken = [
        _step_between(model, number, here, there, (instance,) if instance else model.instances)
        for number, (here, there) in enumerate(pairwise(states), 1)
    ]
    violation = prop.violation(model, states[-1])
    if violation is None:
        raise ReplayError(f"{model.name}: {prop.name} holds at the end of the row of states that is said to break it")
    begins = tuple(
        f"{cell.name} = {cell.domain.show(value)}"
        for cell, value in zip(model.layout.cells, states[0], strict=True)
        if value != cell.domain.start and "." not in cell.field  # what a channel holds is shown as messages
    )
    made = _trace(model, "induction", prop.name, prop.sentence, violation, states[0], taken, source)
    return replace(made, begins=begins)


def _trace(
    model: Model,
    kind: str,
    subject: str,
    sentence: str,
    violation: Violation | None,
    initial: Values,
    taken: Sequence[Step],
    source: Mapping[str, object],
) -> Trace:
    wires = _Wires(model, initial)
    steps: list[TraceStep] = []
    before = initial
    for number, step in enumerate(taken, 1):
        steps.append(_trace_step(model, wires, number, before, step))
        before = step.values
    lanes: dict[str, None] = {}
    for step in steps:
        for lane in (step.lane, *((step.arrow.source, step.arrow.target) if step.arrow else ())):
            lanes.setdefault(lane)
    return Trace(
        model.name, kind, subject, sentence, violation, initial, model.slots_of(initial), tuple(steps),
        tuple(sorted(lanes, key=_lane_order)), wires.pending(), model.bounds, tuple(taken),
        tuple(cell.name for cell in model.layout.cells), source,
    )  # fmt: skip


_PROCESS_ORDER = ("victim", "allocator", "decode memory", "decode", "network", "NIC", "prefill")


def _lane_order(lane: str) -> tuple[int, str]:
    """Decode on the left, prefill on the right, and what lies between them between."""
    for place, prefix in enumerate(_PROCESS_ORDER):
        if lane == prefix or (lane.startswith(prefix) and lane not in _PROCESS_ORDER):
            return place, lane
    return len(_PROCESS_ORDER), lane


def _trace_step(model: Model, wires: _Wires, number: int, before: Values, step: Step) -> TraceStep:
    instance = step.instance
    received, sends, notes = wires.apply(step.events, instance.lane, number)
    arrow = received
    if instance.toward:
        arrow = Arrow(instance.lane, instance.toward, received.text if received else (sends[0] if sends else ""))
    changes = tuple(
        Change(cell.name, cell.domain.show(old), cell.domain.show(new), cell.ghost)
        for cell, old, new in zip(model.layout.cells, before, step.values, strict=True)
        if old != new and "." not in cell.field  # what a channel holds is shown as messages
    )
    sentence = instance.action.doc.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
    # Which of the places a fault has chosen says nothing; which message was there does.
    shown = step.choice and not (notes and step.choice.isdigit())
    chosen = f"chooses {step.choice}" if shown else ""
    choice = "; ".join(each for each in (chosen, *notes) if each)
    return TraceStep(
        number, instance.label, instance.lane, sentence, choice, arrow, sends, changes,
        model.slots_of(step.values), step.values,
    )  # fmt: skip


def _part_words(name: str, domain: Domain, value: int) -> str:
    """A part of a message in words; nothing for what could not be otherwise, and for a flag that is not set."""
    shown = domain.show(value)
    if domain.names == flag.names:
        return name if value else ""
    if domain.lo == domain.hi:
        return ""
    return f"{name} {shown}" if shown.isdigit() else shown


def _when(step: int) -> str:
    """When a message was sent; 0 stands for before the run."""
    return f"sent in step {step}" if step else "on its way from the start"


class _Wires:
    """Which message was sent by whom, while a run is followed."""

    def __init__(self, model: Model, values: Values) -> None:
        self._model = model
        self._queues: dict[tuple[str, tuple[int, ...]], deque[tuple[str, int, str]]] = {}
        state = model.state_of(values, access=Access.PROPERTY)
        for name, channel in model.layout.channels.items():
            for key in product(*(range(model.sizes[kind]) for kind in channel.shape)):
                waiting = [message.parts for message in channel.of(state, key).waiting()]
                texts = [self._text(Event("send", name, key, parts)) for parts in waiting]
                self._queues[name, key] = deque(("", 0, text) for text in texts)

    def apply(
        self, events: Sequence[Event], lane: str, number: int
    ) -> tuple[Arrow | None, tuple[str, ...], tuple[str, ...]]:
        """Follows a step: the message received as an arrow, the texts of those sent, and what befell others."""
        arrow, sends, notes = None, list[str](), list[str]()
        for event in events:
            queue = self._queues.setdefault((event.channel, event.key), deque())
            match event.kind:
                case "send":
                    text = self._text(event)
                    queue.append((lane, number, text))
                    sends.append(text)
                case "receive":
                    source, sent_in, text = queue.popleft()
                    arrow = Arrow(source or lane, lane, f"{text} ({_when(sent_in)})")
                case "remove":
                    notes.append(f"takes away {queue[event.parts['place']][2]}")
                    del queue[event.parts["place"]]
                case "duplicate":
                    notes.append(f"doubles {queue[event.parts['place']][2]}")
                    queue.append(queue[event.parts["place"]])
                case _:
                    at = event.parts["place"]
                    notes.append(f"puts {queue[at][2]} behind {queue[at + 1][2]}")
                    queue[at], queue[at + 1] = queue[at + 1], queue[at]
        return arrow, tuple(dict.fromkeys(sends)), tuple(notes)

    def _text(self, event: Event) -> str:
        channel = self._model.layout.channels[event.channel]
        words = [_part_words(name, channel.parts[name], value) for name, value in event.parts.items()]
        return f"{event.channel}: {', '.join(word for word in words if word) or 'a message'}"

    def pending(self) -> tuple[str, ...]:
        """Messages that nobody has received."""
        return tuple(
            f"{text} ({_when(number)}{f' by {lane}' if lane else ''})"
            for queue in self._queues.values()
            for lane, number, text in queue
        )
