"""Profiles: what a release with a backend does at each point where releases differ, as data with evidence.

A profile is a TOML file. Each knob is a table of its own:

    name = "sglang-0.5.21-mooncake"
    title = "SGLang 0.5.21 with Mooncake, default flags"

    [hold_enabled]
    value = true
    evidence = "common/conn.py: CommonKVManager.__init__ (#41023)"

A profile may begin with `inherits = "another profile"` and then lists only what differs. `headline = true` marks those
that `draincheck verify` checks unless others are named; `peer` names the profile that mixed versions put on the other
side. A value nobody has established is "unknown": it is treated as
the knob's worse value, and the verdict says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from ...protocol.language import DraincheckError
from ...protocol.roles.knobs import Knobs
from ..reading import TOML_BYTES, parse_toml, read_text

UNKNOWN = "unknown"
MAX_INHERITANCE = 8
FOLDER = "draincheck.models.catalogue"
Setting = bool | int | str


class ProfileError(DraincheckError):
    """A profile that cannot be used; the message names the file, the key and what is allowed."""


@dataclass(frozen=True)
class KnobSpec:
    """A knob: what it means, the values it may have, and the worse of them, taken for "unknown".

    `modelled` knobs change the model; the others are recorded for the parts of the protocol still to come.
    """

    meaning: str
    allowed: tuple[Setting, ...]
    worse: Setting

    def describe(self) -> str:
        """The allowed values, as they are written in TOML."""
        return ", ".join(_toml(value) for value in (*self.allowed, UNKNOWN))


def _toml(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _yes_no(meaning: str, worse: bool) -> KnobSpec:
    return KnobSpec(meaning, (True, False), worse)


KNOBS: Mapping[str, KnobSpec] = {
    "hold_enabled": _yes_no("decode holds slots after a failed transfer, with default flags", False),
    "hold_causes": KnobSpec("which failures are held", ("none", "decode_initiated", "all"), "none"),
    "arm_order": KnobSpec(
        "when acks begin to be counted, seen from the sending of ABORT", ("never", "after", "before"), "after"
    ),
    "gen_tags": _yes_no("ABORT and ack carry a generation, and decode compares it", False),
    "drain_ack": _yes_no("prefill can acknowledge that a room has drained", False),
    "ack_target": KnobSpec("whom prefill owes an ack", ("none", "single", "broadcast", "per_endpoint"), "single"),
    "ack_target_survives_clear": _yes_no("clearing a room keeps the ack that is owed", False),
    "inactive_register": KnobSpec(
        "whether an ABORT for a room that is not active is owed an ack",
        ("never", "if_counted", "always"),
        "never",
    ),
    "failed_terminal": _yes_no("a failed room stays failed", False),
    "reopen_resets": _yes_no("a room that is opened anew loses what an earlier life left", False),
    "abort_handled": _yes_no("prefill acts on an ABORT", False),
    "poison_on_error": _yes_no("a send that ends in an error forbids the room's ack", False),
    "poison_on_rejected_post": _yes_no("a send that is refused when it is posted forbids the room's ack", False),
    "err_implies_quiet": _yes_no("the transfer library says error only when nothing of the send is live", False),
    "failed_chunk_uncounted": _yes_no("the chunk of a failed send is uncounted", True),
    "count_point": KnobSpec(
        "when the worker counts a chunk, seen from its look at the room",
        ("before_test", "after_test"),
        "after_test",
    ),
    "wait_for_siblings": _yes_no("the worker waits for all parts of a failed call", False),
    "release_agreement": KnobSpec("who decides that a hold ends", ("rank_local", "tp"), "rank_local"),
    "posts_at_once": _yes_no("the worker posts to all decode ranks before it waits for any", True),
    "defer_waits": _yes_no("with a staging ring the worker waits for each decode rank before it goes on", False),
    "second_clear": KnobSpec("whose receiver the end of a hold clears", ("room", "own_life"), "room"),
    "restore_failure": KnobSpec(
        "what a decode rank does whose host-tier restore fails", ("frees", "rank_local", "agreed"), "frees"
    ),
    "retraction_waits": _yes_no("retraction waits for copies to the host tier", False),
    "hisparse_held": _yes_no("host pages that are destinations are held like slots", False),
    "idle_counts_holds": _yes_no("flush and role switch wait for holds", False),
    "compaction_sees_holds": _yes_no("compaction leaves held pages in place", False),
    "aux_channel": KnobSpec(
        "how the metadata content travels", ("in_chunk", "fifo_tcp", "unordered_tcp"), "unordered_tcp"
    ),
    "meta_complete": KnobSpec("when a room's metadata is complete", ("exact", "at_least"), "at_least"),
    "policy": KnobSpec("when decode allocates", ("early", "prefill_complete"), "early"),
    "router_aborts": KnobSpec("whom the router tells that a client has gone", ("one_leg", "both_legs"), "one_leg"),
    "unified_memory": _yes_no("the release starts with unified memory beside disaggregation", True),
    "staging": _yes_no("the release starts with a staging buffer", True),
    "hisparse": _yes_no("the release starts with HiSparse", True),
    "role_switch": _yes_no("an instance can change its role while it runs", True),
    "caches_failed": _yes_no("what is released after a failed transfer enters the radix tree", True),
    "transfers": _yes_no("the backend transfers anything at all", True),
    "receiver_complete": _yes_no("decode's receiver has all that a failed transfer asks of it", False),
    "reject": KnobSpec("where a rejected request is stopped", ("handed_off", "after_forward", "at_door"), "handed_off"),
    "checksum": KnobSpec(
        "what happens on a checksum mismatch, with the check on",
        ("absent", "local_drop", "agreed_drop"),
        "absent",
    ),
    "teardown": KnobSpec(
        "when the worker drops a room's addresses behind a chunk that it has sent, none being counted",
        ("never", "concluded", "concluded_or_gone"),
        "never",
    ),
    "aux_after_kv": _yes_no("the metadata content follows the last chunk only when that has landed", False),
    "staging_retry_resends": _yes_no("a deferred staging chunk starts again at its first destination", True),
}
"""Every knob that a profile must set."""

MODELLED = frozenset(each.name for each in fields(Knobs))
"""The knobs that the roles of the model read."""


@dataclass(frozen=True)
class Profile:
    """A release with a backend: its settings, with those it inherits, and the evidence for each."""

    name: str
    title: str
    settings: Mapping[str, Setting]
    evidence: Mapping[str, str]
    origin: str
    headline: bool = False
    peer: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Knobs that nobody has established; the worse value is used for them."""
        return tuple(name for name, value in self.settings.items() if value == UNKNOWN)

    @property
    def knobs(self) -> Knobs:
        """The settings that the model reads, with the worse value where one is unknown."""
        settled = {
            name: KNOBS[name].worse if value == UNKNOWN else value
            for name, value in self.settings.items()
            if name in MODELLED
        }
        return Knobs(**cast(dict[str, Any], settled))

    def settled(self, values: Mapping[str, Setting]) -> Profile | None:
        """The profile with these values for some knobs; None for a combination that no system can have."""
        settings = {**self.settings, **values}
        try:
            _check_consistent(settings, self.origin)
        except ProfileError:
            return None
        return replace(self, settings=settings)

    def as_data(self) -> dict[str, Any]:
        """The profile as plain data, as it stands in its file; `parse_profile` takes it back."""
        data: dict[str, Any] = {"name": self.name, "title": self.title, "headline": self.headline, "peer": self.peer}
        for name, value in self.settings.items():
            data[name] = {"value": value, "evidence": self.evidence[name]}
        return data


def catalogue() -> Iterator[str]:
    """Names of the profiles that come with draincheck, in order."""
    folder = files(FOLDER)
    yield from sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))


def headlines() -> list[str]:
    """The profiles of the catalogue that are checked unless others are named."""
    return [name for name in catalogue() if load_profile(name).headline]


def load_profile(name_or_path: str, depth: int = 0) -> Profile:
    """A profile of the catalogue by name, or from a TOML file. Raises ProfileError and ReadingError."""
    if name_or_path in catalogue():
        origin = f"{name_or_path}.toml"
        text = files(FOLDER).joinpath(origin).read_text("utf-8")
    else:
        origin = name_or_path
        text = _read(name_or_path)
    data = parse_toml(text, origin)
    profile = parse_profile(data, origin, _base(data, origin, depth))
    if profile.name in catalogue() and name_or_path not in catalogue():
        _require_same(profile, load_profile(profile.name))
    return profile


def _require_same(profile: Profile, shipped: Profile) -> None:
    """A file may be a copy of a shipped profile, but nothing else may go by its name: the name stands for a release."""
    differing = [name for name, value in profile.settings.items() if value != shipped.settings[name]]
    if differing:
        raise ProfileError(
            f"{profile.origin}: name is {profile.name}, a profile of draincheck that has another value of "
            f"{', '.join(differing)}; give the file a name of its own"
        )


def _read(path: str) -> str:
    if not path.endswith(".toml") and not os.path.lexists(path):
        close = get_close_matches(path, list(catalogue()), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ProfileError(f"{path}: no such profile; {hint}draincheck profile lists them, and a file ends in .toml")
    return read_text(Path(path), TOML_BYTES, "a profile, which is a TOML file")


def parse_profile(data: Mapping[str, Any], origin: str, base: Profile | None = None) -> Profile:
    """A profile from the data of its file, with the one that it inherits from. No other file is read.

    Raises ProfileError naming the first key that is wrong.
    """
    name, title = (_text(data, key, origin) for key in ("name", "title"))
    headline = data.get("headline", False)
    if not isinstance(headline, bool):
        raise ProfileError(f"{origin}: headline is {headline!r}; allowed: true, false")
    peer = data.get("peer", "")
    if not isinstance(peer, str):
        raise ProfileError(f"{origin}: peer is {peer!r}; give the name of a profile, or leave it out")
    for key in data:
        if key not in KNOBS and key not in ("name", "title", "headline", "inherits", "peer"):
            close = get_close_matches(key, KNOBS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"knobs are {', '.join(KNOBS)}"
            raise ProfileError(f"{origin}: unknown knob {key}; {hint}")
    if "inherits" in data and base is None:
        raise ProfileError(f"{origin}: inherits belongs into a TOML file; elsewhere a profile has all of its knobs")
    settings: dict[str, Setting] = {}
    evidence: dict[str, str] = {}
    for key, spec in KNOBS.items():
        if base and key not in data:
            settings[key], evidence[key] = base.settings[key], base.evidence[key]
        else:
            settings[key], evidence[key] = _knob(data, key, spec, origin)
    _check_consistent(settings, origin)
    return Profile(name, title, settings, evidence, origin, headline, peer)


def _base(data: Mapping[str, Any], origin: str, depth: int) -> Profile | None:
    """The profile that one inherits from."""
    if "inherits" not in data:
        return None
    name = _text(data, "inherits", origin)
    if depth >= MAX_INHERITANCE:
        raise ProfileError(f"{origin}: it inherits through more than {MAX_INHERITANCE} profiles, or in a circle")
    return load_profile(name, depth + 1)


def _text(data: Mapping[str, Any], key: str, origin: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f'{origin}: {key} is missing or no text; write {key} = "..." at the top')
    return value


def _knob(data: Mapping[str, Any], key: str, spec: KnobSpec, origin: str) -> tuple[Setting, str]:
    entry = data.get(key)
    if entry is None:
        raise ProfileError(f"{origin}: knob {key} is missing ({spec.meaning}); allowed: {spec.describe()}")
    if not isinstance(entry, Mapping) or "value" not in entry:
        raise ProfileError(
            f"{origin}: {key} must be a table [{key}] with value and evidence; allowed: {spec.describe()}"
        )
    table = cast(Mapping[str, Any], entry)
    value = table["value"]
    allowed = (*spec.allowed, UNKNOWN)
    if not any(type(value) is type(each) and value == each for each in allowed):
        shown = _toml(value) if isinstance(value, bool | int | str) else repr(value)
        raise ProfileError(f"{origin}: {key}.value is {shown}; allowed: {spec.describe()}")
    proof = table.get("evidence")
    if not isinstance(proof, str) or not proof.strip():
        raise ProfileError(
            f"{origin}: {key}.evidence is missing; name file and function of the release or a PR number, "
            'or set value = "unknown"'
        )
    extra = sorted(set(table) - {"value", "evidence"})
    if extra:
        raise ProfileError(f"{origin}: {key}.{extra[0]} is not known; a knob has value and evidence")
    return value, proof


def _check_consistent(settings: Mapping[str, Setting], origin: str) -> None:
    """Combinations that no system can have."""
    if settings["hold_enabled"] is True and settings["hold_causes"] == "none":
        raise ProfileError(
            f'{origin}: hold_enabled is true but hold_causes is "none"; a hold needs "decode_initiated" or "all"'
        )
