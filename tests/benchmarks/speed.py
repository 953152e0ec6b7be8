"""The speed of the search beside Spin's, on the reference model, in one run on one machine.

    python tests/benchmarks/speed.py            the timed model (76,396,202 states): several minutes
    python tests/benchmarks/speed.py --untimed  the untimed one: seconds

Both check the same model exhaustively in one process and one thread. Ours does so with domain checks, a property
and a probe on every state, and keeps parent links. Each measurement is a process of its own, so that its peak of
memory is its own; ours is measured before and after Spin, and the slower one counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from spin_peer import run_spin

COUNTS = {None: (581_821, 1_983_016), 1: (76_396_202, 449_983_998)}


@dataclass(frozen=True)
class Measured:
    """One exhaustive search: seconds of searching (ours with code generation), and the peak of resident memory."""

    engine: str
    states: int
    transitions: int
    seconds: float
    memory_bytes: int


def search_reference(timer: int | None) -> None:
    """Runs our search and prints what it took as JSON. Called in a process of its own."""
    from draincheck.explorer.search.search import search
    from draincheck.properties.small import reference_case

    case = reference_case(timer)
    question = case.untimed if case.timed is None else case.timed
    started = time.perf_counter()
    found = search(question.check, until=())
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([found.states, found.transitions, seconds, peak]))


def ours(timer: int | None, when: str) -> Measured:
    """Our search, in a fresh process."""
    command = [sys.executable, __file__, "--worker", *(["--untimed"] if timer is None else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Measured(f"draincheck ({when} Spin)", *json.loads(done.stdout))


def spin(timer: int | None) -> Measured:
    """Spin's search; the time of spin and gcc is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        result = run_spin(timer, Path(folder))
    return Measured("Spin", result.states, result.transitions, result.seconds, result.memory_bytes)


def report(rows: list[Measured]) -> None:
    """Prints the table and the ratio of our slower run to Spin."""
    table = Table(box=None, header_style="bold")
    for heading in (
        "engine",
        "states",
        "transitions",
        "seconds",
        "M transitions/s",
        "peak GB",
        "bytes/state",
    ):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for row in rows:
        rate = row.transitions / row.seconds / 1e6
        table.add_row(
            row.engine, f"{row.states:,}", f"{row.transitions:,}", f"{row.seconds:.2f}", f"{rate:.2f}",
            f"{row.memory_bytes / 1e9:.2f}", f"{row.memory_bytes / row.states:.1f}",
        )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    slowest = max(row.seconds for row in rows if row.engine != "Spin")
    peer = next(row for row in rows if row.engine == "Spin")
    console.print(f"ratio: {peer.seconds / slowest:.1f} times Spin's transitions per second ({platform.machine()})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    timer = None if options.untimed else 1
    if options.worker:
        search_reference(timer)
        return
    rows = [ours(timer, "before"), spin(timer), ours(timer, "after")]
    for row in rows:
        if (row.states, row.transitions) != COUNTS[timer]:
            sys.exit(f"{row.engine} found {row.states:,} states and {row.transitions:,} transitions: not the model")
    report(rows)


if __name__ == "__main__":
    main()
