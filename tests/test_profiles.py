"""Bad profiles: one clear line that names file, key and allowed values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.models.catalogue.profile import KNOBS, MODELLED, ProfileError, catalogue, load_profile, parse_profile
from draincheck.models.reading import ReadingError

NEWEST = "sglang-0.5.23-mooncake"


def data(**changes: Any) -> dict[str, Any]:
    """The newest profile's data with changes; None takes a key away."""
    whole = load_profile(NEWEST).as_data()
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_knob_of_the_catalogue_has_a_value_and_evidence(name: str) -> None:
    profile = load_profile(name)
    assert list(profile.settings) == list(KNOBS)
    for knob, evidence in profile.evidence.items():
        assert ".py" in evidence, f"{knob}: name the file that was read"
    assert profile.name == name


def test_a_profile_survives_a_round_trip() -> None:
    profile = load_profile(NEWEST)
    assert parse_profile(profile.as_data(), profile.origin) == profile


def test_worse_values_are_allowed_values() -> None:
    for name, spec in KNOBS.items():
        assert spec.worse in spec.allowed, name
    assert set(KNOBS) >= MODELLED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, r'mine: name is missing or no text; write name = "..." at the top'),
        ({"title": 3}, r"mine: title is missing or no text"),
        (
            {"hold_enable": {"value": True, "evidence": "x"}},
            "mine: unknown knob hold_enable; did you mean hold_enabled",
        ),
        ({"zzz": 1}, "mine: unknown knob zzz; knobs are hold_enabled, "),
        ({"gen_tags": None}, 'mine: knob gen_tags is missing .*allowed: true, false, "unknown"'),
        ({"gen_tags": True}, r"mine: gen_tags must be a table \[gen_tags\] with value and evidence"),
        (
            {"gen_tags": {"value": "yes", "evidence": "x"}},
            'mine: gen_tags.value is "yes"; allowed: true, false, "unknown"',
        ),
        ({"gen_tags": {"value": 1, "evidence": "x"}}, "mine: gen_tags.value is 1; allowed: true, false"),
        (
            {"arm_order": {"value": True, "evidence": "x"}},
            'arm_order.value is true; allowed: "never", "after", "before"',
        ),
        ({"gen_tags": {"value": True}}, "mine: gen_tags.evidence is missing; name file and function"),
        ({"gen_tags": {"value": True, "evidence": " "}}, "mine: gen_tags.evidence is missing"),
        ({"gen_tags": {"value": True, "evidence": "x", "note": 1}}, "mine: gen_tags.note is not known"),
        (
            {"hold_causes": {"value": "none", "evidence": "x"}},
            "mine: hold_enabled is true but hold_causes is",
        ),
    ],
)
def test_bad_profiles(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message) as caught:
        parse_profile(data(**changes), "mine")
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"no such profile; did you mean sglang-0\.5\.23-mooncake"):
        load_profile("sglang-0.5.23-moncake")
    with pytest.raises(ReadingError, match=r"gone\.toml: cannot be read: No such file"):
        load_profile(str(tmp_path / "gone.toml"))
    with pytest.raises(ReadingError, match="cannot be read: Is a directory"):
        load_profile(str(tmp_path))
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ", "utf-8")
    with pytest.raises(ReadingError, match=r"broken\.toml: this is no TOML"):
        load_profile(str(broken))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadingError, match="is not UTF-8 text"):
        load_profile(str(binary))


def test_an_unknown_value_is_kept_and_settled_as_the_worse() -> None:
    profile = parse_profile(data(gen_tags={"value": "unknown", "evidence": "nobody has looked"}), "mine")
    assert "gen_tags" in profile.unknown
    assert profile.knobs.gen_tags is False


def test_a_shipped_name_is_nobody_elses(tmp_path: Path) -> None:
    """A copy is welcome; a file that differs would be taken for the release in every table."""
    text = CliRunner().invoke(main, ["profile", "sglang-0.5.23-mooncake"]).stdout
    copy = tmp_path / "mine.toml"
    copy.write_text(text, "utf-8")
    assert load_profile(str(copy)).settings == load_profile("sglang-0.5.23-mooncake").settings
    copy.write_text(text.replace("[hold_enabled]\nvalue = true", "[hold_enabled]\nvalue = false"), "utf-8")
    with pytest.raises(ProfileError, match="another value of hold_enabled; give the file a name of its own"):
        load_profile(str(copy))


def test_what_is_named_twice_is_one_row() -> None:
    name = "sglang-0.5.23-mooncake"
    done = CliRunner().invoke(main, ["verify", name, name, "--scenario", "abort", "--scenario", "abort", "--json"])
    assert len(json.loads(done.stdout)["rows"]) == 1
