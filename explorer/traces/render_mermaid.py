"""A trace as a Mermaid sequence diagram, which GitHub draws in Markdown, in issues and in pull requests."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ...protocol.language import DraincheckError
from ...protocol.language.model import SlotView
from .trace import Trace, TraceStep
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

LIMIT = 50_000
"""GitHub draws no diagram of this many characters or more (Mermaid's `maxTextSize`)."""
LINE = 36
"""Characters in a line of a note; wider notes push the lifelines apart."""
BAND = 24
"""Characters in a line of a note over all lanes, for each lane."""
MOST_LINES = 24
"""Lines of a text; what is longer is cut, with a line that says so."""

_SPECIAL = re.compile(r"[\"#$%&;<>@\\^`{|}]")


class MermaidLimitError(DraincheckError):
    """The lanes alone exceed what Mermaid accepts."""


def mermaid(trace: Trace) -> str:
    """The source of a `sequenceDiagram`, below 50,000 characters.

    If the trace is too long for that, the diagram leaves out first what the steps change, then steps in the
    middle, and says so in a note. Raises MermaidLimitError if there is no room for a single step.
    """
    lanes = _Lanes(trace.lanes)
    blocks = [_block(trace, lanes, step, before, True) for step, before in with_slots(trace)]
    full = _assemble(trace, lanes, [], blocks)
    if len(full) < LIMIT:
        return full
    notes = [f"What each step changes is left out here: GitHub draws no diagram of {LIMIT:,} characters."]
    blocks = [_block(trace, lanes, step, before, False) for step, before in with_slots(trace)]
    brief = _assemble(trace, lanes, notes, blocks)
    return brief if len(brief) < LIMIT else _elided(trace, lanes, notes, blocks)


def escape(text: str) -> str:
    """The text in one line, with all that Mermaid or HTML could take as syntax as character codes.

    That includes `#` (`#35;`) and `;` (`#59;`), which begin a code and end a statement.
    """
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", one_line(text))


@dataclass(frozen=True)
class _Lanes:
    """The participants: their identifiers are opaque, since Mermaid takes words such as `end` for its own."""

    names: tuple[str, ...]

    def id(self, lane: str) -> str:
        """The participant of a lane."""
        return f"L{self.names.index(lane)}"

    def note(self, lane: str, lines: Iterable[str]) -> str:
        """A note over one lane."""
        return f"Note over {self.id(lane)}: {_text(lines, LINE)}"

    def band(self, lines: Iterable[str]) -> str:
        """A note over all lanes."""
        ends = "L0" if len(self.names) < 2 else f"L0,L{len(self.names) - 1}"
        return f"Note over {ends}: {_text(lines, max(LINE, BAND * len(self.names)))}"

    def declared(self) -> list[str]:
        """The participants' declarations; a trace without steps has no lane, and a diagram needs one."""
        names = self.names or ("the initial state",)
        return [f"participant L{number} as {_text([name], 14)}" for number, name in enumerate(names)]


def _text(lines: Iterable[str], width: int) -> str:
    """The lines, wrapped and escaped, as one statement's text."""
    wrapped = [part for line in lines for part in textwrap.wrap(one_line(line), width)]
    if len(wrapped) > MOST_LINES:
        left_out = len(wrapped) - MOST_LINES + 1
        wrapped[MOST_LINES - 1 :] = [f"({left_out} more lines are left out)"]
    return "<br/>".join(map(escape, wrapped)) or "-"


def _block(trace: Trace, lanes: _Lanes, step: TraceStep, before: Sequence[SlotView], changes: bool) -> list[str]:
    """The statements of one step."""
    title = f"{step.number}. {step.label}"
    said = [*messages(step), *([step.choice] if step.choice else [])]
    details = [change_words(each) for each in step.changes] if changes else []
    arrow = arrow_of(step)
    lines: list[str] = []
    if step.number - 1 == trace.loop:
        lines.append(lanes.band([f"↻ from here on, {loop_words(trace)}"]))
    if arrow:
        lines.append(f"{lanes.id(arrow.source)}-){lanes.id(arrow.target)}: {_text([title, *said], LINE)}")
        if details:
            lines.append(lanes.note(step.lane, details))
    else:
        lines.append(lanes.note(step.lane, [title, *said, *details]))
    slots = [slot_words(was, slot) for was, slot in slot_pairs(step, before)]
    if slots:
        lines.append(lanes.band(slots))
    if trace.violation and step is trace.steps[-1]:
        lines.append(lanes.band(closing_words(trace)))
        # Translucent: GitHub draws the same diagram on white and on black.
        return ["rect rgba(255, 0, 0, 0.15)", *(f"    {line}" for line in lines), "end"]
    return lines


def _assemble(trace: Trace, lanes: _Lanes, notes: Sequence[str], blocks: Sequence[Sequence[str]]) -> str:
    head = [headline(trace), trace.sentence, *([LEGEND] if has_ghosts(trace) else []), *notes]
    foot = [f"still on its way: {each}" for each in trace.pending]
    foot.append(SEPARATOR.join(bounds_words(trace)))
    statements = [*lanes.declared(), lanes.band(head), *chain.from_iterable(blocks)]
    if trace.loop is not None or (trace.violation and not blocks):
        statements.append(lanes.band(closing_words(trace)))
    if any(foot):
        statements.append(lanes.band(foot))
    return "\n".join(["sequenceDiagram", *(f"    {statement}" for statement in statements), ""])


def _elided(trace: Trace, lanes: _Lanes, notes: Sequence[str], blocks: Sequence[list[str]]) -> str:
    """As many of the first and last steps as fit, the last ones first: the failure is there."""

    def source(kept: int) -> str:
        first, last = kept // 2, kept - kept // 2
        gap = lanes.band([f"... {len(blocks) - kept:,} steps are left out here ..."])
        return _assemble(trace, lanes, notes, [*blocks[:first], [gap], *blocks[len(blocks) - last :]])

    kept = bisect_right(range(1, len(blocks)), LIMIT - 1, key=lambda kept: len(source(kept)))
    if not kept:
        raise MermaidLimitError(
            f"{trace.model}: its lanes and one step alone are more than the {LIMIT:,} characters that GitHub "
            "draws with Mermaid; use another format"
        )
    return source(kept)
