"""A trace as a drawing: a sequence diagram laid out here, drawn by Graphviz as SVG, PNG or PDF.

Graphviz has no sequence diagrams, so every node is pinned: a column for each lane, a row for each step, what
the step changes on the right of it, and beside that the slots where they change. Lengths are in points.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import graphviz  # pyright: ignore[reportMissingTypeStubs]

from ...protocol.language import DraincheckError
from ...protocol.language.model import SlotView
from ..kept.writing import write_output
from .trace import Arrow, Trace, TraceStep
from .words import (
    LEGEND,
    SEPARATOR,
    arrow_of,
    bounds_words,
    change_words,
    closing_words,
    has_ghosts,
    headline,
    messages,
    one_line,
    slot_pairs,
    with_slots,
)

FORMATS = ("svg", "png", "pdf")

MIN_LANE = 90.0
"""From one lifeline to the next, at least."""
SHORTEST_ARROW = 45.0
"""What is seen, at least, of an arrow between a step's box and the next lifeline."""
LINE = 12.0
"""The height of a line of small text."""
CHARACTER = 5.2
"""The width of a character of small text, a little more than on average."""
BOLD_CHARACTER = 6.2
BOX = 32.0
"""The height of a step's box."""
SPACE = 10.0
"""Between things."""
CHANGES = 250.0
"""The width of the column of changes."""
CELL = 16.0
"""The height of a line of the slot map."""
CELLS = (50, 60, 80)
"""The widths of the columns of the slot map, at least."""
WRAP = 150
"""Characters in a line of the head and foot."""

FONT = "Helvetica,Arial,sans-serif"
DARK, GREY, RULE, PALE, WHITE = "#1f2328", "#59636e", "#c4ccd4", "#eef2f6", "#ffffff"
BLUE, AMBER, RED, PINK = "#0b57a4", "#fff1c2", "#b3261e", "#ffdedb"


class RenderError(DraincheckError):
    """A drawing cannot be made: Graphviz is missing or fails, or the format is not offered."""


def dot_source(trace: Trace) -> str:
    """The drawing in Graphviz's language. It names its layout engine, so that `dot -Tsvg` draws it."""
    return _draw(trace).source


def render(trace: Trace, path: Path) -> Path:
    """Writes the drawing in the format that the path's suffix names (.svg, .png, .pdf), and returns the path.

    Raises RenderError for another suffix, or if the program `dot` is missing or fails, and WritingError.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        allowed = ", ".join(f".{each}" for each in FORMATS)
        raise RenderError(f"{path.name}: the name of a drawing must end in one of {allowed}")
    try:
        drawing: bytes = _draw(trace).pipe(format=suffix)
    except graphviz.ExecutableNotFound as missing:
        raise RenderError(
            f"{path.name}: drawing needs the program `dot`; install the Graphviz package of your system "
            "(apt install graphviz, brew install graphviz), or take the Mermaid format, which needs nothing"
        ) from missing
    except graphviz.CalledProcessError as failed:
        raise RenderError(f"{path.name}: Graphviz could not draw it: {failed}") from failed
    write_output(path, drawing)
    return path


def _draw(trace: Trace) -> graphviz.Digraph:
    page = _Page(trace)
    page.title()
    page.heads()
    for step, before in with_slots(trace):
        page.row(step, before)
    page.lifelines()
    page.foot()
    return page.graph


@dataclass(frozen=True)
class _Box:
    """The label of a step: the action in bold, its parameters below."""

    action: str
    parameters: str

    @classmethod
    def of(cls, step: TraceStep) -> _Box:
        """The label of a step, `action(parameters)` in two lines."""
        action, _, parameters = one_line(step.label).removesuffix(")").partition("(")
        return cls(f"{step.number}. {action}", parameters)

    @property
    def width(self) -> float:
        """How wide the box must be, by a generous estimate."""
        return BOLD_CHARACTER * max(len(self.action), len(self.parameters)) + 12

    @property
    def label(self) -> str:
        """The label in Graphviz's HTML."""
        lines = [_styled(self.action, 10, bold=True)]
        if self.parameters:
            lines.append(_styled(self.parameters, 9))
        return f"<{'<BR/>'.join(lines)}>"


class _Page:
    """The drawing while it grows downwards; `y` is where the next thing begins."""

    def __init__(self, trace: Trace) -> None:
        widest = max((_Box.of(step).width for step in trace.steps), default=0.0)
        self._trace = trace
        self._lane = max(MIN_LANE, widest / 2 + SHORTEST_ARROW)
        self._x = {lane: self._lane * number for number, lane in enumerate(trace.lanes)}
        self._left = -max(widest, self._lane) / 2
        self._changes_at = max(self._x.values(), default=0.0) - self._left + 2 * SPACE
        self._slots_at = self._changes_at + CHANGES + SPACE
        self._right = self._slots_at + sum(CELLS)
        self._y = 0.0
        self.graph = graphviz.Digraph(
            "trace",
            engine="neato",
            graph_attr={
                "layout": "neato",
                "inputscale": "72",
                "splines": "line",
                "outputorder": "edgesfirst",
                "pad": "0.3",
            },
            node_attr={"fontname": FONT, "fontsize": "10", "fontcolor": DARK, "shape": "plain"},
            edge_attr={"arrowsize": "0.7"},
        )

    def title(self) -> None:
        """What the drawing shows."""
        self._block("title", [headline(self._trace)], 16, DARK, bold=True)
        self._block("sentence", [self._trace.sentence], 12, DARK)
        if has_ghosts(self._trace):
            self._block("legend", [LEGEND], 10, GREY)
        self._y -= SPACE / 2

    def heads(self) -> None:
        """The heads of the columns."""
        height = 3 * LINE
        middle = self._y - height / 2
        for number, (lane, x) in enumerate(self._x.items()):
            lines = [_styled(part, 10, bold=True) for part in textwrap.wrap(one_line(lane), 14)]
            size = (self._lane - SPACE, height)
            self._box(f"lane{number}", x, middle, f"<{'<BR/>'.join(lines)}>", size, "filled", PALE, RULE)
        for text, at in (("what changes", self._changes_at), ("memory", self._slots_at)):
            self._column(f"{text} head", at, middle, CHANGES, [_styled(text, 10, GREY, bold=True)])
        self._y -= height + SPACE

    def row(self, step: TraceStep, before: Sequence[SlotView]) -> None:
        """A step: its box in its lane, its arrow, what it changes, and the slots if they change."""
        failing = self._trace.violation is not None and step is self._trace.steps[-1]
        said = self._on_arrow(step)
        changes = self._changes(step, [] if said else messages(step))
        slots = slot_pairs(step, before)
        table = CELL * (len(slots) + 1) if slots else 0.0
        height = max(BOX, 2 * LINE * len(said) + SPACE, LINE * len(changes), table)
        middle = self._y - height / 2
        self._action(step, middle, failing)
        if arrow := arrow_of(step):
            self._arrow(step, arrow, middle, said, RED if failing else BLUE)
        if changes:
            self._column(f"changes{step.number}", self._changes_at, middle, CHANGES, changes)
        if slots:
            self._slots(step, slots, middle, PINK if failing else AMBER)
        self._y -= height + SPACE / 2
        self._rule(f"rule{step.number}")
        self._y -= SPACE / 2

    def lifelines(self) -> None:
        """A line below each head, down to here."""
        for number, x in enumerate(self._x.values()):
            self._point(f"end{number}", x, self._y)
            self._edge(f"lane{number}", f"end{number}", RULE, "dashed", "none")
        self._y -= SPACE

    def foot(self) -> None:
        """What is to be said about the last state."""
        if closing := closing_words(self._trace):
            self._block("closing", closing, 13, RED, bold=True)
        rest = [f"still on its way: {each}" for each in self._trace.pending]
        rest.append(SEPARATOR.join(bounds_words(self._trace)))
        if any(rest):
            self._block("rest", rest, 10, GREY)

    # The parts of a row.

    def _action(self, step: TraceStep, y: float, failing: bool) -> None:
        box = _Box.of(step)
        repeats = self._trace.loop is not None and step.number > self._trace.loop
        fill, color = (PINK, RED) if failing else (AMBER if repeats else WHITE, DARK)
        hover = graphviz.escape(one_line(f"{step.label}: {step.sentence}"))
        size, style = (box.width, BOX), "rounded,filled"
        self._box(f"step{step.number}", self._x[step.lane], y, box.label, size, style, fill, color, hover)

    def _arrow(self, step: TraceStep, arrow: Arrow, y: float, said: Sequence[str], color: str) -> None:
        box, other = f"step{step.number}", f"other{step.number}"
        outgoing = arrow.source == step.lane
        self._point(other, self._x[arrow.target if outgoing else arrow.source], y)
        self._edge(*((box, other) if outgoing else (other, box)), color, "solid", "normal")
        if said:
            low, high = self._span(step, arrow)
            label = f"<{'<BR/>'.join(_styled(line, 9, color) for line in said)}>"
            above = y + LINE * len(said) / 2 + 3
            self._box(f"text{step.number}", (low + high) / 2, above, label, (0, 0), "filled", WHITE, WHITE)

    def _span(self, step: TraceStep, arrow: Arrow) -> tuple[float, float]:
        """What is seen of an arrow, between the step's box and the other lifeline."""
        own, half = self._x[step.lane], _Box.of(step).width / 2
        other = self._x[arrow.target if arrow.source == step.lane else arrow.source]
        return (own + half, other) if own < other else (other, own - half)

    def _on_arrow(self, step: TraceStep) -> list[str]:
        """The step's messages as one or two lines above its arrow; none if they do not fit there."""
        arrow = arrow_of(step)
        if not arrow:
            return []
        low, high = self._span(step, arrow)
        room = max(int((high - low - SPACE) / CHARACTER), 1)
        lines = [part for text in messages(step) for part in textwrap.wrap(text, room)]
        return lines if len(lines) <= 2 else []

    def _changes(self, step: TraceStep, said: Sequence[str]) -> list[str]:
        """The lines of the column of changes."""
        texts = [(text, BLUE, False) for text in said]
        if step.choice:
            texts.append((one_line(step.choice), GREY, False))
        texts += [(change_words(change), DARK, change.ghost) for change in step.changes]
        return [
            _styled(part, 10, color, italic=italic)
            for text, color, italic in texts
            for part in textwrap.wrap(text, int(CHANGES / CHARACTER), subsequent_indent="  ")
        ]

    def _slots(self, step: TraceStep, pairs: Iterable[tuple[SlotView | None, SlotView]], y: float, mark: str) -> None:
        """The slot map; what has changed since the one above is marked."""
        rows = [tuple((_styled(text, 10, GREY), WHITE) for text in ("slot", "owner", "last writer"))]
        for was, slot in pairs:
            owner = mark if was and was.owner != slot.owner else WHITE
            writer = mark if was and was.writer != slot.writer else WHITE
            shown = zip((slot.name, slot.owner, slot.writer), (WHITE, owner, writer), strict=True)
            rows.append(tuple((_styled(one_line(text), 10), color) for text, color in shown))
        cells = "".join(f"<TR>{''.join(map(_cell, row, CELLS))}</TR>" for row in rows)
        style = f'BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="1" COLOR="{RULE}"'
        label = f"<<TABLE {style}>{cells}</TABLE>>"
        self._pin(f"slots{step.number}", self._slots_at + sum(CELLS) / 2, y, label, {})

    # Primitives.

    def _pin(self, name: str, x: float, y: float, label: str, attributes: dict[str, str]) -> None:
        self.graph.node(name, label, pos=f"{x:.1f},{y:.1f}!", **attributes)  # pyright: ignore[reportUnknownMemberType]

    def _edge(self, tail: str, head: str, color: str, style: str, arrowhead: str) -> None:
        self.graph.edge(tail, head, color=color, style=style, arrowhead=arrowhead)  # pyright: ignore[reportUnknownMemberType]

    def _point(self, name: str, x: float, y: float) -> None:
        self._pin(name, x, y, "", {"shape": "point", "width": "0.01", "style": "invis"})

    def _box(
        self,
        name: str,
        x: float,
        y: float,
        label: str,
        size: tuple[float, float],
        style: str,
        fill: str,
        color: str,
        tooltip: str = "",
    ) -> None:
        width, height = (f"{length / 72:.2f}" for length in size)
        shape = {"shape": "box", "width": width, "height": height, "margin": "0.02", "style": style}
        self._pin(name, x, y, label, {**shape, "fillcolor": fill, "color": color, "tooltip": tooltip or " "})

    def _rule(self, name: str) -> None:
        """A faint line between two rows, which leads the eye from a step to what it changes."""
        self._point(f"{name}left", self._left, self._y)
        self._point(f"{name}right", self._right, self._y)
        self._edge(f"{name}left", f"{name}right", PALE, "solid", "none")

    def _column(self, name: str, left: float, y: float, width: float, lines: Iterable[str]) -> None:
        """Lines of text, aligned on the left."""
        rows = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines)
        table = f'<TABLE BORDER="0" CELLPADDING="0" CELLSPACING="0" WIDTH="{width:.0f}">{rows}</TABLE>'
        self._pin(name, left + width / 2, y, f"<{table}>", {})

    def _block(self, name: str, texts: Iterable[str], points: int, color: str, bold: bool = False) -> None:
        """Text over the whole width, and below it the next thing."""
        parts = [part for text in texts for part in textwrap.wrap(one_line(text), WRAP)]
        height = 1.25 * points * len(parts)
        lines = [_styled(part, points, color, bold=bold) for part in parts]
        self._column(name, self._left, self._y - height / 2, self._right - self._left, lines)
        self._y -= height + SPACE / 2


def _cell(content: tuple[str, str], width: int) -> str:
    text, color = content
    return f'<TD WIDTH="{width}" BGCOLOR="{color}">{text}</TD>'


def _styled(text: str, points: int, color: str = DARK, *, bold: bool = False, italic: bool = False) -> str:
    """Text for an HTML-like label, in which Graphviz collapses blanks and still reads backslash escapes."""
    shown = html.escape(text or " ").replace("\\", "\\\\").replace("  ", "&#160;&#160;")
    shown = f"<B>{shown}</B>" if bold else shown
    shown = f"<I>{shown}</I>" if italic else shown
    return f'<FONT POINT-SIZE="{points}" COLOR="{color}">{shown}</FONT>'
