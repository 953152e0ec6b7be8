"""What a result assumes of an update of a room's status, and which command assumes otherwise.

No release locks between the look at a status and the write. Most models take the two as one step; a scenario takes
them apart. The same property can be proved of the one and fail in the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...models.drain.closed import APART, ONE_STEP, STATUS_UPDATE
from ...models.drain.scenario import SCENARIOS


def assumption(profile: str, bounds: Mapping[str, str]) -> dict[str, str]:
    """How a model with these bounds takes a status update (`taken_as`), and the command that asks the same of the
    other way (`see`). Empty for a model without status updates."""
    taken_as = bounds.get(STATUS_UPDATE)
    if taken_as == ONE_STEP:
        apart = " ".join(f"--scenario {each.name}" for each in SCENARIOS.values() if each.split_status)
        return {"about": STATUS_UPDATE, "taken_as": ONE_STEP, "see": f"draincheck verify {profile} {apart}"}
    if taken_as == APART:
        return {"about": STATUS_UPDATE, "taken_as": APART, "see": f"draincheck prove {profile}"}
    return {}


def words(profile: str, bounds: Mapping[str, str]) -> str:
    """The same as a sentence; empty for a model without status updates."""
    assumed = assumption(profile, bounds)
    if not assumed:
        return ""
    here, there = f"an update of a room's status is taken as {assumed['taken_as']}", assumed["see"]
    if assumed["taken_as"] == ONE_STEP:
        return f"{here}; {there} takes it apart, as releases do, and the same property may fail there"
    return f"{here}, between which others act; {there} takes it as {ONE_STEP}, and may prove the same property"
