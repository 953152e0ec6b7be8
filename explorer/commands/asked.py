"""What a name on the command line asks for: a profile, a Python file with a model, or the reference model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...properties.case import Case

REFERENCE = "reference"


def require_no_files(names: Sequence[str], option: str) -> None:
    """Raises click.UsageError if an option of profiles is given for a Python file."""
    from ...properties.own import is_own

    files = [name for name in names if is_own(name)]
    if files:
        raise click.UsageError(f"{option} belongs to profiles; {files[0]} has no release timer of ours")


def cases_asked(
    names: Sequence[str],
    scenarios: Sequence[str],
    sizes: Mapping[str, int],
    own: Sequence[tuple[str, int]],
    *,
    timer: bool,
    ticks: int | None = None,
) -> list[Case]:
    """The cases of profiles in scenarios, of files in their checks, and of the reference model with its `ticks`.

    `sizes` are those of profiles, `own` those of files. Raises DraincheckError, and click.UsageError for options that
    do not belong to what is named.
    """
    from ...models.drain.scenario import SCENARIOS
    from ...properties.drain.cases import cases_of
    from ...properties.own import is_own, own_cases
    from ...properties.small import reference_case

    files = [name for name in names if is_own(name)]
    if files and sizes:
        raise click.UsageError(f"{files[0]}: how many there are of what is said with --size TYPE=N")
    if own and len(files) < len(names):
        raise click.UsageError("--size belongs to Python files; profiles take --prefill-ranks and its like")
    if REFERENCE in names and (sizes or scenarios):
        raise click.UsageError("the reference model has fixed sizes and no scenarios")
    chosen = tuple(dict.fromkeys(scenarios))
    every = "all" in chosen
    cases: list[Case] = []
    for name in dict.fromkeys(names):
        if name == REFERENCE:
            cases.append(reference_case(ticks))
        elif is_own(name):
            cases += own_cases(name, () if every else chosen, dict(own))
        else:
            cases += cases_of(name, tuple(SCENARIOS) if every else chosen, timer=timer, **sizes)
    return cases
