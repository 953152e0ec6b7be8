"""A trace as a pytest function: it makes the model again, takes the steps, and asserts what the trace shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pprint import pformat
from typing import Any, cast

from ...models.catalogue.profile import catalogue, load_profile
from ...models.drain.circumstances import Timer
from ...models.drain.scenario import SCENARIOS, Scenario
from ...properties.drain.given_back import NAME as GIVEN_BACK
from .storage import TraceFileError, check_of
from .trace import Trace
from .words import headline, one_line

SIZES = ("rooms", "ranks", "decode_ranks", "chunks", "slots")
"""What of a scenario can be said beside its name."""
QUESTIONS: Mapping[str, str] = {Timer.OFF: "untimed", Timer.LATE: "patient", Timer.ANY: "timed"}
WIDTH = 110


def pytest_source(trace: Trace) -> str:
    """A Python file with one test. It runs as it stands, unless nothing says how the model is made.

    Then the test takes the check as a fixture. Raises TraceFileError for an induction: it is no run.
    """
    if trace.kind == "induction":
        raise TraceFileError(f"{trace.model}: an induction begins in a state that no run need reach; it is no test")
    names, making = _making(trace.source)
    asserting = _asserting(trace)
    if "fault_in" in asserting[-1]:
        names.append("fault_in")
    elif "promise_trace" in "".join(asserting):
        names.append("promise_trace")
    if "all_given_back" in asserting[0]:
        names.append("all_given_back")
    steps = [f"    ({step.instance.label!r}, {step.chosen!r})," for step in trace.taken]
    name = re.sub(r"\W+", "_", f"test_{trace.kind}_of_{trace.subject}")
    lines = [
        f"from draincheck import {', '.join(sorted([*names, 'rerun']))}",
        "",
        "STEPS = [",
        *steps,
        "]",
        "",
        "",
        f"def {name}({'' if making else 'check'}):",
        f"    {_docstring(headline(trace) + '. ' + one_line(trace.sentence))}",
        *(f"    {line}" for line in (*making, *_running(trace), *asserting)),
    ]
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', "'")
    return f'"""{safe}"""'


def _making(source: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The names that it takes, and the lines that make the check; none if nobody knows how."""
    if not source:
        return [], []
    if source["kind"] == "reference":
        question = "untimed" if source["ticks"] is None else "timed"
        making = f"check = reference_case({source['ticks']!r}).{question}.check"
        return ["reference_case"], [making]
    if source["kind"] == "file":
        making = f"(case,) = own_cases({source['path']!r}, [{source['check']!r}], {source['sizes']!r})"
        return ["own_cases"], [making, "check = case.untimed.check"]
    arguments = _by_name(source)
    if arguments:
        question = QUESTIONS[Timer(source["timer"])]
        return ["cases_of"], [
            f"(case,) = cases_of({arguments})",
            f"check = case.{question}.check",
        ]
    whole = pformat(_plain(source), width=WIDTH, sort_dicts=False, compact=True).splitlines()
    return ["check_of"], [
        f"check = check_of({whole[0]}",
        *(f"                 {line}" for line in whole[1:-1]),
        f"                 {whole[-1]})" if len(whole) > 1 else ")",
    ]


def _plain(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source without members of enumerations, which cannot be pasted."""
    return {**source, "timer": Timer(source["timer"]).value}


def _by_name(source: Mapping[str, Any]) -> str:
    """The arguments of `cases_of` that have this source; empty if the catalogue does not have all of it."""
    name, scenario = source["profile"].get("name"), cast(dict[str, Any], source["scenario"])
    if name not in catalogue() or scenario["name"] not in SCENARIOS:
        return ""
    profile, plain = load_profile(name), SCENARIOS[scenario["name"]]
    prefill = load_profile(profile.peer) if plain.peer else profile
    if source["profile"] != profile.as_data() or source["prefill"] != prefill.as_data():
        return ""
    other = {
        each.name: scenario[each.name]
        for each in fields(Scenario)
        if _listed(scenario[each.name]) != _listed(getattr(plain, each.name))
    }
    if not other.keys() <= set(SIZES):
        return ""
    return ", ".join([repr(name), repr([plain.name]), *(f"{size}={value}" for size, value in other.items())])


def _listed(value: object) -> object:
    return list(cast(tuple[object, ...], value)) if isinstance(value, tuple) else value


def _running(trace: Trace) -> list[str]:
    if trace.source:
        initial_states = check_of(trace.source).model.initial_states()
        initial = f"check.model.initial_states()[{initial_states.index(trace.initial)}]"
    else:
        initial = repr(trace.initial)
    return [
        f"initial = {initial}",
        "taken = rerun(check.model, initial, STEPS)",
        "last = taken[-1].values if taken else initial",
    ]


def _asserting(trace: Trace) -> list[str]:
    match trace.kind:
        case "violation":
            assert trace.violation
            named = f"next(each for each in check.properties if each.name == {trace.subject!r})"
            return [
                f"prop = {'all_given_back(check.model)' if trace.subject == GIVEN_BACK else named}",
                "violation = prop.violation(check.model, last)",
                f"assert violation is not None and violation.conjunct == {trace.violation.conjunct!r}",
            ]
        case "witness":
            return [
                f"probe = next(each for each in check.probes if each.name == {trace.subject!r})",
                "assert probe.holds(check.model, last)",
            ]
        case "deadlock":
            return [
                "assert not list(check.model.steps(last)), 'something is possible'",
                "assert not check.model.is_terminal(last)",
            ]
        case "fault":
            assert trace.violation
            return [f"assert str(fault_in(check, last)) == {trace.violation.conjunct!r}"]
        case _:
            return [
                f"promise = next(each for each in check.promises if each.name == {trace.subject!r})",
                f"trace = promise_trace(check, promise, initial, taken, {trace.loop}, {{}})  # it is fair",
                "assert trace.loop is not None and promise.is_pending(check.model, last)",
            ]
