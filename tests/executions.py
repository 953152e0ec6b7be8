"""One model in all its executions, state by state: directly, as machine code, and as terms."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from draincheck.explorer.native import FAULT_BIT, ORIGIN_SHIFT
from draincheck.explorer.search import Compiled, Limits, compile_check, search
from draincheck.explorer.swarm import Plan, simulate
from draincheck.explorer.symbolic import Meaning, Symbolic, z3
from draincheck.explorer.tracer import Fault, Tracer
from draincheck.explorer.trace import follow
from draincheck.models.model import Model, Values
from draincheck.properties.check import Check
from draincheck.properties.property import Probe, Promise, Property
from draincheck.protocol.language import Access, Action, DraincheckError, ModelFault

from programs import KINDS, SIZES, Knobs, Program, World

FAULT = "fault"
"""What a step or predicate comes to where it breaks the rules of the language."""


@dataclass(frozen=True)
class Difference:
    """Two executions of one program that differ in one state, or an exception that says nothing to its user."""

    program: Program
    text: str


_numbers = itertools.count()


def load(program: Program, folder: Path) -> Any:
    """The function of a program, as declared in a module of its own. Raises DraincheckError where it is refused."""
    path = folder / f"generated_{next(_numbers)}.py"
    path.write_text(program.source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, program.name)


def check_of(parts: Sequence[tuple[Program, Any]]) -> Check:
    """A check of everything that the programs declare, in one model."""
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for program, declared in parts:
        found[program.kind].append(declared)
    model = Model(
        name="generated", state=World, actions=tuple(found["action"]), sizes=SIZES, knobs=Knobs(),
        terminal=found["terminal"][0] if found["terminal"] else lambda s: True,
    )  # fmt: skip
    return Check(model, tuple(found["property"]), tuple(found["probe"]), promises=tuple(found["promise"]))


def any_state(model: Model, chance: random.Random) -> Values:
    """A state whose cells hold anything that their domains allow; what is behind the end of a channel is as it begins."""
    values = [chance.randint(cell.domain.lo, cell.domain.hi) for cell in model.layout.cells]
    state = model.state_of(values)
    for bound in model.layout.channels.values():
        for key in itertools.product(*(range(model.sizes[index]) for index in bound.shape)):
            places = bound.places(model.layout, key)
            for place in places.messages[state.values[places.length] :]:
                for position in place.values():
                    values[position] = model.layout.cells[position].domain.start
    return tuple(values)


def direct_steps(check: Check, values: Values) -> list[Any]:
    """For each instance the states that it leads to, or FAULT."""

    def of(instance: Any) -> Any:
        try:
            return [step.values for step in check.model.steps_of(instance, values)]
        except ModelFault:
            return FAULT

    return [of(instance) for instance in check.model.instances]


def direct_truths(check: Check, values: Values) -> list[Any]:
    """Whether each property fails, each probe holds, the state is terminal, each promise is pending; or FAULT."""

    def of(ask: Any) -> Any:
        try:
            return bool(ask())
        except ModelFault:
            return FAULT

    model = check.model
    return [
        *(of(lambda each=each: each.violation(model, values)) for each in check.properties),
        *(of(lambda each=each: each.holds(model, values)) for each in check.probes),
        of(lambda: model.is_terminal(values)),
        *(of(lambda each=each: each.is_pending(model, values)) for each in check.promises),
    ]


class Machine:
    """A compiled check, state by state."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled, self._native = compiled, compiled.quick
        self._width = compiled.packing.words + 1
        self._out = np.empty((compiled.successors + 1) * self._width, np.uint64)
        self._expand = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_uint64] * 4))(self._native.expand)
        self._terminal = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(self._native.terminal)

    def steps(self, values: Values) -> list[Any]:
        """As `direct_steps`."""
        packing, found = self._compiled.packing, [[] for _ in self._compiled.check.model.instances]
        words = np.array(packing.pack(values), np.uint64)
        made = self._expand(words.ctypes.data, 0, 1, self._out.ctypes.data)
        faults = set[int]()
        for row in self._out[: made * self._width].reshape(made, self._width).tolist():
            code = row[0] & ((1 << ORIGIN_SHIFT) - 1)
            if code & FAULT_BIT:
                faults.add(code ^ FAULT_BIT)
            else:
                found[code].append(packing.unpack(row[1:]))
        return [FAULT if code in faults else each for code, each in enumerate(found)]

    def truths(self, values: Values) -> list[bool]:
        """As `direct_truths`, where a fault counts as what is worse."""
        check, words = self._compiled.check, np.array(self._compiled.packing.pack(values), np.uint64)
        at = words.ctypes.data
        counts = (ctypes.c_uint64 * (len(self._compiled.predicates) + 1))()
        seen, marks = ctypes.c_uint64(), (ctypes.c_uint64 * 1)()
        self._native.observe(at, 0, 1, 0, ctypes.addressof(counts), ctypes.addressof(seen))
        self._native.mark(at, 0, 1, ctypes.addressof(marks))
        predicates = [bool(counts[number]) for number in range(len(self._compiled.predicates))]
        return [*predicates, bool(self._terminal(at)), *(bool(marks[0] >> n & 1) for n in range(len(check.promises)))]


class Terms:
    """A check as Z3 terms, state by state."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._symbolic = Symbolic(check.model, constants=False)

    def steps(self, values: Values) -> list[Any]:
        """As `direct_steps`, without order and repetition."""
        return [self._of(command, values) for command in self._symbolic.commands]

    def _of(self, command: Any, values: Values) -> Any:
        symbolic, frame = self._symbolic, self._symbolic.frame("before")
        solver = z3.Solver()
        solver.add(symbolic.is_state(frame, values))
        solver.push()
        solver.add(symbolic.faults(command, frame, "choices"))
        if solver.check() == z3.sat:
            return FAULT
        solver.pop()
        after = symbolic.frame("after")
        solver.add(symbolic.happens(command, frame, "choices"))
        solver.add(symbolic.is_same(after, symbolic.successor(command, frame, "choices")))
        found = set[Values]()
        while solver.check() == z3.sat:
            state = symbolic.values(solver.model(), after)
            found.add(state)
            solver.add(z3.Not(symbolic.is_state(after, state)))
        return found

    def fails(self, values: Values) -> list[bool]:
        """Whether each property fails."""
        frame = self._symbolic.frame("before")
        solver = z3.Solver()
        solver.add(self._symbolic.is_state(frame, values))

        def of(prop: Property) -> bool:
            solver.push()
            solver.add(self._symbolic.fails(prop, frame))
            answer = solver.check() == z3.sat
            solver.pop()
            return answer

        return [of(prop) for prop in self._check.properties]


def agree(direct: Any, compiled: Any, on_fault: bool) -> bool:
    """Whether the truth of a predicate is the same; a fault counts as what is given."""
    return compiled == (on_fault if direct == FAULT else direct)
