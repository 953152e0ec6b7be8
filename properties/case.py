"""What is asked together: a model's questions, and the row that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..protocol.language.check import Check


@dataclass(frozen=True)
class Question:
    """A check with what must be reached for a pass to count, and data from which it can be built again."""

    check: Check
    required: tuple[str, ...]
    source: Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """A row of the verdict table: checks with the release timer off, firing late enough, and at any moment.

    `timed` and `patient` are None where no hold can end by a timer.

    `count_all` asks to explore on behind a violation, so that the counts are those of the whole model.
    `assumed` names knobs that are unknown and can matter, with the value taken for them, and `alternatives` are the
    cases with other values, as far as they are searched; `untried` says why others are not. `unasked` names properties
    that are asked of other scenarios and not of this one, and ends and events that cannot happen, each with the reason.
    """

    profile: str
    scenario: str
    untimed: Question
    timed: Question | None
    witness: str
    patient: Question | None = None
    count_all: bool = False
    assumed: Mapping[str, bool | int | str] | None = None
    alternatives: tuple[Case, ...] = ()
    untried: str = ""
    unasked: Mapping[str, str] | None = None
