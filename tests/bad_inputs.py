"""Feeds every command bad inputs and faults, and counts what must not be: tracebacks, hangs, wrong ends, orphans.

`python tests/bad_inputs.py [KIND:WORD]` runs the cases of a kind whose names contain WORD, and prints a table. Commands
and options come from the command line itself, so that a new one is fed too. Bad inputs run in forked processes, which
is quick; faults of their surroundings (full disks, closed pipes, signals) in processes of their own.
docs/robustness.md has the last result.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import click
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main
from draincheck.explorer.terminal.console import LONGEST

SECONDS = 240
"""After which a case hangs. Long: the machine may have other things to do."""
GRACE = 10
ANSWERS = frozenset({0, 1, 2, 3})
WRONG = frozenset({2})
PROFILE = "sglang-0.5.23-mooncake"
BASE: Mapping[str, Sequence[str]] = {
    "verify": (PROFILE, "--scenario", "abort", "--no-store", "--max-seconds", "0.2", "--jobs", "1"),
    "show": ("TRACE",),
    "profile": (),
    "gate": ("--pool", "5000", "--context", "4096"),
    "metrics": ("METRICS",),
    "size": (),
    "risk": ("--trials", "1000"),
    "hold": (PROFILE, "--cause", "abort"),
    "prove": ("reference", "--method", "bmc", "--depth", "0", "--max-seconds", "2"),
    "simulate": (PROFILE, "--scenario", "abort", "--steps", "1000"),
    "explore": (PROFILE, "--examples", "1", "--seed", "1"),
    "relate": (PROFILE, "--max-seconds", "0.2"),
}
"""What makes a short run of a command; those that are not named here have none, and get wrong arguments only."""

SLOW = ("verify", "prove", "simulate", "explore", "relate")
"""Commands whose short run takes a second or more."""

NEVER = ["", "x", "nan", "\x1b[2J", "9" * 5000, "1" + "0" * 400, "1..2..3", "½", "1,5", "--json", "a" * 100_000]
"""What no number is."""
ODD = ["0", "-1", "-0", "inf", "-inf", "1e999", "1e-999", "0x10", "١", "2147483648", "9223372036854775808"]
"""What a number may be, or not; whichever it is, the command answers or refuses."""


@dataclass(frozen=True)
class Case:
    """A call of draincheck, and the exit codes that are right for it."""

    name: str
    words: Sequence[str]
    right: frozenset[int] = WRONG
    stdin: bytes = b""
    around: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables."""


@dataclass(frozen=True)
class End:
    """How a call ended: exit code (negative: a signal), None if it hung; what it printed; processes that it left."""

    code: int | None
    printed: str
    orphans: int


def faults_of(case: Case, end: End) -> list[str]:
    """What is wrong with an end."""
    found: list[str] = []
    if end.code is None:
        found.append("hangs")
    elif end.code not in case.right:
        found.append("wrong exit codes")
    if "Traceback (most recent call last)" in end.printed or "Exception ignored" in end.printed:
        found.append("tracebacks")
    if end.orphans:
        found.append("orphans")
    if any(not char.isprintable() and char not in "\n\t" for char in end.printed):
        found.append("control characters")
    if any(
        len(line) > LONGEST + 100 for line in end.printed.splitlines() if line.startswith(("draincheck:", "Error:"))
    ):
        found.append("long messages")
    return found


# Running.


def in_a_fork(case: Case) -> End:
    """Runs a case in a copy of this process, where everything is loaded."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(case.stdin)
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _become(case, given.fileno(), printed.fileno())
        code = _wait(child)
        orphans = _orphans(child)
        printed.seek(0)
        return End(code, printed.read().decode("utf-8", "backslashreplace"), orphans)


def _become(case: Case, given: int, printed: int) -> None:
    """Never returns: the process is the command's now."""
    code = 70
    try:
        os.setsid()
        os.environ.update(case.around)
        for fd, number in ((given, 0), (printed, 1), (printed, 2)):
            os.dup2(fd, number)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        main.main(args=list(case.words), prog_name="draincheck")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int | None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def session(leader: int) -> list[int]:
    """Living processes of a session, its leader left out."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = each.read_text("utf-8", "replace").rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == leader and state != "Z" and int(each.parent.name) != leader:
            found.append(int(each.parent.name))
    return found


def _orphans(leader: int) -> int:
    """How many processes of a session outlive its leader by more than the grace; they are ended here."""
    until = time.monotonic() + GRACE
    while left := session(leader):
        if time.monotonic() > until:
            for each in left:
                os.kill(each, signal.SIGKILL)
            return len(left)
        time.sleep(0.05)
    return 0


def by_itself(case: Case, shell: str, meddle: Callable[[subprocess.Popen[bytes]], None] | None = None) -> End:
    """Runs a case in a shell of its own, where `{}` is the command; `meddle` does something to the running process."""
    command = f"{sys.executable} -c 'from draincheck.explorer.commands.start import main; main()' \"$@\""
    process = subprocess.Popen(
        ["bash", "-c", shell.replace("{}", command), "bash", *case.words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **case.around},
        start_new_session=True,
    )
    try:
        if meddle:
            meddle(process)
        printed, _ = process.communicate(timeout=SECONDS)
        return End(process.returncode, printed.decode("utf-8", "backslashreplace"), _orphans(process.pid))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return End(None, "", 0)


# Bad arguments.


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command."""
    yield from main.commands.items()


def arguments(files: Mapping[str, Path]) -> Iterator[Case]:
    """Each option of each command with some values of all sorts, unknown options, too many and too few arguments."""
    chance = random.Random(7)
    for name, command in commands():
        base = [str(files.get(word, word)) for word in BASE.get(name, ())]
        yield Case(f"{name}: an unknown option", [name, *base, "--no-such-option"])
        yield Case(f"{name}: too many arguments", [name, *base, *["x\x1b[2J"] * 50, "--no-such-option\x1b"])
        for param in command.params:
            if not isinstance(param, click.Option) or param.name == "help":
                continue
            option = param.opts[0]
            if param.is_flag:
                yield Case(f"{name} {option}: a flag with a value", [name, *base, f"{option}=x"])
                continue
            yield Case(f"{name} {option}: no value", [name, *base, option])
            if isinstance(param.type, click.Choice):
                yield Case(f"{name} {option}: no choice", [name, *base, option, "no\x1bsuch"])
            numeric = isinstance(param.type, click.types.IntParamType | click.types.FloatParamType)
            for value in chance.sample(NEVER, 4):
                right = ANSWERS if value in ("--json", "", "nan") or not numeric else WRONG
                yield Case(f"{name} {option}: {value[:12]!r}", [name, *base, f"{option}={value}"], right)
            for value in chance.sample(ODD, 1 if name in SLOW else 3) if name in BASE else ():
                yield Case(f"{name} {option}: {value!r}", [name, *base, f"{option}={value}"], ANSWERS)
        if any(isinstance(param, click.Argument) for param in command.params):
            for value in ("", "x", "\x1b[2J", "a" * 100_000, "/dev/zero", "/", "~", "\udcff", ".", "-"):
                right = ANSWERS if value in ("", "-") else WRONG
                yield Case(f"{name}: the argument {value[:8]!r}", [name, value], right)


def groups() -> Iterator[Case]:
    """Calls without a command that exists."""
    for word in ("", "nothing", "\x1b[2J", "-", "--", "a" * 100_000, "--=", "-\x00x".replace("\x00", "")):
        yield Case(f"draincheck {word[:8]!r}", [word], frozenset({0, 2}))


# Bad files.


FILE_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "profile of verify": ("verify", "FILE", "--scenario", "abort", "--no-store"),
    "profile of hold": ("hold", "FILE", "--cause", "abort"),
    "profile of prove": ("prove", "FILE", "--method", "bmc", "--depth", "0"),
    "profile of simulate": ("simulate", "FILE", "--scenario", "abort", "--steps", "100"),
    "profile of explore": ("explore", "FILE", "--examples", "1"),
    "profile of relate": ("relate", "FILE", "--max-states", "10"),
    "profile of degrade": ("degrade", "FILE", "--no-store"),
    "profile of profile": ("profile", "FILE"),
    "trace": ("show", "FILE"),
    "metrics": ("metrics", "FILE"),
    "newer metrics": ("metrics", "METRICS", "FILE"),
    "metrics of gate": ("gate", "--metrics", "FILE"),
    "log": ("gate", "--log", "FILE"),
    "durations": ("risk", "--durations", "FILE", "--durations-from", "abort", "--trials", "100"),
    "lemmas": ("prove", "reference", "--method", "induction", "--lemmas", "FILE"),
    "token": ("metrics", "http://127.0.0.1:9/", "--token-file", "FILE"),
    "headers": ("metrics", "http://127.0.0.1:9/", "--header", "@FILE"),
}


def odd_files(folder: Path) -> dict[str, Path]:
    """Files that hold nothing of use to anybody."""
    chance = random.Random(7)
    contents: dict[str, bytes] = {
        "empty": b"",
        "a line feed": b"\n",
        "random bytes": chance.randbytes(5000),
        "NUL bytes": bytes(5000),
        "UTF-16": "name = 1\n".encode("utf-16"),
        "latin-1": b"name = '\xe9'\n",
        "a BOM alone": b"\xef\xbb\xbf",
        "a megabyte on a line": b"a" * 2**20,
        "deep brackets": b"a = " + b"[" * 20_000,
        "deep braces": b'{"a":' * 20_000,
        "5,000 digits": b"a = " + b"9" * 5000 + b"\n",
        "a dotted key": b"a" + b".a" * 50_000 + b" = 1\n",
        "half a string": b'name = "a',
        "control characters": b"\x1b[2J\x07\r\n" * 100,
    }
    found: dict[str, Path] = {}
    for number, (name, content) in enumerate(contents.items()):
        found[name] = folder / f"odd{number}"
        found[name].write_bytes(content)
    found["a directory"] = folder
    found["a pipe without a writer"] = folder / "pipe"
    os.mkfifo(found["a pipe without a writer"])
    found["a link to itself"] = folder / "loop"
    found["a link to itself"].symlink_to("loop")
    found["a link to nowhere"] = folder / "nowhere"
    found["a link to nowhere"].symlink_to("gone")
    found["an endless device"] = Path("/dev/zero")
    found["an endless link"] = folder / "zero.toml"
    found["an endless link"].symlink_to("/dev/zero")
    found["nothing"] = folder / "gone"
    found["a name of 300 letters"] = folder / ("n" * 300)
    found["a name to be obeyed"] = folder / "\x1b[2J\u202e\n.toml"
    return found


def files(folder: Path, good: Mapping[str, Path]) -> Iterator[Case]:
    """Each place where a command takes a file, with each odd file."""
    odd = odd_files(folder)
    for place, words in FILE_ARGUMENTS.items():
        for name, path in odd.items():
            given = [str(good.get(word, word)).replace("FILE", str(path)) for word in words]
            nothing = place in ("log", "metrics", "newer metrics", "metrics of gate")
            right = frozenset({2, 3}) if nothing else WRONG  # a text without one of our metrics is not wrong
            if place == "headers" and name in ("empty", "a line feed", "a BOM alone", "a pipe without a writer"):
                right = WRONG  # no header is no fault, but nobody listens there
            yield Case(f"{place}: {name}", given, right)


def damaged(good: Mapping[str, Path], folder: Path) -> Iterator[Case]:
    """Files of the right kind in which one thing is wrong, and such with one byte changed."""
    folder.mkdir()
    kinds = (
        ("profile", "PROFILE", ("hold", "FILE", "--cause", "abort"), 60),
        ("trace", "TRACE", ("show", "FILE"), 60),
        ("metrics", "METRICS", ("metrics", "FILE"), 60),
        ("log", "LOG", ("gate", "--log", "FILE"), 30),
        ("durations", "DURATIONS", ("risk", "--durations", "FILE", "--durations-from", "abort", "--trials", "100"), 30),
    )
    chance = random.Random(7)
    for kind, name, words, times in kinds:
        content = good[name].read_bytes()
        for number in range(times):
            bad, at = bytearray(content), chance.randrange(len(content))
            match number % 4:
                case 0:
                    bad[at] = chance.randrange(256)
                case 1:
                    del bad[at:]
                case 2:
                    del bad[at : at + chance.randrange(1, 40)]
                case _:
                    bad[at:at] = bad[chance.randrange(len(content)) :][:40]
            path = folder / f"{kind}{number}.toml"
            path.write_bytes(bad)
            yield Case(f"{kind}: damaged, {number}", [str(path) if word == "FILE" else word for word in words], ANSWERS)
    trace = json.loads(good["TRACE"].read_text("utf-8"))
    for key in trace:
        for number, value in enumerate((None, [], {}, -1, "x" * 100_000, True, 10**400, [[]] * 100, {"\x1b": 1})):
            path = folder / f"trace-{key}-{number}.json"
            path.write_text(json.dumps({**trace, key: value}), "utf-8")
            yield Case(f"trace: {key} is {str(value)[:12]}", ["show", str(path)], ANSWERS)
    profile = good["PROFILE"].read_text("utf-8")
    for number, knob in enumerate(re.findall(r"^\[(\w+)\]$", profile, re.MULTILINE)):
        for value in ("{}", '"\\u001b[2J"', "9" * 300, "[" * 1500, "1979-05-27", "nan"):
            path = folder / f"profile-{number}-{value[:2].strip('[{')}-{len(value)}.toml"
            path.write_text(re.sub(rf"(\[{knob}\]\nvalue = )\S+", lambda m, v=value: m[1] + v, profile), "utf-8")
            yield Case(f"profile: {knob} is {value[:8]}", ["verify", str(path), "--no-store"], WRONG)


# Faults of the surroundings, each in a process of its own.


@dataclass(frozen=True)
class Fault:
    """A case with what happens around it."""

    case: Case
    shell: str = "exec {}"
    meddle: Callable[[subprocess.Popen[bytes]], None] | None = None


SEARCH = ("verify", "sglang-0.5.18-mooncake", "--scenario", "abort")
"""Exit code 1: CORRUPTS."""
LONG = ("verify", "reference", "--timer", "6", "--no-store")


def computed(process: int) -> float:
    """The seconds for which a process has computed."""
    times = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def after(seconds: float, number: signal.Signals) -> Callable[[subprocess.Popen[bytes]], None]:
    """Sends a signal to the process once it has computed for some time: then it is at work, on a slow machine too."""

    def send(process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + 20 * seconds
        while process.poll() is None and computed(process.pid) < seconds and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)

    return send


def output_faults(good: Mapping[str, Path]) -> Iterator[Fault]:
    """Standard output and error that take nothing."""
    for name, words in {**BASE, "history": ("-h",), "calibrate": ("-h",), "degrade": ("-h",)}.items():
        given = [name, *(str(good.get(word, word)) for word in words)]
        lost = frozenset({70})
        yield Fault(Case(f"{name}: full output", given, lost), "exec {} >/dev/full")
        yield Fault(Case(f"{name}: closed output", given, lost), "exec {} >&-")
        closed = "{} 2>&1 | (exec <&-); exit ${PIPESTATUS[0]}"
        yield Fault(Case(f"{name}: nobody reads", given, frozenset({141})), closed)
        yield Fault(Case(f"{name}: full error output", given, ANSWERS), "exec {} 2>/dev/full")
        yield Fault(Case(f"{name}: closed error output", given, ANSWERS), "exec {} 2>&-")
        yield Fault(Case(f"{name}: closed input", given, ANSWERS), "exec {} <&-")


def signal_faults() -> Iterator[Fault]:
    """Interruption, termination and death, early and late."""
    many = ("verify", "--all", "--no-store", "--jobs", "2")
    stopped = frozenset({130, -signal.SIGTERM, *ANSWERS} - {2})  # what is known by then is an answer
    runs = {"one search": LONG, "workers": many, "history": ("history",), "prove": ("prove", PROFILE)}
    for (name, words), seconds in product(runs.items(), (2.0, 5.0)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            right = frozenset({-number}) if number is signal.SIGKILL else stopped
            yield Fault(Case(f"{name}: {number.name} after {seconds:g} s", words, right), meddle=after(seconds, number))


def disk_faults(good: Mapping[str, Path], disk: Path) -> Iterator[Fault]:
    """A full disk, where one could be mounted, for all that is written."""
    own = {"DRAINCHECK_STORE": "", "XDG_CACHE_HOME": str(disk / "cache"), "NUMBA_CACHE_DIR": str(disk / "numba")}
    right = frozenset({1, 2, 70})
    yield Fault(Case("full disk: store", [*SEARCH, "--store", str(disk / "store")], frozenset({1})))
    yield Fault(Case("full disk: cache", SEARCH, frozenset({1}), around=own))
    yield Fault(Case("full disk: --save", [*SEARCH, "--no-store", "--save", str(disk / "traces")], right))
    yield Fault(Case("full disk: --output", ["show", str(good["TRACE"]), "--output", str(disk / "out")], WRONG | {70}))
    yield Fault(Case("full disk: --plot", ["risk", "--trials", "100", "--plot", str(disk / "a.svg")], WRONG | {70}))


def cache_faults(folder: Path) -> Iterator[Fault]:
    """Stores and caches that are damaged, or cannot be written."""
    folder.mkdir()
    blocked = folder / "file"
    blocked.write_text("", "utf-8")
    yield Fault(Case("cache: a file in its place", SEARCH, frozenset({1}), around={"XDG_CACHE_HOME": str(blocked)}))
    yield Fault(Case("cache: no home", SEARCH, frozenset({1}), around={"HOME": "/nonexistent", "XDG_CACHE_HOME": ""}))
    yield Fault(Case("store: a file in its place", [*SEARCH, "--store", str(blocked)], WRONG))
    yield Fault(Case("store: a device below it", [*SEARCH, "--store", "/dev/null/x"], frozenset({1, 2})))
    chance = random.Random(7)
    store = folder / "store"
    CliRunner().invoke(main, [*SEARCH, "--store", str(store)])
    for number in range(8):
        copy = folder / f"store{number}"
        shutil.copytree(store, copy)
        for entry in [each for each in copy.rglob("*") if each.is_file()]:
            _damage(entry, number, chance)
        yield Fault(Case(f"store: damaged, {number}", [*SEARCH, "--store", str(copy)], frozenset({1})))
    for number in range(4):
        home = folder / f"numba{number}"
        around = {"NUMBA_CACHE_DIR": str(home), "XDG_CACHE_HOME": str(home)}
        by_itself(Case("", [*SEARCH, "--no-store"], around=around), "exec {}")
        for entry in [each for each in home.rglob("*") if each.is_file()]:
            _damage(entry, number, chance)
        yield Fault(Case(f"cache: damaged, {number}", [*SEARCH, "--no-store"], frozenset({1, 70}), around=around))


def _damage(path: Path, number: int, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    path.unlink()
    match number:
        case 0:
            path.write_bytes(chance.randbytes(len(content)))
        case 1:
            path.write_bytes(content[: len(content) // 2])
        case 2:
            path.write_bytes(b"")
        case 3:
            path.mkdir()
        case 4:
            os.mkfifo(path)
        case 5:
            path.symlink_to("/dev/zero")
        case 6:
            path.write_bytes(content.replace(b"1", b"2"))
        case _:
            path.write_bytes(re.sub(rb"\d+", b"-1", bytes(content)))


# All together.


def good_files(folder: Path) -> dict[str, Path]:
    """One right file of each kind."""
    runner = CliRunner()
    runner.invoke(main, [*SEARCH, "--no-store", "--save", str(folder)])
    trace = next(folder.glob("*no_late_write*.json"))
    texts = {
        "PROFILE": runner.invoke(main, ["profile", PROFILE]).stdout,
        "METRICS": 'a:decode_deferred_kv_release_total{outcome="drained",tp_rank="0"} 9\n'
        'a:decode_deferred_kv_release_seconds_bucket{le="0.1",tp_rank="0"} 9\n'
        'a:decode_deferred_kv_release_seconds_bucket{le="+Inf",tp_rank="0"} 9\n',
        "LOG": "[2026-10-30 02:13:02 TP0] max_total_num_tokens=1060864, context_len=1048576, available_gpu_mem=9 GB\n",
        "DURATIONS": "0.5\n1.25\n3\n",
    }
    found = {"TRACE": trace}
    for name, text in texts.items():
        found[name] = folder / f"good-{name}.toml"
        found[name].write_text(text, "utf-8")
    return found


def small_disk(folder: Path) -> Path | None:
    """A file system of 64 kB, full but for a few; None where this process may not mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        return None
    (folder / "filler").write_bytes(bytes(60 * 1024))
    return folder


@dataclass
class Tally:
    """What was run and what was wrong, for each kind of case."""

    ran: Counter[str] = field(default_factory=Counter[str])
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    worst: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])

    def add(self, kind: str, case: Case, end: End) -> None:
        """Counts a case, and keeps what is to be looked at."""
        self.ran[kind] += 1
        for fault in faults_of(case, end):
            self.wrong[kind, fault] += 1
            last = "\n".join(end.printed.strip().splitlines()[-3:])[-600:]
            self.worst.append(f"{fault}: {case.name}: exit code {end.code}, right are {sorted(case.right)}: {last}")


FAULTS = ("tracebacks", "hangs", "wrong exit codes", "orphans", "control characters", "long messages")


def run_all(word: str = "", say: Callable[[str], None] = lambda _: None) -> Tally:
    """Runs every case whose name has the word in it."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as here, chdir(here):
        folder = Path(name)
        os.environ["DRAINCHECK_STORE"] = str(folder / "own-store")
        good = good_files(folder)
        (folder / "odd").mkdir()
        inputs = {
            "arguments": [*groups(), *arguments(good)],
            "files": [*files(folder / "odd", good)],
            "damaged files": [*damaged(good, folder / "damaged")],
        }
        for kind, cases in inputs.items():
            for case in cases:
                if word in f"{kind}: {case.name}":
                    say(f"{kind}: {case.name}")
                    tally.add(kind, case, in_a_fork(case))
        disk = small_disk(folder / "disk")
        try:
            surroundings: dict[str, Iterator[Fault]] = {
                "output and input": output_faults(good),
                "signals": signal_faults(),
                "stores and caches": cache_faults(folder / "caches"),
                "a full disk": disk_faults(good, disk) if disk else iter(()),
            }
            if not disk:
                tally.skipped.append("a full disk: this process may not mount one")
            for kind, faults in surroundings.items():
                for fault in faults if word.partition(":")[0] in f"{kind}:" else ():
                    if word in f"{kind}: {fault.case.name}":
                        say(f"{kind}: {fault.case.name}")
                        tally.add(kind, fault.case, by_itself(fault.case, fault.shell, fault.meddle))
        finally:
            if disk:
                subprocess.run(["umount", str(disk)], check=False)
    return tally


def report(tally: Tally) -> str:
    """The tally as a table."""
    lines = [f"| cases | number | {' | '.join(FAULTS)} |", f"|---|---|{'---|' * len(FAULTS)}"]
    for kind, number in tally.ran.items():
        counts = " | ".join(str(tally.wrong[kind, fault]) for fault in FAULTS)
        lines.append(f"| {kind} | {number} | {counts} |")
    total = " | ".join(str(sum(tally.wrong[kind, fault] for kind in tally.ran)) for fault in FAULTS)
    lines.append(f"| all | {tally.ran.total()} | {total} |")
    return "\n".join([*lines, *(f"skipped: {each}" for each in tally.skipped)])


if __name__ == "__main__":
    began = time.monotonic()
    counted = run_all("".join(sys.argv[1:2]), lambda name: print(ascii(name), file=sys.stderr, flush=True))
    for each in counted.worst:
        print(each.encode("unicode-escape").decode())
    print(report(counted))
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(1 if counted.worst else 0)
