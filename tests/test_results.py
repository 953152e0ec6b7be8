"""Results that are shared, kept or found elsewhere: the same as those of one search after the other."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from hashlib import sha256
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.kept import identity
from draincheck.explorer.kept.identity import key_of
from draincheck.explorer.search import search
from draincheck.explorer.search.search import LEAST_MEMORY, Limits, memory_share
from draincheck.explorer.traces.storage import load, save
from draincheck.explorer.verdicts import batch, calibration, pool
from draincheck.explorer.verdicts.batch import Batch, Status, verify_all
from draincheck.explorer.verdicts.plausible import implausible
from draincheck.explorer.verdicts.pool import available_cores
from draincheck.explorer.verdicts.results import result_of, row_of
from draincheck.explorer.verdicts.store import Store
from draincheck.explorer.verdicts.verify import Row, Run, Verdict, decide, exit_code, verify
from draincheck.models.catalogue.profile import KNOBS, MODELLED, catalogue, load_profile
from draincheck.models.drain.scenario import ENDS, EVENTS, SCENARIOS, Scenario
from draincheck.models.mutants.known_bugs import cells_of, known_bugs
from draincheck.properties.case import Case, Question
from draincheck.properties.drain.cases import cases_of, drain_case, scenario_with
from draincheck.properties.small import reference_case
from draincheck.protocol import loaded
from draincheck.protocol.language import DeclarationError, DraincheckError, require
from draincheck.protocol.loaded import FLOORS
from pydantic import ValidationError
from toys import ring

OLDEST, TWIN, NEWEST = "sglang-0.5.18-mooncake", "sglang-0.5.18-ascend", "sglang-0.5.23-mooncake"


def few_cases() -> list[Case]:
    """Four cases, of which the first and the third are equal; all kinds of traces."""
    return [
        *cases_of(OLDEST, ["abort"]),
        *cases_of(NEWEST, ["abort"]),
        *cases_of(TWIN, ["abort"]),
        *cases_of(NEWEST, ["failed-send"], timer=False),
    ]


def timeless(row: Row) -> Row:
    """A row without what may differ: how long it took, and whether it was stored."""

    def run(found: Run | None) -> Run | None:
        return found and replace(found, seconds=0.0)

    return replace(row, seconds=0.0, stored=False, run=run(row.run), without_timer=run(row.without_timer))


@pytest.fixture(scope="module")
def plain() -> list[Row]:
    """The rows of the few cases, by a search for each."""
    return [timeless(verify(case)) for case in few_cases()]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start for any number of cases."""
    monkeypatch.setattr(batch, "FEW", 0)


def case_of(profile: str, scenario: Scenario = SCENARIOS["abort"], **settings: Any) -> Case:
    base = load_profile(profile)
    return drain_case(replace(base, settings={**base.settings, **settings}), scenario)


# The key of a case.


def test_the_names_of_a_profile_are_no_part_of_the_key() -> None:
    profile = load_profile(NEWEST)
    other = replace(profile, name="mine", title="mine", origin="mine.toml", evidence=dict.fromkeys(KNOBS, "seen"))
    assert key_of(drain_case(profile, SCENARIOS["abort"])) == key_of(drain_case(other, SCENARIOS["abort"]))
    assert key_of(case_of(OLDEST)) == key_of(case_of(TWIN)) != key_of(case_of(NEWEST))


@pytest.mark.parametrize("knob", sorted(MODELLED))
def test_every_knob_of_the_model_is_part_of_the_key(knob: str) -> None:
    allowed = KNOBS[knob].allowed
    base = {"hold_causes": "all", "hold_enabled": False} if knob == "hold_causes" else {}
    keys = {key_of(case_of(NEWEST, **{**base, knob: value})) for value in allowed}
    assert len(keys) == len(allowed) and None not in keys


@pytest.mark.parametrize("name", [each.name for each in fields(Scenario)])
def test_every_field_of_a_scenario_is_part_of_the_key(name: str) -> None:
    scenario = SCENARIOS["failed-send"]
    value = getattr(scenario, name)
    match value:
        case bool():
            other: Any = not value
        case str():
            other = f"{value}!"
        case None:
            other = scenario.pool + 1
        case tuple():
            other = {"ends": ENDS[:2], "events": EVENTS}[name]
        case int():
            other = value + 1
        case _:
            pytest.fail(f"{name} is {value!r}: say here how to change it")
    changes = {name: other, "slots": 8} if name == "chunks" else {name: other}
    assert key_of(case_of(NEWEST, scenario)) != key_of(case_of(NEWEST, replace(scenario, **changes)))


def test_the_release_timer_and_the_code_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    timed, untimed = cases_of(NEWEST, ["abort"]), cases_of(NEWEST, ["abort"], timer=False)
    cases = [*timed, *untimed, reference_case(), reference_case(1), reference_case(2)]
    keys = {key_of(case) for case in cases}
    assert len(keys) == len(cases) and None not in keys
    monkeypatch.setattr(identity, "fingerprint", lambda: "other code")
    assert not keys & {key_of(case) for case in cases}


@pytest.mark.parametrize("part", ["witness", "count_all", "timed", "untimed"])
def test_what_is_asked_is_part_of_the_key(part: str) -> None:
    case = case_of(NEWEST)
    asked = case.untimed
    fewer = replace(asked, check=replace(asked.check, properties=asked.check.properties[:-1]))
    other = {"witness": "another", "count_all": True, "timed": None, "untimed": fewer}
    assert key_of(replace(case, **{part: other[part]})) not in (None, key_of(case))


@pytest.mark.slow
def test_each_case_of_the_catalogue_has_a_key() -> None:
    cases = [case for name in catalogue() for case in cases_of(name, list(SCENARIOS))]
    keys = {key_of(case) for case in cases}
    models = {(repr(case.untimed.check.model.knobs), case.scenario) for case in cases}
    assert None not in keys and len(keys) == len(models) < len(cases)


def test_every_source_file_is_part_of_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for floor in FLOORS:  # as installed, from which the files of a checkout may differ
        (folder,) = import_module(f"draincheck.{floor}").__path__
        shutil.copytree(folder, tmp_path / floor, ignore=shutil.ignore_patterns("__pycache__"))

    def there(name: str) -> Any:
        return SimpleNamespace(origin=str(tmp_path / name.split(".")[1] / "__init__.py"))

    monkeypatch.setattr(loaded, "find_spec", there)
    digest = identity._digest.__wrapped__
    seen = {identity._digest()}
    assert digest() in seen
    files = sorted(tmp_path.rglob("*.py"))
    for path in files:
        before = path.read_text("utf-8")
        path.write_text(before + "# another line\n", "utf-8")
        seen.add(digest())
        path.write_text(before, "utf-8")
    (tmp_path / "models" / "more.py").write_text("", "utf-8")
    seen.add(digest())
    assert len(seen) == 2 + len(files) and len(files) > 100


def test_each_library_that_computes_is_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numba", "llvmlite", "numpy", "scipy"):
        monkeypatch.setattr(identity, "version", lambda asked, name=name: "0" if asked == name else "1")
        first = identity._digest.__wrapped__()
        monkeypatch.setattr(identity, "version", lambda asked: "1")
        assert identity._digest.__wrapped__() != first


def with_start(start: Callable[..., Any]) -> Case:
    """A case whose model begins with a function."""
    case = case_of(NEWEST)
    model = replace(case.untimed.check.model, start=start)
    return replace(case, untimed=replace(case.untimed, check=replace(case.untimed.check, model=model)))


def test_a_function_counts_with_what_it_was_made_with() -> None:
    def starting(level: object) -> Callable[[Any], None]:
        def start(state: Any) -> None:
            require(level == 1)

        start.__module__ = "draincheck.models.drain.closed"
        return start

    assert key_of(with_start(starting(1))) == key_of(with_start(starting(1))) is not None
    keys = [key_of(with_start(starting(level))) for level in (1, 2, "1", True, (1,), ("1",), None)]
    assert len(set(keys)) == len(keys) and None not in keys
    with pytest.raises(DeclarationError, match="level: an object is no part of the language"):
        with_start(starting(object()))


def test_code_that_is_not_covered_has_no_key() -> None:
    toy = ring()
    question = Question(toy, (), {})
    case = Case("toy", "ring", question, None, "second_node_has_three")
    assert key_of(case) is None
    assert key_of(with_start(lambda state: None)) is None
    (first, second) = verify_all([case, case], jobs=2).rows
    assert timeless(first) == timeless(second) == timeless(verify(case))


# Rows by another way.


def test_rows_of_a_batch_are_those_of_single_searches(plain: list[Row]) -> None:
    assert [timeless(row) for row in verify_all(few_cases()).rows] == plain
    assert {row.verdict for row in plain} == {Verdict.CORRUPTS, Verdict.CONDITIONAL, Verdict.LEAKS}


@pytest.mark.usefixtures("at_once")
def test_rows_of_workers_are_those_of_single_searches(plain: list[Row]) -> None:
    found = verify_all(few_cases(), jobs=2)
    assert [timeless(row) for row in found.rows] == plain and not found.interrupted
    assert not any(row.stored for row in found.rows)


def test_rows_of_results_are_those_of_single_searches(plain: list[Row]) -> None:
    for case, row in zip(few_cases(), plain, strict=True):
        result = result_of(row, case)
        assert row_of(result, case) == row
        assert row_of(type(result).model_validate_json(result.model_dump_json()), case) == row


def test_undetermined_rows_come_back_from_workers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(states=100)
    plain_rows = [timeless(verify(case, limits)) for case in few_cases()]
    assert {row.verdict for row in plain_rows} == {Verdict.UNDETERMINED}
    monkeypatch.setattr(batch, "FEW", 0)
    assert [timeless(row) for row in verify_all(few_cases(), limits, jobs=2).rows] == plain_rows


def test_workers_take_over_when_patience_ends(plain: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[list[str]] = []
    side_by_side = batch.search_all

    def seen(cases: Any, *rest: Any) -> Any:
        handed.append(list(cases))
        return side_by_side(cases, *rest)

    monkeypatch.setattr(batch, "search_all", seen)
    monkeypatch.setattr(batch, "PATIENCE_SECONDS", 1e-6)
    monkeypatch.setattr(search, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(search, "CHUNK", 256)
    monkeypatch.setattr(batch.time, "perf_counter", ticks := iter(range(10**9)).__next__)
    assert ticks() == 0
    rows = verify_all(few_cases(), jobs=2).rows
    assert [timeless(row) for row in rows] == plain
    assert [len(keys) for keys in handed] == [3]


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    searched: list[str] = []

    def counted(case: Case, *rest: Any) -> Row:
        searched.append(f"{case.profile} / {case.scenario}")
        return decide(case, *rest)

    monkeypatch.setattr(batch, "decide", counted)
    return searched


def test_equal_cases_are_searched_once_and_keep_their_names(
    plain: list[Row], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    searched = count_searches(monkeypatch)
    rows = verify_all(few_cases()).rows
    assert searched == [f"{OLDEST} / abort", f"{NEWEST} / abort", f"{NEWEST} / failed-send"]
    assert (rows[0].profile, rows[2].profile) == (OLDEST, TWIN)
    assert rows[0].run == rows[2].run and rows[0].trace is not None and rows[2].trace is not None
    assert rows[2].trace.model == f"{TWIN} / abort"
    assert rows[0].trace.taken == rows[2].trace.taken
    path = save(rows[2].trace, tmp_path)
    assert json.loads(path.read_text("utf-8"))["source"]["profile"]["name"] == TWIN
    assert load(path).steps == rows[2].trace.steps


@pytest.mark.usefixtures("at_once")
def test_a_worker_that_knows_another_key_gives_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = batch.key_of
    monkeypatch.setattr(batch, "key_of", lambda case: f"{real(case)}"[::-1])
    with pytest.raises(DraincheckError, match="has changed while it ran"):
        verify_all(few_cases(), jobs=2)


@pytest.mark.usefixtures("at_once")
def test_what_its_share_of_memory_is_too_small_for_is_searched_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "memory_share", lambda searches: LEAST_MEMORY)
    searched = count_searches(monkeypatch)
    cases = [reference_case(), *cases_of(OLDEST, ["abort"])]
    rows = verify_all(cases, jobs=2).rows
    assert searched == ["reference / untimed"]
    assert (rows[0].verdict, rows[0].run.states) == (Verdict.SAFE, 581_821)
    cut = verify_all(cases, Limits(memory=LEAST_MEMORY), jobs=2).rows  # a limit of the user's is one
    assert cut[0].verdict is Verdict.UNDETERMINED and "memory limit" in cut[0].reasons[0]


def test_searches_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "available_memory", lambda: 1 << 34)
    assert memory_share(4) == memory_share() // 4 > LEAST_MEMORY
    assert memory_share(10**6) == LEAST_MEMORY


def test_a_control_group_limits_the_cores(tmp_path: Path) -> None:
    cores = available_cores(tmp_path)
    assert cores >= 1
    for text, expected in (("max 100000\n", cores), ("50000 100000\n", 1), ("10000000 100000\n", min(cores, 100))):
        (tmp_path / "cpu.max").write_text(text, "ascii")
        assert available_cores(tmp_path) == expected


# The store.


def test_stored_rows_are_those_of_single_searches(
    plain: list[Row], own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = count_searches(monkeypatch)
    fresh = verify_all(few_cases(), store=Store(own_store)).rows
    assert len(searched) == 3 and not any(row.stored for row in fresh)
    stored = verify_all(few_cases(), store=Store(own_store)).rows
    assert len(searched) == 3 and all(row.stored for row in stored)
    assert [timeless(row) for row in stored] == [timeless(row) for row in fresh] == plain
    assert [row.seconds for row in stored] == [row.seconds for row in fresh]


def test_a_stored_result_is_one_whatever_the_limits(own_store: Path) -> None:
    case = case_of(NEWEST)
    verify_all([case], store=Store(own_store))
    (row,) = verify_all([case], Limits(states=100), store=Store(own_store)).rows
    assert row.stored and row.verdict is Verdict.CONDITIONAL


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_what_is_undetermined_is_not_stored(own_store: Path) -> None:
    store = Store(own_store)
    assert verify_all(few_cases(), Limits(states=100), store=store).rows[0].verdict is Verdict.UNDETERMINED
    assert not files_of(own_store) and not store.trouble


def test_counts_that_were_cut_short_are_not_stored(own_store: Path) -> None:
    """A verdict can be known where the counts are not."""
    case = case_of(NEWEST)
    result = result_of(verify(case), case)
    assert result.settled and result.without_timer is not None
    cut = [
        result.model_copy(update={"run": replace(result.run, reason="interrupted", complete=False)}),
        result.model_copy(update={"without_timer": replace(result.without_timer, reason="time limit of 1 s reached")}),
        result.model_copy(update={"verdict": Verdict.UNDETERMINED, "reasons": ["the action x never fired"]}),
    ]
    for each in cut:
        Store(own_store).write("0" * 64, each)
    assert not files_of(own_store)


def rewritten(change: Callable[[dict[str, Any]], None], *, sealed: bool) -> Callable[[bytes], bytes]:
    """Changes the result in a file; with a checksum that fits, if sealed."""

    def damage(content: bytes) -> bytes:
        first, second = (json.loads(line) for line in content.split(b"\n"))
        change(second)
        line = json.dumps(second).encode()
        if sealed:
            first["digest"] = sha256(line).hexdigest()
        return json.dumps(first).encode() + b"\n" + line

    return damage


def heading(**changes: Any) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        first, second = content.split(b"\n")
        return json.dumps({**json.loads(first), **changes}).encode() + b"\n" + second

    return damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-1],
    "cut in the heading": lambda content: content[:20],
    "not text": lambda content: b"\xff" * 100,
    "longer": lambda content: content + b" ",
    "a digit": lambda content: content.replace(b'"states":', b'"states":1', 1),
    "another verdict": rewritten(lambda data: data.update(verdict="SAFE"), sealed=False),
    "another verdict, sealed": rewritten(lambda data: data.update(verdict="SAFE"), sealed=True),
    "safe, but cut short": rewritten(lambda data: data.update(verdict="SAFE", findings=[]), sealed=True),
    "no verdict": rewritten(lambda data: data.update(verdict="FINE"), sealed=True),
    "not settled": rewritten(lambda data: data.update(verdict="UNDETERMINED", reasons=["interrupted"]), sealed=True),
    "a field too many": rewritten(lambda data: data.update(more=1), sealed=True),
    "a field too few": rewritten(lambda data: data.pop("run"), sealed=True),
    "a run that is none": rewritten(lambda data: data["findings"][0]["run"]["steps"].pop(3), sealed=True),
    "a run that shows nothing": rewritten(lambda data: data["findings"][0]["run"]["steps"].pop(), sealed=True),
    "a run of no question": rewritten(lambda data: data["findings"][0]["run"].update(question="x"), sealed=True),
    "another beginning": rewritten(lambda data: data["findings"][0]["run"].update(initial=[1]), sealed=True),
    "another key": heading(key="0" * 64),
    "another version": heading(version=2),
    "another format": heading(format="draincheck-trace"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_counts_as_not_there_and_is_replaced(damage: Callable[[bytes], bytes], own_store: Path) -> None:
    case = case_of(OLDEST)
    (fresh,) = verify_all([case], store=Store(own_store)).rows
    (path,) = files_of(own_store)
    content = path.read_bytes()
    assert damage(content) != content
    path.write_bytes(damage(content))
    (again,) = verify_all([case], store=Store(own_store)).rows
    assert not again.stored and timeless(again) == timeless(fresh)
    (row,) = verify_all([case], store=Store(own_store)).rows
    assert row.stored and timeless(row) == timeless(fresh)


def sealed(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    return rewritten(change, sealed=True)


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "fewer than no states": lambda data: data["run"].update(states=-5),
    "one state": lambda data: data["run"].update(states=1),
    "fewer transitions than states": lambda data: data["run"].update(transitions=data["run"]["states"] // 2),
    "a depth without states": lambda data: data["run"].update(depth=data["run"]["states"]),
    "a negative depth": lambda data: data["run"].update(depth=-1),
    "no counts": lambda data: data["run"].update(counts={}),
    "a count too few": lambda data: data["run"]["counts"].popitem(),
    "a count of something else": lambda data: data["run"]["counts"].update(more=1),
    "a count of more than all": lambda data: data["run"]["counts"].update(owned_once=10**9),
    "a negative count": lambda data: data["run"]["counts"].update(owned_once=-1),
    "a failure that nothing shows": lambda data: data["run"]["counts"].update(owned_once=1),
    "no hits": lambda data: data["run"].update(hits={}),
    "a hit too many": lambda data: data["run"]["hits"].update(land=data["run"]["hits"]["land"] + 1),
    "hits of an unknown action": lambda data: data["run"]["hits"].update(jump=0),
    "no bounds": lambda data: data["run"].update(bounds={}),
    "other bounds": lambda data: data["run"]["bounds"].update(chunks="7"),
    "another class of the run": lambda data: data["run"].update(verdict="DELAYS"),
    "seconds that are no number": lambda data: data.update(seconds=float("nan")),
    "seconds of a run that are no number": lambda data: data["run"].update(seconds=float("inf")),
    "complete and cut short": lambda data: data["run"].update(complete=not data["run"]["complete"]),
    "no witness": lambda data: data.update(witness=None if data["witness"] else data["findings"][0]["run"]),
    "unfair actions": lambda data: data.update(unfair=["nobody"]),
}
OF_SAFE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a probe that was not reached": lambda data: data["run"]["counts"].update(reuse_after_drain=0),
    "an action that never fired": lambda data: _move(data["run"]["hits"], "land", "arrive"),
    "a search without the timer too many": lambda data: data.update(without_timer=data["run"]),
}
OF_CONDITIONAL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another class": lambda data: _reclass(data, "CORRUPTS"),
    "findings dropped": lambda data: data.update(findings=[], verdict="SAFE"),
    "the search without the timer is missing": lambda data: data.update(without_timer=None),
    "the runs exchanged": lambda data: data.update(run=data["without_timer"], without_timer=data["run"]),
    "the same finding twice": lambda data: data["findings"].append(data["findings"][0]),
    "a witness as a finding": lambda data: data["findings"][0].update(run=data["witness"]),
    "no failure counted": lambda data: data["run"]["counts"].update(no_late_write=0),
}


def _move(hits: dict[str, int], name: str, to: str) -> None:
    hits[to] += hits[name]
    hits[name] = 0


def _reclass(data: dict[str, Any], verdict: str) -> None:
    data.update(verdict=verdict)
    data["run"].update(verdict=verdict)
    data["findings"][0].update(verdict=verdict)


@pytest.fixture(scope="module")
def honest() -> dict[str, tuple[Case, Any]]:
    """Cases with their results, by verdict."""
    cases = [case_of(OLDEST), case_of(NEWEST), *cases_of(NEWEST, ["abort"], timer=False)]
    found = [(case, result_of(verify(case), case)) for case in cases]
    return {result.verdict.name: (case, result) for case, result in found}


def forged(result: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    data = result.model_dump()
    change(data)
    return type(result).model_validate(data)


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        *((verdict, name) for verdict in ("CORRUPTS", "CONDITIONAL", "SAFE") for name in FORGERIES),
        *(("SAFE", name) for name in OF_SAFE),
        *(("CONDITIONAL", name) for name in OF_CONDITIONAL),
    ],
)
def test_what_no_search_can_find_is_refused(honest: dict[str, tuple[Case, Any]], verdict: str, name: str) -> None:
    case, result = honest[verdict]
    assert not list(implausible(result, case))
    try:
        other = forged(result, {**FORGERIES, **OF_SAFE, **OF_CONDITIONAL}[name])
    except ValidationError:
        return
    with pytest.raises(DraincheckError, match="no search finds this"):
        row_of(other, case, stored=True)


def test_whatever_a_search_finds_is_plausible() -> None:
    for case in cases_of(NEWEST, ["node-failure", "lost-report", "split-status", "worker-death", "flush"]):
        result = result_of(verify(case), case)
        assert result.settled and not list(implausible(result, case))


def test_a_forged_entry_is_searched_again_and_replaced(own_store: Path) -> None:
    (case,) = cases_of(NEWEST, ["abort"], timer=False)
    (fresh,) = verify_all([case], store=Store(own_store)).rows
    (path,) = files_of(own_store)
    for change in (FORGERIES["one state"], FORGERIES["seconds that are no number"], FORGERIES["no counts"]):
        path.write_bytes(sealed(change)(path.read_bytes()))
        (again,) = verify_all([case], store=Store(own_store)).rows
        assert not again.stored and timeless(again) == timeless(fresh)


def test_the_file_of_another_case_counts_as_not_there(own_store: Path) -> None:
    store = Store(own_store)
    mine, other = case_of(NEWEST), case_of(OLDEST)
    verify_all([mine, other], store=store)
    key, foreign = key_of(mine), key_of(other)
    assert key and foreign and store.read(key) and store.read(foreign)
    shutil.copy(store.path(foreign), store.path(key))
    assert store.read(key) is None


def test_a_result_must_add_up() -> None:
    (case,) = cases_of(NEWEST, ["abort"], timer=False)
    result = result_of(verify(case), case)
    data = {name: getattr(result, name) for name in type(result).model_fields}
    assert type(result).model_validate(data) == result
    for wrong in (
        {"verdict": Verdict.CORRUPTS},
        {"reasons": ["interrupted"]},
        {"run": replace(result.run, complete=False)},
        {"run": replace(result.run, reason="interrupted")},
    ):
        with pytest.raises(ValidationError, match="verdict"):
            type(result).model_validate({**data, **wrong})


def test_results_of_other_code_make_room(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Store(own_store)
    verify_all([case_of(OLDEST)], store=old)
    (old_file,) = files_of(own_store)
    bystanders = [own_store / "notes.txt", own_store / "result-mine" / "x.json", own_store / "other" / old_file.name]
    for each in bystanders:
        each.parent.mkdir(exist_ok=True)
        each.write_text("mine", "utf-8")
    for module in ("identity", "entries"):
        monkeypatch.setattr(f"draincheck.explorer.kept.{module}.fingerprint", lambda: "0123456789abcdef" * 4)
    new = Store(own_store)
    (row,) = verify_all([case_of(OLDEST)], store=new).rows
    assert not row.stored and not old_file.parent.exists()
    assert all(each.read_text("utf-8") == "mine" for each in bystanders)
    assert len(files_of(own_store)) == 1 + len(bystanders)
    verify_all([case_of(NEWEST)], store=new)
    assert len(files_of(own_store)) == 2 + len(bystanders)


def test_a_store_that_cannot_be_written_is_said_and_does_no_harm(own_store: Path) -> None:
    shutil.rmtree(own_store)
    own_store.parent.joinpath(own_store.name).write_text("a file", "utf-8")
    store = Store(own_store)
    rows = verify_all(few_cases(), store=store).rows
    assert len(rows) == 4 and not any(row.stored for row in rows)
    assert str(own_store) in store.trouble and "cannot be written" in store.trouble


def command(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["verify", *[str(each) for each in arguments]])


def test_the_command_says_which_rows_are_stored(own_store: Path) -> None:
    first = command(NEWEST, "--scenario", "abort")
    second = command(NEWEST, "--scenario", "abort", "--scenario", "failed-send")
    assert "earlier run" not in first.stdout
    assert "1 of 2 rows are results of an earlier run that are still valid" in second.stdout
    assert first.exit_code == second.exit_code == 1
    both = json.loads(command(NEWEST, "--json").stdout)["rows"]
    assert [row["stored"] for row in both] == [True, True]
    anew = json.loads(command(NEWEST, "--json", "--no-store").stdout)["rows"]
    assert [row["stored"] for row in anew] == [False, False]
    ignored = {"seconds", "stored", "without_timer"}
    for kept, found in zip(both, anew, strict=True):
        assert {name: kept[name] for name in kept.keys() - ignored} == {
            name: found[name] for name in kept.keys() - ignored
        }
        assert kept["without_timer"]["states"] == found["without_timer"]["states"]
    assert len(files_of(own_store)) == 2


def test_the_command_keeps_results_where_it_is_told(own_store: Path, tmp_path: Path) -> None:
    command(NEWEST, "--scenario", "abort", "--no-store")
    assert not files_of(own_store)
    command(NEWEST, "--scenario", "abort", "--store", tmp_path / "deep" / "here")
    assert not files_of(own_store) and len(files_of(tmp_path)) == 1
    (tmp_path / "file").write_text("", "utf-8")
    wrong = command(NEWEST, "--store", tmp_path / "file")
    assert wrong.exit_code == 2 and "is a file" in wrong.stderr
    barred = command(OLDEST, "--scenario", "abort", "--store", tmp_path / "file" / "store")
    assert barred.exit_code == 1 and "CORRUPTS" in barred.stdout
    assert "results are not kept" in barred.stderr and barred.stderr.count("\n") == 1


def test_jobs_must_be_a_number_from_one() -> None:
    result = command(NEWEST, "--jobs", 0)
    assert result.exit_code == 2 and "0 is not in the range" in result.stderr


# Interruption.


def large_cases() -> list[Case]:
    """Two cases that take minutes each."""
    scenario = scenario_with("abort", {"ranks": 2})
    return [case_of(NEWEST, scenario), case_of("sglang-0.5.21-mooncake", scenario)]


def children() -> int:
    return len(multiprocessing.active_children())


@pytest.mark.usefixtures("at_once")
def test_an_interruption_keeps_what_workers_have_found(plain: list[Row], own_store: Path) -> None:
    before = children()

    def interrupt(at: Status) -> None:
        if at.done == 2 and len(at.running) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    cases = [few_cases()[0], few_cases()[2], *large_cases()]
    found = verify_all(cases, jobs=2, store=Store(own_store), watch=interrupt)
    assert found.interrupted
    assert [timeless(row) for row in found.rows[:2]] == [plain[0], plain[2]]
    assert all(row.reasons == ("interrupted",) for row in found.rows[2:])
    assert children() == before
    assert len(files_of(own_store)) == 1


def kill_workers(title: str, times: int) -> Callable[[Status], None]:
    """Kills all workers while a search runs that has this in its title, so many times."""
    left = times

    def kill(at: Status) -> None:
        nonlocal left
        if left and any(title in each for each, _ in at.running):
            left -= 1
            for process in multiprocessing.active_children():
                process.kill()

    return kill


@pytest.mark.usefixtures("at_once")
def test_what_a_dead_worker_was_at_is_searched_once_more(plain: list[Row]) -> None:
    cases = [few_cases()[0], reference_case(), few_cases()[3]]
    found = verify_all(cases, jobs=2, watch=kill_workers("reference", 1))
    assert not found.interrupted and found.rows[1].run.states == 581_821
    assert [timeless(found.rows[0]), timeless(found.rows[2])] == [plain[0], plain[3]]


@pytest.mark.usefixtures("at_once")
def test_what_a_worker_dies_of_again_is_undetermined_and_nothing_else_is(plain: list[Row], own_store: Path) -> None:
    cases = [few_cases()[0], reference_case(), few_cases()[3]]
    found = verify_all(cases, jobs=2, store=Store(own_store), watch=kill_workers("reference", 2))
    assert [timeless(found.rows[0]), timeless(found.rows[2])] == [plain[0], plain[3]]
    lost = found.rows[1]
    assert lost.verdict is Verdict.UNDETERMINED and "died twice (at last: killed by signal 9)" in lost.reasons[0]
    assert exit_code([lost]) == 3 and not lost.run.complete
    assert len(files_of(own_store)) == 2
    assert children() == 0


@pytest.mark.usefixtures("at_once")
def test_a_fork_server_that_dies_is_started_again(plain: list[Row]) -> None:
    verify_all(few_cases(), jobs=2)
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    os.kill(server._forkserver_pid, signal.SIGKILL)
    found = verify_all(few_cases(), jobs=2)
    assert [timeless(row) for row in found.rows] == plain


@pytest.mark.usefixtures("at_once")
def test_without_workers_all_is_searched_here(plain: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_context() -> Any:
        raise ConnectionRefusedError

    monkeypatch.setattr(pool, "_context", no_context)
    assert [timeless(row) for row in verify_all(few_cases(), jobs=2).rows] == plain


def test_rows_that_are_missing_leave_the_others_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption leaves gaps anywhere: what is known of one case must not be told of another."""
    real = calibration.verify_all
    monkeypatch.setattr(calibration, "verify_all", lambda cases, *rest, **more: gaps(real(cases[:3], *rest, **more)))

    def gaps(found: Batch) -> Batch:
        return Batch((None, *found.found[1:], *([None] * (len(asked) - 3))), True)

    asked = [(bug.name, name) for bug in known_bugs() for name, _ in cells_of(bug)]
    cells, interrupted = calibration.calibrate()
    assert interrupted and [(cell.bug.name, cell.profile) for cell in cells] == asked[1:3]


def test_an_interrupted_command_prints_the_rows_that_are_known(own_store: Path) -> None:
    """Ctrl-C in a terminal goes to every process of the command."""
    program = (
        "from draincheck.explorer.commands import cli; from draincheck.explorer.verdicts import batch; "
        "batch.FEW = 0; cli.main()"
    )
    large = ["--scenario", "abort", "--prefill-ranks", "2", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "verify", OLDEST, NEWEST, *large],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not files_of(own_store) and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    shown, said = process.communicate()
    assert process.returncode == 130
    assert "CORRUPTS" in shown and OLDEST in shown
    assert "Traceback" not in said
    if NEWEST in shown:
        assert f"{NEWEST} / abort: interrupted" in shown
    else:
        assert "interrupted; 1 rows are not known" in said
