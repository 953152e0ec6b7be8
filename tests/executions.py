"""Programs in all executions: directly, as machine code and as terms state by state, in a search and in walks."""

from __future__ import annotations

import importlib.util
import itertools
import random
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from draincheck.explorer.compile import tracer
from draincheck.explorer.compile.tracer import Command, Tracer
from draincheck.explorer.proofs.symbolic import Symbolic, z3
from draincheck.explorer.search.search import Limits, compile_check, search
from draincheck.explorer.search.second_net import FAULT, TERMINAL, OneState, questions
from draincheck.explorer.walks.swarm import Plan, simulate
from draincheck.protocol.language import DraincheckError, EngineDisagreement, Instance, ModelFault
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from programs import KINDS, SIZES, Knobs, Program, World

LONGEST = 30
"""Seconds after which a program is taken to have no end."""
MAX_PATHS = 300
"""A program with more paths is refused, so that one does not cost as much as a hundred."""


@dataclass
class Outcomes:
    """What became of programs: equal in all executions, refused with a sentence, or different, with what differs."""

    equal: list[Program] = field(default_factory=list)
    refused: list[tuple[Program, str]] = field(default_factory=list)
    different: list[tuple[Program, str]] = field(default_factory=list)

    def __str__(self) -> str:
        """The first differences."""
        return "\n\n".join(f"{program.text}\n{what}" for program, what in self.different[:5])


def outcomes_of(programs: Sequence[Program], folder: Path, seed: int, states: int = 30, terms: int = 2) -> Outcomes:
    """Runs programs in all executions: in so many states of any kind, of which so many as terms too."""
    done, accepted = Outcomes(), list[tuple[Program, Any]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracer, "MAX_PATHS", MAX_PATHS)
        for program in programs:
            try:
                with _an_end():
                    accepted.append((program, _accepted(program, folder)))
            except DraincheckError as error:
                done.refused.append((program, str(error)))
            except Exception as error:
                done.different.append((program, f"no sentence: {type(error).__name__}: {error}"))
        found = _compared(accepted, random.Random(seed), states, terms) if accepted else {}
        for program, _ in accepted:
            if program.name in found:
                done.different.append((program, found[program.name]))
            else:
                done.equal.append(program)
    return done


_files = itertools.count()


def _accepted(program: Program, folder: Path) -> Any:
    """What the program's module declares. Raises DraincheckError where it is refused: when it is loaded, or traced."""
    path = folder / f"generated_{next(_files)}.py"
    path.write_text(program.source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declared = getattr(module, program.name)
    check = _check_of([(program, declared)])
    traced = Tracer(check.model)
    for instance in check.model.instances:
        traced.command(instance)
    for each in check.properties:
        traced.fails(each)
    for each in check.probes:
        traced.holds(each)
    for each in check.promises:
        traced.pending(each)
    traced.terminal()
    return declared


def _check_of(parts: Sequence[tuple[Program, Any]]) -> Check:
    """A check of all that the programs declare, in one model."""
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for program, declared in parts:
        found[program.kind].append(declared)
    model = Model(
        name="generated", state=World, actions=tuple(found["action"]), sizes=SIZES, knobs=Knobs(),
        terminal=found["terminal"][0] if found["terminal"] else lambda s: s.x == 0,
    )  # fmt: skip
    return Check(model, tuple(found["property"]), tuple(found["probe"]), promises=tuple(found["promise"]))


def _compared(parts: Sequence[tuple[Program, Any]], chance: random.Random, states: int, terms: int) -> dict[str, str]:
    """For the name of each program that differs, what differs."""
    check = _check_of(parts)
    compiled = compile_check(check, constants=False)
    machine = OneState(check, compiled.packing, compiled.successors, compiled.quick)
    symbolic = Symbolic(check.model, constants=False)
    terminal = next((program.name for program, _ in parts if program.kind == "terminal"), "")
    different: dict[str, str] = {}
    faulty: set[str] = set()

    def note(name: str, values: Values, direct: object, other: object, where: str) -> None:
        if direct != other:
            cells = zip(check.model.layout.cells, values, strict=True)
            state = {cell.name: value for cell, value in cells if value != cell.domain.start}
            different.setdefault(name, f"{name}: directly {direct}, {where} {other}, in {state}")

    for number in range(states):
        values = _any_state(check.model, chance)
        words = compiled.packing.pack(values)
        for command, found in zip(symbolic.commands, machine.outcomes(words), strict=True):
            name, direct = command.instance.action.name, _steps(check.model, command.instance, values)
            note(name, values, direct, found, "compiled")
            faulty |= {name} if direct == FAULT else set()
            if number < terms:
                as_set = direct if isinstance(direct, str) else set(direct)
                note(name, values, as_set, _steps_by_z3(symbolic, command, values), "as terms")
        for (label, ask), found in zip(questions(check, values), machine.answers(words), strict=True):
            note(terminal if label == TERMINAL else label.split()[1], values, _answer(ask), found, "compiled")
        for prop in check.properties if number < terms else ():
            frame, solver = symbolic.frame("state"), z3.Solver()
            solver.add(symbolic.is_state(frame, values), symbolic.fails(prop, frame))
            direct = next(_answer(ask) for label, ask in questions(check, values) if label == f"property {prop.name}")
            note(prop.name, values, direct, solver.check() == z3.sat, "as terms")
    sound = [part for part in parts if part[0].name not in faulty | different.keys()]
    return different | _run(sound)


def _run(parts: Sequence[tuple[Program, Any]]) -> dict[str, str]:
    """Searches and walks from the start, with constants left out: both hold what they find against direct execution."""
    check = _check_of(parts)
    try:
        compiled = compile_check(check)
        search(compiled, Limits(states=1500), until=())
        simulate(compiled, Plan(walks=16, depth=20, steps=320), until=())
    except EngineDisagreement as error:
        return {part[0].name: str(error) for part in parts if part[0].name in str(error)} or {
            parts[0][0].name: str(error)
        }
    except DraincheckError:  # a fault in a state that was not among those above
        pass
    return {}


def _any_state(model: Model, chance: random.Random) -> Values:
    """Anything that domains allow; what is behind the end of a channel is as it begins."""
    values = [chance.randint(cell.domain.lo, cell.domain.hi) for cell in model.layout.cells]
    for bound in model.layout.channels.values():
        for key in itertools.product(*(range(model.sizes[index]) for index in bound.shape)):
            places = bound.places(model.layout, key)
            for message in places.messages[values[places.length] :]:
                for position in message.values():
                    values[position] = model.layout.cells[position].domain.start
    return tuple(values)


def _steps(model: Model, instance: Instance, values: Values) -> object:
    """The states that an instance leads to, or FAULT."""
    try:
        with _an_end():
            return [step.values for step in model.steps_of(instance, values)]
    except ModelFault:
        return FAULT
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _answer(ask: Callable[[], bool]) -> object:
    try:
        with _an_end():
            return ask()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _steps_by_z3(symbolic: Symbolic, command: Command, values: Values) -> object:
    """The states that a command's terms lead to, in no order, or FAULT."""
    before, after, solver = symbolic.frame("before"), symbolic.frame("after"), z3.Solver()
    solver.add(symbolic.is_state(before, values))
    if solver.check(symbolic.faults(command, before, "choices")) == z3.sat:
        return FAULT
    solver.add(symbolic.happens(command, before, "choices"))
    solver.add(symbolic.is_same(after, symbolic.successor(command, before, "choices")))
    found: set[Values] = set()
    while solver.check() == z3.sat:
        found.add(symbolic.values(solver.model(), after))
        solver.add(z3.Not(symbolic.is_state(after, symbolic.values(solver.model(), after))))
    return found


class NoEnd(Exception):
    """A program goes on and on."""


@contextmanager
def _an_end() -> Generator[None]:
    def over(*_: object) -> None:
        raise NoEnd(f"no end within {LONGEST} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
