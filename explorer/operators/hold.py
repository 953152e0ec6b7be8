"""`draincheck hold`: is every launched write over before the release, for all values that the timings may have?"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...properties.hold.inequality import (
    DEAD,
    FAILING,
    QUANTITIES,
    Cause,
    Interval,
    Situation,
    assumptions,
    decimal,
    default_of,
    definitions,
    one_rank,
    option_name,
    parse_interval,
    shown,
)
from ..terminal.console import echo_lines, print_document, screen, visible_line

if TYPE_CHECKING:
    from ...models.catalogue.profile import Profile
    from ...properties.hold.solver import Answer, Finding
    from ...properties.hold.theorem import Theorem
    from ..terminal.screen import Screen

ALL = "all"
LINE = 44
"""Columns of a timeline."""
EXIT_CODES = {"PROVED": 0, "NOT SAFE": 1, "UNDETERMINED": 3}
F = TypeVar("F", bound=Callable[..., None])


def _timings(command: F) -> F:
    """An option for each quantity, in their order."""
    for name, quantity in reversed(list(QUANTITIES.items())):
        default = f" [default: {quantity.default}]" if quantity.default else ""
        unit = f" ({quantity.unit})" if quantity.unit else ""
        text = f"{quantity.meaning[0].upper()}{quantity.meaning[1:]}{unit}.{default}"
        command = click.option(f"--{option_name(name)}", name, metavar="N|LO..HI|unknown", help=text)(command)
    return command


@click.command()
@click.argument("profile", required=False)
@_timings
@click.option(
    "--ranks", default="unknown", metavar="N|LO..HI|unknown", help="Prefill ranks that write to a decode rank."
)
@click.option(
    "--notification/--no-notification",
    default=True,
    help="Whether an ABORT reaches the prefill ranks at all. [default: it does]",
)
@click.option(
    "--ack-path",
    type=click.Choice(["alive", "dead", "unknown"]),
    default="unknown",
    help="Whether acks reach decode. [default: unknown, and both are answered for]",
)
@click.option(
    "--cause",
    type=click.Choice([*map(str, Cause), ALL]),
    default=ALL,
    help="Why the transfer ends. [default: all, each by itself]",
)
@click.option("--theorem", is_flag=True, help="Prove the inequality itself, for all parameters; needs no profile.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def hold(
    profile: str | None,
    ranks: str,
    notification: bool,
    ack_path: str,
    cause: str,
    theorem: bool,
    as_json: bool,
    **timings: str | None,
) -> None:
    """Decides whether T_hold outlasts every launched write of PROFILE, for all values that the timings may have.

    Each timing is a number, an interval lo..hi, or unknown; what is not given has the release's default, or is
    unknown. Exit codes: 0 proved, 1 not safe (with a counterexample), 2 wrong input, 3 it depends on something unknown.
    """
    if theorem:
        _theorem(profile, as_json)
        return
    if profile is None:
        raise click.UsageError("name a profile (draincheck profile lists them), or ask for --theorem")
    from ...models.catalogue.profile import load_profile

    loaded = load_profile(profile)
    alone = one_rank(ranks)
    arrive = {"alive": True, "dead": False, "unknown": None}[ack_path]
    intervals = intervals_of(loaded, timings)
    causes = list(Cause) if cause == ALL else [Cause(cause)]
    asked = [_decided(loaded, Situation(loaded.knobs, each, notification, arrive, alone), intervals) for each in causes]
    if as_json:
        print_document(document(loaded, asked, intervals))
    else:
        _print(loaded, asked)
    sys.exit(EXIT_CODES[worst(each.answer for each in asked)])


@dataclass(frozen=True)
class Answered:
    """A cause, and what was found of each writer."""

    situation: Situation
    findings: Sequence[Finding]
    assumptions: Sequence[str]

    @property
    def answer(self) -> Answer:
        """The worst answer of its writers; proved if there is none."""
        return worst(each.answer for each in self.findings)


def worst(answers: Any) -> Answer:
    """The worst of some answers; proved if there is none."""
    from ...properties.hold.solver import Answer

    found = set(answers)
    return next((each for each in Answer if each in found), Answer.PROVED)


def _decided(profile: Profile, situation: Situation, intervals: Mapping[str, Interval]) -> Answered:
    from ...properties.hold.solver import decide

    return Answered(situation, decide(situation, intervals), assumptions(situation, profile))


def intervals_of(profile: Profile, given: Mapping[str, str | None]) -> dict[str, Interval]:
    """What each quantity may be: as given, else the release's default, else unknown. Raises TimingError."""
    found: dict[str, Interval] = {}
    for name in QUANTITIES:
        text = given.get(name)
        found[name] = parse_interval(name, default_of(name, profile) if text is None else text)
    return found


# For people.


def _print(profile: Profile, asked: Sequence[Answered]) -> None:
    console = screen()
    formulas: list[str] = []
    for each in asked:
        _print_cause(console, each)
        formulas += [finding.writer.formula for finding in each.findings]
    console.print()
    lines = list(dict.fromkeys(line for each in asked for line in definitions(each.situation, formulas)))
    lines += [f"Assumed: {line}" for line in dict.fromkeys(line for each in asked for line in each.assumptions)]
    echo_lines(lines)
    overall = worst(each.answer for each in asked)
    console.print(f"\n{visible_line(profile.name)}: {_words(overall)}", style=_STYLE[overall], highlight=False)


_STYLE = {"PROVED": "bold green", "NOT SAFE": "bold red", "UNDETERMINED": "bold magenta"}


def _words(answer: Answer) -> str:
    return {
        "PROVED": "PROVED: every launched write is over before the release, for all values allowed",
        "NOT SAFE": "NOT SAFE: a write can be late",
        "UNDETERMINED": "UNDETERMINED: it depends on what is unknown",
    }[answer]


def _print_cause(console: Screen, asked: Answered) -> None:
    held = "" if asked.situation.held else " (not held by this profile: T_hold is 0)"
    console.print(f"{asked.situation.cause}{held}: {asked.answer}", style=_STYLE[asked.answer], highlight=False)
    if not asked.findings:
        console.print("  the backend transfers nothing: no write can be late", highlight=False)
    for finding in asked.findings:
        for line in lines_of(finding):
            console.print(f"  {line}", highlight=False, soft_wrap=True)


def lines_of(finding: Finding) -> list[str]:
    """What is known of a writer: the answer, the formula, its numbers, and what is to be done."""
    lines = [f"{finding.writer.name}: {finding.answer}{_reason(finding)}", f"  {finding.writer.formula}"]
    if finding.answer != "UNDETERMINED":
        sign = ">" if finding.hold > finding.terms.total else "<=" if finding.hold < finding.terms.total else "="
        lines.append(f"  {_seconds(finding.hold)} {sign} {sum_words(finding)}")
    if finding.answer == "PROVED":
        largest = f"; {finding.terms.dominating} is the largest term" if len(_weighing(finding)) > 1 else ""
        lines.append(f"  slack {_seconds(finding.slack)}{largest}")
    if finding.answer == "UNDETERMINED":
        lines += [f"  {line}" for line in condition_words(finding)]
    lines.append(f"  {smallest_words(finding)}")
    if finding.answer == "NOT SAFE":
        lines.append(f"  for example with {assignment_words(finding)}:")
        lines += [f"    {line}" for line in timeline_lines(shown_events(finding))]
    return lines


def _reason(finding: Finding) -> str:
    return f" ({finding.reason})" if finding.reason else ""


def _seconds(value: Any) -> str:
    return "unbounded" if value in (math.inf, -math.inf) else f"{decimal(value)} s"


def sum_words(finding: Finding) -> str:
    """The right side in numbers: each term that is not 0, by its name, and their sum."""
    text = " + ".join(f"{name} {_seconds(value)}" for name, value in _weighing(finding).items())
    if finding.terms.detection:
        text = f"{text or '0 s'} - t_detection {_seconds(finding.terms.detection)}"
    single = not finding.terms.detection and len(_weighing(finding)) < 2
    return text or "0 s" if single else f"{text} = {_seconds(finding.terms.total)}"


def _weighing(finding: Finding) -> dict[str, Any]:
    return {name: value for name, value in finding.terms.named.items() if value}


def smallest_words(finding: Finding) -> str:
    """What T_hold must exceed."""
    if finding.smallest is None:
        where = "where writes go on at all, " if finding.answer == "UNDETERMINED" else ""
        return f"{where}no T_hold is enough: the ack for a failed send ends the hold while its writes go on"
    if finding.smallest == math.inf:
        return "safe T_hold: none can be named while so much is unknown"
    held = "" if finding.situation.held else ", if it were held"
    return f"safe T_hold{held}: more than {_seconds(max(finding.smallest, Fraction(0)))}"


def condition_words(finding: Finding) -> list[str]:
    """Under which assumption it holds."""
    lines = [f"it depends on {', '.join(option_name(name) for name in finding.unknown)}"]
    enough, needed = finding.enough or {}, finding.needed or {}
    if len(finding.unknown) == 1 and enough and enough == needed:
        ((name, limit),) = enough.items()
        return [*lines, f"it holds exactly if {_limit_words(name, limit)}"]
    lines += [f"it is enough that {_limit_words(name, limit)}" for name, limit in enough.items()]
    lines += [
        f"whatever the others are, it takes {_limit_words(name, limit)}"
        for name, limit in needed.items()
        if enough.get(name) != limit
    ]
    return lines


def _limit_words(name: str, limit: Fraction) -> str:
    sign = ">" if QUANTITIES[name].rate else "<"
    return f"{option_name(name)} {sign} {shown(name, limit)}"


def assignment_words(finding: Finding) -> str:
    """The values of a counterexample."""
    values = asdict(finding.timing)
    read = finding.read if finding.situation.held else finding.read - {"hold_seconds"}
    return ", ".join(f"{option_name(name)} {shown(name, values[name])}" for name in QUANTITIES if name in read)


def timeline(finding: Finding) -> list[tuple[Any, str]]:
    """What happens when in the case shown, in seconds from the hold on."""
    terms, situation = finding.terms, finding.situation
    held = "holds the slots" if situation.held else "frees the slots"
    launched = terms.abort_propagation + terms.remaining_chunks
    events: list[tuple[Any, str]] = []
    if finding.writer.kind == DEAD:
        launched = -terms.detection
        events.append((launched, "node failure: the rank dies"))
        events.append((Fraction(0), f"decode has missed its heartbeats, and {held}"))
    elif finding.writer.kind == FAILING:
        launched = Fraction(0)
        events.append((launched, f"decode learns of the failed send, sends ABORT, and {held}"))
    else:
        events.append((Fraction(0), f"{situation.cause}: decode sends ABORT, and {held}"))
        if situation.told:
            events.append((finding.timing.abort_propagation_seconds, "notification: the rank acts on the ABORT"))
    if finding.writer.kind != FAILING:
        events.append((launched, "last chunk launched"))
    error = launched + terms.in_flight_call
    if terms.retry_tail and finding.writer.kind != FAILING:
        events.append((error, "its call fails; writes are retried"))
    events.append((terms.total, "last landing"))
    by_ack = situation.acks_failed_sends and terms.after_error > 0 and error < finding.hold
    release = (error, "release: the failed send is acknowledged as drained") if by_ack else (finding.hold, "release")
    if release[0] == terms.total:
        release = (release[0], f"{release[1]}; in the same instant either may come first")
    elif release[0] < terms.total:
        release = (release[0], f"{release[1]}; whoever gets the slots can be written to")
    return sorted([*events, release], key=lambda event: event[0])


def shown_events(finding: Finding) -> list[tuple[Any, str]]:
    """The timeline of a counterexample; nothing where there is none."""
    return timeline(finding) if finding.answer == "NOT SAFE" else []


def timeline_lines(events: Sequence[tuple[Any, str]]) -> list[str]:
    """The events as lines, each with its moment on an axis from the first to the last."""
    first, last = events[0][0], events[-1][0]
    span = (last - first) or Fraction(1)
    times = [_seconds(at) for at, _ in events]
    width = max(len(text) for text in times)
    lines: list[str] = []
    for (at, what), text in zip(events, times, strict=True):
        column = int((at - first) * (LINE - 1) / span)
        lines.append(f"{text:>{width}} |{'-' * column}*{' ' * (LINE - 1 - column)}| {what}")
    return lines


# For programs.


def document(profile: Profile, asked: Sequence[Answered], intervals: Mapping[str, Interval]) -> dict[str, Any]:
    """The answers as one JSON document; docs/json.md describes it."""
    return {
        "format": "draincheck-hold",
        "version": 1,
        "profile": profile.name,
        "verdict": str(worst(each.answer for each in asked)),
        "notification": asked[0].situation.notification,
        "acks_arrive": asked[0].situation.acks_arrive,
        "one_rank": asked[0].situation.one_rank,
        "timings": {name: _interval(name, interval) for name, interval in intervals.items()},
        "causes": [_cause(each) for each in asked],
    }


def _interval(name: str, interval: Interval) -> dict[str, Any]:
    if not interval.known:
        return {"low": None, "high": None, "unit": QUANTITIES[name].unit}
    ends = [given(name, value) for value in (interval.low, interval.high)]
    low, high = reversed(ends) if QUANTITIES[name].rate else ends
    return {"low": low, "high": high, "unit": QUANTITIES[name].unit}


def given(name: str, value: Any) -> float | None:
    """A value in the unit of its option; None if nothing bounds it."""
    if not QUANTITIES[name].rate:
        return None if value == math.inf else float(value)
    if value == math.inf:
        return 0.0
    return float(1 / (value * QUANTITIES[name].scale)) if value else None


def _cause(asked: Answered) -> dict[str, Any]:
    formulas = [each.writer.formula for each in asked.findings]
    return {
        "cause": str(asked.situation.cause),
        "held": asked.situation.held,
        "verdict": str(asked.answer),
        "writers": [_finding(each) for each in asked.findings],
        "definitions": definitions(asked.situation, formulas),
        "assumptions": list(asked.assumptions),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "writer": finding.writer.name,
        "verdict": str(finding.answer),
        "formula": finding.writer.formula,
        "hold": _exact(finding.hold),
        "terms": {name: _exact(value) for name, value in finding.terms.named.items()},
        "t_detection": _exact(finding.terms.detection),
        "sum": _exact(finding.terms.total),
        "slack": _exact(finding.slack),
        "dominates": finding.terms.dominating,
        "safe_above": None if finding.smallest is None else _exact(finding.smallest),
        "assignment": {name: given(name, value) for name, value in asdict(finding.timing).items()},
        "timeline": [{"seconds": float(at), "event": what} for at, what in shown_events(finding)],
        "unknown": list(finding.unknown),
        "enough": {name: given(name, value) for name, value in (finding.enough or {}).items()},
        "needed": {name: given(name, value) for name, value in (finding.needed or {}).items()},
        "reason": finding.reason or None,
    }


def _exact(value: Any) -> dict[str, Any]:
    """Seconds as a float and as an exact fraction; both null if nothing bounds them."""
    if value in (math.inf, -math.inf):
        return {"seconds": None, "exact": None}
    return {"seconds": float(value), "exact": str(value)}


# The theorem.


def _theorem(profile: str | None, as_json: bool) -> None:
    if profile is not None:
        raise click.UsageError("--theorem is about all parameters; name no profile beside it")
    from ...properties.hold.theorem import prove

    theorem = prove()
    if as_json:
        print_document(theorem_document(theorem))
    else:
        echo_lines(theorem_lines(theorem))
    sys.exit(0 if theorem.proved else 1)


def theorem_lines(theorem: Theorem) -> list[str]:
    """What was proved, and what was refuted as it must be."""
    lines: list[str] = []
    for proof in theorem.proofs:
        empty = ", but its hypotheses cannot be met" if proof.vacuous else ""
        lines.append(f"{proof.status}{empty}: {proof.name}: {proof.sentence}")
        if proof.counterexample:
            lines.append(f"  counterexample: {_values(proof.counterexample)}")
    for mutant in theorem.mutants:
        if mutant.refuted_by is None:
            lines.append(f"NOT REFUTED: the claim {mutant.name}: the obligations do not say what they seem to")
            continue
        proof = mutant.refuted_by
        lines.append(
            f"refuted, as it must be: the claim {mutant.name}, by {proof.name}: {_values(proof.counterexample)}"
        )
    said = "proved, for all reals and any number of chunks" if theorem.proved else "NOT proved"
    return [*lines, f"The hold inequality is {said}."]


def _values(counterexample: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in counterexample.items())


def theorem_document(theorem: Theorem) -> dict[str, Any]:
    """The theorem as one JSON document; docs/json.md describes it."""
    return {
        "format": "draincheck-hold-theorem",
        "version": 1,
        "proved": theorem.proved,
        "obligations": [
            {
                "name": each.name,
                "statement": each.sentence,
                "status": each.status,
                "vacuous": each.vacuous,
                "counterexample": dict(each.counterexample),
            }
            for each in theorem.proofs
        ],
        "mutants": [
            {
                "name": each.name,
                "refuted_by": each.refuted_by.name if each.refuted_by else None,
                "counterexample": dict(each.refuted_by.counterexample) if each.refuted_by else {},
            }
            for each in theorem.mutants
        ],
    }
