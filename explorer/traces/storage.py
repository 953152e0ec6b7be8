"""Saved traces: what to execute, not what was seen. Reading one executes it again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...models.catalogue.profile import parse_profile
from ...models.drain.circumstances import Timer
from ...models.drain.scenario import Scenario
from ...models.reading import read_bytes, read_text
from ...properties.case import Case
from ...properties.drain.cases import drain_case
from ...properties.drain.given_back import all_given_back
from ...properties.own import load_own, own_cases
from ...properties.small import reference_case
from ...protocol.language import DraincheckError
from ...protocol.language.check import Check
from ...protocol.language.property import Probe, Promise, Property
from ..kept.writing import folder_for_output, write_output
from .trace import Trace, deadlock_trace, fault_trace, promise_trace, rerun, violation_trace, witness_trace

VERSION = 1
MAX_BYTES = 2**22
MAX_WORD = 80
"""So many characters of a name, which may be of any length, are part of the name of a file."""

EXPECTED = 'a trace, as "draincheck verify --save DIR" writes it'


class TraceFileError(DraincheckError):
    """A file that is no trace, or one of another version."""


class Strict(BaseModel):
    """Data from outside: nothing more than was asked for, and nothing of another type."""

    model_config = ConfigDict(strict=True, extra="forbid")


class DrainSource(Strict):
    """What a trace of the drain protocol was made from: whole profiles, so that the file stands alone."""

    kind: Literal["drain"]
    profile: dict[str, Any]
    prefill: dict[str, Any]
    scenario: Scenario
    timer: Timer


class ReferenceSource(Strict):
    """What a trace of the reference model was made from; `ticks` is its hold, None without timer."""

    kind: Literal["reference"]
    ticks: int | None


class FileSource(Strict):
    """What a trace of a user's own model was made from: a file, whose content `digest` tells, and a check in it."""

    kind: Literal["file"]
    path: str
    digest: str
    check: str
    sizes: dict[str, int]


class SavedStep(Strict):
    """A step: the label of its instance, and what it chose."""

    action: str
    choices: list[int]


AnySource = DrainSource | ReferenceSource | FileSource
Source = Annotated[AnySource, Field(discriminator="kind")]


class Recipe(Strict):
    """How to make a trace again with the check that it is of."""

    kind: Literal["violation", "witness", "deadlock", "fault", "promise"]
    subject: str
    initial: list[int]
    steps: list[SavedStep]
    loop: int | None = None


class SavedTrace(Recipe):
    """The contents of a trace file."""

    format: Literal["draincheck-trace"]
    version: Literal[1]
    model: str
    source: Source


def dump(trace: Trace) -> str:
    """A trace as JSON: its source, why it is shown, the initial state, and the steps with their choices.

    Raises TraceFileError for a model that a file cannot describe.
    """
    data = {
        "format": "draincheck-trace",
        "version": VERSION,
        "model": trace.model,
        "source": trace.source,
        **recipe_of(trace),
    }
    try:
        return SavedTrace.model_validate(data, strict=False).model_dump_json(indent=1)
    except ValidationError:
        raise TraceFileError(
            f"{trace.model}: only traces of profiles, of the reference model and of Python files can be saved"
        ) from None


def recipe_of(trace: Trace) -> dict[str, Any]:
    """The fields of a trace's Recipe."""
    steps = [{"action": step.instance.label, "choices": list(step.chosen)} for step in trace.taken]
    return {
        "kind": trace.kind,
        "subject": trace.subject,
        "initial": list(trace.initial),
        "steps": steps,
        "loop": trace.loop,
    }


def save(trace: Trace, folder: Path) -> Path:
    """Writes a trace into a folder, and returns the file, which no other trace shares: its name has a checksum of it.

    A file that is there already stays. Raises WritingError, and TraceFileError if it is another one.
    """
    content = dump(trace).encode()
    words = (re.sub(r"[^\w.=]+", "-", each, flags=re.ASCII)[:MAX_WORD] for each in (trace.model, trace.subject))
    path = folder / f"-{sha256(content).hexdigest()[:12]}-".join(words)
    path = path.with_name(f"{path.name}.trace.json")
    if not path.exists():
        folder_for_output(folder)
        write_output(path, content)
    elif read_bytes(path, MAX_BYTES, EXPECTED) != content:
        raise TraceFileError(f"{path}: is there already and holds something else; it is not overwritten")
    return path


def load(path: Path) -> Trace:
    """Reads a trace and executes it. Raises TraceFileError, also if the model does not take the run.

    Raises ReadingError for what cannot be read as text.
    """
    text = read_text(path, MAX_BYTES, EXPECTED)
    try:
        saved = SavedTrace.model_validate_json(text)
    except DraincheckError as error:
        raise TraceFileError(f"{path}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise TraceFileError(
            f"{path}: no trace that this version can read: {place}: {first['msg']}; expected is {EXPECTED}"
        ) from None
    return _execute(saved, path)


def check_from(source: AnySource, origin: str) -> Check:
    """The check that a trace was made with. Raises DraincheckError if its profile or sizes make no sense."""
    case = _case(source, origin)
    if isinstance(source, FileSource):
        return case.untimed.check
    if isinstance(source, ReferenceSource):
        question = case.untimed if source.ticks is None else case.timed
    else:
        question = {Timer.OFF: case.untimed, Timer.LATE: case.patient, Timer.ANY: case.timed}[source.timer]
    if question is None:
        raise TraceFileError(f"{origin}: the trace has a release timer, but its profile holds nothing")
    return question.check


def check_of(source: Mapping[str, object]) -> Check:
    """The check that a trace with this source was made with. Raises DraincheckError if it makes no sense."""
    return check_from(_validated(source), "the source of a trace")


def case_from(source: Mapping[str, object]) -> Case:
    """The case whose question with the release timer, if it has one, else without, has this source."""
    return _case(_validated(source), "a case")


def _validated(source: Mapping[str, object]) -> AnySource:
    return TypeAdapter[AnySource](Source).validate_python(source, strict=False)


def _case(source: AnySource, origin: str) -> Case:
    if isinstance(source, FileSource):
        return _own_case(source, origin)
    if isinstance(source, ReferenceSource):
        return reference_case(source.ticks)
    decode, prefill = parse_profile(source.profile, origin), parse_profile(source.prefill, origin)
    return drain_case(decode, source.scenario, prefill=prefill, timer=source.timer is not Timer.OFF)


def _own_case(source: FileSource, origin: str) -> Case:
    """The case of a user's file, found where it was, or beside the trace, with the content that it had."""
    places = (Path(source.path), Path(origin).with_name(Path(source.path).name))
    path = next((each for each in places if each.is_file()), None)
    if path is None:
        raise TraceFileError(f"{origin}: the model's file {source.path} is not there; put it beside the trace")
    if load_own(str(path)).digest != source.digest:
        raise TraceFileError(f"{origin}: {path} has changed since the trace was made; verify it again")
    (case,) = own_cases(str(path), [source.check], source.sizes)
    return case


def _execute(saved: SavedTrace, path: Path) -> Trace:
    try:
        return replay(saved, check_from(saved.source, str(path)), saved.source.model_dump())
    except DraincheckError as error:
        raise error if str(path) in str(error) else TraceFileError(f"{path}: {error}") from None


def replay(recipe: Recipe, check: Check, source: Mapping[str, object]) -> Trace:
    """Executes a recipe with its check. Raises DraincheckError if the model does not take it, or it shows nothing."""
    initial = tuple(recipe.initial)
    taken = rerun(check.model, initial, [(step.action, step.choices) for step in recipe.steps])
    everything = (*check.properties, all_given_back(check.model), *check.probes, *check.promises)
    asked: dict[str, Property | Probe | Promise] = {each.name: each for each in everything}
    if recipe.kind == "fault":
        return fault_trace(check, initial, taken, source)
    if recipe.kind == "deadlock":
        return deadlock_trace(check.model, initial, taken, source)
    match asked.get(recipe.subject):
        case Property() as prop:
            return violation_trace(check.model, prop, initial, taken, source)
        case Probe() as probe:
            return witness_trace(check.model, probe, initial, taken, source)
        case Promise() as promise:
            if recipe.loop is None:
                raise TraceFileError(f"{recipe.subject} is a promise, and the trace does not say what repeats")
            return promise_trace(check, promise, initial, taken, recipe.loop, source)
        case None:
            raise TraceFileError(f"{recipe.subject} is no property of {check.model.name}")
