"""Random programs in the modelling language, and just outside it, as source text.

The grammar is data: templates with holes. `$n` is a number, `$t` a truth value, `$i` and `$r` indices of a node and a
room, `$c` a colour, `$b` a block of statements on lines of its own. A template may use what it binds itself: the
variables `u`, `v` and `k` are bound in every function, `m` in templates that go through messages.

A program is equal in all executions, or it is refused. Templates outside of the language have a name, so that a
difference says what it comes from.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import IntEnum

from draincheck.protocol.language import (
    Index,
    Message,
    State,
    between,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    upto,
)


class Node(Index):
    """A process."""


class Room(Index):
    """A transfer."""


class Color(IntEnum):
    """Three values."""

    RED = 0
    GREEN = 1
    BLUE = 2


class Note(Message):
    """A message of three parts."""

    kind = part(Color)
    about = part(Node)
    n = part(upto(3))


@dataclass(frozen=True)
class Knobs:
    """Settings that a program may ask."""

    limit: int = 2
    on: bool = True
    name: str = "plain"


class World(State[Knobs]):
    """A field of every kind."""

    x = field(upto(5), means="a number")
    y = field(between(-2, 3), means="a number that may be negative")
    on = field(flag, means="a truth value")
    color = field(Color, means="a member of an enumeration")
    at = field(Node, means="an index")
    who = field(maybe(Node), means="an index, or none")
    level = field(upto(3), Node, means="a number for each node")
    grid = field(flag, Node, Room, means="a truth value for each node and room")
    owner = field(maybe(Room), Node, means="an index, or none, for each node")
    post = channel(Note, Node, capacity=2, means="to a node")
    line = channel(Note, capacity=2, means="one channel")
    seen = ghost(upto(3), means="what no code knows")
    wrote = ghost(flag, Node, means="what no code knows, for each node")


SIZES = {Node: 2, Room: 2}


@ghost_code
def remember(s: World, value: int) -> None:
    """Keeps a ghost up to date."""
    if value > s.seen:
        s.seen = min(3, value)


HEADER = '''"""A generated program."""

import contextlib
import copy
import functools
import itertools
import math
import operator
import random
from decimal import Decimal
from fractions import Fraction

import numpy
from draincheck.properties.property import claim, invariant, probe, promise
from draincheck.protocol.language import NONE, Disabled, DomainFault, IndexFault, ModelFault, action, ghost_code, require
from programs import Color, Node, Note, Room, World, remember

counter = 0
calls = []
table = {}
memory = {"n": 0}
SMALL = (0, 1, 2)


def larger(s, a, b):
    return a if a > b else b


def is_busy(s, node):
    return (s.level[node] > 1) | s.on


def total(s):
    found = 0
    for node in s.all(Node):
        found += s.level[node]
    return found


def first_set(s, node):
    for room in s.all(Room):
        if s.grid[node, room]:
            return room
    return NONE


def put(s, node, value):
    require(value <= 3)
    s.level[node] = max(0, value)


def counted():
    global counter
    counter += 1
    return counter


def grown(value, found=[]):
    found.append(value)
    return len(found)


def levels(s):
    for node in s.all(Node):
        yield s.level[node]


@functools.lru_cache
def cached(value):
    return value + 1


@functools.singledispatch
def kind_of(value):
    return 0


@kind_of.register
def _(value: int):
    return 1


class Box:
    shared = 0

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    @property
    def double(self):
        return self.value * 2


'''

NUMBERS = [
    "$n + $n", "$n - $n", "$n * $n", "-$n", "+$n", "abs($n)", "min($n, $n)", "max($n, $n)", "min($n, $n, $n)",
    "max(($n, $n))", "($n if $t else $n)", "($t) + ($t)", "larger(s, $n, $n)", "total(s)", "first_set(s, $i)",
    "sum($n for k in s.all(Node))", "sum(s.level[k] for k in s.all(Node))", "sum([$t for k in s.all(Node)])",
    "sum(s.level[k] for k in s.all(Node) if $t)", "max(s.level[k] for k in s.all(Node))", "len(s.all(Node))",
    "s.size(Node)", "s.post[$i].length", "s.line[()].length", "s.post[$i].count(lambda m: $t)", "($n, $n)[$i]",
    "(lambda a: a + $n)($n)", "(lambda a, b=$n: a - b)($n)", "int($t)", "s.knobs.limit", "sum(1 for m in s.post[$i].waiting())",
    "sum(m.n for m in s.post[$i].waiting())", "sum(1 for k in range($n))", "($n or $n)", "($n and $n)", "[$n, $n][$i]",
    "min(s.all(Node))", "(True + $n)",
]  # fmt: skip

LEAVES = [
    "s.x", "s.x", "s.y", "s.y", "s.on", "s.color", "s.at", "s.who", "s.level[$i]", "s.level[$i]", "s.grid[$i, $r]", "s.owner[$i]",
    "0", "1", "2", "3", "-1", "u", "v", "k", "NONE", "Color.BLUE", "True",
]  # fmt: skip

TRUTHS = [
    "$n == $n", "$n != $n", "$n < $n", "$n <= $n", "$n > $n", "$n >= $n", "$n < $n <= $n", "$n == $n == $n", "$n < $n > $n",
    "($t and $t)", "($t or $t)", "not $t", "(($t) & ($t))", "(($t) | ($t))", "$n in ($n, $n)", "$n not in ($n, $n)",
    "$n in [$n, $n]", "any($t for k in s.all(Node))", "all($t for k in s.all(Node))", "all([$t, $t])", "any(($t, $t))",
    "s.post[$i].some(lambda m: $t)", "s.color == $c", "s.color in ($c, $c)", "is_busy(s, $i)", "bool($n)", "s.on", "s.grid[$i, $r]",
    "s.who == NONE", "s.owner[$i] == $r", "($t) == ($t)", "($t) != ($t)", "($t) < ($t)", "($t if $t else $t)", "$n in range(2)",
    "$n in SMALL", "s.knobs.on", "1 - ($t)", "(1 | ($t))", "(($t) & True)", "$n", "any(m.n == $n for m in s.post[$i].waiting())",
    "($n, $n) == ($n, $n)", "not ($n, $n) == ($n, $n)", "(s.x, s.y) < ($n, $n)", "s.post[$i].length == 0",
]  # fmt: skip

STATEMENTS = [
    "s.x = min(5, max(0, $n))", "s.y = min(3, max(-2, $n))", "s.on = bool($n)", "s.on = $t", "s.color = $c", "s.at = $i",
    "s.who = $i", "s.who = NONE", "s.level[$i] = min(3, max(0, $n))", "s.grid[$i, $r] = $t", "s.owner[$i] = $r", "s.owner[$i] = NONE",
    "s.x = $n", "s.y = $n", "s.level[$i] = $n", "s.x += 1", "s.x -= 1", "s.y -= $n", "s.y *= 2", "s.level[$i] += $n", "s.who = $n",
    "u = $n", "v = $n", "u += $n", "v -= $n", "u, v = v, u", "u, v = $n, $n", "s.x, s.y = s.y, s.x", "(u, v), k = ($n, $n), $i",
    "if $t:\n    $b", "if $t:\n    $b\nelse:\n    $b", "if $t:\n    $b\nelif $t:\n    $b\nelse:\n    $b",
    "for k in s.all(Node):\n    $b", "for k in range(2):\n    $b", "for k in (1, 0):\n    $b", "for k in reversed(s.all(Node)):\n    $b",
    "for k in s.all(Node):\n    if $t:\n        continue\n    $b", "for k in s.all(Node):\n    if $t:\n        break\n    $b",
    "for k in s.all(Node):\n    if $t:\n        break\nelse:\n    $b", "for u in range($n):\n    $b",
    "for k, v in enumerate((1, 2)):\n    $b", "for u, v in ((0, 1), (1, 2)):\n    $b", "for k, v in zip(s.all(Node), (1, 2)):\n    $b",
    "u = 0\nwhile u < 2:\n    u += 1\n    $b", "u = $n\nwhile u > 0:\n    u -= 1\n    $b", "while s.x > 0:\n    s.x -= 1\n    $b",
    "u = 0\nwhile True:\n    u += 1\n    if u > 2 or $t:\n        break", "require($t)", "require($t)", "require($n)", "put(s, $i, $n)",
    "remember(s, $n)", "s.seen = $i", "s.wrote[$i] = $t", "pass", "return", "if $t:\n    return", "del u\nu = $n",
    "s.x = s.choose([0, 1, $i])", "s.at = s.choose(Node)", "s.who = s.choose((NONE, 0, 1))", "s.color = s.choose(list(Color))",
    "u = s.choose(Node)\n$b", "s.on = s.choose([False, True])", "if s.choose([0, 1]):\n    $b", "s.level[s.choose(Node)] = $i",
    "s.post[$i].send(kind=$c, about=$i, n=$i)", "s.line[()].send(kind=$c, about=$i, n=min(3, max(0, $n)))",
    "if s.post[$i].length < 2:\n    s.post[$i].send(kind=$c, about=$i, n=$i)", "m = s.post[$i].receive()\nu = m.n\ns.level[m.about] = m.n",
    "m = s.line[()].receive()\ns.color = m.kind", "m = s.line[()].peek()\nv = m.n", "s.post[$i].clear()", "s.line[()].remove_last()",
    "s.post[$i].remove(0)", "s.line[()].remove($i)", "for m in s.post[$i].waiting():\n    $b", "for m in s.line[()].waiting():\n    $b",
    "for m in s.post[$i].waiting():\n    if m.kind == $c:\n        s.level[m.about] = m.n", "for m in s.line[()].waiting():\n    s.level[m.about] = m.n",
    "for m in list(s.post[$i].waiting()):\n    $b", "def inner(a):\n    return a + u\nv = inner($n)",
    "def inner(a):\n    require(a < 3)\n    s.level[$i] = max(0, a)\ninner($n)", "f = lambda a: a + u\nu = 1\nv = f($n)",
    "def inner():\n    nonlocal u\n    u += 1\ninner()\ninner()", "both = [$n, $n]\nu = both[0]\nv = both[1]", "both = ($n, $n)\nu, v = both",
    "both = [k for k in s.all(Node) if $t]\nu = len(both)", "for k in [k for k in s.all(Node) if $t]:\n    $b",
    "both = []\nfor k in s.all(Node):\n    if $t:\n        both.append(k)\nu = len(both)", "u = max([s.level[k] for k in s.all(Node)])",
    "s.level[$i], s.level[$i] = $n, $i", "if (u := $n) > 1:\n    $b", "s.on |= $t", "s.on &= $t", "u = $t\nu |= $t",
]  # fmt: skip

CLAIMS = [
    "claim($t, 'a claim')", "claim($t, 'a claim', x=s.x)", "claim($t, 'a claim', u=$n)", "for k in s.all(Node):\n    claim($t, 'each', k=k)",
    "if $t:\n    claim($t, 'sometimes')", "u = $n", "v = $n", "for m in s.post[$i].waiting():\n    claim($t, 'each message', n=m.n)",
    "for k in s.all(Node):\n    if $t:\n        continue\n    claim($t, 'some', n=s.level[k])", "claim(s.seen <= $n, 'a ghost')",
    "u = sum(s.wrote[k] for k in s.all(Node))\nclaim(u <= $n, 'few', u=u)", "for k in s.all(Node):\n    u += $n\nclaim(u < $n, 'sum', u=u)",
]  # fmt: skip

OUTSIDE_NUMBERS = {
    "| on numbers": ["$n | $n", "$n | 1", "1 | $n", "s.x | 2", "s.x | s.y"],
    "& on numbers": ["$n & $n", "$n & 1", "3 & $n", "s.x & 2"],
    "^": ["$n ^ $n", "($t) ^ ($t)", "$n ^ 1"],
    "~": ["~$n", "~($t)", "~s.on"],
    "<< and >>": ["$n << 1", "$n >> 1", "1 << $n"],
    "//": ["$n // 2", "$n // $n", "7 // $n"],
    "%": ["$n % 2", "$n % $n", "divmod($n, 2)[1]"],
    "/": ["$n / 2", "int($n / 2)", "1 / $n"],
    "**": ["$n ** 2", "2 ** $n", "pow($n, 2)", "pow($n, 2, 3)"],
    "@": ["$n @ $n"],
    "floats": ["$n + 1.0", "$n * 0.5", "int($n + 0.5)", "min($n, 1.5)", "float($n)", "round($n)", "math.floor($n)", "(1.0 if $t else 2.0)", "max(0.0, $n)", "1e9"],
    "fractions": ["Fraction($n, 2)", "$n + Fraction(1, 2)", "$n * Fraction(2)", "Decimal(2)", "Fraction(4, 2)"],
    "numpy": ["numpy.int64(2)", "$n + numpy.int64(1)", "numpy.int64(1) + $n", "numpy.int64(2) * $n", "numpy.array([1, 2])[$i]", "numpy.bool_(True)", "numpy.sum([$n, $n])", "numpy.uint8(255) + 1"],
    "complex": ["1j", "$n * 1j"],
    "strings of numbers": ["int(str($n))", "len(str($n))", "int(f'{$n}')", "len('%d' % $n)", "len('{}'.format($n))", "ord(str($n)[0])", "len(repr($n))", "hash(str($n)) % 2", "int('1' + str($i))"],
    "type and isinstance": ["(1 if isinstance($n, int) else 2)", "(1 if type($n) is int else 2)", "(1 if type($n) == type(1) else 0)", "(1 if issubclass(type($n), int) else 2)", "(1 if isinstance($n, bool) else 2)", "(1 if isinstance(s.color, Color) else 2)", "(1 if type($n).__name__ == 'int' else 2)", "(1 if ($n).__class__ is int else 2)"],
    "attributes of numbers": ["($n).real", "($n).numerator", "($n).bit_length()", "($n).__add__(1)", "s.x.lo", "($n).conjugate()", "getattr($n, 'uid', 1)", "getattr($n, 'real', 3)", "getattr(s, 'x')", "getattr(s, 'nothing', 1)", "(1 if hasattr($n, 'uid') else 2)", "(1 if hasattr($n, 'real') else 2)", "len(dir($n)) % 3", "s.color.value", "Color($n)", "Color($n).value"],
    "id and hash": ["id($n) % 2", "hash($n)", "hash(($n, 1)) % 3", "(1 if id(s.x) == id(s.x) else 2)"],
    "dictionaries": ["{0: $n, 1: $n}[$i]", "{0: 1, 1: 2}[$n]", "{0: 1, 1: 2}.get($n, 3)", "{$n: 1}.get(1, 0)", "len({$n: 1, $n: 2})", "{k: s.level[k] for k in s.all(Node)}[$i]", "dict(a=$n)['a']", "{True: $n, False: $n}[$t]", "{Color.RED: 1}.get(s.color, 0)"],
    "sets": ["len({$n, $n})", "len(set([$n, $n]))", "max({$n, $n})", "len({s.level[k] for k in s.all(Node)})", "sum(frozenset([$i, $n]))"],
    "sorting": ["sorted(($n, $n))[0]", "sorted([$n, $n, $n])[1]", "max(s.all(Node), key=lambda k: s.level[k])", "min((0, 1), key=lambda a: $n)", "sorted(s.all(Node), key=lambda k: s.level[k])[0]", "sorted(s.all(Node), key=lambda k: -s.level[k])[-1]"],
    "itertools and functools": ["functools.reduce(operator.add, ($n, $n))", "sum(itertools.chain(($n,), ($n,)))", "sum(map(lambda a: a + 1, ($n, $n)))", "len(list(filter(lambda a: a > 1, ($n, $n))))", "sum(a * b for a, b in zip(($n, $n), ($n, 1)))", "operator.or_($n, $n)", "operator.sub($n, $n)", "functools.partial(max, $n)($n)", "next((k for k in s.all(Node) if $t), NONE)", "math.prod(($n, $n))", "len(list(itertools.takewhile(lambda k: $t, (0, 1))))", "next(iter(($n, $n)))", "list(itertools.accumulate(($n, $n)))[1]", "operator.index($n)", "math.gcd($n, 4)", "math.isqrt(abs($n))"],
    "caches": ["cached($n)", "cached($i)"],
    "globals that change": ["counted()", "counter", "grown($n)", "grown($i)", "len(calls)", "memory['n']", "table.setdefault($i, $n)", "Box.shared"],
    "random": ["random.randint(0, 1)", "random.choice((0, 1, 2))"],
    "conversions": ["int($n)", "int(bool($n))", "bool($n) + 1", "range(5)[$n]", "list(range(5))[$n]", "(0, 1, 2, 3)[$n]", "'abc'.index('b')", "len('ab' * $i)", "len([0] * $n)", "len(range($n))", "len((0, 1, 2)[:$n])", "len((0, 1, 2)[$n:])", "(1, 2).index($n)", "(1, 2, $n).count($n)", "[1, 2, 3].index($n) ", "int.__add__(1, $n)", "sum(($n, $n), $n)", "sum([], $n)", "max([$n], default=2)", "max([k for k in s.all(Node) if $t], default=NONE)"],
    "classes": ["Box($n).value", "Box($n).double", "kind_of($n)", "kind_of(s.x)", "copy.deepcopy($n)", "copy.copy($n)"],
    "generators": ["sum(levels(s))", "max(levels(s))", "len(list(levels(s)))"],
    "walrus": ["(u := $n) + u", "((v := $n) * 2)"],
    "and, or as values": ["($n or 3)", "($n and 2)", "(s.who or 1)", "(not $n)", "(s.x and s.y)"],
    "comparisons as numbers": ["($t) * 2", "-($t)", "($t) - ($t)", "(($t) * $n)", "abs(($t) - ($t))"],
    "negative indices": ["s.level[-1]", "s.level[NONE]", "s.grid[-1, 0]", "s.level[s.who]", "s.level[$n]", "s.level[s.y]", "(1, 2)[s.who]", "s.level[True]", "s.level[s.on]", "s.grid[s.on, $r]", "s.level[1.0]", "s.level[numpy.int64(1)]", "s.level[$i,]", "s.grid[($i, $r)]", "s.grid[$i][$r]", "s.level[:]", "s.owner[s.owner[$i]]"],
    "internals": ["s.values[0]", "s.read(0)", "len(s.values)", "s.layout.initial[0]", "len(s.events)", "len(s.choices)", "s.layout.sizes[Node]", "(2 if s.labels else 1)", "s.access.value == 'protocol code'", "len(str(s.values[0]))", "vars(s)['values'][0]", "World.x.__get__(s, World)"],
    "size": ["len(Color)", "max(Color)", "Node(1)", "int(Node(1))", "len(list(Color))", "Color['BLUE']"],
    "await and comprehension": ["[u for u in ($n, $n)][-1]", "[a + b for a in ($n, 1) for b in (1, $n)][2]", "len([k for k in s.all(Node) if s.level[k] > 1 and $t])"],
    "ghosts read": ["s.seen", "s.wrote[$i]", "s.wrote[0] + 1"],
    "assertions in expressions": ["(1 if __debug__ else 2)", "int(__name__ == 'x')", "len(locals())", "len(globals()) * 0 + 1", "eval('s.x')", "sum(locals()['s'].all(Node))"],
}

OUTSIDE_TRUTHS = {
    "is": ["s.color is Color.RED", "s.color is not Color.BLUE", "$n is $n", "s.x is s.x", "s.x is 1", "s.who is NONE", "s.who is not NONE", "s.on is True", "s.on is False", "s.on is not True", "($t) is True", "($t) is ($t)", "$n is None", "$n is not None", "s.at is s.who", "u is v", "(s.x == 1) is True", "s.level[0] is s.level[1]"],
    "compared with other kinds": ["$n == None", "$n != None", "$n == 'a'", "$n != 'a'", "$n == 1.0", "$n == 0.5", "$n < 1.5", "$n == Fraction(1)", "$n == numpy.int64(1)", "numpy.int64(1) == $n", "$n in (None, 1)", "$n in ('a', 1)", "$n == (1,)", "$n == [1]", "$n != ()", "$n < numpy.int64(2)", "2.0 > $n", "s.who == None", "s.color == 'red'", "$n == True", "s == s", "s.level == s.level", "s.x == s.level", "Color.RED == $n"],
    "in a set or dictionary": ["$n in {0, 1}", "$n in {0: 1}", "$n in frozenset((1, 2))", "$n in {$n, 1}", "1 in {$n, 2}", "$n not in {1}", "$n in dict.fromkeys((0, 1))", "{$n} == {1}", "{$n, 0} <= {0, 1}", "$n in Color", "$n in list(Color)", "$n in iter((0, 1))", "$n in (k for k in s.all(Node))", "$n in s.all(Node)", "$n in range(0, 4, 2)", "$n in range($n)", "range($n) == range(1)"],
    "text": ["str($n) == '1'", "f'{$n}' == '1'", "f'{s.x}' in ('0', '1')", "'1' in f'{$n}'", "str($n) in '0123'", "'%s' % $n == '1'", "'{}'.format($n) != '0'", "f'{$n:02d}' == '01'", "repr($n) == '1'", "str($n).isdigit()", "''.join(str(k) for k in ($n, 1)) == '11'", "str(s.color) == '0'", "f'{s.color}' == 'Color.RED'", "str($n) < '2'", "f'{$n!r}' == '1'", "s.knobs.name == 'plain'", "bool(str($n))", "len(f'{s.x}') == 1", "f'{$n=}'.endswith('1')", "bool('')", "'a' < 'b'", "str(s) == ''", "str(s.level[0]) != '0'"],
    "isinstance": ["isinstance($n, int)", "isinstance($n, bool)", "isinstance($n, (int, float))", "isinstance(s.color, Color)", "isinstance($t, bool)", "type($n) == int", "type($n) is int", "callable($n)", "hasattr($n, 'uid')", "hasattr($n, 'bit_length')", "hasattr(s, 'x')", "hasattr(s, 'nothing')", "not isinstance($n, int)", "isinstance(s, World)", "getattr(s, 'nothing', 0)", "isinstance($n, type(s.x))"],
    "math": ["math.isclose($n, 1)", "operator.eq($n, 1)", "operator.lt($n, $n)", "operator.is_(s.x, s.x)", "operator.contains((0, 1), $n)", "operator.not_($n)", "operator.truth($n)", "operator.and_($t, $t)", "($t).__and__($t)", "int.__eq__(1, $n)", "(1).__eq__($n)", "(1).__lt__($n)", "s.x.__eq__(1)", "s.x.__ne__(1)", "s.x.__bool__()"],
    "boxes": ["Box($n) == Box($n)", "Box($n) != Box($n)", "Box($n) in (Box(0), Box(1))", "[$n, 1] == [1, $n]", "[$n] == [1]", "($n,) in ((0,), (1,))", "[$n] < [$n]", "($n, 'a') == (1, 'a')", "{'a': $n} == {'a': 1}", "($n,) != (1,)", "($n, $n) in [(0, 1), (1, 2)]", "[$n, $n].count(1) == 1", "not []", "not [$n]", "bool((0,))", "($n,) is ($n,)"],
    "truth operators": ["($t) ^ ($t)", "~($t)", "not ~s.on", "$n | $n", "$n & 1", "(s.x | s.y) == 3", "s.x | s.on", "(s.x > 1) | s.x", "s.x | (s.x > 1)", "(s.on | 2) == 2", "(s.on | s.x) == 1", "(2 | ($t)) == 2", "(($t) | 3) == 3", "s.color | ($t)", "(1 | 2) == 3", "((s.x == 1) | (s.y == 1)) == True"],
    "methods of channels": ["s.post[0]", "s.line", "bool(s.post)", "s.line[()].waiting()", "len(list(s.line[()].waiting()))", "list(s.line[()].waiting()) == []", "s.post[$n].length", "s.line[0].length", "any(True for m in s.line[()].waiting())", "next(s.line[()].waiting(), None) is None", "s.post[0] == s.post[0]", "s.line[()].some(lambda m: m.n and m.kind)", "s.line[()].some(lambda m: m.n | 1)", "s.line[()].count(lambda m: m.n > 1 or m.kind == 2) == 1", "s.line[()].count(lambda m: m.n) == 1", "s.line[()].some(lambda m: True if m.n > 1 else False)"],
}

OUTSIDE_STATEMENTS = {
    "match": ["match $n:\n    case 0:\n        $b\n    case 1 | 2:\n        $b\n    case _:\n        pass", "match s.on:\n    case True:\n        $b\n    case False:\n        $b", "match $t:\n    case True:\n        $b\n    case _:\n        pass", "match s.color:\n    case Color.RED:\n        $b\n    case Color.GREEN:\n        $b", "match $n:\n    case int():\n        $b\n    case _:\n        s.x = 1", "match ($n, $n):\n    case (0, 1):\n        $b\n    case (u, 1):\n        $b", "match $n:\n    case u if u > 1:\n        $b", "match s.who:\n    case None:\n        $b\n    case -1:\n        $b", "match [$n, $n]:\n    case [u, *_]:\n        $b", "match {'a': $n}:\n    case {'a': 1}:\n        $b"],
    "try": ["try:\n    s.x = $n\nexcept DomainFault:\n    s.x = 0", "try:\n    s.x = $n\nexcept Exception:\n    $b", "try:\n    require($t)\nexcept Disabled:\n    $b", "try:\n    require($t)\n    $b\nexcept BaseException:\n    s.x = 1", "try:\n    u = s.level[$n]\nexcept IndexFault:\n    u = 0", "try:\n    u = $n // 2\nexcept TypeError:\n    u = 1", "try:\n    u = {1: 2}[$n]\nexcept KeyError:\n    u = 1", "try:\n    u = (1, 2)[$n]\nexcept IndexError:\n    u = 0", "try:\n    $b\nfinally:\n    s.on = True", "try:\n    pass\nexcept Exception:\n    pass\nelse:\n    $b", "try:\n    u = $n % 2\nexcept Exception:\n    u = 0\ns.on = u == 0", "try:\n    raise Disabled\nexcept Disabled:\n    $b", "try:\n    u = str($n)\nexcept Exception:\n    pass\ns.x = len(u)", "try:\n    u = hash($n)\nexcept TypeError:\n    u = 0\ns.on = bool(u)", "try:\n    s.post[$i].send(kind=$c, about=$i, n=$i)\nexcept ModelFault:\n    s.post[$i].clear()"],
    "with": ["with contextlib.suppress(DomainFault):\n    s.x = $n", "with contextlib.suppress(Disabled):\n    require($t)\n    $b", "with contextlib.suppress(Exception):\n    u = $n // 2", "with contextlib.suppress(BaseException):\n    s.level[$n] = 1", "with contextlib.nullcontext($n) as u:\n    $b", "with s.accessing(s.access):\n    $b", "with contextlib.suppress(TypeError):\n    s.x = $n % 2"],
    "raise": ["if $t:\n    raise Disabled", "if $t:\n    raise ValueError('x')", "raise Disabled", "if $t:\n    raise ModelFault('x')", "if $t:\n    raise StopIteration", "if $t:\n    raise TypeError('no')", "if $t:\n    raise KeyError(1)", "if $t:\n    exit()"],
    "assert": ["assert $t", "assert $t, 'no'", "assert $n", "assert True"],
    "globals": ["global counter\ncounter += 1\ns.on = counter % 2", "calls.append(1)\ns.on = len(calls) > 3", "u = counted()\ns.x = min(5, u)", "u = grown($i)\ns.x = min(5, u)", "memory['n'] = $n\ns.on = memory['n'] == 1", "if calls:\n    $b\ncalls.append($i)", "table[$i] = $n\ns.y = min(3, max(-2, table[0] if 0 in table else 1))", "Box.shared += 1\ns.on = Box.shared > 2", "larger.times = getattr(larger, 'times', 0) + 1\ns.on = larger.times > 4", "calls.clear()", "s.x = random.randint(0, 1)", "u = cached($n)\ns.on = u == 1", "s.knobs.limit = 1", "object.__setattr__(s.knobs, 'limit', 1)", "s.extra = 1", "s._extra = 1\ns.on = s._extra == 1", "World.more = 1", "setattr(s, 'x', $i)", "s.__dict__['x'] = 1", "vars(s)['foo'] = 1"],
    "internals": ["s.values[0] = 1", "s.values[0] = $i\ns.on = True", "s.write(0, $i)", "s.values = list(s.values)", "s.events.clear()", "s.choices.append(1)", "u = s.values[:]\ns.x = $i\ns.values = u", "s.access = s.access", "before = copy.deepcopy(s)\ns.x = $i\ns.y = before.x", "before = copy.copy(s)\ns.x = $i\nu = before.x\ns.y = min(3, u)", "s.labels = True", "s.layout = s.layout", "s._chooser = lambda n: 0\ns.x = s.choose((1, 2))", "del s.x", "s.level = 1", "s.post = 1", "s.nothing = 1", "s.level[0], s.nothing = 1, 2"],
    "augmented": ["s.x |= 2", "s.x |= $n", "s.x &= 3", "s.x ^= 1", "s.x //= 2", "s.x %= 2", "s.x **= 2", "s.x <<= 1", "s.x >>= 1", "s.x /= 1", "u = $n\nu |= 1\ns.x = min(5, max(0, u))", "s.level[$i] |= 1", "s.on ^= 1", "s.on ^= $t", "s.on = not s.on", "s.on += 1", "s.x += 0.5", "s.x += 1.0", "s.y -= Fraction(1)", "s.x = True", "s.x = None", "s.x = 'a'", "s.x = 1.0", "s.x = numpy.int64(1)", "s.x = numpy.bool_(True)", "s.x = Fraction(1)", "s.x = (1)", "s.x = (1,)", "s.color = 'red'", "s.color = 1", "s.color = $n", "s.at = s.who", "s.who = None", "s.on = 2", "s.on = $n", "s.on = 'yes'", "s.x = Decimal(1)", "s.x = 1j", "s.x = [1]", "s.x = s", "s.x = s.level", "s.x = s.level[0] or 2", "s.x = 10**30", "s.x = numpy.array([1])", "s.x = numpy.array(1)", "s.x = Color", "s.x = Color.BLUE", "s.x = Node", "s.x = Node(1)", "s.x = lambda: 1", "s.x = object()", "s.x = ...", "s.x = range(1)", "s.x = float('nan')", "s.x = float('inf')", "s.x = numpy.float64(1)", "s.x = NotImplemented"],
    "loops": ["for k in {0, 1}:\n    $b", "for k in {0: 1, 1: 2}:\n    $b", "for k in set((1, 0)):\n    $b", "for k in map(int, (0, 1)):\n    $b", "for u in levels(s):\n    $b", "for k in itertools.count():\n    if k > 1:\n        break\n    $b", "for k in itertools.cycle((0, 1)):\n    if $t:\n        break\n    s.x -= 1", "for k in sorted(s.all(Node), key=lambda a: s.level[a]):\n    $b", "for k in sorted(s.all(Node), key=lambda a: -a):\n    $b", "for k in list(Color):\n    $b", "for u in 'ab':\n    $b", "for s.x in (1, 2):\n    $b", "for s.level[0] in (1, 2):\n    pass", "for k in filter(lambda a: $t, (0, 1)):\n    $b", "u = 0\nwhile u < $n:\n    u += 1\nelse:\n    $b", "for k in iter(s.all(Node)):\n    $b", "for k in s.all(Node)[::-1]:\n    $b", "for k in s.all(Node)[$i:]:\n    $b", "for k in s.level:\n    $b", "for k, u in enumerate(s.level[a] for a in s.all(Node)):\n    $b", "u = iter((1, 0))\nfor k in u:\n    next(u)\n    $b", "both = [0, 1]\nfor k in both:\n    if len(both) < 4:\n        both.append(k)\n    $b", "for k in range(0, 2, 1):\n    $b", "for k in range($n, 2):\n    $b", "for k in reversed((0, 1)):\n    $b", "for k, r in itertools.product(s.all(Node), s.all(Room)):\n    s.grid[k, r] = $t", "while $n > 0:\n    $b\n    break"],
    "choose": ["s.x = s.choose({1, 2})", "s.x = s.choose(range($n))", "s.x = s.choose([$n, $n])", "s.x = s.choose([k for k in s.all(Node) if $t])", "s.x = s.choose(())", "s.on = s.choose((True, False))", "s.color = s.choose(Color)", "s.x = s.choose('ab')", "s.x = s.choose([1.0, 2])", "s.x = s.choose({0: 1, 1: 2})", "s.x = s.choose([None, 1])", "s.x = max(s.choose((0, 1)), s.choose((1, 2)))", "for k in s.all(Node):\n    s.level[k] = s.choose((0, 1))", "s.x = s.choose(s.all(Node))", "s.x = s.choose(numpy.array([1, 2]))", "s.at = s.choose([$i, $i])", "s.x = s.choose((k for k in (1, 2)))", "s.x = s.choose(5)", "s.x = s.choose([2, 2])", "u = s.choose([Color.RED, Color.BLUE])\ns.on = u is Color.BLUE", "u = s.choose(Node)\ns.on = u is s.at", "s.x = s.choose([numpy.int64(1), 2])", "s.x = s.choose([True, 2])", "s.x = s.choose(list(range(2))) if $t else 0", "s.who = s.choose([NONE, $n])"],
    "waiting with changes": ["for m in s.post[0].waiting():\n    s.post[0].send(kind=$c, about=$i, n=$i)", "for m in s.post[0].waiting():\n    s.post[0].receive()", "for m in s.post[0].waiting():\n    s.post[0].remove(0)\n    s.level[$i] = m.n", "for m in s.line[()].waiting():\n    s.line[()].clear()", "for m in s.line[()].waiting():\n    if $t:\n        break\n    s.line[()].remove_last()", "both = s.line[()].waiting()\ns.line[()].clear()\nu = len(list(both))\ns.x = u", "both = s.post[0].waiting()\nif s.post[0].length < 2:\n    s.post[0].send(kind=$c, about=$i, n=$i)\ns.x = len(list(both))", "m = s.line[()].peek()\ns.line[()].remove(0)\ns.x = m.n", "for m in list(s.post[0].waiting()):\n    s.post[0].receive()", "box = s.post[0]\nbox.clear()\ns.x = box.length", "m = s.post[0].peek()\nm.n = 2\ns.x = m.n", "m = s.post[0].peek()\nm.parts['n'] = 1\ns.x = m.n", "s.line[()].duplicate(0)", "s.line[()].swap(0)", "s.post[$n].send(kind=$c, about=$i, n=$n)", "s.post[0].send(kind=$c)", "s.post[0].send(kind=1.0, about=0, n=0)", "s.post[0].send(kind=None, about=0, n=0)", "s.post[0].send(kind=numpy.int64(1), about=0, n=0)", "s.line[()].remove($n)", "s.line[()].remove(s.line[()].length)", "s.line[()].remove(s.line[()].length - 1)", "s.line[()]._take(0)", "for m in s.post[0].waiting():\n    for m in s.post[1].waiting():\n        s.x = m.n", "m = next(s.post[0].waiting())\ns.x = m.n", "m = next(s.post[0].waiting(), None)\nif m is not None:\n    s.x = m.n", "if s.line[()].some(lambda m: require($t)):\n    $b", "s.x = s.line[()].count(lambda m: m.n)", "s.on = s.line[()].some(lambda m: s.x < 5 and m.n)"],
    "functions": ["def inner(a=[]):\n    a.append(1)\n    return len(a)\ns.x = inner() + inner()", "def inner(*a, **b):\n    return sum(a) + b['c']\nu = inner($n, $n, c=$n)", "f = [lambda: k for k in (0, 1)]\ns.x = f[0]() + f[1]()", "def inner():\n    yield $n\n    yield $n\nu, v = inner()", "u, *v = ($n, $n, $n)\nv = v[0]", "class Local:\n    value = $n\nu = Local.value", "import os\ns.x = len(os.sep)", "def inner(a):\n    return inner(a - 1) + 1 if a > 0 else 0\ns.x = min(5, inner($n))", "u = Box($n)\nu.value += 1\ns.x = min(5, max(0, u.value))\nu = 0", "print($n, end='', file=open('/dev/null', 'w'))", "print(end='')", "exec('s.x = 1')", "yield", "return 1", "return None", "if $t:\n    return s", "u: int = $n", "u = v = $n", "$n", "$t", "...", "'text'", "lambda: s", "s.x = (lambda: (yield))() is None", "async def inner():\n    pass\nu = 0", "f = functools.partial(put, s, $i)\nf($n)", "map(lambda k: put(s, k, 1), (0, 1))", "list(map(lambda k: put(s, k, $i), (0, 1)))", "[put(s, k, $i) for k in s.all(Node)]", "$t and put(s, $i, $i)", "$t or put(s, $i, $n)", "any(put(s, k, 1) for k in s.all(Node))", "put(s, value=$i, node=$i)", "put(*(s, $i, $i))", "put(**{'s': s, 'node': $i, 'value': 1})", "s.x = kind_of($n)", "s.x = kind_of(s.color)", "type(s).x.__set__(s, 1)", "u = [0, 0]\nu[$i] = $n\nv = u[0]\nu = u[1]", "both = {}\nboth[$i] = $n\nu = both.get(0, 1)", "both = {}\nboth[$n] = 1\nu = len(both)", "both = [$n, $n]\nboth.sort()\nu = both[0]", "both = [$n, $n]\nboth.reverse()\nu = both.pop()", "both = [$n, $n]\nboth.remove(1)\nu = len(both)", "both = [0, 1, 2]\ndel both[$n]\nu = both[0]", "both = [$n]\nboth += [1]\nu = both[0]", "both = set()\nboth.add($n)\nu = len(both)", "both = [$n, 1, 2]\nboth[$n] = 0\nu = both[0]", "u = [0] * 2\nfor k in s.all(Node):\n    u[k] = s.level[k]\nu = u[0] - u[1]"],
    "ghosts": ["s.x = s.seen", "if s.seen:\n    $b", "s.seen += 1", "s.seen = s.seen", "u = s.wrote[$i]", "require(s.seen < 3)", "remember(s, s.seen)", "u = remember(s, 1)", "if s.wrote[0] == s.wrote[1]:\n    pass", "s.wrote[s.seen] = 1", "remember(value=1, s=s)", "remember.__wrapped__(s, $i)", "s.on = is_busy(s, s.seen)"],
    "require": ["require(None)", "require('a')", "require([])", "require($t, 'why')", "require(condition=$t)", "require(require($t))", "require($n, $n)", "require(1.5)", "require(numpy.bool_(True))", "require(numpy.int64(0))", "require(s.level)", "require(s)", "require(lambda: 0)", "require(())", "require(($t,))", "require($t == ($t))", "require(not not $n)", "s.x = require($t)", "require(all(require($t) is None for k in s.all(Node)))", "u = [require($t) for k in s.all(Node)]", "require($t) or put(s, 0, 1)", "require(s.post[0])", "require(range(0))", "require(0.0)", "require(Fraction(0))", "require(str($n))", "require(f'{$n}')", "require({$i})"],
}

OUTSIDE_CLAIMS = {
    "claim": ["claim(None, 'x')", "claim($t, f'{$n} is small')", "claim(str(s.x) != '3', 'text')", "claim(s.color is not Color.BLUE, 'not blue')", "claim(s.who is not None, 'is')", "claim($n | $n, 'bits')", "claim((s.x | s.y) != 3, 'bits')", "claim('', 'x')", "claim([s.x], 'x')", "claim($t, 1)", "claim($t, 'x', x='a')", "claim($t, 'x', x=None)", "claim(text='x', condition=$t)", "claim($t, 'x', condition2=s.x)", "claim(1.5, 'x')", "claim(s.x < 1.5, 'float')", "claim(s.level, 'x')", "claim(s.x in {0, 1, 2}, 'set')", "claim(numpy.bool_(False), 'x')", "claim(s.x == numpy.int64(1), 'x')"],
    "property writes": ["s.x = 0", "s.x = s.x", "s.seen = 1", "s.post[0].clear()", "if $t:\n    s.x = 1", "s.line[()].send(kind=0, about=0, n=0)", "remember(s, 1)", "s.level[5]", "u = s.level[$n]", "claim(s.level[s.x] < 3, 'index')", "claim(s.level[s.who] < 3, 'index')", "s.values[0] = 0", "u = s.choose(Node)", "require($t)", "if $t:\n    require(False)", "m = s.line[()].peek()\nclaim(m.n < 3, 'peek')", "return $t", "return 1", "return True", "return claim($t, 'x')", "if $t:\n    return"],
    "try around claims": ["try:\n    claim($t, 'x')\nexcept Exception:\n    pass", "try:\n    claim(s.level[$n] < 2, 'x')\nexcept IndexFault:\n    pass", "assert $t", "assert s.x < 4", "try:\n    u = s.x // 2\nexcept TypeError:\n    u = 0\nclaim(u < 2, 'x')", "with contextlib.suppress(Exception):\n    claim($t, 'x')", "if $t:\n    raise ValueError('x')", "calls.append(1)\nclaim(len(calls) < 20, 'count')", "claim(counted() < 30, 'count')"],
}

COLORS = ["Color.RED", "Color.GREEN", "Color.BLUE", "s.color", "Color.BLUE"]
INDICES = ["n", "n", "0", "1", "k", "s.at", "1 - n"]
ROOMS = ["0", "1", "0", "1"]
KINDS = ("action", "property", "probe", "terminal", "promise")


@dataclass(frozen=True)
class Program:
    """A function as source text, in a module of its own. `outside` names what it uses beyond the language."""

    name: str
    kind: str
    source: str
    outside: tuple[str, ...]


class Writer:
    """Writes one random program. `strange` is how likely a piece comes from outside of the language."""

    def __init__(self, seed: int, strange: float) -> None:
        self._chance = random.Random(seed)
        self._strange = strange
        self._outside: list[str] = []
        self._messages = 0
        self._acts = True

    def program(self, kind: str, name: str) -> Program:
        """A program of this kind: an action, or a predicate of the state."""
        self._acts = kind == "action"
        start = f"u = {self.number(1)}\n" if self._chance.random() < 0.5 else ""
        text = start + self._block(3 if kind in ("action", "property") else 1, self._acts)
        return self._declared(name, kind, text if kind in ("action", "property") else f"{text}\nreturn {self._truth(2)}")

    def around(self, name: str, kind: str, template: str, outside: str) -> Program:
        """A program of little more than one template."""
        self._acts = kind == "action"
        self._outside.append(outside)
        return self._declared(name, kind, self._fill(template, 0))

    def _declared(self, name: str, kind: str, body: str) -> Program:
        head = {
            "action": '@action("node {n}")\n' + f"def {name}(s: World, n: Node) -> None:",
            "property": f"@invariant\ndef {name}(s: World) -> None:",
            "probe": f"@probe\ndef {name}(s: World) -> int:",
            "promise": f"@promise\ndef {name}(s: World) -> int:",
            "terminal": f"def {name}(s: World) -> int:",
        }[kind]
        lines = ["k = 0", "u = 1", "v = s.x", *([] if kind == "action" else ["n = 1"]), *body.split("\n")]
        text = "\n".join(f"    {line}" for line in lines)
        return Program(name, kind, f'{HEADER}{head}\n    """A {kind}."""\n{text}\n', tuple(self._outside))

    def number(self, depth: int) -> str:
        """An expression for a number."""
        return self._fill(self._pick(NUMBERS if self._chance.random() < 0.6 and depth else LEAVES, OUTSIDE_NUMBERS), depth - 1)

    def _truth(self, depth: int) -> str:
        if not depth:
            return self._fill(self._chance.choice(("s.on", "$n == $n", "$n < $n", "s.color == $c", "s.grid[$i, $r]")), 0)
        return self._fill(self._pick(TRUTHS, OUTSIDE_TRUTHS), depth - 1)

    def _block(self, depth: int, acts: bool = True) -> str:
        many = self._chance.choice((1, 1, 2, 2, 3)) if depth > 2 else self._chance.choice((1, 1, 2))
        return "\n".join(self._statement(depth - 1, acts) for _ in range(many))

    def _statement(self, depth: int, acts: bool) -> str:
        if acts:
            simple = [each for each in STATEMENTS if "$b" not in each]
            return self._fill(self._pick(STATEMENTS if depth > 0 else simple, OUTSIDE_STATEMENTS), max(depth, 0) + 0)
        return self._fill(self._pick(CLAIMS if depth > 0 else ["u = $n", "v = $n"], OUTSIDE_CLAIMS), 1)

    def _pick(self, inside: list[str], outside: dict[str, list[str]]) -> str:
        if not self._outside and self._chance.random() < self._strange:
            name = self._chance.choice(list(outside))
            self._outside.append(name)
            return self._chance.choice(outside[name])
        return self._chance.choice(inside)

    def _fill(self, template: str, depth: int) -> str:
        """The template with its holes filled."""
        messages = bool(re.search(r"for m in|lambda m|m = ", template))
        self._messages += messages
        depth = max(depth, 0)

        def hole(found: re.Match[str]) -> str:
            match found[1]:
                case "n":
                    if self._messages and self._chance.random() < 0.3:
                        return self._chance.choice(("m.n", "m.about", "m.kind"))
                    text = self.number(depth)
                    return text if re.fullmatch(r"[\w.]+|[\w.]+\([^()]*\)|\([^()]*\)", text) else f"({text})"
                case "t":
                    return f"({self._truth(depth)})"
                case "c":
                    return self._chance.choice(COLORS)
                case "i":
                    return self._chance.choice(INDICES)
                case "r":
                    return self._chance.choice(ROOMS)
                case other:
                    raise AssertionError(other)

        lines: list[str] = []
        for line in template.split("\n"):
            indent = len(line) - len(line.lstrip())
            if line.strip() == "$b":
                lines += [" " * indent + each for each in self._block(depth, self._acts).split("\n")]
            else:
                lines.append(re.sub(r"\$(\w)", hole, line))
        self._messages -= messages
        return "\n".join(lines)


def programs(seed: int, strange: float = 0.15) -> list[Program]:
    """Programs enough for one model: some actions, and predicates of each kind."""
    kinds = ["action"] * 8 + ["property"] * 4 + ["probe"] * 3 + ["terminal", "promise"]
    return [Writer(seed * 100 + number, strange).program(kind, f"{kind}_{number}") for number, kind in enumerate(kinds)]


def pieces(seed: int) -> list[Program]:
    """A program for each piece outside of the language, in which what the piece gives is all that matters."""
    found: list[Program] = []
    uses = [
        (OUTSIDE_NUMBERS, "action", "s.x = min(5, max(0, $piece))"),
        (OUTSIDE_NUMBERS, "action", "require(($piece) > 1)\ns.x = 0 if s.x else 1"),
        (OUTSIDE_NUMBERS, "property", "claim(($piece) != 1, 'number')"),
        (OUTSIDE_TRUTHS, "action", "s.on = $piece"),
        (OUTSIDE_TRUTHS, "action", "if $piece:\n    s.x = 0 if s.x else 1"),
        (OUTSIDE_TRUTHS, "property", "claim($piece, 'truth')"),
        (OUTSIDE_TRUTHS, "probe", "return $piece"),
        (OUTSIDE_STATEMENTS, "action", "$piece"),
        (OUTSIDE_STATEMENTS, "action", "$piece\ns.x = min(5, max(0, u))\ns.y = min(3, max(-2, v))"),
        (OUTSIDE_CLAIMS, "property", "$piece\nclaim(u < 3, 'u')"),
    ]
    for table, kind, use in uses:
        for name, templates in table.items():
            for template in templates:
                number = len(found)
                text = use.replace("$piece", template)
                found.append(Writer(seed * 10_000 + number, 0.0).around(f"{kind}_{number}", kind, text, name))
    return found
