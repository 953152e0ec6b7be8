"""The hold inequality, per end cause and profile: what a timer must outlast before slots may be given away.

    T_hold > t_abort_propagation + t_remaining_chunks + t_in_flight_call (+ t_retry_tail)

Time 0 is the moment at which decode puts the request on its hold list, right after it has sent ABORT. The formulas
are written once and evaluated twice: on exact fractions, and on Z3's reals (hold_solver.py). hold_theorem.py
proves them, models/small/timed_hold.py explores them. docs/hold-inequality.md derives them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ...models.catalogue.profile import Profile
from ...protocol.language import DraincheckError
from ...protocol.roles.knobs import Knobs

GIGABYTE = 10**9
"""Bytes of a gigabyte. A GiB is 2^30 bytes, and no unit here."""


class TimingError(DraincheckError):
    """A timing that cannot be used; the message names the option, the value and what is expected."""


class Worse(StrEnum):
    """At which end of its interval a quantity makes the sum larger or the hold shorter."""

    HIGH = "high"
    LOW = "low"
    EITHER = "either"


@dataclass(frozen=True)
class Quantity:
    """An input: unit, meaning, what the release has as default (None: nothing), and where it is worse.

    `whole` ones are counts. `rate` ones are given per second and used as seconds per unit; `scale` turns the given
    unit into the one of the formulas (bytes, tokens). No value is below `least`, and of `positive` ones none is 0.
    """

    unit: str
    meaning: str
    default: str | None = None
    worse: Worse = Worse.HIGH
    whole: bool = False
    rate: bool = False
    scale: int = 1
    least: int = 0
    positive: bool = False


QUANTITIES: Mapping[str, Quantity] = {
    "hold_seconds": Quantity("s", "T_hold: decode's release timer", "30", worse=Worse.LOW),
    "abort_propagation_seconds": Quantity("s", "until no prefill rank launches a chunk of the room any more"),
    "bandwidth_gigabytes_per_second": Quantity(
        "GB/s", "what one call gets at least; 1 GB is 10^9 bytes", rate=True, scale=GIGABYTE
    ),
    "kv_bytes_per_token": Quantity("bytes", "KV of a token that one rank writes to one destination", positive=True),
    "context_tokens": Quantity("tokens", "tokens of the request", least=1),
    "chunk_tokens": Quantity("tokens", "tokens of a chunk, at most", worse=Worse.EITHER, least=1),
    "prefill_tokens_per_second": Quantity("tokens/s", "what prefill computes for the request at least", rate=True),
    "prefill_queue_seconds": Quantity("s", "until prefill begins with the request; matters to ranks not told in time"),
    "calls_per_chunk": Quantity(
        "", "calls of the transfer library for a chunk and a destination", worse=Worse.EITHER, whole=True, least=1
    ),
    "index_batches_per_call": Quantity(
        "", "parts in which a call is made, each with its own budget", worse=Worse.EITHER, whole=True, least=1
    ),
    "destinations": Quantity("", "decode ranks that one prefill rank writes to in the room", whole=True, least=1),
    "launched_chunks": Quantity("", "chunks of the room launched and not over, at one rank", whole=True, least=1),
    "call_timeout_seconds": Quantity(
        "s", "after which a call returns with an error, or none", worse=Worse.EITHER, positive=True
    ),
    "retry_tail_seconds": Quantity("s", "how long writes are retried after their call has failed"),
    "heartbeat_seconds": Quantity("s", "between two looks at a prefill node", "5", worse=Worse.LOW, positive=True),
    "heartbeat_misses": Quantity(
        "", "looks that fail before a node counts as dead", "2", worse=Worse.LOW, whole=True, least=1
    ),
}
"""Every input that is a quantity. Names are those of the options, with units."""

NUMBER = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,2})?|\d{1,40}/[1-9]\d{0,39}")
"""How a number is written: in decimal digits, with an exponent, or as a fraction."""
LARGEST = 10**18

CALL_TIMEOUT = "call_timeout_seconds"
NO_TIMEOUT = "none"
CALL_BUDGET = "30"
"""Seconds, in the transfer library whose calls return to a worker that waits for each."""

RANKS = "ranks"
_RANKS = Quantity("", "prefill ranks that write to one decode rank", whole=True, least=1)


@dataclass(frozen=True)
class Interval:
    """All values from `low` to `high`, both included; `high` is None if nothing bounds it."""

    low: Fraction
    high: Fraction | None

    @property
    def known(self) -> bool:
        """Whether it is bounded."""
        return self.high is not None

    @property
    def fixed(self) -> bool:
        """Whether it is one value."""
        return self.low == self.high


def parse_interval(name: str, text: str) -> Interval:
    """A number, `lo..hi` or `unknown`, in the unit of the quantity's formulas. Raises TimingError.

    A call timeout may be `none`: a call then takes as long as its bytes do. A rate becomes seconds per unit; an
    unknown one may be as slow as can be.
    """
    quantity = _quantity(name)
    least = Fraction(quantity.least)
    if text.strip() == "unknown":
        return Interval(least, None)
    if text.strip() == NO_TIMEOUT and name == CALL_TIMEOUT:
        return Interval(Fraction(LARGEST), Fraction(LARGEST))
    parts = text.split("..")
    if len(parts) > 2:
        raise _wrong(name, text)
    low, high = (_number(name, text, part) for part in (parts[0], parts[-1]))
    if low > high:
        raise TimingError(f"--{option_name(name)} {text}: the lower end is above the upper one; write lo..hi")
    if low < least or (low == 0 and (quantity.rate or quantity.positive)):
        expected = "greater than 0" if quantity.rate or quantity.positive else f"at least {least}"
        raise TimingError(f"--{option_name(name)} {text}: give values that are {expected}")
    if quantity.whole and (low.denominator, high.denominator) != (1, 1):
        raise TimingError(f"--{option_name(name)} {text}: it is a count; give whole numbers")
    if quantity.rate:
        return Interval(1 / (high * quantity.scale), 1 / (low * quantity.scale))
    return Interval(low, high)


def _quantity(name: str) -> Quantity:
    return _RANKS if name == RANKS else QUANTITIES[name]


def one_rank(text: str) -> bool | None:
    """Whether an interval of numbers of ranks says that there is one; None if it does not say. Raises TimingError."""
    ranks = parse_interval(RANKS, text)
    return ranks.high == 1 if ranks.low > 1 or ranks.fixed else None


def default_of(name: str, profile: Profile) -> str:
    """What a quantity is if nobody gives it: the release's default, else unknown.

    A worker that waits for each call has one chunk launched, and its calls have a budget, if it is established what
    their errors mean. One that posts at once waits as long as it takes, and how many chunks are launched is unknown.
    """
    at_once = profile.knobs.posts_at_once
    if name == "launched_chunks" and not at_once:
        return "1"
    if name == CALL_TIMEOUT and at_once:
        return NO_TIMEOUT
    if name == CALL_TIMEOUT and "err_implies_quiet" not in profile.unknown:
        return CALL_BUDGET
    return QUANTITIES[name].default or "unknown"


def _number(name: str, text: str, part: str) -> Fraction:
    if not NUMBER.fullmatch(part.strip()):
        raise _wrong(name, text)
    value = Fraction(part.strip())
    if value and not Fraction(1, LARGEST) <= abs(value) <= LARGEST:
        raise TimingError(f"--{option_name(name)} {text}: give 0, or values from 1e-18 to 1e18")
    return value


def _wrong(name: str, text: str) -> TimingError:
    unit = _quantity(name).unit or "a count"
    hint = "; a GiB is 2^30 bytes, 1.073741824 gigabytes" if "ib" in text.lower() else ""
    return TimingError(
        f"--{option_name(name)} {text}: expected a number without unit (it is in {unit}), lo..hi or unknown{hint}"
    )


def option_name(name: str) -> str:
    """The option of a quantity, without the dashes before it."""
    return name.replace("_", "-")


def shown(name: str, value: Any) -> str:
    """A value as the user gives it: rates per second, in the option's unit."""
    quantity = QUANTITIES[name]
    if name == CALL_TIMEOUT and value == LARGEST:
        return NO_TIMEOUT
    unit = f" {quantity.unit}" if quantity.unit else ""
    if quantity.rate:
        if not value:
            return "without limit"
        value = 1 / (value * quantity.scale)
    return f"{decimal(value)}{unit}"


def decimal(value: Any) -> str:
    """A fraction in decimal digits: exact if short, else rounded to nine digits, with a sign for it."""
    if value == math.inf:
        return "unbounded"
    text = f"{float(value):,.9g}" if abs(value) < 10**9 else f"{float(value):,.0f}"
    exact = Fraction(text.replace(",", "")) == value
    return text if exact else f"~{text}"


class Cause(StrEnum):
    """Why a transfer ends before its time."""

    ABORT = "abort"
    WAITING_TIMEOUT = "waiting-timeout"
    FAILED_SEND = "failed-send"
    NODE_FAILURE = "node-failure"


DECODE_INITIATED = frozenset({Cause.ABORT, Cause.WAITING_TIMEOUT})
"""Ends that decode itself decides on."""


@dataclass(frozen=True)
class Situation:
    """What is no quantity: the release, the cause, and what the user says of ABORTs, acks and the ranks.

    `acks_arrive` and `one_rank` are None where nobody knows; the worse is taken.
    """

    knobs: Knobs
    cause: Cause
    notification: bool = True
    acks_arrive: bool | None = None
    one_rank: bool | None = None

    @property
    def held(self) -> bool:
        """Whether decode holds after an end of this cause; otherwise T_hold is 0."""
        causes = ("decode_initiated", "all") if self.cause in DECODE_INITIATED else ("all",)
        return self.knobs.hold_enabled and self.knobs.hold_causes in causes

    @property
    def told(self) -> bool:
        """Whether an ABORT stops a rank."""
        return self.notification and self.knobs.abort_handled

    @property
    def tail(self) -> bool:
        """Whether writes may go on after their call has failed."""
        return not self.knobs.err_implies_quiet

    @property
    def drains(self) -> bool:
        """Whether a hold ends by acks where nothing fails."""
        return self.held and self.told and self.knobs.acks_drain and self.acks_arrive is not False

    @property
    def acks_failed_sends(self) -> bool:
        """Whether an ack may end a hold while writes of a failed send go on: then no T_hold helps."""
        poisons = self.knobs.poison_on_error and self.knobs.poison_on_rejected_post
        return self.drains and self.knobs.failed_chunk_uncounted and not poisons


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One value for each quantity, exact or symbolic. Rates are seconds per byte and per token."""

    hold_seconds: Any
    abort_propagation_seconds: Any
    bandwidth_gigabytes_per_second: Any
    kv_bytes_per_token: Any
    context_tokens: Any
    chunk_tokens: Any
    prefill_tokens_per_second: Any
    prefill_queue_seconds: Any
    calls_per_chunk: Any
    index_batches_per_call: Any
    destinations: Any
    launched_chunks: Any
    call_timeout_seconds: Any
    retry_tail_seconds: Any
    heartbeat_seconds: Any
    heartbeat_misses: Any


class Exact:
    """Arithmetic on fractions, with an infinity for what nothing bounds; nothing times infinity is nothing."""

    def times(self, *factors: Any) -> Any:
        """The product."""
        return Fraction(0) if 0 in factors else math.prod(factors)

    def over(self, dividend: Any, divisor: Any) -> Any:
        """The quotient; of something unbounded it is unbounded."""
        return math.inf if dividend == math.inf else dividend / divisor

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        """One of two values."""
        return yes if condition else no

    def less(self, whole: Any, part: Any) -> Any:
        """The difference; of something unbounded it is unbounded."""
        return whole if whole == math.inf else whole - part


@dataclass(frozen=True)
class Terms:
    """The right side of the inequality for one writer, in seconds; `detection` is what has passed before time 0."""

    abort_propagation: Any
    remaining_chunks: Any
    in_flight_call: Any
    retry_tail: Any
    detection: Any
    after_error: Any
    """How much of the sum comes after a call has failed: what an ack for a failed send does not wait for."""

    @property
    def total(self) -> Any:
        """When the last write is over, at the latest."""
        return self.abort_propagation + self.remaining_chunks + self.in_flight_call + self.retry_tail - self.detection

    @property
    def named(self) -> dict[str, Any]:
        """The terms by the names of the inequality."""
        return {
            "t_abort_propagation": self.abort_propagation,
            "t_remaining_chunks": self.remaining_chunks,
            "t_in_flight_call": self.in_flight_call,
            "t_retry_tail": self.retry_tail,
        }

    @property
    def dominating(self) -> str:
        """The name of the largest term."""
        return max(self.named, key=lambda name: self.named[name])


@dataclass(frozen=True)
class Writer:
    """A kind of prefill rank that may still write when the hold begins; its terms, and its formula in words."""

    name: str
    kind: str
    formula: str


RUNNING = "running"
FAILING = "failing"
DEAD = "dead"


def writers(situation: Situation) -> list[Writer]:
    """Who may still write after an end of the cause. None if the backend transfers nothing."""
    if not situation.knobs.transfers:
        return []
    launch = "min(t_abort_propagation, t_remaining_chunks)" if situation.told else "t_remaining_chunks"
    timed_out = " + t_retry_tail where a call can take its whole budget" if situation.tail else ""
    if situation.cause in DECODE_INITIATED:
        return [Writer("a rank that was writing", RUNNING, f"T_hold > {launch} + t_in_flight_call{timed_out}")]
    tail = " + t_retry_tail" if situation.tail else ""
    if situation.cause is Cause.NODE_FAILURE:
        return [
            Writer("a rank that lives on", RUNNING, f"T_hold > {launch} + t_in_flight_call{timed_out}"),
            Writer("a rank that has died", DEAD, f"T_hold > t_in_flight_call{tail} - t_detection"),
        ]
    siblings = "" if situation.knobs.wait_for_siblings else "t_in_flight_call"
    failing = (siblings + tail).removeprefix(" + ") or "0"
    found = [Writer("the rank whose send failed", FAILING, f"T_hold > {failing}")]
    if situation.one_rank is not True:
        found.append(Writer("another rank", RUNNING, f"T_hold > {launch} + t_in_flight_call{tail}"))
    return found


def terms(situation: Situation, writer: Writer, timing: Timing, arithmetic: Any = None) -> Terms:
    """The terms of a writer's inequality. `arithmetic` is `Exact()` unless the timing is symbolic."""
    do = arithmetic or Exact()
    zero = Fraction(0)
    chunk = do.choose(timing.chunk_tokens <= timing.context_tokens, timing.chunk_tokens, timing.context_tokens)
    token_seconds = do.times(timing.kv_bytes_per_token, timing.bandwidth_gigabytes_per_second)
    one_after_another = 1 if situation.knobs.posts_at_once else timing.destinations
    budget = do.times(timing.calls_per_chunk, timing.index_batches_per_call, timing.call_timeout_seconds)
    slow = do.times(chunk, token_seconds) >= budget
    of_chunk = do.times(one_after_another, do.choose(slow, budget, do.times(chunk, token_seconds)))
    in_flight = do.times(timing.launched_chunks, of_chunk)
    tail = timing.retry_tail_seconds if situation.tail else zero
    if writer.kind == DEAD:
        seen_after = do.times(timing.heartbeat_seconds, timing.heartbeat_misses - 1)
        return Terms(zero, zero, in_flight, tail, seen_after, zero)  # who is dead acknowledges nothing
    if writer.kind == FAILING:
        siblings = zero if situation.knobs.wait_for_siblings else in_flight
        return Terms(zero, zero, siblings, tail, zero, siblings + tail)
    later = do.choose(
        slow,
        do.times(do.less(do.over(timing.context_tokens, chunk), 1), of_chunk),
        do.times(do.less(timing.context_tokens, chunk), one_after_another, token_seconds),
    )
    computed = do.times(timing.context_tokens, timing.prefill_tokens_per_second)
    written = do.times(chunk, timing.prefill_tokens_per_second) + later
    one_more = do.choose(slow, of_chunk, zero)
    remaining = timing.prefill_queue_seconds + do.choose(computed >= written, computed, written) + one_more
    fails = tail if situation.cause is Cause.FAILED_SEND else do.choose(slow, tail, zero)
    if not situation.told:
        return Terms(zero, remaining, in_flight, fails, zero, fails)
    in_time = timing.abort_propagation_seconds <= remaining
    return Terms(
        do.choose(in_time, timing.abort_propagation_seconds, zero),
        do.choose(in_time, zero, remaining),
        in_flight,
        fails,
        zero,
        fails,
    )


DEFINITIONS: Sequence[tuple[str, str]] = (
    ("t_abort_propagation", "abort propagation"),
    (
        "t_remaining_chunks",
        "prefill queue + max(context / prefill rate, chunk / prefill rate + (context - chunk) x t_token); where calls "
        "take their whole budget: chunks of t_budget, and one chunk more than fit into the context",
    ),
    ("t_in_flight_call", "launched chunks x min(chunk x t_token, t_budget)"),
    ("t_token", "KV bytes per token{x}/ bandwidth"),
    ("t_budget", "calls per chunk x index batches per call{x}x call timeout"),
    ("t_retry_tail", "retry tail, if a call fails or takes its whole budget"),
    ("t_detection", "heartbeat x (misses - 1)"),
)


def definitions(situation: Situation, formulas: Sequence[str]) -> list[str]:
    """What the terms of some formulas are, in words."""
    times = " " if situation.knobs.posts_at_once else " x destinations "
    used = " ".join(formulas)
    lines: list[str] = []
    for name, meaning in DEFINITIONS:
        if name in used or (name in ("t_token", "t_budget") and "t_in_flight_call" in used):
            lines.append(f"{name} = {meaning.replace('{x}', times)}")
    return lines


def assumptions(situation: Situation, profile: Profile) -> list[str]:
    """What the answer takes for granted, beside the values that are given."""
    lines = [
        "a call that returns without an error has nothing in flight any more",
        "bandwidth and prefill rate are what this request gets, waiting behind others included",
    ]
    if situation.told:
        lines.append("an ABORT reaches every rank within t_abort_propagation")
    if situation.cause in DECODE_INITIATED:
        lines.append("no send fails otherwise than by its budget; the cause failed-send is about the others")
    if situation.drains:
        lines.append(
            f"an ack that says drained is true where no send has failed, and an update of a room's status is one step: "
            f"draincheck verify {profile.name}; --scenario split-status takes the update apart"
        )
    lines += [
        f"{name} is unknown in the profile and taken as {getattr(situation.knobs, name)}"
        for name in profile.unknown
        if name in READ_KNOBS
    ]
    return lines


READ_KNOBS = frozenset(
    {
        "hold_enabled",
        "hold_causes",
        "abort_handled",
        "drain_ack",
        "err_implies_quiet",
        "failed_chunk_uncounted",
        "poison_on_error",
        "poison_on_rejected_post",
        "posts_at_once",
        "transfers",
        "wait_for_siblings",
    }
)
"""The knobs that the formulas follow."""


def fails(situation: Situation, timing: Timing, of_writer: Terms) -> bool:
    """Whether a write of the writer can be late: at the moment of the release, or behind it."""
    hold = timing.hold_seconds if situation.held else Fraction(0)
    return hold <= of_writer.total or (situation.acks_failed_sends and of_writer.after_error > 0)
