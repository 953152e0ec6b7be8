"""Random small models, written as programs: every kind of field and statement, constants, initial choices, faults.

A model is the text of a module, so that whoever reads the source of actions can, and a failure can be read too. What
is asked of it is written once its states are known: that it is never in one of them, which is false on purpose and at
a known distance, and that it is never in some other one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import oracle
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.model import Model, Values
from draincheck.protocol.language.property import Promise, Property

HEAD = '''
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import claim, invariant, promise
from draincheck.protocol.language import Index, State, action, between, field, flag, maybe, require, upto


class Place(Index):
    """A place."""


class Few(State[None]):
    """A few numbers."""

    x = field(upto({x}), means="a number")
    y = field(between({y}, 1), means="a number that may be negative")
    f = field(flag, means="yes or no")
    t = field(upto(1), Place, means="a number for each place")
    m = field(maybe(Place), means="a place, or none")
    one = field(upto(0), means="always 0")
    c = field(upto(3), means="what the start says, for ever")


def start(s: Few) -> None:
    """How it begins."""
{start}


ACTIONS = []
PROPERTIES = []
PROMISES = []
'''

ACTION = '''

@action("a")
def {name}(s: Few{parameter}) -> None:
    """A step."""
{body}


ACTIONS.append({name})
'''

PREDICATE = '''

@{kind}
def {name}(s: Few):
    """Something."""
    {body}


{list}.append({name})
'''

LEAST_STATES = (1, 5, 10, 20)
MOST_STATES = 150
"""Smaller and larger models are drawn again: the least number of states is itself drawn."""


@dataclass(frozen=True)
class Drawn:
    """A random model with what is asked of it, and what the oracle says.

    `planted` is the depth at which an action breaks the rules on purpose, or None.
    """

    text: str
    check: Check
    found: oracle.Found
    planted: int | None

    @property
    def lemma(self) -> Property:
        """That the state is a reachable one: the strongest invariant there is."""
        return next(each for each in self.check.properties if each.name == "is_reachable")


class _Writer:
    """Writes random expressions and statements."""

    def __init__(self, chance: random.Random, bounds: Mapping[str, tuple[int, int]]) -> None:
        self.chance = chance
        self.bounds = bounds

    def number(self, depth: int = 2) -> str:
        """An expression."""
        if depth == 0 or self.chance.random() < 0.4:
            return self.chance.choice(
                ["s.x", "s.y", "s.f", "s.t[0]", "s.t[1]", "s.m", "s.c", "s.one", "0", "1", "2", "-1"]
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        return f"({a} {self.chance.choice(['+', '+', '-', '-', '*'])} {b})"

    def condition(self, depth: int = 2) -> str:
        """A condition."""
        if depth == 0 or self.chance.random() < 0.5:
            return f"({self.number(1)} {self.chance.choice(['==', '!=', '<', '<=', '>', '>='])} {self.number(1)})"
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        return self.chance.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})", f"({a} & {b})", f"({a} | {b})"])

    def statements(self, indent: int, targets: Sequence[str], careful: float, depth: int = 1) -> list[str]:
        """A few statements, each line indented. A careful assignment can only be one that fits."""
        pad, lines = " " * indent, list[str]()
        for _ in range(self.chance.randint(1, 2)):
            target = self.chance.choice(targets)
            lo, hi = self.bounds[target[0]]
            kind = self.chance.random()
            if kind < 0.25 and depth:
                lines.append(f"{pad}if {self.condition()}:")
                lines += self.statements(indent + 4, targets, careful, depth - 1)
                lines.append(f"{pad}else:")
                lines += self.statements(indent + 4, targets, careful, depth - 1)
            elif kind < 0.5:
                options = self.chance.sample(range(lo, hi + 1), min(hi - lo + 1, 2))
                lines.append(f"{pad}s.{target} = s.choose({options})")
            elif self.chance.random() < careful:
                lines.append(f"{pad}value = {self.number()}")
                lines.append(f"{pad}require({lo} <= value)")
                lines.append(f"{pad}require(value <= {hi})")
                lines.append(f"{pad}s.{target} = value")
            else:
                lines.append(f"{pad}s.{target} = {self.number()}")
        return lines


def load(text: str, folder: Path) -> dict[str, Any]:
    """Runs the text of a module from a file of its own."""
    file = folder / f"drawn_{len(list(folder.iterdir()))}.py"
    file.write_text(text, "utf-8")
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def model_of(module: Mapping[str, Any]) -> Model:
    """The model of a module. Nothing in it has to happen, and it may end anywhere."""
    actions = tuple(module["ACTIONS"])
    return Model(
        name="random",
        state=module["Few"],
        actions=actions,
        sizes={module["Place"]: 2},
        start=module["start"],
        terminal=lambda s: 1,
        may_rest=frozenset(each.name for each in actions),
    )


NAMES = ("s.x", "s.y", "s.f", "s.t[0]", "s.t[1]", "s.m", "s.one", "s.c")


def _is(values: Values) -> str:
    return "(" + " and ".join(f"{name} == {value}" for name, value in zip(NAMES, values, strict=True)) + ")"


def draw(seed: int, folder: Path) -> Drawn:
    """The random model of a seed. One of no more than one state, or one in which nothing changes, is a model too."""
    chance = random.Random(seed)
    least, steps = chance.choice(LEAST_STATES), dict[Values, int]()
    while not least <= len(steps) <= MOST_STATES:
        text = _text(chance)
        model = model_of(load(text, folder))
        steps = _explored(model)
    reached = sorted(steps)
    planted = None
    if chance.random() < 0.3:
        at = chance.choice(reached)
        text += ACTION.format(name="break_here", parameter="", body=f"    require({_is(at)})\n    s.x = 7")
        planted = steps[at]
    there = tuple(chance.randint(cell.domain.lo, cell.domain.hi) for cell in model.layout.cells)
    asked = {
        "never_here": f'claim(not {_is(chance.choice(reached))}, "it is not here")',
        "never_there": f'claim(not {_is(there)}, "it is not there")',
        "sometimes": f'claim({_Writer(chance, _bounds(model)).condition()}, "a condition holds")',
        "is_reachable": f'claim({" or ".join(map(_is, reached))}, "it is one of these")',
    }
    for name, body in asked.items():
        text += PREDICATE.format(kind="invariant", name=name, body=body, list="PROPERTIES")
    for name in ("first_ends", "second_ends"):
        body = f"return {_Writer(chance, _bounds(model)).condition()}"
        text += PREDICATE.format(kind="promise", name=name, body=body, list="PROMISES")
    module = load(text, folder)
    promises: list[Promise] = module["PROMISES"]
    whole = model_of(module)
    fair = frozenset(each.name for each in whole.actions if chance.random() < 0.6)
    check = Check(whole, tuple(module["PROPERTIES"]), deadlock=False, promises=tuple(promises), fair=fair)
    return Drawn(text, check, oracle.explore(check), planted)


def _text(chance: random.Random) -> str:
    x, y = chance.randint(0, 2), chance.choice([-2, -1, 0])
    bounds = {"x": (0, x), "y": (y, 1), "f": (0, 1), "t": (0, 1), "m": (-1, 1), "o": (0, 0), "c": (0, 3)}
    writer = _Writer(chance, bounds)
    begins = [f"    s.c = {chance.choice(['2', '3', 's.choose([0, 3])', '0'])}"]
    if chance.random() < 0.4:
        begins += [f"    s.x = s.choose({list(range(x + 1))})", "    require(s.x < 2)"]
    if chance.random() < 0.3:
        begins += ["    s.m = s.choose([-1, 1])"]
    text = HEAD.format(x=x, y=y, start="\n".join(begins))
    # Some fields are never written, and so are constants too.
    written = chance.sample(["x", "y", "f", "t[0]", "t[1]", "m", "one"], chance.randint(0, 5))
    careful = chance.choice([1.0, 1.0, 0.8])
    for number in range(chance.randint(1, 3)):
        place = chance.random() < 0.3
        targets = [*written, "t[place]"] if place and written else written
        lines = [f"    require({writer.condition()})"] if chance.random() < 0.5 else []
        lines += writer.statements(4, targets, careful) if targets else ["    require(s.c < 4)"]
        parameter = ", place: Place" if place else ""
        text += ACTION.format(name=f"step_{number}", parameter=parameter, body="\n".join(lines))
    return text


def _bounds(model: Model) -> dict[str, tuple[int, int]]:
    return {cell.field[0]: (cell.domain.lo, cell.domain.hi) for cell in model.layout.cells}


def _explored(model: Model) -> dict[Values, int]:
    """The depth of each reachable state; of those found first, if there are too many."""
    depths = dict.fromkeys(model.initial_states(), 0)
    queue = list(depths)
    for values in queue:
        for instance in model.instances:
            for step in model.lawful_steps_of(instance, values):
                if step.values not in depths:
                    depths[step.values] = depths[values] + 1
                    queue.append(step.values)
        if len(queue) > MOST_STATES:
            break
    return depths
