"""Runs the peer model checker Spin on the reference model, and reports counts, time and memory.

`promela` writes the Promela twin of the reference model; `run_spin` checks it exhaustively.

Every action instance (an action with its room, rank and chunk filled in) is one `d_step` option of
a single loop, so one Spin step is one model transition, and the stored states are the model's
states: Spin adds none of its own. Spin must be run with `-o1 -o2 -o3`; with its default
optimisations it merges some states.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

SPIN_SWITCHES = ("-o1", "-o2", "-o3", "-a")
GCC_SWITCHES = ("-O3", "-w", "-DSAFETY", "-DNOREDUCE")

# Every action uses something up, so no run is longer than its action instances (54 when timed):
# this is ample, and pan says so if it ever is not.
SEARCH_DEPTH = 10_000
# log2 of the hash table's slots (8 bytes each), at least the states to be stored, so that the
# table neither grows nor chains much during the search.
HASH_BITS_UNTIMED = 20
HASH_BITS_TIMED = 27

# pan prints its counts with 8 significant digits, which rounds the timed model's, and its time
# with 3. Only the print formats change: the search is the one Spin generated.
_PRINT_FORMATS = (
    ('"%9.8g states, stored\\n"', '"%9.17g states, stored\\n"'),
    ('"%9.8g states, matched\\n"', '"%9.17g states, matched\\n"'),
    ('"\\npan: elapsed time %.3g seconds\\n"', '"\\npan: elapsed time %.9g seconds\\n"'),
)

# Linux carries a process's peak memory over exec, so a pan started directly would be charged this
# process's own peak. A fresh interpreter is small (about 11 MB), whatever the caller's size.
_LAUNCHER = """
import os, subprocess, sys
pan = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(pan.pid, 0)
print(f"\\nlauncher: exit {os.waitstatus_to_exitcode(status)}, max rss {usage.ru_maxrss} kilobytes")
"""

_TRUNCATIONS = (
    "max search depth too small",
    "reached -DMEMLIM bound",
    "out of memory",
    "Search not completed",
)

# In capitals because `active` is a word of Promela.
_PHASES = ("WAITING", "TRANSFERRING", "HELD", "DECODING", "DONE", "ABORTED")
_RANK_STATES = ("IDLE", "ACTIVE", "FAILED")


class PeerError(Exception):
    """Spin could not be run, or did not finish an exhaustive and readable search."""


@dataclass(frozen=True)
class Sizes:
    """The model's sizes: rooms, prefill ranks, chunks per room and rank, and slots (all >= 1)."""

    rooms: int = 2
    ranks: int = 2
    chunks: int = 2
    slots: int = 3


REFERENCE = Sizes()


@dataclass(frozen=True)
class PeerResult:
    """What one exhaustive search found and what it took.

    `states` and `transitions` are exact counts, a transition being one enabled action instance of
    one state; `seconds` is pan's own elapsed (wall-clock) search time, to 0.01 s, without
    generating and compiling; `memory_bytes` is pan's peak resident memory (at least the launcher's
    11 MB); `depth` is the longest path on the search stack in transitions, or None if pan did not
    print it.
    """

    states: int
    transitions: int
    seconds: float
    memory_bytes: int
    depth: int | None


def promela(timer: int | None, sizes: Sizes = REFERENCE) -> str:
    """Writes the model in Promela, untimed (`timer` None) or with timeouts after `timer` ticks.

    Raises ValueError if `timer` is negative.
    """
    if timer is not None and timer < 0:
        raise ValueError(f"timer must be None or at least 0 ticks, not {timer}")
    names = [f"#define {name} {value}" for value, name in enumerate(_PHASES)]
    names += [f"#define {name} {value}" for value, name in enumerate(_RANK_STATES)]
    options = [f"    :: {option}" for option in _options(timer, sizes)]
    return "\n".join(
        [
            *names,
            *_variables(timer, sizes),
            "active proctype model() {",
            "end: do",  # the label makes a state with nothing enabled a valid end, not an error
            *options,
            "    od",
            "}",
            "",
        ]
    )


def run_spin(
    timer: int | None,
    workdir: Path,
    memory_limit_mb: int = 16000,
    sizes: Sizes = REFERENCE,
) -> PeerResult:
    """Checks the model exhaustively (depth first, one core), with its files in `workdir`.

    `workdir` is made if need be, and must not be used by two runs at once. `memory_limit_mb` is
    in units of 2**20 bytes, on what pan allocates. Raises PeerError if spin or gcc is missing or
    fails, if the search was cut short (by depth, memory or a signal), if it reported an error, or
    if its output cannot be read; ValueError on a negative `timer` or a limit below 1; OSError if
    `workdir` cannot be written.
    """
    if memory_limit_mb < 1:
        raise ValueError(f"memory_limit_mb must be at least 1, not {memory_limit_mb}")
    model = promela(timer, sizes)
    _build_pan(model, workdir, memory_limit_mb)
    hash_bits = HASH_BITS_UNTIMED if timer is None else HASH_BITS_TIMED
    pan = ("./pan", f"-m{SEARCH_DEPTH}", f"-w{hash_bits}")
    return parse_output(_launch(pan, workdir))


def parse_output(output: str) -> PeerResult:
    """Reads pan's output, followed by the launcher's line.

    Raises PeerError if the search was cut short or reported an error, or if a figure is missing.
    """
    for sign in _TRUNCATIONS:
        if sign in output:
            raise PeerError(f"Spin's search was cut short ({sign}):\n{_tail(output)}")
    exit_code = _number(r"^launcher: exit (-?\d+),", output)
    if exit_code != 0:
        raise PeerError(f"pan ended with exit code {exit_code}:\n{_tail(output)}")
    if _number(r"\berrors: (\d+)$", output) != 0:
        raise PeerError(f"pan reported errors:\n{_tail(output)}")
    stored = _number(r"^ *(\d+) states, stored$", output)
    matched = _number(r"^ *(\d+) states, matched$", output)
    seconds = re.search(r"^pan: elapsed time ([0-9.e+-]+) seconds$", output, re.MULTILINE)
    depth = re.search(r"\bdepth reached (\d+),", output)
    if seconds is None:
        raise PeerError(f"cannot find the elapsed time in pan's output:\n{_tail(output)}")
    return PeerResult(
        states=stored,
        # pan counts arrivals: each arrives at a state it then stores or matches. The arrival at
        # the initial state, stored before any step, is the only one that is not a transition.
        transitions=(stored - 1) + matched,
        seconds=float(seconds[1]),
        memory_bytes=_number(r"^launcher: .* max rss (\d+) kilobytes$", output) * 1024,
        depth=int(depth[1]) if depth else None,
    )


# The model's state.


def _variables(timer: int | None, sizes: Sizes) -> list[str]:
    """Declares every state variable as a bit field of its own, narrowest first.

    Spin packs scalar bit fields but not arrays of them.
    """
    fields = sorted(_fields(timer, sizes), key=lambda field: field[1].bit_length())
    return [f"unsigned {name} : {max(1, largest.bit_length())};" for name, largest in fields]


def _fields(timer: int | None, sizes: Sizes) -> Iterator[tuple[str, int]]:
    """Yields each state variable's name and the largest value it takes."""
    rooms, ranks = range(sizes.rooms), range(sizes.ranks)
    chunks, slots = range(sizes.chunks), range(sizes.slots)
    yield "bad", 1
    for s in slots:
        yield f"owner_{s}", sizes.rooms
        yield from ((f"data_{s}_{p}", sizes.rooms) for p in ranks)
    for q in rooms:
        yield f"phase_{q}", len(_PHASES) - 1
        yield from ((f"slot_{q}_{c}", sizes.slots) for c in chunks)
        if timer is not None:
            yield f"hold_{q}", timer
    for p, q in product(ranks, rooms):
        yield from ((f"{name}_{p}_{q}", 1) for name in ("acked", "target", "abort", "ack"))
        yield f"rank_{p}_{q}", len(_RANK_STATES) - 1
        yield from ((f"{name}_{p}_{q}", sizes.chunks) for name in ("left", "queued", "landed"))
        yield from ((f"call_{p}_{q}_{c}", 1) for c in chunks)


# The model's actions. A variable of a rank and a room is always named rank first.


def _options(timer: int | None, sizes: Sizes) -> Iterator[str]:
    """Yields one `d_step` per action instance."""
    for q in range(sizes.rooms):
        yield from _room_actions(q, sizes)
        if timer is not None:
            yield from _timer_actions(q, timer, sizes)
    for p, q in product(range(sizes.ranks), range(sizes.rooms)):
        yield from _chunk_actions(p, q, sizes)
        yield from _message_actions(p, q, sizes)


def _room_actions(q: int, sizes: Sizes) -> Iterator[str]:
    ranks = range(sizes.ranks)
    yield _admit(q, sizes)
    landed = [f"landed_{p}_{q} == {sizes.chunks}" for p in ranks]
    yield _step([f"phase_{q} == TRANSFERRING", *landed], [f"phase_{q} = DECODING"])
    yield _step([f"phase_{q} == DECODING"], [f"phase_{q} = DONE", *_free_slots(q, sizes)])
    # hold is still 0 here: a room is held at most once.
    aborts = [f"abort_{p}_{q} = 1" for p in ranks]
    yield _step([f"phase_{q} == TRANSFERRING"], [*aborts, f"phase_{q} = HELD"])
    acked = [f"acked_{p}_{q}" for p in ranks]
    aborted = [f"phase_{q} = ABORTED", *_free_slots(q, sizes)]
    yield _step([f"phase_{q} == HELD", *acked], aborted)


def _timer_actions(q: int, timer: int, sizes: Sizes) -> Iterator[str]:
    aborted = [f"phase_{q} = ABORTED", *_free_slots(q, sizes)]
    yield _step([f"phase_{q} == HELD", f"hold_{q} < {timer}"], [f"hold_{q} = hold_{q} + 1"])
    yield _step([f"phase_{q} == HELD", f"hold_{q} == {timer}"], aborted)


def _chunk_actions(p: int, q: int, sizes: Sizes) -> Iterator[str]:
    left, queued = f"left_{p}_{q}", f"queued_{p}_{q}"
    produced = [f"{left} = {left} - 1", f"{queued} = {queued} + 1"]
    yield _step([f"rank_{p}_{q} == ACTIVE", f"{left} > 0"], produced)
    launches = [
        (f"rank_{p}_{q} != FAILED && {left} + {queued} == {sizes.chunks - c}", f"call_{p}_{q}_{c}")
        for c in range(sizes.chunks)
    ]
    launch = _choose([(guard, [f"{call} = 1"]) for guard, call in launches])
    dequeued = [launch, f"{queued} = {queued} - 1"]
    yield _step([f"{queued} > 0", *_no_call(p, q, sizes)], dequeued)
    for c in range(sizes.chunks):
        yield _land(p, q, c, sizes)


def _message_actions(p: int, q: int, sizes: Sizes) -> Iterator[str]:
    abort, target, ack = f"abort_{p}_{q}", f"target_{p}_{q}", f"ack_{p}_{q}"
    yield _step([abort], [f"{abort} = 0", f"rank_{p}_{q} = FAILED", f"{target} = 1"])
    yield _step([target, *_no_call(p, q, sizes)], [f"{target} = 0", f"{ack} = 1"])
    heard = _choose([(f"phase_{q} == HELD", [f"acked_{p}_{q} = 1"])])
    yield _step([ack], [f"{ack} = 0", heard])
    yield _step([ack], [f"{ack} = 0"])


def _admit(q: int, sizes: Sizes) -> str:
    slots = range(sizes.slots)
    free = " + ".join(f"(owner_{s} == 0)" for s in slots)
    effects = [_take_lowest_free(q, c, sizes) for c in range(sizes.chunks)]
    for p in range(sizes.ranks):
        effects += [f"rank_{p}_{q} = ACTIVE", f"left_{p}_{q} = {sizes.chunks}"]
    effects.append(f"phase_{q} = TRANSFERRING")
    return _step([f"phase_{q} == WAITING", f"{free} >= {sizes.chunks}"], effects)


def _take_lowest_free(q: int, c: int, sizes: Sizes) -> str:
    cases: list[tuple[str, list[str]]] = []
    for s in range(sizes.slots):
        lowest = " && ".join([*(f"owner_{lower} != 0" for lower in range(s)), f"owner_{s} == 0"])
        cases.append((lowest, [f"owner_{s} = {q + 1}", f"slot_{q}_{c} = {s + 1}"]))
    return _choose(cases)


def _land(p: int, q: int, c: int, sizes: Sizes) -> str:
    cases: list[tuple[str, list[str]]] = []
    for s in range(sizes.slots):
        late = _choose([(f"owner_{s} != 0 && owner_{s} != {q + 1}", ["bad = 1"])])
        cases.append((f"slot_{q}_{c} == {s + 1}", [late, f"data_{s}_{p} = {q + 1}"]))
    call, landed = f"call_{p}_{q}_{c}", f"landed_{p}_{q}"
    return _step([call], [f"{call} = 0", _choose(cases), f"{landed} = {landed} + 1"])


def _no_call(p: int, q: int, sizes: Sizes) -> list[str]:
    return [f"!call_{p}_{q}_{c}" for c in range(sizes.chunks)]


def _free_slots(q: int, sizes: Sizes) -> list[str]:
    slots = range(sizes.slots)
    return [_choose([(f"owner_{s} == {q + 1}", [f"owner_{s} = 0"])]) for s in slots]


def _step(guards: list[str], effects: list[str]) -> str:
    """An indivisible, deterministic step, taken only where every guard holds."""
    return f"d_step {{ {' && '.join(guards)} -> {'; '.join(effects)} }}"


def _choose(cases: list[tuple[str, list[str]]]) -> str:
    """Takes the case that holds (the conditions exclude each other), or does nothing."""
    branches = [f":: {condition} -> {'; '.join(effects)}" for condition, effects in cases]
    return f"if {' '.join(branches)} :: else -> skip fi"


# Running the tools.


def _build_pan(model: str, workdir: Path, memory_limit_mb: int) -> None:
    """Writes the model and leaves the compiled verifier `pan` in `workdir`."""
    spin, gcc = _tool("spin"), _tool("gcc")  # both before any work; spin itself runs gcc too
    workdir.mkdir(parents=True, exist_ok=True)
    source = workdir / "pan.c"
    for stale in (source, workdir / "pan"):
        stale.unlink(missing_ok=True)
    (workdir / "model.pml").write_text(model)
    _run_tool((spin, *SPIN_SWITCHES, "model.pml"), workdir, source)
    _print_exactly(source)
    limit = f"-DMEMLIM={memory_limit_mb}"
    _run_tool((gcc, *GCC_SWITCHES, limit, "-o", "pan", "pan.c"), workdir, workdir / "pan")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise PeerError(f"{name} is not on the PATH: install Debian's {name} package")
    return path


def _run_tool(command: tuple[str, ...], workdir: Path, product_file: Path) -> None:
    """Runs a tool that must succeed and leave `product_file`; raises PeerError if not."""
    done = subprocess.run(command, cwd=workdir, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not product_file.exists():
        said = _tail(done.stdout + done.stderr)
        raise PeerError(f"{' '.join(command)} failed (exit code {done.returncode}):\n{said}")


def _print_exactly(source: Path) -> None:
    """Widens the formats with which pan prints its figures; PeerError if one is not there."""
    text = source.read_text(errors="surrogateescape")
    for rounded, exact in _PRINT_FORMATS:
        if rounded not in text:
            raise PeerError(f"this Spin's pan.c does not print {rounded}: made for Spin 6.5.2")
        text = text.replace(rounded, exact)
    source.write_text(text, errors="surrogateescape")


def _launch(pan: tuple[str, ...], workdir: Path) -> str:
    """Returns what pan printed, followed by the launcher's line; leaves no process behind."""
    launcher = subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", _LAUNCHER, *pan),
        cwd=workdir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = launcher.communicate()
    except BaseException:
        # killing the launcher alone would leave pan running
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
        raise
    return output


def _number(pattern: str, output: str) -> int:
    """Returns the whole number that `pattern` captures; PeerError if there is none."""
    found = re.search(pattern, output, re.MULTILINE)
    if found is None:
        raise PeerError(f"cannot find /{pattern}/ in the checker's output:\n{_tail(output)}")
    return int(found[1])


def _tail(text: str, lines: int = 40) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
