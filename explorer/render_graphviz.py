"""A trace as a drawing: a sequence diagram laid out here, drawn by Graphviz as SVG, PNG or PDF.

Graphviz has no sequence diagrams, so every node is pinned: a column for each lane, a row for each step, what the
step changes on the right of it, and beside that the slots where they change. Lengths are in points.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphviz  # pyright: ignore[reportMissingTypeStubs]

from ..models.model import SlotView
from ..protocol.language import DraincheckError
from .render_terminal import (
    LEGEND,
    arrow_of,
    bounds_words,
    change_words,
    failure_words,
    has_ghosts,
    headline,
    messages,
    one_line,
    slot_pairs,
    with_slots,
)
from .trace import Arrow, Trace, TraceStep

FORMATS = ("svg", "png", "pdf")

LANE = 108.0
"""From one lifeline to the next."""
LINE = 12.0
"""The height of a line of text."""
CHARACTER = 5.2
"""The width of a character of small text, on average."""
BOX = 32.0
"""The height of a step's box."""
SPACE = 10.0
"""Between rows."""
CHANGES = 250.0
"""The width of the column of changes."""
SLOTS = 190.0
"""The width of the column of slots."""

FONT = "Helvetica,Arial,sans-serif"
DARK, GREY, LINES, RED, BLUE, AMBER = "#1f2328", "#59636e", "#c4ccd4", "#b3261e", "#0b57a4", "#fff1c2"


class RenderError(DraincheckError):
    """A drawing cannot be made: no Graphviz on this system, or a format that is not offered."""


def dot_source(trace: Trace) -> str:
    """The drawing in Graphviz's language; it names its layout engine, so `dot -Tsvg` draws it too."""
    return _digraph(trace).source


def render(trace: Trace, path: Path) -> Path:
    """Writes the drawing in the format that the suffix of the path names, and returns the path.

    Raises RenderError for another suffix than .svg, .png and .pdf, and if Graphviz's `dot` is missing or fails.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        allowed = ", ".join(f".{each}" for each in FORMATS)
        raise RenderError(f"{path.name}: a drawing's name must end in one of {allowed}")
    try:
        drawing: bytes = _digraph(trace).pipe(format=suffix)
    except graphviz.ExecutableNotFound as missing:
        raise RenderError(
            f"{path.name}: drawing needs the program `dot`; install your system's Graphviz package "
            "(apt install graphviz, brew install graphviz). The Mermaid format needs nothing."
        ) from missing
    except graphviz.CalledProcessError as failed:
        raise RenderError(f"{path.name}: Graphviz failed: {failed}") from failed
    path.write_bytes(drawing)
    return path
