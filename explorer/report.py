"""Results for people and for programs: the verdict table, and one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from .calibration import Cell, backend_of, release_of, releases
from .history import Chapter
from .verify import EXPLANATION, Row, Run, Verdict

FORMAT = "draincheck-verify"
VERSION = 1

STYLE: Mapping[Verdict, str] = {
    Verdict.CORRUPTS: "bold red",
    Verdict.LEAKS: "bold magenta",
    Verdict.DELAYS: "dark_orange",
    Verdict.CONDITIONAL: "yellow",
    Verdict.UNDETERMINED: "magenta",
    Verdict.SAFE: "green",
}
"""How a verdict looks in a terminal."""


def table(rows: Sequence[Row]) -> Table:
    """Profile x scenario x verdict x states x length of the shortest trace, and the run without timer."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("profile", "scenario", "verdict", "property", "states", "trace", "release timer off"):
        result.add_column(heading, justify="right" if heading in ("states", "trace") else "left", no_wrap=True)
    for row in rows:
        result.add_row(
            Text(row.profile),
            Text(row.scenario),
            _verdicts(row),
            row.subject or "-",
            f"{row.run.states:,}{'+' * bool(_cut_short(row.run))}",
            str(len(row.trace)) if row.trace else "-",
            _without_timer(row),
        )
    return result


def _verdicts(row: Row) -> Text:
    """The verdict, and every other class that was found to apply."""
    classes = dict.fromkeys((row.verdict, *(finding.verdict for finding in row.findings)))
    return Text(", ").join(Text(verdict, style=STYLE[verdict]) for verdict in classes)


def _cut_short(run: Run) -> str:
    """Why a search ended before its time; a violation is a reason to end."""
    return "" if run.reason == "violation found" else run.reason


def _without_timer(row: Row) -> str:
    if row.without_timer:
        return f"{row.without_timer.verdict}, {row.without_timer.states:,} states"
    return "as shown" if row.run.bounds.get("release timer") == "off" else "-"


def legend(rows: Sequence[Row]) -> list[str]:
    """What the verdicts in the table mean, within which bounds, and what is doubtful about them."""
    lines = [f"{verdict}: {EXPLANATION[verdict]}" for verdict in Verdict if any(row.verdict is verdict for row in rows)]
    lines += [f"Bounds: {bounds}" for bounds in dict.fromkeys(_bounds_text(row) for row in rows)]
    lines += [f"{row.profile} / {row.scenario}: {reason}" for row in rows for reason in row.reasons]
    lines += [
        f"{row.profile} / {row.scenario}: not all states were counted (+): {_cut_short(row.run)}"
        for row in rows
        if row.trace and _cut_short(row.run)
    ]
    lines += [
        f"{row.profile} / {row.scenario}: promises take every step that stays possible to happen some time, "
        f"but for those of: {', '.join(row.unfair) or 'no action'}"
        for row in rows
        if row.unfair is not None
    ]
    assumed = {(row.profile, name): value for row in rows for name, value in row.assumed.items()}
    lines += [
        f"{row.profile} / {row.scenario}: {each.subject} fails after {len(each.trace)} steps: "
        "other properties rest on it, though by itself it loses nothing"
        for row in rows
        for each in row.weaknesses
    ]
    lines += [f"{profile}: {name} is unknown and taken as {value}" for (profile, name), value in assumed.items()]
    stored = sum(row.stored for row in rows)
    if stored:
        lines.append(
            f"{stored} of {len(rows)} rows are results of an earlier run that are still valid: same model, knobs, "
            "bounds and code (--no-store searches again)"
        )
    return lines


def _bounds_text(row: Row) -> str:
    return f"{row.scenario}: {', '.join(f'{name} {value}' for name, value in row.run.bounds.items())}"


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """The rows as one JSON document; docs/json.md describes it."""
    return {"format": FORMAT, "version": VERSION, "rows": [_row(row) for row in rows]}


def _row(row: Row) -> dict[str, Any]:
    return {
        "profile": row.profile,
        "scenario": row.scenario,
        "verdict": str(row.verdict),
        "property": row.subject or None,
        "states": row.run.states,
        "transitions": row.run.transitions,
        "depth": row.run.depth,
        "trace_length": len(row.trace) if row.trace else None,
        "seconds": round(row.seconds, 6),
        "bounds": dict(row.run.bounds),
        "findings": [
            {"verdict": str(each.verdict), "property": each.subject, "trace_length": len(each.trace)}
            for each in row.findings
        ],
        "complete": row.run.complete,
        "reasons": list(row.reasons),
        "assumed": dict(row.assumed),
        "unfair": None if row.unfair is None else list(row.unfair),
        "counts": dict(row.run.counts),
        "hits": dict(row.run.hits),
        "without_timer": _run(row.without_timer),
        "trace": [step.label for step in row.trace.steps] if row.trace else None,
        "weaknesses": [{"property": each.subject, "trace_length": len(each.trace)} for each in row.weaknesses],
        "stored": row.stored,
    }


def _run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "verdict": str(run.verdict),
        "states": run.states,
        "transitions": run.transitions,
        "depth": run.depth,
        "seconds": round(run.seconds, 6),
        "bounds": dict(run.bounds),
        "counts": dict(run.counts),
        "hits": dict(run.hits),
    }


def history_table(chapters: Sequence[Chapter]) -> Table:
    """Change x pull requests x the property that fails without it x verdict x length of the shortest trace."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("change", "pull requests", "without it fails", "verdict", "trace"):
        result.add_column(heading, justify="right" if heading == "trace" else "left")
    for chapter in chapters:
        change = chapter.change
        numbers = " ".join(f"#{number}" for number in change.prs)
        if change.untold:
            result.add_row(Text(change.name), numbers, Text(f"not told: {change.untold}", style="dim"), "-", "-")
            continue
        failing = ", ".join(chapter.broken) or "nothing"
        result.add_row(
            Text(change.name),
            numbers,
            Text(failing if chapter.as_said else f"{failing}; expected: {change.property} alone, and nothing with it"),
            Text(chapter.verdict, style=STYLE[chapter.verdict]) if chapter.verdict else "-",
            str(len(chapter.trace)) if chapter.trace else "-",
        )
    return result


def history_document(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """The history as one JSON document; docs/json.md describes it."""
    rows = [
        {
            "change": each.change.name,
            "prs": each.change.prs,
            "profile": each.change.base or None,
            "without": each.change.without,
            "scenario": each.change.scenario or None,
            "property": each.change.property or None,
            "holds_with": each.holds if not each.change.untold else None,
            "broken_without": list(each.broken),
            "broken_with_and_without": list(each.standing),
            "given": each.change.given,
            "timer": each.change.timer if not each.change.untold else None,
            "verdict": str(each.verdict) if each.verdict else None,
            "trace_length": len(each.trace) if each.trace else None,
            "untold": each.change.untold or None,
        }
        for each in chapters
    ]
    return {"format": "draincheck-history", "version": VERSION, "rows": rows}


def calibration_table(cells: Sequence[Cell]) -> Table:
    """Bug x release: the backends in which it is found, each with the length of its trace; - where it is not."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    columns = releases(cells)
    for heading in ("bug", "", "scenario", "property", *columns):
        result.add_column(heading, no_wrap=True)
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.bug.id, cell.bug.name), []).append(cell)
    for (number, name), own in rows.items():
        shown = [_release_words([cell for cell in own if release_of(cell) == release]) for release in columns]
        result.add_row(number, Text(name), own[0].bug.scenario, own[0].bug.property, *shown)
    return result


def _release_words(cells: Sequence[Cell]) -> Text:
    """What the cells of one release say; what is not as the releases are known to be is marked."""
    words = [_cell_words(cell, alone=len(cells) == 1) for cell in cells if cell.found is not None or not cell.agrees]
    style = "" if all(cell.accounted_for for cell in cells) else "bold red"
    return Text(", ".join(words) or ("-" if cells else ""), style=style)


def _cell_words(cell: Cell, *, alone: bool) -> str:
    backend = "" if alone else backend_of(cell) + " "
    found = "unknown" if not cell.known else "not found" if cell.found is None else str(cell.found)
    return f"{backend}{found}{'' if cell.agrees else ' *'}"


def calibration_notes(cells: Sequence[Cell]) -> list[str]:
    """What the marks in the table mean."""
    lines = ["Numbers are steps of the shortest trace; - means that the bug is not found, and is not expected."]
    for cell in cells:
        if not cell.agrees:
            reason = cell.differs or "not accounted for"
            lines.append(f"* {cell.bug.id}, {cell.profile}: known was that it {cell.expected}; {reason}")
    return lines


def calibration_document(cells: Sequence[Cell]) -> dict[str, Any]:
    """The calibration as one JSON document; docs/json.md describes it."""
    rows = [
        {
            "id": each.bug.id,
            "bug": each.bug.name,
            "profile": each.profile,
            "scenario": each.bug.scenario,
            "property": each.bug.property,
            "given": each.bug.given,
            "expected": each.expected,
            "found": each.found is not None if each.known else None,
            "trace_length": each.found,
            "agrees": each.agrees,
            "differs": each.differs or None,
        }
        for each in cells
    ]
    return {"format": "draincheck-calibration", "version": VERSION, "rows": rows}
