"""Steps per second of a generated Hypothesis state machine beside one that is written by hand for the same model.

    python tests/benchmarks/machine_speed.py

Both run the reference model, with its property after each step; the machine by hand has a rule for each action, and is
a class with plain attributes, as one would write it for a test.
"""

from __future__ import annotations

import time

from draincheck.explorer.walks.machine import state_machine
from draincheck.properties.small import reference_case
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

ROOMS, RANKS, CHUNKS, SLOTS = 2, 2, 2, 3
PLAIN = settings(
    max_examples=100,
    stateful_step_count=200,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
COUNT = {"steps": 0, "rules": 0}
ROOM, RANK, CHUNK = (st.integers(0, n - 1) for n in (ROOMS, RANKS, CHUNKS))


class ByHand(RuleBasedStateMachine):
    """The reference model, untimed, with a rule for each action; a rule whose guard fails does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.start()

    def start(self) -> None:
        pairs = [(p, q) for p in range(RANKS) for q in range(ROOMS)]
        self.phase = ["waiting"] * ROOMS
        self.slot = [[None] * CHUNKS for _ in range(ROOMS)]
        self.owner: list[int | None] = [None] * SLOTS
        self.acked, self.target, self.abort_sent, self.ack_sent = (dict.fromkeys(pairs, False) for _ in range(4))
        self.rank = dict.fromkeys(pairs, "idle")
        self.left, self.queued, self.landed = (dict.fromkeys(pairs, 0) for _ in range(3))
        self.call: dict[tuple[int, int], set[int]] = {pair: set() for pair in pairs}
        self.bad = False

    @rule(q=ROOM)
    def admit(self, q: int) -> None:
        free = [slot for slot in range(SLOTS) if self.owner[slot] is None][:CHUNKS]
        if self.phase[q] == "waiting" and len(free) == CHUNKS:
            self.count()
            self.slot[q] = list(free)
            for slot in free:
                self.owner[slot] = q
            self.phase[q] = "transferring"
            for p in range(RANKS):
                self.rank[p, q], self.left[p, q] = "active", CHUNKS

    @rule(p=RANK, q=ROOM)
    def produce(self, p: int, q: int) -> None:
        if self.rank[p, q] == "active" and self.left[p, q]:
            self.count()
            self.left[p, q] -= 1
            self.queued[p, q] += 1

    @rule(p=RANK, q=ROOM)
    def dequeue(self, p: int, q: int) -> None:
        if self.queued[p, q] and not self.call[p, q]:
            self.count()
            chunk = CHUNKS - self.left[p, q] - self.queued[p, q]
            self.queued[p, q] -= 1
            if self.rank[p, q] != "failed":
                self.call[p, q].add(chunk)

    @rule(p=RANK, q=ROOM, c=CHUNK)
    def land(self, p: int, q: int, c: int) -> None:
        if c in self.call[p, q]:
            self.count()
            self.call[p, q].remove(c)
            self.landed[p, q] += 1
            self.bad |= self.owner[self.slot[q][c]] not in (None, q)

    @rule(q=ROOM)
    def succeed(self, q: int) -> None:
        if self.phase[q] == "transferring" and all(self.landed[p, q] == CHUNKS for p in range(RANKS)):
            self.count()
            self.phase[q] = "decoding"

    @rule(q=ROOM)
    def finish(self, q: int) -> None:
        if self.phase[q] == "decoding":
            self.count()
            self.phase[q] = "done"
            self.free(q)

    def free(self, q: int) -> None:
        self.owner = [None if owner == q else owner for owner in self.owner]

    @rule(q=ROOM)
    def abort(self, q: int) -> None:
        if self.phase[q] == "transferring":
            self.count()
            self.phase[q] = "held"
            for p in range(RANKS):
                self.abort_sent[p, q] = True

    @rule(p=RANK, q=ROOM)
    def recv_abort(self, p: int, q: int) -> None:
        if self.abort_sent[p, q]:
            self.count()
            self.abort_sent[p, q] = False
            self.rank[p, q], self.target[p, q] = "failed", True

    @rule(p=RANK, q=ROOM)
    def send_ack(self, p: int, q: int) -> None:
        if self.target[p, q] and not self.call[p, q]:
            self.count()
            self.target[p, q] = False
            self.ack_sent[p, q] = True

    @rule(p=RANK, q=ROOM)
    def recv_ack(self, p: int, q: int) -> None:
        if self.ack_sent[p, q]:
            self.count()
            self.ack_sent[p, q] = False
            self.acked[p, q] |= self.phase[q] == "held"

    @rule(p=RANK, q=ROOM)
    def drop_ack(self, p: int, q: int) -> None:
        if self.ack_sent[p, q]:
            self.count()
            self.ack_sent[p, q] = False

    @rule(q=ROOM)
    def drained(self, q: int) -> None:
        if self.phase[q] == "held" and all(self.acked[p, q] for p in range(RANKS)):
            self.count()
            self.phase[q] = "aborted"
            self.free(q)

    @precondition(lambda self: all(phase in ("done", "aborted", "held") for phase in self.phase))
    @rule()
    def again(self) -> None:
        self.start()

    def count(self) -> None:
        COUNT["steps"] += 1

    @invariant()
    def no_late_write(self) -> None:
        COUNT["rules"] += 1
        assert not self.bad


def measure(name: str, machine: type[RuleBasedStateMachine]) -> None:
    """Runs a machine and prints how many steps of the model it took per second: a rule whose guard fails is none."""
    COUNT.update(steps=0, rules=0)
    machine.TestCase.settings = PLAIN
    started = time.perf_counter()
    machine.TestCase("runTest").runTest()
    seconds = time.perf_counter() - started
    rules = f"; {COUNT['rules'] / seconds:,.0f} rules/s, most of which do nothing" if COUNT["rules"] else ""
    print(f"{name}: {COUNT['steps']:,} steps in {seconds:.1f} s, {COUNT['steps'] / seconds:,.0f} steps/s{rules}")


def main() -> None:
    """Measures both."""

    def watch(walk: object) -> None:
        COUNT["steps"] += 1

    measure("by hand", ByHand)
    measure("generated", state_machine(reference_case().untimed, seed_with=0, watch=watch))


if __name__ == "__main__":
    main()
