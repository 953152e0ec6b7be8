"""Proofs without bounds: what is proved of which release, with what, and what is never proved."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import toys
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.commands.prove import METHODS
from draincheck.explorer.proofs import induction
from draincheck.explorer.proofs.any_ranks import Family, unmet
from draincheck.explorer.proofs.induction import inductive, largest_inductive
from draincheck.explorer.proofs.net import require_agreement
from draincheck.explorer.proofs.symbolic import Symbolic, z3
from draincheck.explorer.proofs.unrolling import Bounds
from draincheck.explorer.search.search import search
from draincheck.explorer.traces.trace import induction_trace
from draincheck.explorer.verdicts.proofs import (
    ANY,
    Method,
    Verdict,
    prove_bounded,
    prove_by_induction,
    prove_endless,
    refuted,
)
from draincheck.models.catalogue.profile import Profile, Setting, catalogue, load_profile
from draincheck.models.drain.endless import endless_model
from draincheck.models.drain.story import ENVIRONMENT
from draincheck.properties.case import Question
from draincheck.properties.drain.lemmas import GOALS, LEMMAS
from draincheck.protocol.language import (
    DeclarationError,
    EngineDisagreement,
    Index,
    State,
    action,
    field,
    flag,
    require,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import Property, claim, invariant
from draincheck.protocol.roles.indices import PrefillRank

NEWEST = load_profile("sglang-0.5.23-mooncake")


def with_knobs(**knobs: Setting) -> Profile:
    """The newest Mooncake release with other knobs."""
    return replace(NEWEST, name="mutant", settings={**NEWEST.settings, **knobs})


SLOW = pytest.mark.slow
NEWER = [
    "sglang-0.5.23-mooncake",
    *(pytest.param(f"sglang-{name}", marks=SLOW) for name in ("0.5.22-mooncake", "0.5.23-ascend")),
]


@pytest.mark.parametrize("name", NEWER)
@pytest.mark.parametrize("late_timer", [False, True], ids=["off", "late"])
def test_the_newest_releases_are_proved(name: str, late_timer: bool) -> None:
    found = prove_endless(load_profile(name), 1, late_timer=late_timer)
    assert found.verdict is Verdict.PROVED, found.detail
    assert set(found.lemmas) == {each.name for each in LEMMAS} and found.trace is None


@SLOW
def test_two_slots_a_request_are_proved() -> None:
    assert prove_endless(NEWEST, 1, late_timer=True, slots=2).verdict is Verdict.PROVED


def test_any_number_of_ranks_is_proved() -> None:
    found = prove_endless(NEWEST, ANY, late_timer=False)
    assert found.verdict is Verdict.PROVED, found.detail
    assert found.bounds["prefill ranks"] == "any number"


@pytest.mark.slow
@pytest.mark.parametrize("late_timer", [False, True], ids=["off", "late"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_several_ranks_are_proved(ranks: int, late_timer: bool) -> None:
    assert prove_endless(NEWEST, ranks, late_timer=late_timer, slots=2).verdict is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("late_timer", [False, True], ids=["off", "late"])
def test_steps_of_three_and_four_ranks_are_steps_of_two(late_timer: bool) -> None:
    family = Family(endless_model(NEWEST, late_timer=late_timer), PrefillRank)
    assert family.projects(3) == [] and family.projects(4) == []


MUTANTS: dict[str, dict[str, Setting]] = {
    "a failed send does not poison": {"poison_on_error": False},
    "acks without generation": {"gen_tags": False},
    "a refused post does not poison": {"poison_on_rejected_post": False},
    "counted behind the look": {"count_point": "after_test"},
    "nothing is held": {"hold_enabled": False},
    "only what decode began is held": {"hold_causes": "decode_initiated"},
}


@pytest.mark.parametrize(
    "mutant", [*list(MUTANTS)[:1], *(pytest.param(each, marks=SLOW) for each in list(MUTANTS)[1:])]
)
def test_without_a_fix_nothing_is_proved(mutant: str) -> None:
    """Each of these loses memory in a small scenario, so a proof of it would be wrong."""
    profile = with_knobs(**MUTANTS[mutant])
    shown = refuted(profile, GOALS)
    assert shown and shown[0].verdict is Verdict.VIOLATED and shown[0].trace
    assert prove_endless(profile, 1, late_timer=False).verdict is Verdict.UNDETERMINED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sglang-0.5.18-mooncake", "sglang-0.5.21-mooncake", "sglang-0.5.23-nixl"])
def test_what_corrupts_is_not_proved(name: str) -> None:
    found = prove_endless(load_profile(name), 1, late_timer=False)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.trace and found.trace.kind == "induction" and len(found.trace) == 1


@pytest.mark.parametrize("missing", [each.name for each in LEMMAS if each.name != "rooms_are_cleared_in_order"][::7])
def test_without_a_lemma_the_rest_is_not_inductive(missing: str) -> None:
    """What is in the way is a step of the model, executed directly, to a state in which a lemma fails."""
    symbolic = Symbolic(endless_model(NEWEST, late_timer=True))
    lemmas = [each for each in (*LEMMAS, *GOALS) if each.name != missing]
    found = inductive(symbolic, lemmas)
    assert not found.proved
    for breach in found.breaches:
        if len(breach.states) == 2:
            lemma = next(each for each in lemmas if each.name == breach.lemma)
            shown = induction_trace(symbolic.model, lemma, breach.states, {}, breach.step)
            assert shown.violation and all(each.violation(symbolic.model, breach.states[0]) is None for each in lemmas)


@pytest.mark.slow
def test_lemmas_that_are_no_invariant_are_left_out() -> None:
    @invariant
    def nothing_fails(s: object) -> None:
        """No room fails."""
        claim(s.status[0, 0] != 4, "the room has not failed")  # type: ignore[attr-defined]

    symbolic = Symbolic(endless_model(NEWEST))
    found, lost = largest_inductive(symbolic, [nothing_fails, *LEMMAS, *GOALS])
    assert found.proved and {each.lemma for each in lost} == {"nothing_fails"}


def test_lemmas_hold_on_random_runs_and_every_step_happens() -> None:
    """The model is no empty one: each of its steps happens in some run, and in no run does a lemma fail."""
    model, chance = endless_model(NEWEST, ranks=1, slots=2, late_timer=True), random.Random(20261130)
    often = {"take_fresh_number", "use_number_again", "victim_takes"}
    ends = {each.name for each in ENVIRONMENT} - often
    fired: set[str] = set()
    for walk in range(60):
        values = model.initial_states()[0]
        chances = dict.fromkeys(ends, 0.004 if walk % 2 else 0.3)
        weight = {each.name: chance.choice((0.3, 1, 3)) * chances.get(each.name, 1) for each in model.actions}
        for number in range(90):
            order = sorted(model.instances, key=lambda each: -(chance.random() ** (1 / weight[each.action.name])))
            step = next((chance.choice(steps) for each in order if (steps := list(model.steps_of(each, values)))), None)
            if step is None:
                break
            values = step.values
            fired.add(step.instance.action.name)
            if number % 5 == 0:
                assert [each.name for each in (*LEMMAS, *GOALS) if each.violation(model, values)] == []
    assert {each.name for each in model.actions} - fired == set()


class Rank(Index):
    """A rank."""


class Quorum(State[None]):
    """Ranks that vote."""

    voted = field(flag, Rank, means="the rank has voted")
    decided = field(flag, means="enough have voted")


@action("rank {r}")
def vote(s: Quorum, r: Rank) -> None:
    """The rank votes."""
    require(not s.voted[r])
    s.voted[r] = True


def decide_when(enough: int) -> Model:
    """Decides when so many have voted; in a sound model, when all have."""

    @action("all")
    def decide(s: Quorum) -> None:
        """Enough have voted."""
        votes = 0
        for r in s.all(Rank):
            votes = votes + s.voted[r]
        require(votes >= (enough or s.size(Rank)))
        s.decided = True

    return Model(name="quorum", state=Quorum, actions=(vote, decide), sizes={Rank: 1}, terminal=lambda s: s.decided)


@invariant
def all_have_voted(s: Quorum) -> None:
    """Where it is decided, every rank has voted."""
    for r in s.all(Rank):
        claim((s.decided == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@invariant
def not_both_vote(s: Quorum) -> None:
    """No two ranks have voted: this is about pairs of ranks."""
    for r in s.all(Rank):
        for other in s.all(Rank):
            if other < r:
                claim((s.voted[r] == 0) | (s.voted[other] == 0), "one of two has not voted")


def test_what_two_ranks_show_is_not_taken_for_any_number() -> None:
    """Two votes are all of two ranks, and not all of three: the proof for two says nothing of three."""
    two = replace(decide_when(2), sizes={Rank: 2})
    assert inductive(Symbolic(two), [all_have_voted]).proved
    assert not inductive(Symbolic(replace(two, sizes={Rank: 3})), [all_have_voted]).proved
    assert Family(two, Rank).projects(3) == ["decide()"]
    (refused,) = unmet(two, Rank, [all_have_voted])
    assert refused.condition == "loop-form"


def test_lemmas_about_pairs_of_ranks_are_not_about_each() -> None:
    lemmas = [not_both_vote, all_have_voted]
    assert Family(decide_when(2), Rank).wide(lemmas, 3) == ["not_both_vote"]
    assert [str(each) for each in unmet(decide_when(2), Rank, lemmas) if each.condition == "goal-width"]


def test_a_proof_in_which_a_step_never_happens_is_none() -> None:
    @invariant
    def nobody_votes(s: Quorum) -> None:
        """No rank has voted."""
        for r in s.all(Rank):
            claim(not s.voted[r], "the rank has not voted")

    deaf = replace(decide_when(0), actions=(decide_when(0).actions[1],))
    found = prove_by_induction(deaf, [nobody_votes], [all_have_voted])
    assert found.verdict is Verdict.UNDETERMINED
    assert found.detail == "with these lemmas, decide can never happen"


def test_a_step_that_breaks_the_rules_is_shown_as_a_run() -> None:
    question = overflowing()
    (found,) = prove_bounded(question, [None], Method.BMC, Bounds(5))
    assert found.verdict is Verdict.VIOLATED and found.subjects == ("no_fault",)
    assert found.trace and found.trace.kind == "fault"


def recount(s: Quorum) -> None:
    """The number of votes is written where only yes or no fits."""
    votes = 0
    for r in s.all(Rank):
        votes = votes + s.voted[r]
    s.decided = votes


def overflowing() -> Question:
    """Two ranks vote, and the count of two votes breaks the rules. The property is true of every state there is."""

    @invariant
    def never_both_and_none(s: Quorum) -> None:
        """It is decided or not."""
        claim((s.decided == 0) | (s.decided == 1), "it is one of both")

    model = replace(decide_when(0), sizes={Rank: 2}, actions=(vote, action("all")(recount)))
    return Question(Check(model, (never_both_and_none,)), (), {})


@pytest.mark.parametrize("method", [Method.K_INDUCTION, Method.SPACER])
@pytest.mark.parametrize("rules_are_asked", [True, False])
def test_where_a_step_breaks_the_rules_nothing_is_proved(method: Method, rules_are_asked: bool) -> None:
    question = overflowing()
    subjects = [*question.check.properties, *([None] if rules_are_asked else [])]
    found, rules = prove_bounded(question, subjects, method, Bounds(8, 30))
    assert found.verdict is Verdict.UNDETERMINED and rules.verdict is Verdict.VIOLATED
    assert found.detail == "no run fails before a step breaks the language's rules, and a run does"
    assert rules.trace and rules.trace.kind == "fault" and len(rules.trace) == 2
    (goal,) = question.check.properties
    assert prove_by_induction(question.check.model, [], [goal]).verdict is Verdict.UNDETERMINED


def test_a_failure_is_shown_though_another_step_breaks_the_rules_on_the_way() -> None:
    """Where both have voted the count breaks the rules; behind it a decision is made."""

    @invariant
    def undecided(s: Quorum) -> None:
        """Nothing is decided."""
        claim(not s.decided, "nothing is decided")

    model = replace(overflowing().check.model, actions=(action("all")(recount), *decide_when(0).actions))
    model = replace(model, start=both_have_voted)
    (found,) = prove_bounded(Question(Check(model, (undecided,)), (), {}), [undecided], Method.BMC, Bounds(3))
    assert found.verdict is Verdict.VIOLATED and found.trace
    assert [step.label for step in found.trace.steps] == ["decide()"]


def both_have_voted(s: Quorum) -> None:
    """Both have voted from the start."""
    for r in s.all(Rank):
        s.voted[r] = True


def never(s: Quorum) -> None:
    """Nothing is a start."""
    require(s.decided)


def test_a_model_without_a_start_is_refused() -> None:
    """Of no state everything is true: it would be proved by all methods."""
    model = replace(decide_when(0), start=never, may_rest=frozenset({"vote", "decide"}))
    with pytest.raises(DeclarationError, match="its start allows no initial state"):
        prove_by_induction(model, [], [all_have_voted])
    with pytest.raises(DeclarationError, match="its start allows no initial state"):
        search(Check(model, ()))


# What terms say is executed, and a difference is an error.


def said_to_fail(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[tuple[object, ...]], bool]) -> None:
    """Makes the terms say that properties fail in some frames though they hold."""
    fails = Symbolic.fails

    def said(self: Symbolic, prop: Property, frame: tuple[object, ...]) -> object:
        return z3.BoolVal(True) if wrong(frame) else fails(self, prop, frame)

    monkeypatch.setattr(Symbolic, "fails", said)


def test_a_breach_that_is_none_when_executed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms say that a step breaks the lemma, and in truth none does."""
    model = replace(decide_when(0), sizes={Rank: 2})
    plain = ("before:", "0", "1")
    said_to_fail(monkeypatch, lambda frame: not all(str(each).startswith(plain) for each in frame))
    with pytest.raises(EngineDisagreement, match=r"as terms, vote\(r=0\) breaks a lemma; executed directly, it breaks"):
        inductive(Symbolic(model), [all_have_voted])


def test_a_lemma_that_terms_take_to_be_never_true_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From what is never true all follows, and where each step may rest nothing else would show it."""
    model = replace(decide_when(2), sizes={Rank: 3}, may_rest=frozenset({"vote", "decide"}))
    said_to_fail(monkeypatch, lambda frame: True)
    with pytest.raises(EngineDisagreement, match="as terms, all_have_voted is false; executed directly, it is true"):
        prove_by_induction(model, [], [all_have_voted])


def test_a_fault_that_is_none_when_executed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Symbolic, "faults", Symbolic.happens)
    with pytest.raises(
        EngineDisagreement, match=r"as terms, vote\(r=0\) breaks the rules; executed directly"
    ) as raised:
        inductive(Symbolic(replace(decide_when(0), sizes={Rank: 2})), [all_have_voted])
    assert raised.value.exit_code == 70 and "in the state voted[0] = 0" in str(raised.value)


def test_a_run_that_is_none_when_executed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(Check(replace(decide_when(0), sizes={Rank: 2}), (all_have_voted,)), (), {})
    said_to_fail(monkeypatch, lambda frame: True)
    for method in (Method.BMC, Method.K_INDUCTION):
        with pytest.raises(EngineDisagreement, match=r"all_have_voted fails after these states: \(\(0, 0, 0\),\)"):
            prove_bounded(question, [all_have_voted], method, Bounds(2))


# A name stands for one property.


def test_a_lemma_does_not_take_the_name_of_a_goal() -> None:
    trivial = Property("all_have_voted", "Nothing.", lambda s: None)
    with pytest.raises(DeclarationError, match="two different properties are called all_have_voted"):
        prove_by_induction(decide_when(0), [trivial], [all_have_voted])
    both = prove_by_induction(decide_when(0), [all_have_voted], [all_have_voted])
    assert both.verdict is Verdict.PROVED and both.subjects == ("all_have_voted",) and both.lemmas == ()
    for name in ("no_fault", "not decided"):
        with pytest.raises(DeclarationError, match=f"no property may be called {name}"):
            prove_by_induction(decide_when(0), [replace(trivial, name=name)], [all_have_voted])


@pytest.mark.parametrize(
    "name", [*(each.name for each in GOALS), LEMMAS[0].name, "held_within_bound", "holds_end_by_drain"]
)
def test_command_refuses_lemmas_with_the_names_of_shipped_properties(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from draincheck.protocol.language.property import claim, invariant\n\n\n"
        f"@invariant\ndef {name}(s):\n"
        '    "One is one."\n'
        '    claim(1 == 1, "one is one")\n'
    )
    code, out = run("sglang-0.5.23-mooncake", "--prefill-ranks", "1", "--lemmas", str(file))
    assert code == 2 and f"{name}: a property of draincheck has this name; rename the lemma" in " ".join(out.split())
    code, out = run("sglang-0.5.23-mooncake", "--scenario", "rejected", "--lemmas", str(file))
    assert code == 2


# The command.


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["prove", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_command_proves() -> None:
    code, out = run("sglang-0.5.23-mooncake", "--prefill-ranks", "1", "--json")
    found = json.loads(out)
    assert code == 0 and [each["verdict"] for each in found["results"]] == ["PROVED", "PROVED"]
    assert found["results"][0]["properties"][:2] == ["no_late_write", "acks_are_true"]
    assert [each["bounds"]["release timer"] for each in found["results"]] == [
        "off",
        "fires once the writes of the room are over",
    ]


def test_document_has_the_fields_that_are_described() -> None:
    page = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    section = page.split("# `draincheck prove --json`")[1].split("\n# ")[0]
    code, out = run("sglang-0.5.18-mooncake", "--scenario", "abort", "--method", "bmc", "--depth", "0", "--json")
    found = json.loads(out)
    assert code == 3
    names = {*found, *found["results"][0], "kind", "reachable", "begins", "steps", "violation"}
    assert names == set(re.findall(r"`(\w+)`", section)) - {
        "PROVED",
        "VIOLATED",
        "UNDETERMINED",
        "no_fault",
        *METHODS,
        "search",
        "verify",
    }


def test_command_shows_what_is_in_the_way_and_the_run_that_fails() -> None:
    code, out = run("sglang-0.5.21-mooncake", "--prefill-ranks", "1")
    assert code == 1
    assert "is broken by 1 step from a state that may be unreachable" in out and "begins with life[0,0] = " in out
    assert "no_late_write is violated after 28 steps" in out


def test_command_takes_lemmas_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from draincheck.protocol.language.property import claim, invariant\n\n\n"
        "@invariant\n"
        "def too_little(s):\n"
        '    "The first slot is never given away."\n'
        '    claim(s.owner[0, 0] == -1, "nobody owns it")\n'
    )
    code, out = run("sglang-0.5.23-mooncake", "--prefill-ranks", "1", "--lemmas", str(file), "--json")
    (found,) = json.loads(out)["results"]
    assert code == 3 and found["verdict"] == "UNDETERMINED" and not found["trace"]["reachable"]


def test_command_checks_bounded_models() -> None:
    scenario = ("--scenario", "abort", "--property", "no_late_write")
    code, out = run("sglang-0.5.18-mooncake", *scenario, "--method", "bmc", "--json")
    (found,) = json.loads(out)["results"]
    assert code == 1 and len(found["trace"]["steps"]) == 17 and found["trace"]["reachable"]
    assert len(found["depth_seconds"]) == 18
    code, out = run("sglang-0.5.18-mooncake", *scenario, "--method", "bmc", "--depth", "4")
    assert code == 3 and "no run of 4 steps or fewer fails; longer ones were not asked" in out
    limits = ("--depth", "2", "--max-seconds", "20")
    code, out = run("sglang-0.5.23-mooncake", "--scenario", "rejected", "--property", "owned_once", *limits)
    assert code == 3 and "no run fails before a step breaks the language's rules, and whether a run does is not" in out
    code, out = run("reference", "--method", "bmc", "--depth", "2")
    assert code == 3
    code, out = run("reference", "--method", "k-induction", "--depth", "2")
    assert code == 3 and "from a state that may be unreachable" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sglang-9",), "sglang-9"),
        (("sglang-0.5.23-fake",), "the backend transfers nothing; there is nothing to prove"),
        (("sglang-0.5.23-mooncake", "--prefill-ranks", "many"), "--prefill-ranks many: allowed are 1, 2, any"),
        (("sglang-0.5.23-mooncake", "--scenario", "nothing"), "no scenario is called nothing"),
        (("sglang-0.5.23-mooncake", "--property", "x"), "--property x: the model is asked for no_late_write"),
        (("sglang-0.5.23-mooncake", "--scenario", "abort", "--slots", "2"), "belong to endless lives"),
        (("sglang-0.5.23-mooncake", "--method", "bmc", "--prefill-ranks", "any"), "any number of ranks is proved by"),
        (("sglang-0.5.23-mooncake", "--method", "bmc", "--lemmas", "x.py"), "--lemmas belong to --method induction"),
        (("sglang-0.5.23-mooncake", "--simple-path"), "--simple-path belongs to --method k-induction"),
        (("sglang-0.5.23-mooncake", "--scenario", "abort", "--max-seconds", "0"), "the time limit is 0.0"),
        (("sglang-0.5.23-mooncake", "--lemmas", "nowhere.py"), "nowhere.py: cannot be read: No such file"),
        (("reference", "--scenario", "abort"), "the reference model has fixed sizes and no scenarios"),
    ],
)
def test_command_refuses_wrong_input(arguments: tuple[str, ...], message: str) -> None:
    code, out = run(*arguments)
    assert code == 2 and message in out and "Traceback" not in out


def test_command_refuses_a_file_without_lemmas(tmp_path: Path) -> None:
    for text, message in (("x = 1\n", "it defines no lemma"), ("x = 1 +\n", "it cannot be run: SyntaxError")):
        (tmp_path / "mine.py").write_text(text)
        code, out = run("sglang-0.5.23-mooncake", "--lemmas", str(tmp_path / "mine.py"))
        assert code == 2 and message in out


def test_a_row_of_states_in_which_other_steps_break_the_rules_is_shown() -> None:
    code, out = run("reference", "--method", "k-induction", "--depth", "2")
    assert code == 3 and "no_late_write is broken by 3 steps from a state that may be unreachable" in out


def test_a_profile_may_come_through_a_pipe() -> None:
    """It is read once."""
    reading, writing = os.pipe()
    os.write(writing, CliRunner().invoke(main, ["profile", "sglang-0.5.23-mooncake"]).stdout_bytes)
    os.close(writing)
    code, out = run(f"/dev/fd/{reading}", "--method", "bmc", "--depth", "0", "--property", "no_late_write")
    assert (code, "no run of 0 steps or fewer fails" in out) == (3, True), out


def test_a_file_of_lemmas_that_ends_the_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(0)\n")
    code, out = run("sglang-0.5.23-mooncake", "--lemmas", str(tmp_path / "mine.py"))
    assert code == 2 and "it cannot be run: SystemExit: 0" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sglang-0.5.22-mooncake", "sglang-0.5.23-mooncake", "sglang-0.5.22-ascend", "sglang-0.5.23-ascend"]
)
def test_the_document_says_what_the_command_proves(name: str) -> None:
    page = (Path(__file__).parents[1] / "docs" / "proofs.md").read_text("utf-8")
    said = re.findall(
        r"^\| (1|2|any number) \| (off|fires once the writes of the room are over) \|", page, re.MULTILINE
    )
    code, out = run(name, "--json")
    found = [each["bounds"] for each in json.loads(out)["results"]]
    assert code == 0 and [(each["prefill ranks"], each["release timer"]) for each in found] == said


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in catalogue() if "fake" not in name])
def test_whatever_is_not_proved_is_refuted(name: str) -> None:
    """For one rank: each profile of the catalogue is proved, or a run shows why not."""
    code, out = run(name, "--prefill-ranks", "1", "--json")
    verdicts = [each["verdict"] for each in json.loads(out)["results"]]
    proved = re.fullmatch(r"sglang-0\.5\.2[23]-(mooncake|ascend)", name) is not None
    assert (code, verdicts) == ((0, ["PROVED", "PROVED"]) if proved else (1, ["UNDETERMINED", "VIOLATED"]))


def test_a_proof_rests_on_terms_that_say_what_direct_execution_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the terms say that nothing ever fails, Z3 finds no breach, and there is no run to execute."""
    model = toys.counter(3).model

    @invariant
    def not_all(s: toys.Counter) -> None:
        """It is false three steps away."""
        claim(not all(s.digit[bit] for bit in s.all(toys.Bit)), "not all are on")

    assert prove_by_induction(model, (), [not_all]).verdict is not Verdict.PROVED
    monkeypatch.setattr(Symbolic, "fails", lambda self, prop, frame: z3.BoolVal(False))
    monkeypatch.setattr(induction._Induction, "_fails_at", lambda self, lemma, values: False)
    with pytest.raises(EngineDisagreement, match="not_all differs between terms and direct execution"):
        prove_by_induction(model, (), [not_all])


def test_the_steps_of_a_proof_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = toys.counter(3).model
    require_agreement(Symbolic(model), [])
    monkeypatch.setattr(Symbolic, "happens", lambda self, command, frame, choices="": z3.BoolVal(False))
    with pytest.raises(EngineDisagreement, match="differs between terms and direct execution"):
        require_agreement(Symbolic(model), [])
