"""A trace as a sequence diagram for terminals.

A lane is a column with a lifeline; a step is a line, with a dot where its thread is. Below it stands what the
step changes, and nothing else. Where the lanes do not fit side by side, the steps become a plain list.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from rich.text import Text

from ...protocol.language.model import SlotView
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
    loop_words,
    messages,
    one_line,
    slot_pairs,
    slot_words,
    with_slots,
)

WIDTH = 100
GAP = 1
"""Blank characters between headings, at least."""
WIDEST = 22
"""A column never gets wider: arrows across an empty half of the screen are harder to follow."""

Piece = tuple[str, str]
"""A text, and its rich style."""


def terminal(trace: Trace, width: int = WIDTH) -> Text:
    """The diagram as styled text: `console.print(terminal(trace, console.width))`.

    No line is longer than `width` (words that are longer than a line are broken); where it has no room for
    the lanes, the steps become a list.
    """
    grid = _grid(trace, width)
    blocks = [_head(trace, width)]
    if grid:
        blocks.append(grid.headings())
    for step, before in with_slots(trace):
        failing = trace.violation is not None and step is trace.steps[-1]
        style = "bold red" if failing else "bold"
        what = [grid.row(step, style)] if grid else _listed(step, style, width, _digits(trace))
        pieces = [] if grid else _arrow_in_words(step)
        if step.number - 1 == trace.loop:
            blocks.append(_flow([(f"↻ from here on, {loop_words(trace)}:", "bold yellow")], width, 0))
        blocks.append([*what, *_details(pieces, step, before, width, _digits(trace) + 2)])
    blocks.append(_foot(trace, width))
    lines = list(chain.from_iterable(blocks))
    for line in lines:
        line.rstrip()
    text = Text("\n").join(lines)
    text.no_wrap, text.overflow = True, "ignore"
    return text


def terminal_text(trace: Trace, width: int = WIDTH) -> str:
    """The same diagram without colours, for files and logs."""
    return terminal(trace, width).plain + "\n"


# Head, foot and details.


def _head(trace: Trace, width: int) -> list[Text]:
    style = "bold red" if trace.kind != "witness" else "bold green"
    lines = [*_flow([(headline(trace), style)], width, 0), *_flow([(one_line(trace.sentence), "")], width, 0)]
    if trace.begins:
        first, *more = trace.begins
        lines += _flow([(f"begins with {first}", "dim"), *((each, "dim") for each in more)], width, 0)
    if has_ghosts(trace):
        lines += _flow([(LEGEND, "dim")], width, 0)
    return [*lines, Text()]


def _foot(trace: Trace, width: int) -> list[Text]:
    lines = [Text()]
    lines += _flow([(line, "bold red") for line in closing_words(trace)], width, 0)
    if trace.pending:
        first, *more = (one_line(each) for each in trace.pending)
        lines += _flow([(f"still on their way: {first}", ""), *((each, "") for each in more)], width, 0)
    return [*lines, *_flow([(bound, "dim") for bound in bounds_words(trace)], width, 0)]


def _details(
    first: Sequence[Piece], step: TraceStep, before: Sequence[SlotView], width: int, indent: int
) -> list[Text]:
    pieces = [*first, *((text, "cyan") for text in messages(step))]
    if step.choice:
        pieces.append((one_line(step.choice), "dim"))
    pieces += [(change_words(each), "dim italic" if each.ghost else "dim") for each in step.changes]
    slots: list[Piece] = [
        (slot_words(was, slot), "dim" if was == slot else "bold yellow") for was, slot in slot_pairs(step, before)
    ]
    return [*_flow(pieces, width, indent), *_flow(slots, width, indent)]


def _flow(pieces: Sequence[Piece], width: int, indent: int) -> list[Text]:
    """The pieces in lines, with dots between them; a piece is broken only if it is longer than a line."""
    room = max(width - indent, 10)
    lines: list[Text] = []
    for text, style in pieces:
        for number, part in enumerate(textwrap.wrap(text, room, break_on_hyphens=False)):
            if number == 0 and lines and len(lines[-1]) + len(SEPARATOR) + len(part) <= room + indent:
                lines[-1].append(SEPARATOR, "dim").append(part, style)
            else:
                lines.append(Text(" " * indent).append(part, style))
    return lines


def _listed(step: TraceStep, style: str, width: int, digits: int) -> list[Text]:
    return _flow([(f"{step.number:>{digits}}. {one_line(step.lane)}: {one_line(step.label)}", style)], width, 0)


def _arrow_in_words(step: TraceStep) -> list[Piece]:
    arrow = arrow_of(step)
    return [(one_line(f"{arrow.source} ──▶ {arrow.target}"), "cyan")] if arrow else []


def _digits(trace: Trace) -> int:
    return max(2, len(str(len(trace))))


# The diagram.


class _Line:
    """A line of characters with styles, written at will."""

    def __init__(self, width: int) -> None:
        self._cells: list[Piece] = [(" ", "")] * width

    def put(self, at: int, text: str, style: str) -> None:
        """Writes over what is there."""
        for offset, char in enumerate(text):
            self._cells[at + offset] = char, style

    def holds(self, at: int) -> str:
        """The character at a place."""
        return self._cells[at][0]

    def text(self) -> Text:
        """The line for rich."""
        line = Text()
        for style, run in groupby(self._cells, key=lambda cell: cell[1]):
            line.append("".join(char for char, _ in run), style)
        return line


@dataclass(frozen=True)
class _Grid:
    """Where everything stands: the middle of each lane's column, its heading, and the room for numbers."""

    width: int
    digits: int
    middles: dict[str, int]
    titles: dict[str, list[str]]

    def headings(self) -> list[Text]:
        """The names of the lanes above their lifelines, aligned at the bottom."""
        height = max((len(title) for title in self.titles.values()), default=0)
        lines = [_Line(self.width) for _ in range(height)]
        for lane, title in self.titles.items():
            for line, word in zip(lines[height - len(title) :], title, strict=True):
                line.put(self.middles[lane] - len(word) // 2, word, "bold")
        return [line.text() for line in lines]

    def row(self, step: TraceStep, style: str) -> Text:
        """The line of a step: its number, the lifelines, its arrow, a dot in its lane, and what it does."""
        line = _Line(self.width)
        line.put(0, f"{step.number:>{self.digits}}", style)
        for middle in self.middles.values():
            line.put(middle, "│", "dim")
        arrow = arrow_of(step)
        if arrow:
            self._draw(line, arrow)
        line.put(self.middles[step.lane], "●", style)
        at = self.place(step)
        line.put(at - 1, f" {one_line(step.label)} "[: self.width - at + 1], style)
        return line.text()

    def _draw(self, line: _Line, arrow: Arrow) -> None:
        source, target = self.middles[arrow.source], self.middles[arrow.target]
        step = 1 if source < target else -1
        line.put(source, "├" if step > 0 else "┤", "cyan")
        for at in range(source + step, target, step):
            line.put(at, "┼" if line.holds(at) == "│" else "─", "cyan")
        line.put(target - step, "▶" if step > 0 else "◀", "cyan")

    def place(self, step: TraceStep) -> int:
        """Where the label of a step begins; -1 if there is no room for it."""
        label, own = len(one_line(step.label)), self.middles[step.lane]
        arrow = arrow_of(step)
        ends = (self.middles[arrow.source], self.middles[arrow.target]) if arrow else (own, own)
        low, high = min(ends), max(ends)
        inside = low + (high - low - label) // 2 if high - low >= label + 8 else -1
        right = high + 2 if high + 2 + label <= self.width else -1
        left = low - 1 - label if low - 2 - label > self.digits else -1
        near, far = (right, left) if own == high else (left, right)
        # What a thread does to another lane reads best on the arrow, what it does on receipt at its own end.
        order = (inside, near, far) if arrow and arrow.source == step.lane else (near, inside, far)
        return next((at for at in order if at >= 0), -1)


def _grid(trace: Trace, width: int) -> _Grid | None:
    """The grid that fits the width, or None."""
    least = {lane: max(map(len, one_line(lane).split()), default=1) for lane in trace.lanes}
    digits = _digits(trace)
    spare = width - digits - sum(least.values()) - GAP * (len(least) + 1)
    if not least or spare < 0:
        return None
    middles: dict[str, int] = {}
    titles: dict[str, list[str]] = {}
    at = digits + 2 * GAP
    for lane, narrow in least.items():
        room = max(narrow, min(narrow + spare // len(least), WIDEST))
        middles[lane] = at + room // 2
        titles[lane] = textwrap.wrap(one_line(lane), room, break_on_hyphens=False)
        at += room + GAP
    grid = _Grid(width, digits, middles, titles)
    return grid if all(grid.place(step) >= 0 for step in trace.steps) else None
