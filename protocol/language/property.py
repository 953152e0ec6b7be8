"""Properties as functions made of claims, so that a failure says which conjunct is false, with its values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast, overload

from .action import running, truth
from .errors import DeclarationError, Disabled
from .model import Model, Values
from .state import Access, State
from .whitelist import machinery


class ClaimFailed(Exception):
    """A conjunct of a property is false."""

    def __init__(self, text: str, values: dict[str, int]) -> None:
        super().__init__(text)
        self.text = text
        self.values = values


@machinery
def claim(condition: int, text: str, **values: int) -> None:
    """A conjunct of a property. `text` says what must hold; `values` are shown if it does not."""
    if not truth(condition, "claim()"):
        raise ClaimFailed(text, values)


@dataclass(frozen=True)
class Violation:
    """A property that is false in a state: the conjunct, and the values it was about."""

    property: str
    conjunct: str
    values: dict[str, str]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"{self.conjunct} is false" + (f": {shown}" if shown else "")


class Kind(StrEnum):
    """What is lost where a property or promise fails."""

    RULE = "rule"
    """Nothing is said of it."""
    MEMORY = "memory"
    """Data: a slot is read or written by whom it does not belong to."""
    LEAK = "leak"
    """Something is never given back."""
    DELAY = "delay"
    """Time only: what could end is left to a timer."""
    MEANS = "means"
    """Nothing by itself, but others rest on it."""


@dataclass(frozen=True)
class Property:
    """Something that must be true in every reachable state: a name, one sentence, its claims, and what is lost else.

    `without_timer` is what is lost where no release timer ends what the property leaves to one; None for the same.
    """

    name: str
    sentence: str
    function: Callable[[Any], None]
    kind: Kind = Kind.RULE
    without_timer: Kind | None = None

    def violation(self, model: Model, values: Sequence[int]) -> Violation | None:
        """What is false in the state, by direct execution; None if the property holds."""
        state = model.state_of(values, access=Access.PROPERTY)
        state.labels = True
        failed = self.evaluate(state)
        if failed is None:
            return None
        shown = {name: getattr(value, "label", str(value)) for name, value in failed.values.items()}
        return Violation(self.name, failed.text, shown)

    def evaluate(self, state: State[Any]) -> ClaimFailed | None:
        """The claim that is false in a state, symbolic or not. Raises DeclarationError if it is no property."""
        try:
            with running(f"property {self.name}"):
                result: object = self.function(state)
        except ClaimFailed as failed:
            return failed
        except Disabled:
            raise DeclarationError(f"property {self.name}: it may not use require(); use claim()") from None
        if result is not None:
            raise DeclarationError(f"property {self.name}: it returns nothing: say what must hold with claim()")
        return None


@dataclass(frozen=True)
class Probe:
    """Something that must be reachable, or else a pass says nothing: a name, one sentence, a predicate."""

    name: str
    sentence: str
    function: Callable[[Any], int]

    def holds(self, model: Model, values: Sequence[int]) -> bool:
        """Whether the state is one that the probe looks for."""
        return truth_of(self.function, model.state_of(values, access=Access.PROPERTY), f"probe {self.name}")


@dataclass(frozen=True)
class Promise:
    """Something that must come to an end: a name, one sentence, and a predicate that says where it is pending.

    It is broken by a fair run that stays in pending states for ever, and by one that ends in a pending state. The
    predicate is about whole states: where each of several things must end, each needs a promise of its own.

    `kept` gives, of a state from which it is never kept, what that costs, as a dataclass. One that is kept `by_timer`
    is no finding with the release timer off, as long as there is one. One that `may_rest` need never be pending.
    """

    name: str
    sentence: str
    function: Callable[[Any], int]
    kind: Kind = Kind.RULE
    by_timer: bool = False
    kept: Callable[[Model, Values], object] | None = None
    may_rest: bool = False

    def is_pending(self, model: Model, values: Sequence[int]) -> bool:
        """Whether the promise is still to be kept in the state."""
        return truth_of(self.function, model.state_of(values, access=Access.PROPERTY), f"promise {self.name}")


def truth_of(predicate: Callable[[Any], int], state: State[Any], where: str) -> bool:
    """A predicate's value in a state, symbolic or not. Raises DeclarationError if it is none."""
    try:
        with running(where):
            result = cast(object, predicate(state))
            if result is None:
                raise DeclarationError(f"{where}: it returns nothing; return whether it holds")
            return truth(result, where)
    except Disabled:
        raise DeclarationError(f"{where}: it may not use require()") from None
    except ClaimFailed:
        raise DeclarationError(f"{where}: it may not use claim(); return whether it holds") from None


def _sentence(kind: str, function: Callable[..., object]) -> str:
    doc = inspect.getdoc(function)
    if not doc:
        raise DeclarationError(f"{kind} {function.__name__}: say in a docstring, in one sentence, what it states")
    return " ".join(doc.split("\n\n")[0].split())


@overload
def invariant(function: Callable[[Any], None]) -> Property: ...
@overload
def invariant(*, kind: Kind, without_timer: Kind | None = None) -> Callable[[Callable[[Any], None]], Property]: ...
def invariant(
    function: Callable[[Any], None] | None = None, *, kind: Kind = Kind.RULE, without_timer: Kind | None = None
) -> Property | Callable[[Callable[[Any], None]], Property]:
    """Declares a property: a function of the state made of claims, with one sentence as its docstring.

    `kind` says what is lost where it fails: `@invariant(kind=Kind.LEAK)`.
    """

    def declare(function: Callable[[Any], None]) -> Property:
        return Property(function.__name__, _sentence("property", function), function, kind, without_timer)

    return declare(function) if function else declare


def probe(function: Callable[[Any], int]) -> Probe:
    """Declares a probe: a predicate of the state that some reachable state must satisfy."""
    return Probe(function.__name__, _sentence("probe", function), function)


@overload
def promise(function: Callable[[Any], int]) -> Promise: ...
@overload
def promise(
    *,
    kind: Kind = Kind.RULE,
    by_timer: bool = False,
    kept: Callable[[Model, Values], object] | None = None,
    may_rest: bool = False,
) -> Callable[[Callable[[Any], int]], Promise]: ...
def promise(
    function: Callable[[Any], int] | None = None,
    *,
    kind: Kind = Kind.RULE,
    by_timer: bool = False,
    kept: Callable[[Model, Values], object] | None = None,
    may_rest: bool = False,
) -> Promise | Callable[[Callable[[Any], int]], Promise]:
    """Declares a promise: a predicate of the state that no fair run satisfies for ever. See Promise for the rest."""

    def declare(function: Callable[[Any], int]) -> Promise:
        return Promise(function.__name__, _sentence("promise", function), function, kind, by_timer, kept, may_rest)

    return declare(function) if function else declare
