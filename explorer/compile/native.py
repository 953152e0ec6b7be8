"""Guarded commands as machine code: decision trees become LLVM IR, and run on packed states.

Four functions are made for a model. All take pointers to arrays of 64-bit words, W words to a state.

    expand(states, first, count, out) -> number of successors written to `out`, each as W+1 words:
        (position of the state it came from << ORIGIN_SHIFT | code), then the successor. The code is the number
        of the instance, or FAULT_BIT | number of the instance if the state breaks the language's rules.
    observe(states, begin, end, wanted, counts, seen) -> the first position in begin .. end whose predicates
        share a bit with `wanted` (stored in *seen), or `end`. Adds each predicate's truth to counts[predicate]
        for all positions before the one returned, and for that one.
    mark(states, begin, end, out) -> 0. Writes a word for each position: bit n is set where promise n is pending.
    terminal(state) -> whether the state may have no step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import llvmlite.binding as _llvm  # pyright: ignore[reportMissingTypeStubs]
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]

from .expression import Expression, Value
from .packing import Packing
from .tracer import Answer, Blocked, Choice, Command, Decision, Fault, Tree, Update, count_leaves

ORIGIN_SHIFT = 20
FAULT_BIT = 1 << 19
LEAVES_PER_FUNCTION = 192
MAX_PREDICATES = 60

llvm: Any = _llvm  # llvmlite has no type annotations
I64 = ir.IntType(64)
POINTER = I64.as_pointer()
Irv = Any
"""A value of llvmlite's IR."""


@dataclass(frozen=True)
class Native:
    """Compiled functions of one model. `engine` owns the code; addresses are valid while it lives."""

    expand: int
    terminal: int
    observe: Callable[..., int]
    mark: Callable[..., int]
    engine: Any


def _word(value: int) -> Irv:
    return ir.Constant(I64, value)


class Body:
    """Emits the trees of one function body. `words` are the packed state being read."""

    def __init__(self, builder: Any, packing: Packing, words: Sequence[Irv]) -> None:
        self.builder = builder
        self._packing = packing
        self._words = words

    def tree(self, tree: Tree, leaf: Callable[[Tree, dict[int, Irv]], None], done: Any) -> None:
        """Emits a tree at the builder's position. `leaf` emits what a leaf does; then control goes to `done`."""
        self._tree(tree, leaf, done, {})

    def _tree(self, tree: Tree, leaf: Callable[[Tree, dict[int, Irv]], None], done: Any, made: dict[int, Irv]) -> None:
        # `made` holds values computed in blocks that dominate this one; each branch gets a copy of its own.
        builder = self.builder
        if isinstance(tree, Decision):
            condition = builder.icmp_unsigned("!=", self.value(tree.condition, made), _word(0))
            then, otherwise = builder.append_basic_block(), builder.append_basic_block()
            builder.cbranch(condition, then, otherwise)
            for block, branch in ((then, tree.then), (otherwise, tree.otherwise)):
                builder.position_at_end(block)
                self._tree(branch, leaf, done, dict(made))
        elif isinstance(tree, Choice):
            for option in tree.options:
                after = builder.append_basic_block()
                self._tree(option, leaf, after, dict(made))
                builder.position_at_end(after)
            builder.branch(done)
        else:
            if not isinstance(tree, Blocked):
                leaf(tree, made)
            builder.branch(done)

    def value(self, value: Value, made: dict[int, Irv]) -> Irv:
        """Emits a value as a signed 64-bit integer."""
        if isinstance(value, int):
            return _word(value)
        if value.uid not in made:
            made[value.uid] = self._operation(value, made)
        return made[value.uid]

    def _operation(self, value: Expression, made: dict[int, Irv]) -> Irv:
        builder = self.builder
        if value.operation == "read":
            return self._read(cast(int, value.operands[0]))
        operands = [self.value(operand, made) for operand in value.operands]
        match value.operation:
            case "add":
                return builder.add(*operands)
            case "sub":
                return builder.sub(*operands)
            case "mul":
                return builder.mul(*operands)
            case "eq":
                return builder.zext(builder.icmp_signed("==", *operands), I64)
            case "lt":
                return builder.zext(builder.icmp_signed("<", *operands), I64)
            case "and":
                return builder.and_(*operands)
            case "not":
                return builder.xor(operands[0], _word(1))
            case other:
                raise AssertionError(f"unknown operation {other}")

    def _read(self, position: int) -> Irv:
        builder, place = self.builder, self._packing.places[position]
        shifted = builder.lshr(self._words[place.word], _word(place.shift)) if place.shift else self._words[place.word]
        masked = builder.and_(shifted, _word((1 << place.bits) - 1))
        return builder.add(masked, _word(place.lo)) if place.lo else masked

    def updated(self, update: Update, made: dict[int, Irv]) -> list[Irv]:
        """The words of the successor: only words that the update touches are computed."""
        builder = self.builder
        result: list[Irv] = list(self._words)
        masks, constants = [0] * len(result), [0] * len(result)
        parts: list[list[Irv]] = [[] for _ in result]
        for position, value in update.writes:
            place = self._packing.places[position]
            masks[place.word] |= place.mask
            if isinstance(value, int):
                constants[place.word] |= (value - place.lo) << place.shift
            else:
                number = self.value(value, made)
                number = builder.sub(number, _word(place.lo)) if place.lo else number
                parts[place.word].append(builder.shl(number, _word(place.shift)) if place.shift else number)
        for word, mask in enumerate(masks):
            if mask:
                kept = builder.and_(result[word], _word(~mask & (2**64 - 1)))
                result[word] = builder.or_(kept, _word(constants[word])) if constants[word] else kept
                for part in parts[word]:
                    result[word] = builder.or_(result[word], part)
        return result


def _load_words(builder: Any, base: Irv, words: int) -> list[Irv]:
    return [builder.load(builder.gep(base, [_word(w)])) for w in range(words)]


def _loop(builder: Any, begin: Irv, end: Irv, body: Callable[[Irv], None]) -> None:
    """for i in begin .. end-1: body(i)."""
    entry, head = builder.block, builder.append_basic_block("head")
    inside, after = builder.append_basic_block("inside"), builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    counter = builder.phi(I64)
    counter.add_incoming(begin, entry)
    builder.cbranch(builder.icmp_signed("<", counter, end), inside, after)
    builder.position_at_end(inside)
    body(counter)
    counter.add_incoming(builder.add(counter, _word(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def _function(module: Any, name: str, arguments: int) -> tuple[Any, Any]:
    function = ir.Function(module, ir.FunctionType(I64, [I64] * arguments), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _emit_expand(module: Any, packing: Packing, commands: Sequence[Command]) -> None:
    # Successors are written state by state, in the order of the actions: of all shortest traces, the search then
    # finds the one that takes earlier actions first, so a model decides by their order which story is told.
    parts = [_emit_part(module, f"expand_{n}", packing, group) for n, group in enumerate(_groups(commands))]
    function, builder = _function(module, "expand", 4)
    states, first, count, out = function.args
    states = builder.inttoptr(states, POINTER)
    cursor = builder.alloca(I64)
    builder.store(_word(0), cursor)

    def one_state(at: Irv) -> None:
        base = builder.ptrtoint(builder.gep(states, [builder.mul(at, _word(packing.words))]), I64)
        origin = builder.shl(builder.add(first, at), _word(ORIGIN_SHIFT))
        for part in parts:
            builder.store(builder.call(part, [base, origin, out, builder.load(cursor)]), cursor)

    _loop(builder, _word(0), count, one_state)
    builder.ret(builder.load(cursor))


def _groups(commands: Sequence[Command]) -> list[list[tuple[int, Command]]]:
    """Splits commands so that no function grows far beyond LEAVES_PER_FUNCTION: compile time is not linear."""
    groups: list[list[tuple[int, Command]]] = [[]]
    leaves = 0
    for code, command in enumerate(commands):
        leaves += count_leaves(command.tree)
        if leaves > LEAVES_PER_FUNCTION and groups[-1]:
            groups.append([])
            leaves = count_leaves(command.tree)
        groups[-1].append((code, command))
    return groups


def _emit_part(module: Any, name: str, packing: Packing, commands: Sequence[tuple[int, Command]]) -> Any:
    """A function that writes one state's successors by some commands, from position `written` of `out` on."""
    function, builder = _function(module, name, 4)
    function.linkage = "internal"
    base, origin, out, written = function.args
    base, out = builder.inttoptr(base, POINTER), builder.inttoptr(out, POINTER)
    body = Body(builder, packing, _load_words(builder, base, packing.words))
    width = packing.words + 1
    cursor = builder.alloca(I64)
    builder.store(written, cursor)
    for code, command in commands:

        def leaf(tree: Tree, made: dict[int, Irv], code: int = code) -> None:
            assert isinstance(tree, Update | Fault)
            slot = builder.load(cursor)
            target = builder.gep(out, [builder.mul(slot, _word(width))])
            tag = code if isinstance(tree, Update) else code | FAULT_BIT
            words = body.updated(tree if isinstance(tree, Update) else Update(()), made)
            builder.store(builder.or_(origin, _word(tag)), target)
            for w, word in enumerate(words):
                builder.store(word, builder.gep(target, [_word(w + 1)]))
            builder.store(builder.add(slot, _word(1)), cursor)

        done = builder.append_basic_block()
        body.tree(command.tree, leaf, done)
        builder.position_at_end(done)
    builder.ret(builder.load(cursor))
    return function


def _emit_predicate(builder: Any, body: Body, tree: Tree) -> Irv:
    """The truth of a predicate, 0 or 1."""
    done = builder.append_basic_block()
    arriving: list[tuple[Any, int]] = []

    def leaf(tree: Tree, _: dict[int, Irv]) -> None:
        assert isinstance(tree, Answer)
        arriving.append((builder.block, int(tree.value)))

    body.tree(tree, leaf, done)
    builder.position_at_end(done)
    result = builder.phi(I64)
    for block, value in arriving:
        result.add_incoming(_word(value), block)
    return result


def _emit_observe(module: Any, packing: Packing, predicates: Sequence[Tree]) -> None:
    function, builder = _function(module, "observe", 6)
    states, begin, end, wanted, counts, seen = function.args
    states, counts, seen = (builder.inttoptr(x, POINTER) for x in (states, counts, seen))

    def one_state(at: Irv) -> None:
        base = builder.gep(states, [builder.mul(at, _word(packing.words))])
        body = Body(builder, packing, _load_words(builder, base, packing.words))
        bits = _word(0)
        for number, tree in enumerate(predicates):
            truth = _emit_predicate(builder, body, tree)
            counter = builder.gep(counts, [_word(number)])
            builder.store(builder.add(builder.load(counter), truth), counter)
            bits = builder.or_(bits, builder.shl(truth, _word(number)))
        hit = builder.icmp_unsigned("!=", builder.and_(bits, wanted), _word(0))
        found, on = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(hit, found, on)
        builder.position_at_end(found)
        builder.store(bits, seen)
        builder.ret(at)
        builder.position_at_end(on)

    _loop(builder, begin, end, one_state)
    builder.ret(end)


def _emit_mark(module: Any, packing: Packing, promises: Sequence[Tree]) -> None:
    function, builder = _function(module, "mark", 4)
    states, begin, end, out = function.args
    states, out = (builder.inttoptr(x, POINTER) for x in (states, out))

    def one_state(at: Irv) -> None:
        base = builder.gep(states, [builder.mul(at, _word(packing.words))])
        body = Body(builder, packing, _load_words(builder, base, packing.words))
        bits = _word(0)
        for number, tree in enumerate(promises):
            bits = builder.or_(bits, builder.shl(_emit_predicate(builder, body, tree), _word(number)))
        builder.store(bits, builder.gep(out, [builder.sub(at, begin)]))

    _loop(builder, begin, end, one_state)
    builder.ret(_word(0))


def _emit_terminal(module: Any, packing: Packing, tree: Tree) -> None:
    function, builder = _function(module, "terminal", 1)
    base = builder.inttoptr(function.args[0], POINTER)
    body = Body(builder, packing, _load_words(builder, base, packing.words))
    builder.ret(_emit_predicate(builder, body, tree))


def emit(
    packing: Packing,
    commands: Sequence[Command],
    predicates: Sequence[Tree],
    promises: Sequence[Tree],
    terminal: Tree,
) -> str:
    """The LLVM IR of a model, as text. At most MAX_PREDICATES predicates, and as many promises."""
    if max(len(predicates), len(promises)) > MAX_PREDICATES or len(commands) >= FAULT_BIT:
        raise ValueError("too many predicates or instances for one compiled model")
    module = ir.Module("draincheck")
    _emit_expand(module, packing, commands)
    _emit_observe(module, packing, predicates)
    _emit_mark(module, packing, promises)
    _emit_terminal(module, packing, terminal)
    return str(module)


def compile_native(text: str, level: int = 2) -> Native:
    """Machine code for the IR of `emit`, at an optimisation level 0 .. 3."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level
    )
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address
    observe = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_uint64] * 6))(address("observe"))
    mark = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_uint64] * 4))(address("mark"))
    return Native(address("expand"), address("terminal"), observe, mark, engine)
