"""Curves of the risk as SVG, drawn by matplotlib: against the hold, and against the time until slots are used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...properties.deployment.risk import Uniform, risk
from ...protocol.language.errors import DraincheckError
from ..kept.writing import write_output
from .sizing_report import Estimate

POINTS = 200
"""Of a curve."""
SMALLEST = 1e-7
"""The lowest risk that is drawn."""


class PlotError(DraincheckError):
    """A plot cannot be drawn, since matplotlib is missing."""


def draw(found: Sequence[Estimate], path: Path) -> Path:
    """Writes the two curves with the simulated points and their intervals, and returns the path.

    Raises PlotError and WritingError.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(
            f"{path}: drawing needs matplotlib, which is not installed; "
            "install it with the extra: pip install 'draincheck[plots]'"
        ) from None
    settings: Any = {"svg.hashsalt": "draincheck", "svg.fonttype": "none"}  # the same file each time, text as text
    with matplotlib.rc_context(settings):  # pyright: ignore[reportUnknownMemberType]
        figure: Any = Figure(figsize=(11, 4.5), layout="constrained")
        figure.suptitle("lines: closed form; points: simulated, with their intervals", fontsize="small")
        _against_hold(figure.add_subplot(1, 2, 1), found)
        _against_reuse(figure.add_subplot(1, 2, 2), found)
        drawing = BytesIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    write_output(path, drawing.getvalue())
    return path


def _against_hold(axes: Any, found: Sequence[Estimate]) -> None:
    held = [estimate for estimate in found if estimate.asked.case == "held"]
    longest = max(estimate.asked.release.hold for estimate in held) or 1.0
    ends = [path.tail.longest for path in held[0].asked.release.paths if isinstance(path.tail, Uniform)]
    kinks = [end for end in ends if end < longest]
    _curve(axes, "held", held, _hold, np.sort([*np.linspace(0, longest, POINTS), *kinks]))
    axes.set(title="Slots held", xlabel="hold (s)", ylabel="risk of corruption for each abort")
    axes.set_yscale("log")
    axes.set_ylim(SMALLEST, 1.1)
    _finish(axes)


def _against_reuse(axes: Any, found: Sequence[Estimate]) -> None:
    axes.set(title="Slots freed at the abort", xlabel="mean time until they are used again (s)")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    for name, group in _freed(found).items():
        times = [estimate.asked.release.mean_reuse for estimate in group]
        _curve(axes, name, group, _reuse, np.geomspace(min(times) / 2, 2 * max(times), POINTS))
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.grid(alpha=0.3)
    if axes.has_data():
        axes.legend()


def _freed(found: Sequence[Estimate]) -> dict[str, list[Estimate]]:
    """The estimates of each curve against reuse, by its name; a time of 0 has no place on a logarithmic axis."""
    groups: dict[str, list[Estimate]] = {}
    for estimate in found:
        if estimate.asked.case != "held" and estimate.asked.release.mean_reuse > 0:
            groups.setdefault(estimate.asked.words.removeprefix("freed at abort, "), []).append(estimate)
    return groups


def _hold(estimate: Estimate, value: float | None = None) -> tuple[float, float]:
    """The hold of an estimate, or another one, and the risk with it."""
    release = estimate.asked.release
    hold = release.hold if value is None else value
    return hold, risk(replace(release, hold=hold))


def _reuse(estimate: Estimate, value: float | None = None) -> tuple[float, float]:
    """The same for the mean time until slots are used again."""
    release = estimate.asked.release
    reuse = release.mean_reuse if value is None else value
    return reuse, risk(replace(release, mean_reuse=reuse))


def _curve(
    axes: Any, name: str, group: Sequence[Estimate], at: Callable[..., tuple[float, float]], xs: NDArray[np.float64]
) -> None:
    """The closed form as a line over `xs`, the simulation as points with their intervals."""
    (line,) = axes.plot(xs, [at(group[0], float(x))[1] for x in xs], label=name)
    simulated = [estimate.corrupted / estimate.trials for estimate in group]
    below = [max(0.0, y - estimate.low) for y, estimate in zip(simulated, group, strict=True)]
    above = [max(0.0, estimate.high - y) for y, estimate in zip(simulated, group, strict=True)]
    places = [at(estimate)[0] for estimate in group]
    looks: Any = {"fmt": "o", "capsize": 3, "color": line.get_color()}
    axes.errorbar(places, simulated, yerr=[below, above], **looks)
