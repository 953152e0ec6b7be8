"""Results for people and for programs: the verdict table, and one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, cast

from rich.table import Table
from rich.text import Text

from ...models.drain.closed import APART, ONE_STEP, STATUS_UPDATE
from ..terminal.console import text_cell
from ..verdicts.calibration import Cell, backend_of, release_of, releases
from ..verdicts.history import Chapter
from ..verdicts.status_update import assumption, words
from ..verdicts.verify import EXPLANATION, Held, Row, Run, Verdict

FORMAT = "draincheck-verify"
VERSION = 1

STYLE: Mapping[Verdict, str] = {
    Verdict.CORRUPTS: "bold red",
    Verdict.VIOLATED: "bold red",
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
    untimed = [_without_timer(row) for row in rows]
    timed = any(each != "-" for each in untimed)  # else nothing here has a release timer
    headings = ("profile", "scenario", "verdict", "property", "states", "trace", *["release timer off"] * timed)
    for heading in headings:
        result.add_column(heading, justify="right" if heading in ("states", "trace") else "left", no_wrap=True)
    for row, without in zip(rows, untimed, strict=True):
        result.add_row(
            text_cell(row.profile),
            text_cell(row.scenario),
            _verdicts(row),
            row.subject or "-",
            f"{row.run.states:,}{'+' * bool(_cut_short(row.run))}",
            str(len(row.trace)) if row.trace else "-",
            *[without] * timed,
        )
    return result


def _verdicts(row: Row) -> Text:
    """The verdict and every other class that applies; a pass says how much is not asked in its scenario."""
    words = Text(", ").join(Text(verdict, style=STYLE[verdict]) for verdict in row.classes)
    return words.append(f", {len(row.unasked)} not asked") if row.verdict is Verdict.SAFE and row.unasked else words


def _cut_short(run: Run) -> str:
    """Why a search ended before its time; a violation is a reason to end."""
    return "" if run.reason == "violation found" else run.reason


def _without_timer(row: Row) -> str:
    """What the search with the release timer off says, where it is not the verdict."""
    if row.without_timer:
        return f"{row.without_timer.verdict}, {row.without_timer.states:,} states"
    if row.run.bounds.get("release timer") != "off":
        return "-"
    shown = row.run.verdict in (row.verdict, Verdict.SAFE)
    return "as shown" if shown else f"{row.run.verdict}, {row.run.states:,} states"


def legend(rows: Sequence[Row]) -> list[str]:
    """What the verdicts in the table mean, within which bounds, and what is doubtful about them."""
    lines = [f"{verdict}: {EXPLANATION[verdict]}" for verdict in Verdict if any(verdict in row.classes for row in rows)]
    lines += [f"Bounds: {bounds}" for bounds in dict.fromkeys(_bounds_text(row) for row in rows)]
    remarks: tuple[Callable[[Row], Iterable[str]], ...] = (
        attrgetter("reasons"),
        _uncounted_words,
        _held_words,
        _unasked_words,
        _idle_words,
        _fairness_words,
        _weakness_words,
        _unknown_words,
        _apart_words,
    )
    for of in remarks:
        lines += _said(rows, of)
    lines += _one_step_words(rows)
    stored = sum(row.stored for row in rows)
    if stored:
        lines.append(
            f"{stored} of {len(rows)} rows are results of an earlier run that are still valid: same model, knobs, "
            "bounds and code (--no-store searches again)"
        )
    return lines


def _said(rows: Sequence[Row], words: Callable[[Row], Iterable[str]]) -> list[str]:
    """What is said of rows, once for all profiles of which it is true in a scenario."""
    profiles: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for each in words(row):
            profiles.setdefault((row.scenario, each), []).append(row.profile)
    return [f"{', '.join(names)} / {scenario}: {each}" for (scenario, each), names in profiles.items()]


def _uncounted_words(row: Row) -> list[str]:
    reason = _cut_short(row.run) if row.trace else ""
    return [f"not all states were counted (+): {reason}"] if reason else []


def _held_words(row: Row) -> list[str]:
    """What a hold that never ends costs, and after what."""
    if row.held is None:
        return []
    trace = row.held.trace
    causes = [
        step.label
        for step, taken in zip(trace.steps, trace.taken, strict=True)
        if taken.instance.action.name in trace.unfair
    ]
    return [
        f"with the release timer off, a hold never ends after {', '.join(causes) or 'the run shown'}: "
        f"each request that ends like this has {row.held.kept} held for ever, until decode is started anew"
    ]


def _idle_words(row: Row) -> list[str]:
    return [f"need not happen, and never did: {', '.join(row.run.idle)}"] if row.run.idle else []


def _fairness_words(row: Row) -> list[str]:
    if row.unfair is None:
        return []
    free = ", ".join(row.unfair) or "no action"
    return [f"promises take every step that stays possible to happen some time, but for those of: {free}"]


def _weakness_words(row: Row) -> list[str]:
    return [
        f"{each.subject} fails after {len(each.trace)} steps: "
        "other properties rest on it, though by itself it loses nothing"
        for each in row.weaknesses
    ]


def _apart_words(row: Row) -> list[str]:
    """What a row whose status updates are taken apart has to say of that."""
    return [words(row.profile, row.run.bounds)] if row.run.bounds.get(STATUS_UPDATE) == APART else []


def _one_step_words(rows: Sequence[Row]) -> list[str]:
    """The same of rows in which they are one step: there are many, so it is said once."""
    bounds = [row.run.bounds for row in rows if row.run.bounds.get(STATUS_UPDATE) == ONE_STEP]
    scenarios = dict.fromkeys(row.scenario for row in rows if row.run.bounds.get(STATUS_UPDATE) == ONE_STEP)
    return [f"{', '.join(scenarios)}: {words('PROFILE', bounds[0])}"] if bounds else []


def _unasked_words(row: Row) -> list[str]:
    """The properties that are not asked, by reason."""
    reasons = dict.fromkeys(row.unasked.values())
    named = {each: ", ".join(name for name, why in row.unasked.items() if why == each) for each in reasons}
    return [f"not asked: {names}: {reason}" for reason, names in named.items()]


def _unknown_words(row: Row) -> list[str]:
    """What of the verdict rests on what is unknown; nothing where the verdict would be the same."""
    lines: list[str] = []
    for each in row.otherwise:
        taken = _settings_words({name: row.assumed[name] for name in each.settings})
        other = f"with {_settings_words(each.settings)} it is {', '.join(each.classes)}"
        lines.append(f"{', '.join(row.classes)} rests on what is unknown and taken as {taken}: {other}")
    if row.untried:
        lines.append(f"whether more rests on what is unknown is not known: {row.untried}")
    return lines


def _settings_words(settings: Mapping[str, object]) -> str:
    return " and ".join(
        f"{name} = {str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()
    )


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
        "otherwise": [
            {"settings": dict(each.settings), "classes": [str(verdict) for verdict in each.classes]}
            for each in row.otherwise
        ],
        "untried": row.untried or None,
        "unasked": dict(row.unasked),
        "idle": list(row.run.idle),
        "assumption": assumption(row.profile, row.run.bounds) or None,
        "held_for_ever": _held(row.held),
        "unfair": None if row.unfair is None else list(row.unfair),
        "counts": dict(row.run.counts),
        "hits": dict(row.run.hits),
        "without_timer": _run(row.without_timer),
        "trace": [step.label for step in row.trace.steps] if row.trace else None,
        "weaknesses": [{"property": each.subject, "trace_length": len(each.trace)} for each in row.weaknesses],
        "stored": row.stored,
    }


def _held(held: Held | None) -> dict[str, Any] | None:
    if held is None:
        return None
    return {
        **asdict(cast(Any, held.kept)),
        "trace": [step.label for step in held.trace.steps],
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
            result.add_row(text_cell(change.name), numbers, Text(f"not told: {change.untold}", style="dim"), "-", "-")
            continue
        failing = ", ".join(chapter.broken) or "nothing"
        result.add_row(
            text_cell(change.name),
            numbers,
            text_cell(
                failing if chapter.as_said else f"{failing}; expected: {change.property} alone, and nothing with it"
            ),
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
        result.add_row(number, text_cell(name), own[0].bug.scenario, own[0].bug.property, *shown)
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
