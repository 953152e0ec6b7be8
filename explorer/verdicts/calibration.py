"""The calibration: each known bug in each release, found or not, beside what is known of the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...models.catalogue.profile import Profile, load_profile
from ...models.mutants.changes import without
from ...models.mutants.known_bugs import Bug, cells_of, known_bugs
from ...properties.case import Case
from ...properties.drain.cases import drain_case, scenario_with
from ..search.search import Limits
from .batch import Status, verify_all
from .store import Store
from .verify import Row, Verdict


@dataclass(frozen=True)
class Cell:
    """A bug with a profile. `found` is the length of the trace that shows it, None if it does not occur.

    `known` is false if the search does not settle it. `differs` explains a cell that is not as the release is known
    to be.
    """

    bug: Bug
    profile: str
    expected: str
    found: int | None
    known: bool
    differs: str

    @property
    def agrees(self) -> bool:
        """Whether the model says what is known of the release."""
        return self.known and (self.found is not None) == (self.expected == "fails")

    @property
    def accounted_for(self) -> bool:
        """Whether the cell agrees, or is known to differ and does."""
        return self.agrees != bool(self.differs) and self.known


def calibrate(
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    jobs: int = 1,
    store: Store | None = None,
    watch: Callable[[Status], None] | None = None,
) -> tuple[list[Cell], bool]:
    """The cells of all known bugs, and whether an interruption made some of them missing.

    Raises DraincheckError for wrong data.
    """
    asked = [(bug, name, expected) for bug in known_bugs() for name, expected in cells_of(bug)]
    batch = verify_all([case_of(bug, name) for bug, name, _ in asked], limits, jobs=jobs, store=store, watch=watch)
    cells = [_cell(*each, row) for each, row in zip(asked, batch.found, strict=True) if row]
    return cells, batch.interrupted


def case_of(bug: Bug, name: str) -> Case:
    """What is asked of a profile to find the bug."""
    decode = _mended(load_profile(name), bug)
    prefill = _mended(load_profile(bug.prefill[name]), bug) if name in bug.prefill else None
    if not scenario_with(bug.scenario, {}).peer:
        prefill = decode
    return drain_case(decode, scenario_with(bug.scenario, {}), prefill=prefill)


def _mended(profile: Profile, bug: Bug) -> Profile:
    return replace(without(profile, bug.given), name=profile.name) if bug.given else profile


def _cell(bug: Bug, name: str, expected: str, row: Row) -> Cell:
    lengths = [len(each.trace) for each in row.findings if _shows(each.subject, each.verdict, bug)]
    lengths += [len(each.trace) for each in row.weaknesses if each.subject == bug.property]
    found = min(lengths, default=None)
    known = found is not None or not row.reasons
    return Cell(bug, name, expected, found, known, bug.differs.get(name, ""))


def _shows(subject: str, verdict: Verdict, bug: Bug) -> bool:
    """Whether a finding is the bug; what needs the release timer to fire too early is not."""
    return subject == bug.property and verdict is not Verdict.CONDITIONAL


def release_of(cell: Cell) -> str:
    """The release in a profile's name, which is that of the engine, the release, and the backend."""
    return cell.profile.split("-")[1]


def backend_of(cell: Cell) -> str:
    """The backend in a profile's name, with what its flags are."""
    return cell.profile.split("-", 2)[2]


def releases(cells: Sequence[Cell]) -> list[str]:
    """The releases that cells are about, in order."""
    return sorted({release_of(cell) for cell in cells})
