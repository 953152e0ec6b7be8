"""The words of a trace: what every rendering says, whatever it draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...protocol.language.model import SlotView
from ...protocol.language.property import Violation
from .trace import Arrow, Change, Trace, TraceStep

SEPARATOR = " · "
LEGEND = "~ marks ghost state: the model knows it, no implementation does"


def one_line(text: str) -> str:
    """The text without line breaks and control characters: these break diagrams and drive terminals."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def headline(trace: Trace) -> str:
    """What the trace shows, in one line."""
    count = len(trace) if trace.loop is None else trace.loop
    steps = f"{count} step{'s' * (count != 1)}"
    match trace.kind:
        case "violation":
            what = f"{trace.subject} is violated after {steps}"
        case "witness":
            what = f"{trace.subject} is reached after {steps}"
        case "deadlock":
            what = f"nothing can happen any more after {steps}"
        case "fault":
            what = f"a step breaks the rules after {steps}"
        case "promise":
            what = f"{trace.subject} is broken: pending for ever after {steps}"
        case "induction":
            what = f"{trace.subject} is broken by {steps} from a state that may be unreachable"
        case other:
            what = f"{other} of {trace.subject} after {steps}"
    return one_line(f"{trace.model}: {what}")


def arrow_of(step: TraceStep) -> Arrow | None:
    """The step's arrow if it leads from one lane to another."""
    return step.arrow if step.arrow and step.arrow.source != step.arrow.target else None


def messages(step: TraceStep) -> list[str]:
    """The messages that a step receives, hands on and sends, each said once."""
    said: list[str] = []
    sends = step.sends
    if step.arrow and step.arrow.text:
        # A message that crosses two lanes in one step (a write that lands) is neither received nor sent here.
        verb = "receives" if step.arrow.target == step.lane else "delivers"
        said += [] if step.arrow.text in sends else [f"{verb} {step.arrow.text}"]
    return [one_line(each) for each in (*said, *(f"sends {text}" for text in sends))]


def change_words(change: Change) -> str:
    """`cell: before → after`, with a mark if it is ghost state."""
    return one_line(f"{'~' * change.ghost}{change.cell}: {change.before} → {change.after}")


def with_slots(trace: Trace) -> Iterator[tuple[TraceStep, tuple[SlotView, ...]]]:
    """Each step, and the slots before it."""
    before = trace.initial_slots
    for step in trace.steps:
        yield step, before
        before = step.slots


def slot_words(before: SlotView | None, after: SlotView) -> str:
    """`slot 0: victim, last written by room 0`, with `old → new` where one of the two has changed."""
    owner, writer = after.owner, _writer(after)
    if before and before.owner != owner:
        owner = f"{before.owner} → {owner}"
    if before and _writer(before) != writer:
        writer = f"{_writer(before)} → {writer}"
    written = "not written" if writer == "nobody" else f"last written by {writer}"
    return one_line(f"{after.name}: {owner}, {written}")


def _writer(slot: SlotView) -> str:
    return "nobody" if slot.writer == "-" else slot.writer


def slot_pairs(step: TraceStep, before: Sequence[SlotView]) -> list[tuple[SlotView | None, SlotView]]:
    """The step's slots, each with what it was before; none if the step changes no slot."""
    if tuple(before) == step.slots:
        return []
    known = {slot.name: slot for slot in before}
    return [(known.get(slot.name), slot) for slot in step.slots]


def has_ghosts(trace: Trace) -> bool:
    """Whether a step changes ghost state, so that its mark must be explained."""
    return any(change.ghost for step in trace.steps for change in step.changes)


def failure_words(violation: Violation) -> list[str]:
    """The false conjunct, and the values it was about."""
    values = ", ".join(f"{name} = {value}" for name, value in violation.values.items())
    return [one_line(line) for line in (f"✗ {violation.conjunct} is false", values) if line]


def loop_words(trace: Trace) -> str:
    """Which steps repeat for ever; empty if none do."""
    if trace.loop is None or trace.loop == len(trace):
        return ""
    first, last = trace.loop + 1, len(trace)
    return f"step {last} repeats for ever" if first == last else f"steps {first} to {last} repeat for ever"


def closing_words(trace: Trace) -> list[str]:
    """What is wrong at the end of a trace: the false conjunct, or how a promise stays pending."""
    if trace.violation and trace.kind == "fault":
        return [one_line(f"✗ {trace.violation.conjunct}")]
    if trace.violation:
        return failure_words(trace.violation)
    if trace.loop is None:
        return []
    looping = loop_words(trace)
    words = [f"↻ {looping}" if looping else "✗ the run may end here: no step is possible that has to happen"]
    if trace.unfair:
        words.append(one_line(f"need not happen, even if always possible: {', '.join(trace.unfair)}"))
    return words


def bounds_words(trace: Trace) -> list[str]:
    """What the trace's model is limited to, bound by bound."""
    words = [one_line(f"{name} {value}") for name, value in trace.bounds.items()]
    return [f"bounds: {words[0]}", *words[1:]] if words else []
