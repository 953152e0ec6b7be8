"""Saved traces: what to execute, not what was seen. Reading one executes it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from ..properties.cases import check_from
from ..properties.property import Probe, Property
from ..protocol.language import DraincheckError
from .trace import Trace, deadlock_trace, rerun, violation_trace, witness_trace

FORMAT = "draincheck-trace"
VERSION = 1


class TraceFileError(DraincheckError):
    """A file that is no trace, or one of another version."""


def dump(trace: Trace) -> str:
    """A trace as JSON: its source, why it is shown, the initial state, and the steps with their choices."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "model": trace.model,
            "kind": trace.kind,
            "subject": trace.subject,
            "source": trace.source,
            "initial": list(trace.initial),
            "steps": [{"action": step.instance.label, "choices": list(step.chosen)} for step in trace.taken],
        },
        indent=1,
    )


def save(trace: Trace, folder: Path) -> Path:
    """Writes a trace into a folder, which is made if needed; returns the file. Raises TraceFileError."""
    name = f"{trace.model}-{trace.subject}".replace(" / ", "-").replace(" ", "-").replace("/", "-")
    path = folder / f"{name}.trace.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(dump(trace), "utf-8")
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def load(path: Path) -> Trace:
    """Reads a trace and executes it. Raises TraceFileError, or ReplayError if the model does not take the run."""
    try:
        data = cast(Any, json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TraceFileError(f"{path}: this is no JSON: {error}") from None
    if not isinstance(data, dict) or cast(dict[str, Any], data).get("format") != FORMAT:
        raise TraceFileError(f'{path}: this is no trace; traces are saved by "draincheck verify --save DIR"')
    fields = cast(dict[str, Any], data)
    if fields.get("version") != VERSION:
        raise TraceFileError(f"{path}: version {fields.get('version')!r} of the format; this draincheck reads {VERSION}")
    try:
        return _execute(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceFileError(f"{path}: the trace is damaged: {type(error).__name__} {error}") from None


def _execute(fields: dict[str, Any]) -> Trace:
    check = check_from(fields["source"])
    initial = tuple(int(value) for value in fields["initial"])
    taken = rerun(check.model, initial, [(step["action"], step["choices"]) for step in fields["steps"]])
    subject, source = fields["subject"], fields["source"]
    asked: dict[str, Property | Probe] = {each.name: each for each in (*check.properties, *check.probes)}
    if fields["kind"] == "deadlock":
        return deadlock_trace(check.model, initial, taken, source)
    match asked.get(subject):
        case Property() as prop:
            return violation_trace(check.model, prop, initial, taken, source)
        case Probe() as probe:
            return witness_trace(check.model, probe, initial, taken, source)
        case None:
            raise ValueError(f"{subject} is no property of {check.model.name}")
