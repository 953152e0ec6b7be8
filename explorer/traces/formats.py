"""The formats of a trace, by name and by the suffix of a file. A further renderer is a further line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...protocol.language.errors import DraincheckError
from ..kept.writing import write_output
from .render_graphviz import dot_source, render
from .render_itf import itf
from .render_mermaid import mermaid
from .render_pytest import pytest_source
from .render_terminal import terminal_text
from .storage import dump
from .trace import Trace


class FormatError(DraincheckError):
    """A file whose name says no format."""


@dataclass(frozen=True)
class Format:
    """How files of a format end, and its text. Without one, Graphviz draws the file."""

    suffix: str
    text: Callable[[Trace], str] | None = None


FORMATS: dict[str, Format] = {
    "terminal": Format(".txt", terminal_text),
    "mermaid": Format(".mmd", mermaid),
    "dot": Format(".dot", dot_source),
    "svg": Format(".svg"),
    "png": Format(".png"),
    "pdf": Format(".pdf"),
    "itf": Format(".itf.json", itf),
    "pytest": Format(".py", pytest_source),
}
SAVED = Format(".json", dump)
"""A trace as `draincheck verify --save` writes it. Last of all: other formats end in .json, too."""


def save_as(trace: Trace, path: str | Path) -> Path:
    """Writes a trace into a file, in the format that its suffix says. Raises FormatError and WritingError."""
    target = Path(path)
    for each in (*FORMATS.values(), SAVED):
        if target.name.endswith(each.suffix):
            if each.text is None:
                return render(trace, target)
            write_output(target, each.text(trace).encode("utf-8", "replace"))
            return target
    known = ", ".join(each.suffix for each in (*FORMATS.values(), SAVED))
    raise FormatError(f"{target}: the suffix says no format; known are {known}")
