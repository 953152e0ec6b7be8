"""A verdict that rests on what is unknown says so, and no other one names it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import pytest
from draincheck.explorer.commands.report import document, legend
from draincheck.explorer.compile.tracer import trace
from draincheck.explorer.verdicts import batch
from draincheck.explorer.verdicts.batch import verify_all
from draincheck.explorer.verdicts.store import Store
from draincheck.explorer.verdicts.verify import Row, Verdict, decide, verify, weigh
from draincheck.models.catalogue.profile import KNOBS, MODELLED, Profile, Setting, catalogue, load_profile
from draincheck.models.drain.features import lacking
from draincheck.models.drain.scenario import SCENARIOS, Scenario
from draincheck.properties.case import Case
from draincheck.properties.drain.cases import drain_case
from draincheck.properties.drain.unknown import MOST_SETTINGS, matters, other_values, untried
from draincheck.protocol.language import machinery
from draincheck.protocol.roles.knobs import Knobs

NEWEST = "sglang-0.5.23-mooncake"
ORDER = list(Verdict)


def with_knobs(name: str, **settings: Setting) -> Profile:
    base = load_profile(name)
    return replace(base, settings={**base.settings, **settings})


def small(scenario: str) -> Scenario:
    return replace(SCENARIOS[scenario], chunks=1, slots=None)


@cache
def row(name: str, scenario: str) -> Row:
    return verify(drain_case(load_profile(name), small(scenario)))


def words(found: Row) -> list[str]:
    return [line for line in legend([found]) if "unknown" in line]


def test_a_verdict_that_an_unknown_decides_says_so() -> None:
    found = row("sglang-0.5.23-nixl", "failed-send")
    known = verify(drain_case(with_knobs("sglang-0.5.23-nixl", err_implies_quiet=True), small("failed-send")))
    assert (found.verdict, known.verdict) == (Verdict.CORRUPTS, Verdict.CONDITIONAL)
    assert found.assumed == {"err_implies_quiet": False}
    (other,) = found.otherwise
    assert (other.settings, other.classes) == ({"err_implies_quiet": True}, known.classes)
    (line,) = words(found)
    assert "CORRUPTS rests on what is unknown and taken as err_implies_quiet = false" in line
    assert "with err_implies_quiet = true it is CONDITIONAL" in line
    (shown,) = document([found])["rows"]
    assert shown["assumed"] == {"err_implies_quiet": False}
    assert shown["otherwise"] == [{"settings": {"err_implies_quiet": True}, "classes": ["CONDITIONAL"]}]


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("sglang-0.5.23-nixl", "abort"),  # no send fails
        ("sglang-0.5.23-mori", "failed-send"),  # a post that raises is acknowledged, whatever an error means
        ("sglang-0.5.18-nixl", "failed-send"),  # nothing is held
        (NEWEST, "failed-send"),  # what the router does is unknown, and no router is in it
    ],
)
def test_one_that_does_not_depend_on_it_does_not_name_it(name: str, scenario: str) -> None:
    found = row(name, scenario)
    assert load_profile(name).unknown
    assert not found.assumed and not found.otherwise and not words(found)


@pytest.mark.parametrize("name", [NEWEST, "sglang-0.5.20-mooncake"])
def test_the_worst_value_is_taken_whatever_the_profile_takes_for_the_worse(name: str) -> None:
    case = drain_case(load_profile(name), small("router"))
    alone = {
        str(value): decide(drain_case(with_knobs(name, router_aborts=value), small("router")))
        for value in KNOBS["router_aborts"].allowed
    }
    taken = {str((each.assumed or {})["router_aborts"]): each for each in (case, *case.alternatives)}
    own, *others = (replace(alone[value], assumed=each.assumed or {}) for value, each in taken.items())
    found = weigh(case, own, others)
    assert not any(each.assumed for each in alone.values())
    worst = min(alone.values(), key=lambda each: ORDER.index(each.verdict))
    assert (found.verdict, found.run.states) == (worst.verdict, worst.run.states)
    same = len({each.verdict for each in alone.values()}) == 1 and worst.verdict is Verdict.CORRUPTS
    assert same is not bool(found.assumed)
    for each in found.otherwise:
        assert each.classes == alone[str(each.settings["router_aborts"])].classes != found.classes


def test_what_decides_only_together_is_named_together() -> None:
    asked = with_knobs(NEWEST, poison_on_error="unknown", poison_on_rejected_post="unknown")
    found = verify(drain_case(asked, small("failed-send")))
    assert found.verdict is Verdict.CORRUPTS
    (other,) = found.otherwise
    assert other.settings == {"poison_on_error": True, "poison_on_rejected_post": True}
    assert other.classes == (Verdict.CONDITIONAL,)


def test_a_peer_may_be_unknown_too() -> None:
    ours, theirs = load_profile(NEWEST), with_knobs("sglang-0.5.22-mooncake", abort_handled="unknown")
    case = drain_case(ours, SCENARIOS["mixed"], prefill=theirs)
    assert case.assumed == {"abort_handled of sglang-0.5.22-mooncake": False}
    (other,) = case.alternatives
    assert other.untimed.check.model.knobs.prefill.abort_handled
    found = verify(case)
    assert found.assumed and found.otherwise  # an ABORT that nobody acts on is never acknowledged


def test_other_values() -> None:
    taken = [{"hold_enabled": False, "hold_causes": "none"}, {"gen_tags": False}]
    others = list(other_values(taken))
    assert len(others) == 2 * 3 * 2 - 1 and taken not in others and not untried(taken)
    many: list[dict[str, Setting]] = [{name: KNOBS[name].worse for name in sorted(MODELLED)}]
    single = list(other_values(many))
    assert len(single) == sum(len(KNOBS[name].allowed) - 1 for name in MODELLED)
    assert all(sum(each[0][name] != many[0][name] for name in many[0]) == 1 for each in single)
    assert f"{len(MODELLED)} unknown knobs" in untried(many)


def test_what_no_system_can_have_is_no_alternative() -> None:
    case = drain_case(with_knobs(NEWEST, hold_enabled="unknown", hold_causes="unknown"), small("abort"))
    assert len(case.alternatives) == 2 * 3 - 2  # the values that are taken, and a hold for no cause
    settings = [(each.assumed or {}) for each in case.alternatives]
    assert {"hold_enabled": True, "hold_causes": "none"} not in settings


def test_where_not_all_values_are_searched_the_row_says_so() -> None:
    names = ("poison_on_error", "poison_on_rejected_post", "caches_failed", "idle_counts_holds", "hisparse_held")
    asked = drain_case(with_knobs(NEWEST, **dict.fromkeys(names, "unknown")), small("abort"))
    assert 2 ** len(names) > MOST_SETTINGS and len(asked.alternatives) == len(names)
    alike = decide(asked)
    found = weigh(asked, alike, [replace(alike, assumed=each.assumed or {}) for each in asked.alternatives])
    (said,) = (line for line in words(found) if "not known" in line)
    assert "5 unknown knobs have 32 settings" in said
    (shown,) = document([found])["rows"]
    assert shown["untried"] == found.untried


def test_values_that_were_not_searched_are_said() -> None:
    case = drain_case(load_profile("sglang-0.5.23-nixl"), small("failed-send"))
    found = weigh(case, decide(case), [])
    assert found.untried and not found.otherwise and "not known" in " ".join(words(found))


def test_many_at_once_weigh_alike(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = drain_case(load_profile("sglang-0.5.23-nixl"), small("failed-send"))
    cases = [case, replace(case, alternatives=(), assumed={})]

    def said(found: Row) -> tuple[object, ...]:
        return found.verdict, found.classes, dict(found.assumed), found.otherwise

    alone = row("sglang-0.5.23-nixl", "failed-send")
    store = Store(tmp_path)
    first, plain = verify_all(cases, store=store).rows
    assert said(first) == said(alone) and plain.verdict is alone.verdict and not plain.otherwise
    monkeypatch.setattr(batch, "decide", None)  # everything is known
    again, _ = verify_all(cases, store=store).rows
    assert said(again) == said(alone) and again.stored


@machinery
class Watched(Knobs):
    """Knobs that keep which of them are looked at."""

    looked_at: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in MODELLED:
            Watched.looked_at.add(name)
        return super().__getattribute__(name)


def questions(case: Case) -> Iterator[Any]:
    yield from (each for each in (case.untimed, case.patient, case.timed) if each)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_knob_that_does_not_matter_is_looked_at_by_no_step_and_no_property(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it makes no difference to which steps there are."""
    idle = {name for name in MODELLED if not matters(name, SCENARIOS[scenario])}
    assert idle
    for name in ("sglang-0.5.20-nixl-hold-on", "sglang-0.5.23-mooncake"):
        base = load_profile(name)
        if lacking(base, SCENARIOS[scenario]):
            continue  # nobody can run it
        models = []
        for value_of in (lambda spec: spec.allowed[0], lambda spec: spec.allowed[-1]):
            settings = {**base.settings, **{knob: value_of(KNOBS[knob]) for knob in idle}}
            case = drain_case(replace(base, settings=settings), small(scenario))
            models.append([[each.name for each in asked.check.model.actions] for asked in questions(case)])
        assert models[0] == models[1]
        monkeypatch.setattr("draincheck.models.catalogue.profile.Knobs", Watched)
        Watched.looked_at.clear()
        asked = drain_case(base, small(scenario)).untimed.check
        Watched.looked_at.clear()  # what steps there are has been compared
        tracer, _ = trace(asked.model, asked.model.initial_states())
        for each in asked.properties:
            tracer.fails(each)
        for each in (*asked.probes, *asked.promises):
            tracer.holds(each) if each in asked.probes else tracer.pending(each)
        tracer.terminal()
        monkeypatch.undo()
        assert Watched.looked_at and not Watched.looked_at & idle


def test_the_catalogue_has_what_these_tests_are_about() -> None:
    assert {knob for name in catalogue() for knob in load_profile(name).unknown} == {
        "router_aborts",
        "err_implies_quiet",
        "hisparse",
    }
