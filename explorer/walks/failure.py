"""A random run that fails, as something to read: executed again, shortened, drawn, and as a test to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...properties.drain.given_back import NAME as GIVEN_BACK
from ...protocol.language import Index, Instance
from ...protocol.language.check import Check
from ...protocol.language.model import Values
from ...protocol.language.property import Property
from ...protocol.roles import lives
from ...protocol.roles.indices import DecodeRank, PrefillRank, Request
from ..traces.render_pytest import pytest_source
from ..traces.render_terminal import terminal_text
from ..traces.trace import Trace, deadlock_trace, fault_in, fault_trace, rerun, violation_trace
from .shorten import shorten
from .straighten import straightened
from .thin import LARGE, SHORT, thinned
from .walk import Walk

NO_FAULT = "no_fault"
NO_DEADLOCK = "no_deadlock"
RENEWALS = frozenset({lives.take_fresh_number.name, lives.use_number_again.name})
"""Environment steps that begin a life of a request, where others end one."""
RANKS: frozenset[type[Index]] = frozenset({DecodeRank, PrefillRank})


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
        """The run, shortened, and executed again."""
        model = self.check.model
        taken = rerun(model, self.initial, self._thinned())
        if len(self.initial) <= LARGE:
            taken = shorten(model, self.initial, taken, self._fails_in)
            if self.subject != NO_FAULT:  # a step that breaks the rules would end that search
                taken = straightened(model, self.initial, taken, self._fails_in)
        if self.subject == NO_FAULT:
            return fault_trace(self.check, self.initial, taken, self.source)
        if self.subject == NO_DEADLOCK:
            return deadlock_trace(model, self.initial, taken, self.source)
        return violation_trace(model, self._properties[0], self.initial, taken, self.source)

    @property
    def _properties(self) -> tuple[Property, ...]:
        """The property that fails; for faults, all of them, since a property can raise one too."""
        return self._named or self.check.properties

    @property
    def _named(self) -> tuple[Property, ...]:
        return tuple(each for each in self.check.properties if each.name == self.subject)

    def _fails(self, walk: Walk) -> bool:
        if self.subject == NO_FAULT:
            return fault_in(self.check, walk.values) is not None
        if self.subject == NO_DEADLOCK:
            return walk.is_stuck()
        return walk.violated() is not None and (self.subject != GIVEN_BACK or is_settled(self.check, walk))

    def _fails_in(self, values: Values) -> bool:
        if self._named and self.subject != GIVEN_BACK:
            return self._named[0].violation(self.check.model, values) is not None
        return self._fails(Walk(self.check.model, self._properties, values))

    def _thinned(self) -> Sequence[tuple[str, Sequence[int]]]:
        """A long run, or one of a large model, without most of what does not matter; another one as it is."""
        if len(self.taken) <= SHORT and len(self.initial) <= LARGE:
            return self.taken
        instances = self.check.model.instances
        numbers = {instance.label: number for number, instance in enumerate(instances)}
        taken = [(numbers[label], tuple(chosen)) for label, chosen in self.taken]
        start = Walk(self.check.model, self._properties, self.initial)
        return [(instances[number].label, chosen) for number, chosen in thinned(start, taken, self._fails)]

    @cached_property
    def text(self) -> str:
        """The run as a diagram, how it was found, and the test."""
        trace = self.trace
        found = f"Found with seed {self.seed}: {len(self.taken)} steps, shortened to {len(trace)}."
        return f"{terminal_text(trace)}\n{found}\nAs a test:\n\n{pytest_source(trace)}"


def is_settled(check: Check, walk: Walk) -> bool:
    """Whether nothing moves by itself any more, and no request is left that could be given up."""
    enabled = walk.enabled()
    names = {check.model.instances[number].action.name for number in enabled}
    return not names & check.fair_actions and not groups_of(check).keys() & set(enabled)


def groups_of(check: Check) -> dict[int, tuple[int, ...]]:
    """For each environment step that befalls a request, the steps by which it befalls that request on all ranks."""
    groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, instance in enumerate(check.model.instances):
        befalls = any(kind is Request for _, kind in instance.action.parameters)
        if befalls and instance.action.name in check.unfair_actions and instance.action.name not in RENEWALS:
            groups.setdefault(_without_ranks(instance), []).append(number)
    return {number: tuple(group) for group in groups.values() for number in group}


def _without_ranks(instance: Instance) -> tuple[str, tuple[int, ...]]:
    pairs = zip(instance.action.parameters, instance.arguments, strict=True)
    return instance.action.name, tuple(value for (_, kind), value in pairs if kind not in RANKS)
