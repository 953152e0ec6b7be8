"""Actions: the guarded steps of threads, as plain functions; and the code that runs them directly."""

from __future__ import annotations

import inspect
import string
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from itertools import product
from typing import Any, ParamSpec, TypeVar, cast, get_type_hints

from .domain import Index, NoValue, Sizes, count_of, is_number
from .errors import AccessFault, DeclarationError, Disabled, GhostFault, ModelFault
from .sources import shown
from .state import Access, Chooser, State

P = ParamSpec("P")
S = TypeVar("S", bound=State[Any])


def require(condition: int) -> None:
    """A guard: without it the action cannot happen in this state, and nothing it did counts."""
    if not truth(condition, "require()"):
        raise Disabled


def truth(condition: object, where: str) -> bool:
    """A condition's truth, symbolic or not. Raises DeclarationError for what is no number: a text, a list, None."""
    if not (is_number(condition) or isinstance(condition, NoValue)):
        raise DeclarationError(f"{where} was given {_kind(condition)}; give it a truth value or a number")
    return bool(condition)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


@contextmanager
def running(where: str) -> Generator[None]:
    """Runs a function of a model; what goes wrong in it names the step or property.

    Raises ModelFault for what depends on the state, and DeclarationError for what is no part of the language.
    """
    try:
        yield
    except ModelFault as fault:
        fault.where = fault.where or where
        raise
    except (ArithmeticError, LookupError, ValueError) as error:
        raise ModelFault(f"{type(error).__name__}: {error}", where) from error
    except (TypeError, AttributeError, NameError, RecursionError) as error:
        raise DeclarationError(f"{where}: {_place_of(error)}{_said(error)}") from error


def _said(error: Exception) -> str:
    """What is wrong, in the language's words where they are known."""
    owner: object = error.obj if isinstance(error, AttributeError) else None
    if not isinstance(owner, State | NoValue):
        return str(error)
    wanted, kind = str(error.name), type(cast(object, owner)).__name__  # type: ignore[union-attr]
    known = [name for name in dir(cast(object, owner)) if not name.startswith("_")]
    near = "".join(f"; did you mean {each}?" for each in get_close_matches(wanted, known, 1))
    return (f"{kind} declares no field {wanted}" if isinstance(owner, State) else f"a {kind} has no {wanted}") + near


def _place_of(error: BaseException) -> str:
    """`models/lock.py:12: `: the line of the model's own code that an error comes from, if there is one."""
    package, _, _ = __name__.partition(".protocol.")
    ours = (f"{package}.protocol.language.", f"{package}.explorer.")
    place, trace = "", error.__traceback__
    while trace:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        if not name.startswith(ours) and name.partition(".")[0] not in sys.stdlib_module_names:
            place = f"{shown(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}: "
        trace = trace.tb_next
    return place


@dataclass(frozen=True)
class Action:
    """A step of one thread, on states of a class. `instances` are the steps it stands for under a model's sizes."""

    name: str
    function: Callable[..., None]
    parameters: tuple[tuple[str, type[Index]], ...]
    lane: str
    toward: str
    state: type[State[Any]] = State

    @property
    def doc(self) -> str:
        """The action's docstring: the step in words, and where the release does it."""
        return inspect.getdoc(self.function) or ""

    def instances(self, sizes: Sizes) -> Iterator[Instance]:
        """One instance for each combination of parameter values, in order."""
        for values in product(*(range(count_of(kind, sizes)) for _, kind in self.parameters)):
            yield Instance(self, values)


@dataclass(frozen=True)
class Instance:
    """An action with its parameters fixed."""

    action: Action
    arguments: tuple[int, ...]

    @property
    def label(self) -> str:
        """`recv_ack(rank=0, room=1)`."""
        pairs = zip(self.action.parameters, self.arguments, strict=True)
        return f"{self.action.name}({', '.join(f'{name}={value}' for (name, _), value in pairs)})"

    @property
    def lane(self) -> str:
        """The thread that takes the step, with parameters filled in."""
        return self._fill(self.action.lane)

    @property
    def toward(self) -> str:
        """The thread or memory the step acts upon, or an empty string."""
        return self._fill(self.action.toward)

    def _fill(self, template: str) -> str:
        names = [name for name, _ in self.action.parameters]
        return template.format(**dict(zip(names, self.arguments, strict=True)))


def action(lane: str, toward: str = "") -> Callable[[Callable[..., None]], Action]:
    """Declares a function as an action of the thread `lane`; parameters may be named: "prefill {rank}: NIC".

    The function takes the state and then parameters annotated with index types. `toward` names the thread or
    memory that the step acts upon, for diagrams. Raises DeclarationError when the module is loaded.
    """

    def declare(function: Callable[..., None]) -> Action:
        where = f"action {function.__name__}"
        if not inspect.getdoc(function):
            raise DeclarationError(f"{where}: say in a docstring what the step is, and where the release does it")
        try:
            hints = get_type_hints(function)
        except NameError as error:
            raise DeclarationError(
                f"{where}: {error.name} is not known where the action stands; define it above, at the top of the module"
            ) from None
        signature = inspect.signature(function).parameters
        names = list(signature)
        if any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in signature.values()):
            raise DeclarationError(f"{where}: it takes the state and indices, each by its own name; no * or **")
        if not names or not _is_state(hints.get(names[0])):
            raise DeclarationError(f"{where}: the first parameter is the state; annotate it with a State class")
        parameters: list[tuple[str, type[Index]]] = []
        for name in names[1:]:
            kind = hints.get(name)
            if not (isinstance(kind, type) and issubclass(kind, Index) and kind is not Index):
                raise DeclarationError(f"{where}: annotate {name} with an index type, not {kind!r}")
            parameters.append((name, kind))
        for template in (lane, toward):
            try:
                slots = [slot for _, slot, _, _ in string.Formatter().parse(template) if slot is not None]
            except ValueError as error:
                raise DeclarationError(f"{where}: its lane {template!r} cannot be read: {error}") from None
            for slot in slots:
                if slot not in names[1:]:
                    raise DeclarationError(f"{where}: its lane names {{{slot}}}, which is no parameter")
        return Action(function.__name__, function, tuple(parameters), lane, toward, _state_class(hints[names[0]]))

    return declare


def _is_state(hint: object) -> bool:
    origin = getattr(hint, "__origin__", hint)
    return isinstance(origin, type) and issubclass(origin, State)


def _state_class(hint: object) -> type[State[Any]]:
    return getattr(hint, "__origin__", hint)  # type: ignore[return-value]


def ghost_code(function: Callable[P, None]) -> Callable[P, None]:
    """Marks a function that keeps ghost fields up to date: it may read everything and assign only ghosts.

    It returns nothing and guards nothing, so that no decision of the protocol can depend on a ghost.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        state = cast("State[Any]", args[0])
        if state.access is Access.PROPERTY:
            raise AccessFault(f"a property may not call the ghost code {function.__name__}")
        with state.accessing(Access.GHOST):
            try:
                result: object = function(*args, **kwargs)
            except Disabled:
                raise GhostFault(f"the ghost code {function.__name__} uses require()") from None
        if result is not None:
            raise GhostFault(f"the ghost code {function.__name__} returns a value")

    return run


class Script:
    """A chooser that replays given choices, then takes the first option, and notes how many there were."""

    def __init__(self, picks: Sequence[int] = ()) -> None:
        self._picks = picks
        self.taken: list[int] = []
        self.options: list[int] = []

    def __call__(self, options: int) -> int:
        at = len(self.taken)
        pick = self._picks[at] if at < len(self._picks) else 0
        self.taken.append(pick)
        self.options.append(options)
        return pick

    def next(self) -> list[int] | None:
        """The choices that follow these in lexical order, or None after the last."""
        for at in reversed(range(len(self.taken))):
            if self.taken[at] + 1 < self.options[at]:
                return [*self.taken[:at], self.taken[at] + 1]
        return None


def every_choice(run: Callable[[Chooser], S | None]) -> Iterator[S]:
    """Runs `run` once for each combination of choices it makes; yields the states of those not disabled."""
    picks: list[int] | None = []
    while picks is not None:
        script = Script(picks)
        result = run(script)
        if result is not None:
            yield result
        picks = script.next()


def execute(instance: Instance, state: S) -> S | None:
    """Runs an instance on a state it may change. None if it is disabled there.

    Raises ModelFault, with the instance's label, for anything the language forbids.
    """
    prompt = {channel.name: channel.lengths(state) for channel in state.layout.prompt_channels}
    try:
        with running(instance.label):
            result: object = instance.action.function(state, *instance.arguments)
    except Disabled:
        return None
    except ModelFault:
        if _delivery_comes_first(state, prompt):
            return None
        raise
    if result is not None:
        raise DeclarationError(f"{instance.label}: an action returns nothing; it changes the state")
    return None if _delivery_comes_first(state, prompt) else state


def _delivery_comes_first(state: State[Any], prompt: Mapping[str, Sequence[int]]) -> bool:
    """Whether a prompt channel held a message before the step, and the step did not receive from any."""
    if any(event.kind == "receive" and event.channel in prompt for event in state.events):
        return False
    return any(length > 0 for lengths in prompt.values() for length in lengths)
