"""Results as data: what was found for a case, without names, and the rows that it gives.

A result crosses processes and is kept on disk. Like a saved trace it is a recipe: a row is made from it by executing
its runs again with the case that the row is of.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

from pydantic import model_validator

from ...properties.case import Case, Question
from ..traces.storage import Recipe, Strict, TraceFileError, recipe_of, replay
from ..traces.trace import Trace
from .plausible import implausible
from .verify import Finding, Row, Run, Verdict, Weakness, held_of

UNLIMITED = ("", "violation found")
"""Reasons for the end of a search that no limit has to do with."""


class SavedRun(Recipe):
    """A trace as a recipe. `question` is the field of the case that it belongs to."""

    question: str


class SavedFinding(Strict):
    """A class that applies, with the run that shows it."""

    verdict: Verdict
    run: SavedRun


class Result(Strict):
    """What a Row says, but for the names of its case. Raises ValidationError where the verdict is not what follows."""

    verdict: Verdict
    findings: list[SavedFinding]
    reasons: list[str]
    run: Run
    without_timer: Run | None
    seconds: float
    stuck: SavedRun | None
    witness: SavedRun | None
    weaknesses: list[SavedRun]
    unfair: list[str] | None
    held: SavedRun | None

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        known = self.findings[0].verdict if self.findings else Verdict.SAFE
        if self.verdict is not (Verdict.UNDETERMINED if self.reasons and not self.findings else known):
            raise ValueError(f"the verdict is {self.verdict}, which does not follow from what was found")
        if self.verdict is Verdict.SAFE and (self.stuck or not self.run.complete or self.run.reason):
            raise ValueError("the verdict is SAFE, but the search was not complete")
        return self

    @property
    def settled(self) -> bool:
        """Whether any other search would say the same, whatever its limits."""
        runs = [run for run in (self.run, self.without_timer) if run]
        return not self.reasons and all(run.reason in UNLIMITED for run in runs)


def result_of(row: Row, case: Case) -> Result:
    """The result that a case's row shows. Raises TraceFileError for traces that are of no question of the case."""

    def saved(trace: Trace | None) -> SavedRun | None:
        return _saved(trace, case) if trace else None

    return Result(
        verdict=row.verdict,
        findings=[SavedFinding(verdict=each.verdict, run=_saved(each.trace, case)) for each in row.findings],
        reasons=list(row.reasons),
        run=row.run,
        without_timer=row.without_timer,
        seconds=row.seconds,
        stuck=saved(row.stuck),
        witness=saved(row.witness),
        weaknesses=[_saved(each.trace, case) for each in row.weaknesses],
        unfair=None if row.unfair is None else list(row.unfair),
        held=saved(row.held.trace if row.held else None),
    )


def row_of(result: Result, case: Case, *, stored: bool = False) -> Row:
    """The row of a case that has this result. Raises DraincheckError if the case's models do not take its runs.

    One that was stored must also be plausible.
    """

    def trace(run: SavedRun | None) -> Trace | None:
        return _trace(run, case) if run else None

    wrong = next(implausible(result, case), "") if stored else ""
    if wrong:
        raise TraceFileError(f"{case.profile} / {case.scenario}: no search finds this: {wrong}")
    found = [(each.verdict, _trace(each.run, case)) for each in result.findings]
    weak = [_trace(each, case) for each in result.weaknesses]
    held = trace(result.held)
    return Row(
        profile=case.profile,
        scenario=case.scenario,
        verdict=result.verdict,
        findings=tuple(Finding(verdict, shown.subject, shown) for verdict, shown in found),
        reasons=tuple(result.reasons),
        run=result.run,
        without_timer=result.without_timer,
        seconds=result.seconds,
        stuck=trace(result.stuck),
        witness=trace(result.witness),
        weaknesses=tuple(Weakness(shown.subject, shown) for shown in weak),
        assumed=case.assumed or {},
        stored=stored,
        unfair=None if result.unfair is None else tuple(result.unfair),
        held=held_of(case, [Finding(Verdict.LEAKS, held.subject, held)] if held else []),
        unasked=case.unasked or {},
    )


def _questions(case: Case) -> dict[str, Question]:
    values: dict[str, Any] = {each.name: getattr(case, each.name) for each in fields(case)}
    return {name: value for name, value in values.items() if isinstance(value, Question)}


def _saved(trace: Trace, case: Case) -> SavedRun:
    for name, question in _questions(case).items():
        if question.source == trace.source:
            return SavedRun.model_validate({"question": name, **recipe_of(trace)})
    raise TraceFileError(f"{trace.model}: the trace of {trace.subject} belongs to no question of its case")


def _trace(run: SavedRun, case: Case) -> Trace:
    question = _questions(case).get(run.question)
    if question is None:
        raise TraceFileError(f"{case.profile} / {case.scenario}: nothing is asked that is called {run.question}")
    return replay(run, question.check, question.source)
