"""Ctrl-C, SIGTERM and sudden deaths: everything ends, with one line, and no process stays behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

NEWEST = "sglang-0.5.23-mooncake"
LARGE = ("--scenario", "abort", "--prefill-ranks", "2", "--no-store")
HANG_SECONDS = 300.0
"""Nothing here may take so long, however slow the machine: it is no claim about how long it takes."""
WORKERS = (
    "from draincheck.explorer.commands import cli; from draincheck.explorer.verdicts import batch; "
    "batch.FEW = 0; cli.main()"
)
"""The command line, with workers for any number of cases."""
PROC = Path("/proc/self/stat")


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python program in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code, output and messages of a process, once it and all that hold its pipes have ended."""
    shown, said = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, shown, said


def group(leader: int) -> list[int]:
    """The living processes of a process group."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = path.read_text().rsplit(")", 1)
        except OSError:
            continue
        state, _, number = fields.split()[:3]
        if int(number) == leader and state != "Z":
            found.append(int(name.split()[0]))
    return found


def wait_until(condition: object) -> None:
    """Waits until a function says so."""
    until = time.monotonic() + HANG_SECONDS
    assert callable(condition)
    while not condition():
        assert time.monotonic() < until, "this does not happen"
        time.sleep(0.05)


INSIDE = """
import ctypes, hashlib, os, signal, sys, threading, time
from draincheck.explorer.terminal import ending
from draincheck.properties import solver

ready = threading.Event()

def interrupt():
    ready.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))

def command():
    threading.Thread(target=interrupt, daemon=True).start()
    {body}
    print("it went on")

sys.exit(ending.exit_code_of(command, as_json=False))
"""
BODIES = {
    "Python": "ready.set(); time.sleep(1000)",
    "Z3": """
    z3 = solver.library()
    a, b = z3.BitVecs("a b", 128)
    ask = z3.Solver()
    ask.add(a * b == 0xF38FF1A2B3C4D5E6F708192A3B4C5D6F, *(z3.And(z3.UGT(x, 1), z3.ULT(x, 1 << 64)) for x in (a, b)))
    ready.set()
    ask.check()
""",
    "a place that no exception leaves": """
    class Dies:
        def __del__(self):
            ready.set()
            time.sleep(1)
    Dies()
    time.sleep(1000)
""",
    "a callback from native code": """
    ctypes.CFUNCTYPE(ctypes.c_int)(lambda: ready.set() or time.sleep(1) or 0)()
    time.sleep(1000)
""",
    "native code that gives it another name": """
    try:
        ready.set()
        time.sleep(1000)
    except KeyboardInterrupt:
        raise ctypes.ArgumentError("argument 1: KeyboardInterrupt: ") from None
""",
    "another name, in a place that no exception leaves": """
    class Dies:
        def __del__(self):
            try:
                ready.set()
                time.sleep(1000)
            except KeyboardInterrupt:
                raise ctypes.ArgumentError("argument 1: KeyboardInterrupt: ") from None
    Dies()
    time.sleep(1000)
""",
    "native code that hears nothing": "ready.set(); hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_both_signals_end_whatever_runs(body: str, name: str) -> None:
    code, shown, said = ended(started(INSIDE.format(body=body), name))
    assert code == 130 and "it went on" not in shown
    assert said.count("interrupted") == 1 and "Traceback" not in said and "Exception ignored" not in said


LOADING = """
import os, sys
from draincheck.explorer.commands import start

class Finder:
    def find_spec(self, *_):
        os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Finder())
start.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_the_code_is_loaded_is_one_line(number: int) -> None:
    code, shown, said = ended(started(LOADING, str(int(number))))
    assert (code, shown) == (130, "") and said.count("\n") == 1 and "interrupted" in said


def test_code_that_cannot_be_loaded_is_one_line() -> None:
    program = "import sys; sys.modules['click'] = None; from draincheck.explorer.commands import start; start.main()"
    code, shown, said = ended(started(program))
    assert (code, shown) == (70, "") and said.count("\n") == 1 and "cannot be loaded" in said


@pytest.mark.skipif(not PROC.exists(), reason="this system does not list its processes in /proc")
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_no_process_outlives_the_command(number: int, own_store: Path) -> None:
    process = started(WORKERS, "verify", NEWEST, "sglang-0.5.21-mooncake", *LARGE, "--jobs", "2")
    wait_until(lambda: len(group(process.pid)) >= 5 or process.poll() is not None)  # with two servers and two workers
    assert process.poll() is None
    process.send_signal(number)
    code, _, said = ended(process)  # whoever holds the pipes of the command has ended
    wait_until(lambda: not group(process.pid))
    assert code == (130 if number == signal.SIGTERM else -number) and "Traceback" not in said


LONG = {
    "verify": ("verify", NEWEST, *LARGE),
    "verify, workers": ("verify", NEWEST, "sglang-0.5.21-mooncake", *LARGE, "--jobs", "2"),
    "history": ("history",),
    "prove": ("prove", NEWEST),
    "prove, k-induction": ("prove", NEWEST, "--scenario", "abort", "--method", "k-induction"),
    "prove, spacer": ("prove", NEWEST, "--scenario", "abort", "--method", "spacer"),
    "relate": ("relate", NEWEST),
    "simulate": ("simulate", "--seconds", "1000"),
    "explore": ("explore", NEWEST, "--prefill-ranks", "4", "--examples", "1000000"),
    "calibrate": ("calibrate", "--no-store"),
    "degrade": ("degrade", "--no-store"),
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", LONG.values(), ids=LONG)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [1, 3, 6])
def test_every_long_command_can_be_interrupted(arguments: tuple[str, ...], number: int, seconds: float) -> None:
    process = started("from draincheck.explorer.commands import start; start.main()", *arguments)
    time.sleep(seconds)
    if process.poll() is None:
        process.send_signal(number)
        code, _, said = ended(process)
        assert code == 130 and said.count("\n") == 1 and "interrupted" in said
        wait_until(lambda: not group(process.pid))
