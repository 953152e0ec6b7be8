"""Decides the hold inequality for all allowed values: Z3 proves, exact arithmetic shows a counterexample.

Z3 alone says "proved". A counterexample is a value for each quantity, and is evaluated on fractions before anybody
sees it. Z3 is imported where it is used: it takes a while to load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, cast

from ..solver import library
from .inequality import QUANTITIES, Exact, Interval, Situation, Terms, Timing, Worse, Writer, fails, terms, writers

TIMEOUT_MILLISECONDS = 20_000
HALVINGS = 80
FARTHEST = 10**40
"""No limit is looked for beyond this value."""
SIMPLE = 10**12
"""A limit with a denominator up to this is tried for the exact one."""
ATTEMPTS = 8
Question = Callable[[Timing, Terms], Any]
"""A formula about symbolic timings and their terms."""
Intervals = Mapping[str, Interval]
Values = Mapping[str, Any]
ENDLESS = math.inf
EITHER_WAY = tuple(name for name, quantity in QUANTITIES.items() if quantity.worse is Worse.EITHER)
"""Quantities of which neither end is the worse one: what makes calls many or long keeps them inside their budget."""


class Answer(StrEnum):
    """Whether every launched write is over before the release, for all allowed values; the first is the worst."""

    REFUTED = "NOT SAFE"
    UNDETERMINED = "UNDETERMINED"
    PROVED = "PROVED"


@dataclass(frozen=True)
class Finding:
    """What is known of one writer after an end of one cause.

    `smallest` is what T_hold must exceed, in seconds, for all allowed values: infinite if something unknown leaves it
    unbounded, None if no T_hold is enough. `timing` are the values of the worst case, or the counterexample. `enough`
    says of unknown quantities below which value each would settle it alone, `needed` below which each must be. `read`
    are the quantities that the terms are made of.
    """

    situation: Situation
    writer: Writer
    answer: Answer
    smallest: Any
    timing: Timing
    terms: Terms
    read: frozenset[str]
    unknown: tuple[str, ...] = ()
    enough: Mapping[str, Fraction] | None = None
    needed: Mapping[str, Fraction] | None = None
    reason: str = ""

    @property
    def hold(self) -> Fraction:
        """T_hold in the timing shown; 0 where the cause is not held."""
        return self.timing.hold_seconds if self.situation.held else Fraction(0)

    @property
    def slack(self) -> Any:
        """By how much T_hold exceeds the sum."""
        return self.hold - self.terms.total


def decide(situation: Situation, intervals: Intervals) -> list[Finding]:
    """A finding for each kind of rank that may still write after an end of the cause."""
    return [_Question(situation, writer, intervals).finding() for writer in writers(situation)]


@dataclass(frozen=True)
class _Question:
    situation: Situation
    writer: Writer
    intervals: Intervals

    def finding(self) -> Finding:
        """A refutation if exact arithmetic finds one, a proof only if Z3 does."""
        smallest, worst, doubt = self.largest()
        settled = self.refutation()
        if settled is not None:
            return self.made(Answer.REFUTED, smallest, settled, reason=doubt)
        status, model = self.ask(self.late)
        if status == "unsat":
            return self.made(Answer.PROVED, smallest, worst, reason=doubt)
        if not self.unknown and model is not None and self.fails(model):
            return self.made(Answer.REFUTED, smallest, model, reason=doubt)
        if not self.unknown:
            return self.made(Answer.UNDETERMINED, smallest, worst, reason=doubt or "the solver gave up")
        relevant = self.relevant()
        return self.made(
            Answer.UNDETERMINED,
            smallest,
            {**worst, **self.best_of_unknown()},
            unknown=relevant,
            enough=self.limits(relevant, others_best=False),
            needed=self.limits(relevant, others_best=True),
            reason="the solver gave up" if status == "unknown" else doubt,
        )

    def made(self, answer: Answer, smallest: Any, values: Values, **more: Any) -> Finding:
        """The finding with its terms in the case of the values."""
        timing = Timing(**values)
        found = self.terms(values)
        return Finding(self.situation, self.writer, answer, smallest, timing, found, self.read, **more)

    # Exact arithmetic.

    @property
    def unknown(self) -> tuple[str, ...]:
        """The quantities that nothing bounds."""
        return tuple(name for name, interval in self.intervals.items() if not interval.known)

    def terms(self, values: Values) -> Terms:
        """The terms for single values."""
        return terms(self.situation, self.writer, Timing(**values))

    def fails(self, values: Values) -> bool:
        """Whether single values have a late write."""
        return fails(self.situation, Timing(**values), self.terms(values))

    def refutation(self) -> dict[str, Any] | None:
        """Values of the known quantities that fail whatever the unknown ones are, with the best of these."""
        bests = list(self.bests_of(self.unknown))
        failing = [next((each for each in self.corners(best) if self.fails(each)), None) for best in bests]
        found = [each for each in failing if each is not None]
        if len(found) < len(bests):
            return None
        finite = [each for each in found if ENDLESS not in each.values()]
        return finite[0] if finite else {**found[0], **self.best_of_unknown()}

    def corners(self, given: Values = MappingProxyType({})) -> Iterator[dict[str, Any]]:
        """Values of all quantities of which one has the largest sum; what is unknown is unbounded, unless given."""
        single: dict[str, Any] = {}
        for name, interval in self.intervals.items():
            high = ENDLESS if interval.high is None else interval.high
            single[name] = interval.low if QUANTITIES[name].worse is Worse.LOW else high
        free = [name for name in EITHER_WAY if name not in given]
        for chosen in product(*(self.ends(name) for name in free)):
            corner = {**single, **given, **dict(zip(free, chosen, strict=True))}
            yield corner
            for once in self.balances(corner, free):
                yield once
                yield from self.balances(once, free)

    def balances(self, corner: Values, free: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The corner moved to where a call takes its whole budget, by one quantity at a time."""
        for name in free:
            at = self.balanced(corner, name)
            if at is not None and at != corner[name]:
                yield {**corner, name: at}

    def ends(self, name: str) -> list[Any]:
        """Both ends of an interval; one if they are the same."""
        interval = self.intervals[name]
        return list(dict.fromkeys((interval.low, ENDLESS if interval.high is None else interval.high)))

    def balanced(self, corner: Values, name: str) -> Fraction | None:
        """The allowed value at which a call takes its whole budget (a count: at least), with the others as they are."""
        do = Exact()
        chunk = min(corner["chunk_tokens"], corner["context_tokens"])
        token = do.times(corner["kv_bytes_per_token"], corner["bandwidth_gigabytes_per_second"])
        budget = do.times(*(corner[each] for each in EITHER_WAY if each not in (name, "chunk_tokens")))
        whole, parts = (budget, token) if name == "chunk_tokens" else (do.times(chunk, token), budget)
        if ENDLESS in (whole, parts) or not parts:
            return None
        exact: Fraction = whole / parts
        at = Fraction(math.floor(exact)) if QUANTITIES[name].whole else exact
        interval = self.intervals[name]
        return at if interval.low <= at and (interval.high is None or at <= interval.high) else None

    def best(self, name: str) -> Any:
        """The value of an unknown quantity that is best."""
        return ENDLESS if QUANTITIES[name].worse is Worse.LOW else self.intervals[name].low

    def best_of_unknown(self) -> dict[str, Any]:
        """Finite values of the unknown quantities, to show."""
        return {name: self.intervals[name].low for name in self.unknown}

    def largest(self) -> tuple[Any, dict[str, Any], str]:
        """What T_hold must exceed (None: nothing is enough), the values for which, and what is doubtful about it."""
        worst = max(self.corners(), key=lambda each: self.terms(each).total)
        if self.situation.acks_failed_sends:
            for each in self.corners():
                if self.terms(each).after_error > 0:
                    return None, each, ""
        total = self.terms(worst).total
        for _ in range(ATTEMPTS):
            if total == ENDLESS:
                return total, worst, ""
            status, model = self.ask(self.above(total))
            if status == "unsat":
                return total, worst, ""
            if status == "unknown" or model is None or self.terms(model).total <= total:
                break
            worst, total = dict(model), self.terms(model).total
        return total, worst, "the solver could not confirm the largest sum"

    @cached_property
    def read(self) -> frozenset[str]:
        """The quantities that the writer's terms are made of, and T_hold."""
        timing = _Recording({name: interval.low for name, interval in self.intervals.items()})
        terms(self.situation, self.writer, cast(Timing, timing))
        return frozenset(timing.names)

    def relevant(self) -> tuple[str, ...]:
        """The unknown quantities that the answer depends on; all that are read, where knowing few is not enough."""
        found = tuple(name for name in self.unknown if self.is_relevant(name))
        rest = self.worst_of(name for name in self.unknown if name not in found)
        settled = any(not self.fails_at({**rest, **best}) for best in self.bests_of(found))
        return found if found and settled else tuple(name for name in self.unknown if name in self.read)

    def is_relevant(self, name: str) -> bool:
        """Whether the answer can depend on an unknown quantity, with the other ones at their worst, or at a best."""
        others = [each for each in self.unknown if each != name]
        for rest in (self.worst_of(others), *self.bests_of(others)):
            good = any(not self.fails_at({**rest, name: value}) for value in self.bests(name))
            bad = any(self.fails_at({**rest, name: value}) for value in self.ends(name))
            if good and bad:
                return True
        return False

    def worst_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Unknown quantities at their worst. Those that have no worse end are left to the corners, which try both."""
        return {
            name: self.intervals[name].low if QUANTITIES[name].worse is Worse.LOW else ENDLESS
            for name in names
            if name not in EITHER_WAY
        }

    def bests_of(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Unknown quantities at their best; where neither end is better, each of the two."""
        for chosen in product(*(self.bests(name) for name in names)):
            yield dict(zip(names, chosen, strict=True))

    def bests(self, name: str) -> list[Any]:
        """Where an unknown quantity is best: at either end, if neither is better."""
        return self.ends(name) if name in EITHER_WAY else [self.best(name)]

    def fails_at(self, unknown: Values) -> bool:
        """Whether some known values fail with these values of the unknown ones."""
        return any(self.fails(corner) for corner in self.corners(unknown))

    def limits(self, relevant: Sequence[str], *, others_best: bool) -> dict[str, Fraction]:
        """For each unknown quantity the value below which nothing fails, with the other ones best or worst."""
        found: dict[str, Fraction] = {}
        for name in relevant:
            if QUANTITIES[name].worse is not Worse.HIGH:
                continue
            others = [each for each in self.unknown if each != name]
            rests = self.bests_of(others) if others_best else [self.worst_of(others)]
            limit = max(self.limit(name, rest) for rest in rests)
            if self.intervals[name].low < limit < ENDLESS:
                found[name] = limit
        return found

    def limit(self, name: str, rest: Values) -> Any:
        """By halving: no smaller value fails. The least value if even that one does; endless if none does."""
        low, high = self.intervals[name].low, Fraction(1)
        if self.fails_at({**rest, name: low}):
            return low
        while not self.fails_at({**rest, name: high}):
            low, high = high, high * 1024
            if high > FARTHEST:
                return ENDLESS
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.fails_at({**rest, name: middle}) else (middle, high)
        simple = high.limit_denominator(SIMPLE)
        return simple if low <= simple <= high and self.is_equality({**rest, name: simple}) else low

    def is_equality(self, unknown: Values) -> bool:
        """Whether the sum is T_hold exactly with these values of the unknown ones, in the worst case."""
        hold = self.intervals["hold_seconds"].low
        return max(self.terms(corner).total for corner in self.corners(unknown)) == hold

    # Z3.

    def late(self, timing: Timing, of_writer: Terms) -> Any:
        """The same as `fails`, as a formula."""
        late = (timing.hold_seconds if self.situation.held else _number(Fraction(0))) <= of_writer.total
        if not self.situation.acks_failed_sends:
            return late
        return library().Or(late, _number(of_writer.after_error) > 0)

    def above(self, total: Fraction) -> Question:
        """Whether the sum can be larger."""
        return lambda timing, of_writer: of_writer.total > _number(total)

    def ask(self, question: Question) -> tuple[str, dict[str, Any] | None]:
        """Whether allowed values satisfy a formula: sat with values, unsat, or unknown."""
        z3 = library()
        symbols: dict[str, Any] = {}
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MILLISECONDS)
        for name, interval in self.intervals.items():
            symbols[name] = _number(interval.low)
            if not interval.fixed:
                plain = z3.Int(name) if QUANTITIES[name].whole else z3.Real(name)
                symbols[name] = z3.ToReal(plain) if QUANTITIES[name].whole else plain
                solver.add(symbols[name] >= _number(interval.low))
                if interval.high is not None:
                    solver.add(symbols[name] <= _number(interval.high))
        timing = Timing(**symbols)
        solver.add(question(timing, terms(self.situation, self.writer, timing, Symbolic())))
        status = str(solver.check())
        if status != "sat":
            return status, None
        model = solver.model()
        values = {name: _fraction(model.eval(symbol, model_completion=True)) for name, symbol in symbols.items()}
        return status, None if None in values.values() else values


class _Recording:
    """Stands for a timing, and notes what is asked of it."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.names: set[str] = {"hold_seconds"}

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return self.values[name]


class Symbolic:
    """Arithmetic on Z3's reals."""

    def times(self, *factors: Any) -> Any:
        """The product."""
        return math.prod(_number(each) for each in factors)

    def over(self, dividend: Any, divisor: Any) -> Any:
        """The quotient."""
        return dividend / divisor

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        """One of two values."""
        return library().If(condition, _number(yes), _number(no))

    def less(self, whole: Any, part: Any) -> Any:
        """The difference."""
        return whole - part


def _number(value: Any) -> Any:
    """A Z3 real of a fraction; symbolic values stay."""
    if isinstance(value, int | Fraction):
        return library().RealVal(str(value))
    return value


def _fraction(value: Any) -> Fraction | None:
    """A fraction of a Z3 number; None for an irrational one."""
    text = str(value.as_fraction()) if hasattr(value, "as_fraction") else ""
    return Fraction(text) if text else None
