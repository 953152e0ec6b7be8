"""The history of the protocol as data: each change of the disclosure, and what a profile lacks without it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from ..catalogue.profile import Profile, Setting, load_profile, parse_profile


class Change(BaseModel):
    """A change with its pull requests: how to take it away, and what then fails; or why the model cannot tell.

    `base` names a profile that has the change, `given` sets what it leaves unknown, `without` takes the change away.
    `timer` is the release timer of the check: off, or late as in models/drain/closed.py.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    prs: list[int]
    base: str = ""
    given: dict[str, bool | int | str] = {}
    without: dict[str, bool | int | str] = {}
    scenario: str = ""
    timer: Literal["off", "late"] = "off"
    property: str = ""
    untold: str = ""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Change:
        told = all((self.base, self.without, self.scenario, self.property))
        if told == bool(self.untold):
            raise ValueError(f"{self.name}: give base, without, scenario and property, or untold")
        return self


@dataclass(frozen=True)
class Mutant:
    """The profile that has a change, and the same one without it."""

    fixed: Profile
    broken: Profile


def changes() -> list[Change]:
    """The changes in the order of the file."""
    data = tomllib.loads(files(__package__ or "").joinpath("history.toml").read_text("utf-8"))
    return TypeAdapter(list[Change]).validate_python(data["change"])


def mutant(change: Change) -> Mutant:
    """The two profiles of a change that the model can tell. Raises ProfileError if it names what does not exist."""
    base = load_profile(change.base)
    fixed = replace(without(base, change.given), name=base.name) if change.given else base
    return Mutant(fixed, without(fixed, change.without))


def without(profile: Profile, settings: Mapping[str, Setting]) -> Profile:
    """A profile with other settings, checked like one from a file."""
    changed = {
        knob: {"value": value, "evidence": "taken away to see what it is for"} for knob, value in settings.items()
    }
    made = parse_profile({**profile.as_data(), **changed}, f"{profile.name} without it")
    return replace(made, name=f"{profile.name} without it", headline=False)
