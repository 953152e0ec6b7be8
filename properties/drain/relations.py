"""Relations between two runs of a release: plain and with something gone wrong, in coarser steps and in finer ones.

A degradation is asked of pairs of runs in the same environment (protocol/language/pairs.py): in the one copy something
more may go wrong than in the other. Decode must not give memory back in it, with a write to that memory in flight,
while the plain copy keeps it.

An atomicity is asked of two models of the same protocol, of which one takes a step apart that the other takes at once.
A view says which state of the coarse one a state of the fine one stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...models.catalogue.profile import Profile, load_profile
from ...models.drain.circumstances import Timer
from ...models.drain.closed import drain_model
from ...models.drain.endless import ENDS, endless
from ...models.drain.scenario import SCENARIOS, Scenario
from ...protocol.language import State
from ...protocol.language.check import Check
from ...protocol.language.model import Model
from ...protocol.language.pairs import Pair, pair_of, views
from ...protocol.language.property import Property, claim, invariant, probe
from ...protocol.roles import decode_receiver
from ...protocol.roles.indices import DecodeRank, PrefillRank, Request, Room
from ...protocol.roles.state import Drain
from ...protocol.roles.steps import DecodeStep, Life, Poll, SchedulerStep, Sender, Status
from ...protocol.roles.topology import room_of, served, writers
from .cases import SAFETY, misfit
from .degradation import DEGRADATIONS, PLAIN
from .lemmas import UNDER_WAY, implies, is_one_of

COPIES = ("plain", "degraded")
CHUNKS = 1
"""Chunks of a request in a pair. A second one takes several times as many states."""


# Degradations.


def is_written(s: Drain, decode: int, request: int) -> int:
    """A write to what the request was given on the decode rank is in flight: one condition, without a branch."""
    found = 0
    for prefill in s.all(PrefillRank):
        if decode in served(s, prefill):
            found |= s.nic[prefill, decode].some(lambda write: write.addressee == request)
    return found


def requests(s: Drain) -> Iterator[tuple[int, int]]:
    """Each request on each decode rank."""
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            yield decode, request


@invariant
def no_earlier_release(s: State[Pair]) -> None:
    """Decode does not give memory back under a write in the degraded copy while the plain copy keeps it."""
    plain, degraded = views(s)
    for decode, request in requests(degraded):
        early = (degraded.life[decode, request] == Life.GONE) & is_written(degraded, decode, request)
        kept = is_one_of(plain.life[decode, request], *UNDER_WAY)
        claim(
            (early & kept) == 0,
            "what is given back with a write to it in flight, the plain copy does not keep",
            decode=decode,
            request=request,
            degraded=degraded.life[decode, request],
            plain=plain.life[decode, request],
        )


@probe
def write_outlives_the_request(s: State[Pair]) -> int:
    """In the degraded copy, a write is in flight to memory of a request that is held, or has ended."""
    _, degraded = views(s)
    found = 0
    for decode, request in requests(degraded):
        over = is_one_of(degraded.life[decode, request], Life.HELD, Life.GONE)
        found |= over & is_written(degraded, decode, request)
    return found


def degradation_checks(profile: Profile) -> dict[str, Check]:
    """What is asked of the pair for each degradation that the profile can be asked about, the release timer off."""
    plain = _model(profile, SCENARIOS[PLAIN])
    return {
        name: Check(
            pair_of(plain, _model(profile, SCENARIOS[each]), COPIES),
            (no_earlier_release,),
            (write_outlives_the_request,),
        )
        for name, each in DEGRADATIONS.items()
        if not misfit(profile, SCENARIOS[each])
    }


def _model(profile: Profile, scenario: Scenario, chunks: int = CHUNKS) -> Model:
    prefill = load_profile(profile.peer) if scenario.peer else profile
    sized = replace(scenario, chunks=chunks)
    return drain_model(profile.name, profile.knobs, prefill.knobs, sized, timer=Timer.OFF)


# Atomicity.


@dataclass(frozen=True)
class Atomicity:
    """A model with a step taken apart, and the one with the whole step.

    `view` changes a state of the fine model into the state of the coarse one that it stands for; `lemmas` are to be
    proved of the fine model before they are used. `properties` are those whose verdicts are compared.
    """

    sentence: str
    fine: Model
    coarse: Model
    view: Callable[[Any], None]
    lemmas: tuple[Property, ...]
    properties: tuple[Property, ...] = SAFETY


def with_success_counted(s: Drain) -> None:
    """Where every rank that writes has reported success, and nobody has failed the room since, it has succeeded."""
    for decode in s.all(DecodeRank):
        for room in s.all(Room):
            counted = s.poll[decode, room] == Poll.WAITING
            for prefill in writers(s, decode):
                counted &= s.responded[decode, room, prefill] != 0
            if counted:
                s.poll[decode, room] = Poll.SUCCESS


@invariant
def responses_need_a_receiver(s: Drain) -> None:
    """Decode has a status of the room while it waits for the transfer, and counts responses only then."""
    for decode, request in requests(s):
        room = room_of(s, request)
        status = s.poll[decode, room]
        waits = is_one_of(s.life[decode, request], Life.PREALLOCATED, Life.TRANSFERRING)
        claim((status != Poll.MISSING) == waits, "it has one while it waits", life=s.life[decode, request])
        for prefill in s.all(PrefillRank):
            responded = s.responded[decode, room, prefill] != 0
            claim(implies(responded, status != Poll.MISSING), "it counts only then", prefill=prefill)
        disposing = (s.decode_step[decode] == DecodeStep.DISPOSE) & (s.decode_request[decode] == request)
        claim(implies(disposing, s.life[decode, request] == Life.FAILING), "what it disposes of has failed")


def before_opening(s: Drain) -> None:
    """A rank that has looked at a room, and not opened it yet, has done nothing."""
    for prefill in s.all(PrefillRank):
        if s.scheduler_step[prefill] == SchedulerStep.OPEN:
            s.scheduler_step[prefill] = SchedulerStep.IDLE
            s.scheduler_request[prefill] = 0
            s.scheduler_seen[prefill] = Status.MISSING


@invariant
def opens_what_is_new(s: Drain) -> None:
    """A rank opens the room of a request that it does not know yet."""
    for prefill in s.all(PrefillRank):
        opening = s.scheduler_step[prefill] == SchedulerStep.OPEN
        for request in s.all(Request):
            new = s.sender[prefill, request] == Sender.NONE
            claim(implies(opening & (s.scheduler_request[prefill] == request), new), "it is new", prefill=prefill)


def concluding(model: Model, *, apart: bool) -> Model:
    """The model whose receiver counts the last success and writes the room's status in two steps, or in one."""
    last = decode_receiver.conclude_transfer
    actions = tuple(each for each in model.actions if each is not last)
    knobs = replace(model.knobs, concludes_apart=apart)
    return replace(model, actions=(*actions, last) if apart else actions, knobs=knobs)


def atomicities(profile: Profile) -> Mapping[str, Atomicity]:
    """Steps of a release that a model takes at once, and another one apart; the release timer off."""
    untimed = replace(endless(ranks=2), ends=tuple(each for each in ENDS if each != "waiting-timeout"))
    lives = _model(profile, untimed)
    timeouts = _model(profile, SCENARIOS["timeouts"])
    split = SCENARIOS["split-status"]
    success = "The receiver counts the last success, and then writes the room's status"
    return {
        "success": Atomicity(
            f"{success}; nothing times out, lives have no end.",
            concluding(lives, apart=True),
            concluding(lives, apart=False),
            with_success_counted,
            (responses_need_a_receiver,),
        ),
        "success, timeouts": Atomicity(
            f"{success}; the transfer may time out in between.",
            concluding(timeouts, apart=True),
            concluding(timeouts, apart=False),
            with_success_counted,
            (responses_need_a_receiver,),
        ),
        "opening": Atomicity(
            "A rank that opens a room looks at its status, and then writes it.",
            _model(profile, split, split.chunks),
            _model(profile, replace(split, split_status=False), split.chunks),
            before_opening,
            (opens_what_is_new,),
        ),
    }
