"""What nobody has established of a release: which of it can matter in a scenario, and what else it could be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from ...models.catalogue.profile import KNOBS, MODELLED, Profile, Setting
from ...models.drain.features import switched_off, switched_on
from ...models.drain.scenario import Scenario

Values = Sequence[Mapping[str, Setting]]
"""Values of the unknown knobs of some profiles: of one at both ends, or of decode's and of prefill's."""

MOST_SETTINGS = 16
"""Up to so many settings of what is unknown, all are searched; of more, those that differ in one knob."""


def _ends(name: str) -> Callable[[Scenario], bool]:
    return lambda scenario: name in scenario.ends


FEATURES: Mapping[str, Callable[[Scenario], bool]] = {
    "router_aborts": _ends("router-cancel"),
    "reject": _ends("reject"),
    "checksum": _ends("checksum-mismatch"),
    "restore_failure": _ends("restore-failure"),
    "retraction_waits": _ends("preemption"),
    "err_implies_quiet": lambda scenario: scenario.send_faults > 0 and not scenario.partial,
}
"""Knobs that matter only in some scenarios: in no other one does a step or a property look at them."""


def matters(knob: str, scenario: Scenario) -> bool:
    """Whether a knob can matter in a scenario."""
    needed = knob not in FEATURES or FEATURES[knob](scenario)
    looked_at = knob in MODELLED or switched_on(knob, scenario)
    return looked_at and needed and not switched_off(knob, scenario)


def worse_values(profiles: Sequence[Profile], scenario: Scenario) -> Values:
    """The values that are taken for what is unknown and can matter."""
    return [{name: KNOBS[name].worse for name in each.unknown if matters(name, scenario)} for each in profiles]


def other_values(taken: Values) -> Iterator[Values]:
    """The other values that what is unknown can have; of too many, those that differ in one knob."""
    places = [(at, name) for at, own in enumerate(taken) for name in own]
    if _settings(taken) <= MOST_SETTINGS:
        for row in product(*(KNOBS[name].allowed for _, name in places)):
            values: list[dict[str, Setting]] = [{} for _ in taken]
            for (at, name), value in zip(places, row, strict=True):
                values[at][name] = value
            if values != list(taken):
                yield values
        return
    for at, name in places:
        for value in KNOBS[name].allowed:
            if value != taken[at][name]:
                yield [{**own, name: value} if number == at else own for number, own in enumerate(taken)]


def untried(taken: Values) -> str:
    """Why not all other values are searched; empty if they are."""
    settings = _settings(taken)
    knobs = sum(len(own) for own in taken)
    return f"{knobs} unknown knobs have {settings:,} settings in all" if settings > MOST_SETTINGS else ""


def _settings(taken: Values) -> int:
    return prod(len(KNOBS[name].allowed) for own in taken for name in own)


def labels(profiles: Sequence[Profile], values: Values) -> dict[str, Setting]:
    """The values by the names of their knobs; those of another profile for prefill say whose they are."""
    named = dict(values[0])
    for profile, own in zip(profiles[1:], values[1:], strict=True):
        named |= {f"{name} of {profile.name}": value for name, value in own.items()}
    return named
