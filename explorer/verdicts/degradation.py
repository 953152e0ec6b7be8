"""The relation between a profile and itself with something gone wrong: does a degradation lengthen the hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from ...models.catalogue.profile import Profile
from ...properties.drain.degradation import DEGRADATIONS, TOO_EARLY, relation_cases
from ..search.search import Limits
from ..terminal.console import text_cell
from ..traces.trace import Trace
from .batch import Status, verify_all
from .store import Store
from .verify import Row, Verdict


@dataclass(frozen=True)
class Relation:
    """A profile plain and degraded. `plain` and `degraded` are the rows that are compared."""

    profile: str
    degradation: str
    plain: Row
    degraded: Row

    @property
    def known(self) -> bool:
        """Whether both searches settle it."""
        return not (self.plain.reasons or self.degraded.reasons)

    @property
    def earlier(self) -> Trace | None:
        """The run in which the degradation makes decode give memory back earlier, None if it never does."""
        return None if too_early(self.plain) else too_early(self.degraded)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The pair that shows a violation: the degraded run, and one of the plain model whose hold ends by acks."""
        if self.earlier is None:
            return ()
        return (self.earlier, self.plain.witness) if self.plain.witness else (self.earlier,)


def too_early(row: Row) -> Trace | None:
    """A run of a row in which memory was given back before its writes were over, no timer having fired too early."""
    for each in row.findings:
        if each.subject == TOO_EARLY and each.verdict is Verdict.CORRUPTS:
            return each.trace
    return None


def relate(
    profiles: Sequence[Profile],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    jobs: int = 1,
    store: Store | None = None,
    watch: Callable[[Status], None] | None = None,
) -> tuple[list[Relation], bool]:
    """The relations of each profile, and whether an interruption made some of them missing.

    Raises DraincheckError for bad input.
    """
    asked = [(profile, name, case) for profile in profiles for name, case in relation_cases(profile).items()]
    batch = verify_all([case for _, _, case in asked], limits, jobs=jobs, store=store, watch=watch)
    rows = {(profile.name, name): row for (profile, name, _), row in zip(asked, batch.found, strict=True) if row}
    cut = batch.interrupted
    pairs = [(profile.name, name) for profile, name, _ in asked if name]
    both = [pair for pair in pairs if pair in rows and (pair[0], "") in rows]
    return [Relation(profile, name, rows[profile, ""], rows[profile, name]) for profile, name in both], cut


def relations_table(relations: Sequence[Relation]) -> Table:
    """Profile x degradation: whether the release never comes earlier, or the length of the run in which it does."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("profile", "without", *DEGRADATIONS):
        result.add_column(heading, no_wrap=True)
    for profile in dict.fromkeys(each.profile for each in relations):
        own = {each.degradation: each for each in relations if each.profile == profile}
        plain = next(iter(own.values())).plain
        cells = [_words(own[name]) if name in own else Text("") for name in DEGRADATIONS]
        result.add_row(text_cell(profile), "at once" if too_early(plain) else "held", *cells)
    return result


def _words(relation: Relation) -> Text:
    if not relation.known:
        return Text("unknown", style="magenta")
    earlier = relation.earlier
    return Text(f"EARLIER ({len(earlier)})", style="bold red") if earlier else Text("never earlier")


def relations_document(relations: Sequence[Relation]) -> dict[str, Any]:
    """The relations as one JSON document; docs/json.md describes it."""
    rows = [
        {
            "profile": each.profile,
            "degradation": each.degradation,
            "scenario": each.degraded.scenario,
            "known": each.known,
            "earlier": each.earlier is not None,
            "trace_length": len(each.earlier) if each.earlier else None,
            "trace": [step.label for step in each.earlier.steps] if each.earlier else None,
        }
        for each in relations
    ]
    return {"format": "draincheck-degrade", "version": 1, "rows": rows}
