"""A random run that fails, as something to read: executed again, shortened, drawn, and as a test to paste."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..models.model import Model, Values
from ..properties.check import Check
from .render_pytest import pytest_source
from .render_terminal import terminal_text
from .shorten import shorten
from .trace import Trace, deadlock_trace, fault_in, fault_trace, rerun, violation_trace

NO_FAULT = "no_fault"
NO_DEADLOCK = "no_deadlock"


@dataclass(frozen=True)
class Failure:
    """A run of a check that ends where `subject` fails: a property, or NO_FAULT, or NO_DEADLOCK.

    `taken` has the label of each step and what it chose, `seed` is the one that the run was found with, `source` as in
    Trace; empty if the check can be made again by nobody else.
    """

    check: Check
    subject: str
    initial: Values
    taken: Sequence[tuple[str, Sequence[int]]]
    source: Mapping[str, object]
    seed: int

    @cached_property
    def trace(self) -> Trace:
        """The run, executed again and shortened."""
        model = self.check.model
        taken = rerun(model, self.initial, self.taken)
        taken = shorten(model, self.initial, taken, self._still_fails())
        if self.subject == NO_FAULT:
            return fault_trace(self.check, self.initial, taken, self.source)
        if self.subject == NO_DEADLOCK:
            return deadlock_trace(model, self.initial, taken, self.source)
        prop = next(each for each in self.check.properties if each.name == self.subject)
        return violation_trace(model, prop, self.initial, taken, self.source)

    def _still_fails(self) -> Callable[[Values], bool]:
        model = self.check.model
        if self.subject == NO_FAULT:
            return lambda values: fault_in(self.check, values) is not None
        if self.subject == NO_DEADLOCK:
            return lambda values: _is_stuck(model, values)
        prop = next(each for each in self.check.properties if each.name == self.subject)
        return lambda values: prop.violation(model, values) is not None

    @cached_property
    def text(self) -> str:
        """The run as a diagram, how it was found, and the test."""
        trace = self.trace
        found = f"Found by Hypothesis with seed {self.seed}: {len(self.taken)} steps, shortened to {len(trace)}."
        return f"{terminal_text(trace)}\n{found}\nAs a test:\n\n{pytest_source(trace)}"


def _is_stuck(model: Model, values: Values) -> bool:
    return next(model.steps(values), None) is None and not model.is_terminal(values)
