"""The command `explore`: random runs by direct execution, at any size. docs/random-testing.md says how to read it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import click

from ..terminal.console import echo_text, note, print_document
from .asked import cases_asked
from .size_options import own_sizes, size_options

if TYPE_CHECKING:
    from ...properties.case import Question
    from ..walks.failure import Failure
    from ..walks.walk import Walk

SEEDS = 2**32
EXAMPLES = 100
FORMAT, VERSION = "draincheck-explore", 1
Say = Callable[[str], None]


@dataclass
class Explored:
    """What random runs have met: counted steps, runs, states, actions, and the step at which each probe held first.

    `assumed` are knobs that are unknown and can matter, with the value taken for each; what fails may rest on them.
    `states` counts different ones, None where they are not told apart. `aborts` and `lives` are those of long runs.
    """

    question: Question
    seed: int
    assumed: Mapping[str, object] = field(default_factory=dict[str, object])
    examples: int = 0
    runs: int = 0
    steps: int = 0
    states: int | None = None
    aborts: int | None = None
    lives: int | None = None
    fired: Counter[str] = field(default_factory=Counter[str])
    reached: dict[str, int] = field(default_factory=dict[str, int])
    failure: Failure | None = None
    stopped: str = ""

    @property
    def silent(self) -> list[str]:
        """Actions that never happened, though the model does not say that they may rest."""
        model = self.question.check.model
        return [
            each.name for each in model.all_actions if not self.fired[each.name] and each.name not in model.may_rest
        ]


@click.command()
@click.argument("profile")
@click.option("--scenario", help="What may happen (docs/scenarios.md); of a Python file, the check.  [default: abort]")
@size_options("one request's; with --aborts: all requests'")
@own_sizes()
@click.option(
    "--release-timer",
    type=click.Choice(("off", "late", "any")),
    default="off",
    show_default=True,
    help="When it may end a hold: never, once the writes are over, or at any moment.",
)
@click.option("--property", "names", multiple=True, help="Ask for this property only (may be repeated).")
@click.option("--except", "without", multiple=True, help="Do not ask for this property (may be repeated).")
@click.option(
    "--aborts",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Long runs: lives are renewed until N requests have been given up, then everything runs to rest.",
)
@click.option(
    "--examples",
    type=click.IntRange(1, 10**9),
    help=f"So many examples, each a number of runs (default: {EXAMPLES}; with --aborts 1, each a long run).",
)
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), help="Of all random numbers (default: a fresh one).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def explore(
    profile: str,
    scenario: str | None,
    prefill_ranks: int | None,
    decode_ranks: int | None,
    rooms: int | None,
    chunks: int | None,
    slots: int | None,
    own: tuple[tuple[str, int], ...],
    release_timer: str,
    names: tuple[str, ...],
    without: tuple[str, ...],
    aborts: int | None,
    examples: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Runs a profile at random, step by step, at sizes that no search finishes; a run that fails is made short.

    PROFILE is as for verify, or "reference". Exit codes: 1 a property fails, 2 the input is wrong, 3 nothing was found:
    random runs decide nothing.
    """
    from ...properties.own import is_own

    given = {"ranks": prefill_ranks, "decode_ranks": decode_ranks, "rooms": rooms, "chunks": chunks, "slots": slots}
    sizes = {name: size for name, size in given.items() if size is not None}
    if is_own(profile) or own:
        timed = release_timer != "off" or aborts is not None
        asked, assumed = _own_question(profile, scenario, sizes, own, timed), dict[str, object]()
    else:
        asked, assumed = _question(profile, scenario or "abort", sizes, release_timer, aborts is not None)
    question = _narrowed(asked, names, without)
    done = Explored(question, SystemRandom().randrange(SEEDS) if seed is None else seed, assumed)
    try:
        with note() as say:
            if aborts is None:
                _run_examples(done, examples or EXAMPLES, say)
            else:
                _run_long(done, aborts, examples or 1, say)
            if done.failure:
                say("a run fails; it is being shortened")
                _ = done.failure.trace
    except KeyboardInterrupt:
        done.stopped = "interrupted"
    if as_json:
        print_document(document(done), "interrupted" if done.stopped == "interrupted" else "")
    else:
        echo_text("\n".join(_sentences(done)) + "\n")
    if done.stopped == "interrupted":
        raise KeyboardInterrupt("interrupted; what is said is of the runs until then")
    sys.exit(1 if done.failure else 3)


def _own_question(
    profile: str, check: str | None, sizes: dict[str, int], own: Sequence[tuple[str, int]], timed: bool
) -> Question:
    """What a Python file asks, in the one check that is meant."""
    if timed:
        raise click.UsageError("--release-timer and --aborts belong to profiles")
    cases = cases_asked([profile], [check] if check else [], sizes, own, timer=False)
    if len(cases) > 1:
        names = ", ".join(case.scenario for case in cases)
        raise click.UsageError(f"{profile} has several checks; choose one with --scenario: {names}")
    return cases[0].untimed


def _question(
    profile: str, scenario: str, sizes: dict[str, int], timer: str, long: bool
) -> tuple[Question, Mapping[str, object]]:
    """What is asked, and what it takes for knobs that are unknown."""
    from ...models.catalogue.profile import load_profile
    from ...models.drain.scenario import LARGEST_POOL
    from ...properties.drain.cases import drain_case, scenario_with
    from ...properties.small import reference_case

    if profile == "reference":
        if sizes or long or timer != "off":
            raise click.UsageError("the reference model has fixed sizes, one life for each room, and no timer here")
        return reference_case().untimed, {}
    chosen: dict[str, Any] = dict(sizes)
    if long:
        plain = scenario_with(scenario, {name: size for name, size in sizes.items() if name != "slots"})
        chosen = {"slots": min(LARGEST_POOL, plain.rooms * plain.chunks), **sizes, "lives": "endless"}
    case = drain_case(load_profile(profile), scenario_with(scenario, chosen), timer=timer != "off")
    question = {"off": case.untimed, "late": case.patient, "any": case.timed}[timer]
    if question is None:
        raise click.UsageError(f"--release-timer {timer}: nothing is held by {profile} in {scenario}")
    return question, case.assumed or {}


def _narrowed(question: Question, names: tuple[str, ...], without: tuple[str, ...]) -> Question:
    properties = question.check.properties
    known = [each.name for each in properties]
    for name in (*names, *without):
        if name not in known:
            raise click.UsageError(f"no property is called {name} here; known are {', '.join(known)}")
    kept = tuple(each for each in properties if (not names or each.name in names) and each.name not in without)
    return replace(question, check=replace(question.check, properties=kept))


def _run_examples(done: Explored, examples: int, say: Say) -> None:
    from hypothesis import Phase, settings

    from ..walks.machine import Failed, state_machine

    question, seen = done.question, set[int]()

    def watch(walk: Walk) -> None:
        if not walk.taken:
            done.runs += 1
        else:
            done.steps += 1
            done.fired[walk.model.instances[walk.taken[-1][0]].action.name] += 1
        values = hash(walk.values)
        if values not in seen:
            seen.add(values)
            done.states = len(seen)
            _note_probes(done, walk)
        if done.steps % 1000 == 0:
            say(f"{done.steps:,} steps in {done.runs:,} runs, {len(seen):,} states")

    done.examples = examples
    machine = state_machine(question, seed_with=done.seed, watch=watch)
    machine.TestCase.settings = settings(
        machine.TestCase.settings,
        max_examples=examples,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.target],
    )
    try:
        machine.TestCase("runTest").runTest()
    except Failed as failed:
        done.failure = failed.failure


def _note_probes(done: Explored, walk: Walk) -> None:
    for probe in done.question.check.probes:
        if probe.name not in done.reached and walk.reaches(probe):
            done.reached[probe.name] = done.steps


def _run_long(done: Explored, aborts: int, examples: int, say: Say) -> None:
    from ..walks.campaign import campaign

    done.aborts = done.lives = 0
    for number in range(examples):
        ran = campaign(
            done.question.check,
            aborts,
            (done.seed + number) % SEEDS,
            done.question.source,
            lambda steps, so_far, number=number: say(
                f"run {number + 1} of {examples}: {steps:,} steps, {so_far} of {aborts} requests given up"
            ),
        )
        done.examples = done.runs = number + 1
        done.steps += ran.steps
        done.aborts += ran.aborts
        done.lives += ran.lives
        done.fired += ran.fired
        done.failure = ran.failure
        if ran.failure:
            return
        if ran.aborts < aborts:
            done.stopped = f"no more than {ran.aborts} requests could be given up"
            return


def document(done: Explored) -> dict[str, Any]:
    """What was met as one JSON document; docs/json.md describes it."""
    check, failure = done.question.check, done.failure
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": check.model.name,
        "seed": done.seed,
        "examples": done.examples,
        "runs": done.runs,
        "steps": done.steps,
        "states": done.states,
        "aborts": done.aborts,
        "lives": done.lives,
        "hits": {each.name: done.fired[each.name] for each in check.model.all_actions},
        "never_fired": done.silent,
        "reached": {each.name: done.reached.get(each.name) for each in check.probes},
        "stopped": done.stopped,
        "bounds": dict(check.model.bounds),
        "assumed": dict(done.assumed),
        "failure": failure
        and {
            "property": failure.subject,
            "seed": failure.seed,
            "found_length": len(failure.taken),
            "trace_length": len(failure.trace),
            "trace": [step.label for step in failure.trace.steps],
        },
    }


def _sentences(done: Explored) -> list[str]:
    check = done.question.check
    lines = [done.failure.text] if done.failure else []
    count = len(check.model.all_actions)
    fired = sum(1 for each in check.model.all_actions if done.fired[each.name])
    lines.append(
        f"{check.model.name}: {done.steps:,} steps in {done.runs:,} runs, seed {done.seed}; "
        f"{fired} of {count} actions fired"
        + (f", {done.states:,} different states" if done.states is not None else "")
        + (f", {done.aborts} requests given up, {done.lives} lives renewed" if done.aborts is not None else "")
    )
    if done.silent:
        lines.append(f"never fired: {', '.join(done.silent)}")
    if done.states is not None:
        lines += [
            f"{each.name}: reached after {done.reached[each.name]:,} steps"
            if each.name in done.reached
            else f"{each.name}: not reached"
            for each in check.probes
        ]
    if done.stopped:
        lines.append(f"ended early: {done.stopped}")
    if not done.failure:
        rest = "; at the end of each run all memory was free again" if done.aborts and not done.stopped else ""
        lines.append(f"Nothing fails in these runs{rest}. Random runs decide nothing: what they have not met may fail.")
    lines += [f"{name} is unknown and taken as {value}" for name, value in done.assumed.items()]
    lines.append(f"Bounds: {', '.join(f'{name} {value}' for name, value in check.model.bounds.items())}")
    return lines
