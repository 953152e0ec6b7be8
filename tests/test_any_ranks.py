"""Any number of ranks: families that are true of few ranks only are not proved, and those that are true of all are.

What is said of code that is read is held against its execution: a step that meets the conditions is, in random states
of up to six ranks, a step of two for one rank and each other one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from draincheck.explorer.proofs import any_ranks
from draincheck.explorer.proofs.any_ranks import places, unmet
from draincheck.explorer.proofs.rank_form import Reader
from draincheck.explorer.verdicts.proofs import Verdict, prove_any_number, prove_by_induction
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.drain.endless import endless_model
from draincheck.properties.drain.lemmas import GOALS, LEMMAS
from draincheck.protocol.language import Action, DeclarationError, Instance, ModelFault
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from draincheck.protocol.roles.indices import PrefillRank
from oracle import explore
from rank_families import NO_START, OUTSIDE, TRAPS, TRUE, Family, Rank, voting, with_ranks


def name_of(family: Family) -> str:
    return family.name.replace(" ", "_")


def is_true_of(family: Family, ranks: int) -> bool:
    """Whether the goal holds in all states of so many ranks, as plain search says."""
    return not explore(Check(with_ranks(family, ranks), (family.goal,))).violated


def test_a_family_that_never_begins_is_refused() -> None:
    with pytest.raises(DeclarationError, match="its start allows no initial state"):
        prove_any_number(NO_START.model, Rank, (), [NO_START.goal])


@pytest.mark.parametrize("family", TRAPS, ids=name_of)
def test_traps_are_not_proved(family: Family) -> None:
    found = prove_any_number(family.model, Rank, family.lemmas, [family.goal])
    assert found.verdict is Verdict.UNDETERMINED
    refused = [each.condition for each in unmet(family.model, Rank, [*family.lemmas, family.goal])]
    if family.condition == "consistent":
        assert "condition consistent" in found.detail and not refused
    elif family.condition:
        assert family.condition in refused
    else:
        assert not refused and "is not inductive" in found.detail


@pytest.mark.parametrize("family", [each for each in TRAPS if each.fails_at], ids=name_of)
def test_traps_are_true_of_few_ranks_and_false_of_more(family: Family) -> None:
    assert is_true_of(family, family.fails_at - 1)
    assert not is_true_of(family, family.fails_at)


def test_most_traps_are_proved_for_two_ranks() -> None:
    """It is the conditions that keep them from being proved, not two ranks."""
    later = [each for each in TRAPS if each.fails_at > 2]
    both = [prove_by_induction(with_ranks(each, 2), each.lemmas, [each.goal]) for each in later]
    assert len([each for each in both if each.verdict is Verdict.PROVED]) >= len(later) - 3 >= 50


@pytest.mark.parametrize("family", TRUE, ids=name_of)
def test_what_is_true_of_all_is_proved(family: Family) -> None:
    found = prove_any_number(family.model, Rank, family.lemmas, [family.goal])
    assert found.verdict is Verdict.PROVED, found.detail
    assert all(is_true_of(family, ranks) for ranks in (1, 2, 3))
    assert any_ranks.Family(family.model, Rank).projects(4) == []


@pytest.mark.parametrize("name", ["sglang-0.5.22-mooncake", "sglang-0.5.23-ascend"])
def test_the_protocol_meets_the_conditions(name: str) -> None:
    model = endless_model(load_profile(name), slots=2, late_timer=True)
    assert unmet(model, PrefillRank, [*LEMMAS, *GOALS]) == []


def test_the_models_of_a_profile_are_a_family() -> None:
    """Whatever makes them asks for the number of ranks in no other way than by its size."""
    profile = load_profile("sglang-0.5.23-mooncake")
    for ranks in range(1, 7):
        made, member = (
            endless_model(profile, ranks=ranks),
            any_ranks.with_ranks(endless_model(profile), PrefillRank, ranks),
        )
        assert (made.actions, made.sizes, made.knobs, made.faults) == (member.actions, member.sizes, member.knobs, {})
        assert made.start is member.start and made.state is member.state


# Reading against running.

HEAD = """
from draincheck.protocol.language import action, require
from rank_families import Place, Rank, Vote, forget

def tell(s, r):
    if s.no[r]:
        return s.seen[r]
    return s.voted[r]

def touch(s, r):
    s.seen[r] = True
    return s.voted[r] & s.no[r]
"""

SHARED = ["s.decided", "s.some_yes", "s.two == 0", "x", "s.count > 1"]
OWN = ["s.voted[r]", "s.no[r] == 0", "s.level[r] == 2", "tell(s, r)", "s.box[r].length", "s.seen[r]", *SHARED[:2]]
OF_ALL = [f"{which}(s.{name}[r] for r in s.all(Rank))" for which in ("any", "all") for name in ("voted", "no", "seen")]
OF_ALL += SHARED
EFFECTS = ["any(touch(s, r) for r in s.all(Rank))", "all(touch(s, r) for r in s.all(Rank))"]
STRANGE = ["r == 0", "r < 2", "y", "z", "s.count > 2"]


def a_step(chance: random.Random, name: str) -> str:
    """The source of a step, of forms that are read and some that are not."""
    strange = chance.random() < 0.4

    def own() -> str:
        one = chance.choice(OWN + STRANGE * strange)
        return one if chance.random() < 0.6 else f"(({one}) != 0) & (({chance.choice(OWN)}) != 0)"

    def in_loop(depth: int) -> Iterator[str]:
        kinds = ["guard", "own", "own", "gather", "branch", "constant", "local", "helper", "skip"]
        kinds += ["break", "count", "carry", "shared", "first", "return", "box"] * strange
        match chance.choice(kinds):
            case "guard":
                yield f"require({own()})"
            case "own":
                yield f"s.{chance.choice(['voted', 'no', 'seen'])}[r] = ({own()}) != 0"
            case "gather":
                yield f"{chance.choice('xy')} {chance.choice(['|=', '|=', '&='])} (({own()}) != 0)"
            case "branch" if depth < 2:
                yield f"if {own()}:"
                yield from (f"    {line}" for line in in_loop(depth + 1))
                if chance.random() < 0.4:
                    yield "else:"
                    yield from (f"    {line}" for line in in_loop(depth + 1))
            case "constant":
                yield f"s.{chance.choice(['some_yes', 'some_no', 'two'])} = {chance.choice(['True', 'True', 'False'])}"
            case "local":
                yield f"z = ({own()}) != 0"
                yield f"s.{chance.choice(['no', 'seen'])}[r] = z"
            case "helper":
                yield "forget(s, r)"
            case "skip":
                yield f"if {own()}:"
                yield "    continue"
            case "box":
                yield "s.box[r].send(yes=True)"
            case "break":
                yield "break"
            case "count":
                yield "s.count = s.count + 1 if s.count < 9 else s.count"
            case "carry":
                yield f"z = ({own()}) != 0"
            case "shared":
                yield "s.two = s.voted[r]"
            case "first":
                yield "s.voted[0] = True"
            case "return":
                yield f"if {own()}:"
                yield "    return"
            case _:
                yield "pass"

    def outside(depth: int) -> Iterator[str]:
        match chance.choice(["loop", "loop", "loop", "guard", "write", "choose", "branch", "places"]):
            case "loop":
                yield "for r in s.all(Rank):"
                for _ in range(chance.randint(1, 3)):
                    yield from (f"    {line}" for line in in_loop(0))
            case "guard":
                yield f"require({chance.choice(OF_ALL)})"
            case "write":
                asked = chance.choice([*OF_ALL, *EFFECTS, "y"])
                yield f"s.{chance.choice(['decided', 'some_yes', 'two'])} = ({asked}) != 0"
            case "choose":
                yield "s.count = s.choose([0, 1, 2])"
            case "branch" if depth < 1:
                yield f"if {chance.choice([*OF_ALL, *EFFECTS, 'x', 'y'])}:"
                yield from (f"    {line}" for line in outside(depth + 1))
            case "places":
                yield "for place in s.all(Place):"
                yield "    for r in s.all(Rank):"
                yield from (f"        {line}" for line in in_loop(0))
            case _:
                yield "pass"

    lines = ["x, y, z = 0, 1, 0", *(line for _ in range(chance.randint(1, 4)) for line in outside(0))]
    acting = chance.random() < 0.15
    if acting:
        lines += ["require(s.voted[r])", "s.no[r] = x != 0", "s.count = 0"]
    head = ['@action("all")', f"def {name}(s: Vote{', r: Rank' * acting}) -> None:", '    """A step."""']
    return "\n".join([*head, *(f"    {line}" for line in lines)])


def module_of(text: str, folder: Path, name: str) -> ModuleType:
    """A module of some source."""
    file = folder / f"{name}.py"
    file.write_text(text, "utf-8")
    spec = spec_from_file_location(name, file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def some_state(model: Model, chance: random.Random) -> Values:
    """A state, reachable or not; in half of them most cells are as at the start."""
    sparse = chance.choice([0, 0.75])
    return tuple(
        cell.domain.start if chance.random() < sparse else chance.randint(cell.domain.lo, min(cell.domain.hi, 3))
        for cell in model.layout.cells
    )


class Projection:
    """The steps of several ranks, held against those of two by direct execution."""

    def __init__(self, model: Model, ranks: int) -> None:
        self.many, self.two = (any_ranks.with_ranks(model, Rank, number) for number in (ranks, 2))
        alone = any_ranks.with_ranks(model, Rank, 1)
        here, there = places(self.many, alone, Rank), places(self.two, alone, Rank)
        self._at = {key: at for at, key in enumerate(zip(here.rank, here.alone, strict=True))}
        self._there = list(zip(there.rank, there.alone, strict=True))
        self.ranks = range(ranks)

    def seen(self, values: Values, rank: int, other: int) -> Values:
        owner = {None: None, 0: rank, 1: other}
        return tuple(values[self._at[owner[whose], alone]] for whose, alone in self._there)

    def is_of_two(self, instance: Instance, values: Values) -> bool:
        """Whether all that the step does in a state, its faults included, is done by two ranks."""
        alike = next(each for each in self.two.instances if each.action is instance.action)
        actors = instance.arguments or self.ranks
        try:
            steps = list(self.many.steps_of(instance, values))
        except ModelFault:
            return any(self._faults(alike, values, a, r) for a in actors for r in self.ranks if r != a)
        return all(
            any(all(self._goes(alike, values, step, a, r) for r in self.ranks if r != a) for a in actors)
            for step in ((each.values, each.chosen) for each in steps)
        )

    def _faults(self, alike: Instance, values: Values, a: int, r: int) -> bool:
        try:
            list(self.two.steps_of(alike, self.seen(values, a, r)))
        except ModelFault:
            return True
        return False

    def _goes(self, alike: Instance, values: Values, step: tuple[Values, tuple[int, ...]], a: int, r: int) -> bool:
        after, chosen = step
        try:
            steps = list(self.two.steps_of(alike, self.seen(values, a, r)))
        except ModelFault:
            return False
        return any(each.values == self.seen(after, a, r) and each.chosen == chosen for each in steps)


def read_and_run(folder: Path, seed: int, programs: int, states: int) -> tuple[int, int]:
    """How many random steps met the conditions, and how many did not though some would not have been steps of two.

    Fails if a step that met them was none of two ranks.
    """
    chance = random.Random(seed)
    text = "\n\n\n".join([HEAD, *(a_step(chance, f"step_{number}") for number in range(programs))])
    module = module_of(text, folder, f"random_steps_{seed}")
    accepted, rightly_refused = 0, 0
    for number in range(programs):
        model = voting("random", getattr(module, f"step_{number}"))
        meets = not unmet(model, Rank, [])
        same = True
        for ranks in (3, 4, 6):
            projection = Projection(model, ranks)
            for _ in range(states):
                instance = chance.choice(projection.many.instances)
                same = same and projection.is_of_two(instance, some_state(projection.many, chance))
        assert same or not meets, f"seed {seed}, step_{number}"
        accepted += meets
        rightly_refused += not same
    return accepted, rightly_refused


def test_what_meets_the_conditions_is_a_step_of_two(tmp_path: Path) -> None:
    accepted, rightly_refused = read_and_run(tmp_path, 20261130, programs=100, states=12)
    assert accepted > 20 and rightly_refused > 15


@pytest.mark.slow
def test_many_that_meet_the_conditions_are_steps_of_two(tmp_path: Path) -> None:
    found = [read_and_run(tmp_path, seed, programs=200, states=40) for seed in range(5)]
    assert min(accepted for accepted, _ in found) > 40


@pytest.mark.parametrize("step", OUTSIDE, ids=lambda step: step.name)
def test_what_is_outside_the_language_is_in_no_family(step: Action) -> None:
    with pytest.raises(DeclarationError, match=step.name):
        voting(step.name, step)


@pytest.mark.parametrize("condition", ["_require_one_witness", "_has_effect"])
def test_without_a_condition_runs_show_what_it_is_for(
    condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reader, condition, lambda *_: None)
    with pytest.raises(AssertionError, match="step_"):
        read_and_run(tmp_path, 20261130, programs=100, states=12)
