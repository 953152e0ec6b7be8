"""The cases of the small models."""

from __future__ import annotations

from ..models.small.reference import drained_while_held, no_late_write, reference
from ..protocol.language.check import Check
from .case import Case, Question


def reference_case(timer: int | None = None) -> Case:
    """The reference model, explored to its end; `timer` adds the variant whose hold ends after so many ticks."""

    def question(ticks: int | None) -> Question:
        probes = (drained_while_held,)
        check = Check(reference(ticks), (no_late_write,), probes)
        return Question(check, tuple(probe.name for probe in probes), {"kind": "reference", "ticks": ticks})

    return Case(
        profile="reference",
        scenario="untimed" if timer is None else f"timed, T={timer}",
        untimed=question(None),
        timed=None if timer is None else question(timer),
        witness=drained_while_held.name,
        count_all=True,
    )
