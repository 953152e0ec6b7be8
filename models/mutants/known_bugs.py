"""The calibration of the model as data: known bugs, and in which releases the model must find each."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, TypeAdapter

from ..catalogue.profile import Setting


class Bug(BaseModel):
    """A bug, the check that must find it, and the profiles with and without it.

    `given` mends what else is broken with these profiles; `prefill` names the prefill side where it is another;
    `differs` says for a profile why the model comes out otherwise than `fails` and `holds` have it.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: str
    name: str
    scenario: str
    property: str
    given: dict[str, Setting] = {}
    prefill: dict[str, str] = {}
    fails: list[str]
    holds: list[str]
    differs: dict[str, str] = {}


def cells_of(bug: Bug) -> list[tuple[str, str]]:
    """Each profile of a bug with what is known of it, `fails` or `holds`, in the order of the releases."""
    return sorted([(name, "fails") for name in bug.fails] + [(name, "holds") for name in bug.holds])


def known_bugs() -> list[Bug]:
    """The bugs in the order of the file."""
    data = tomllib.loads(files(__package__ or "").joinpath("calibration.toml").read_text("utf-8"))
    return TypeAdapter(list[Bug]).validate_python(data["bug"])
