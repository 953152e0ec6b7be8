"""A long random run of a large model: so many requests are given up, then every thread runs until nothing moves.

Then all memory must be free again. Lives are renewed on the way, so the run can be as long as it has to be. One seed
decides all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from ...properties.drain.given_back import NAME, all_given_back
from ...protocol.language.check import Check
from .course import failure_in
from .failure import RENEWALS, Failure, groups_of
from .pace import DRAWS, Pace, Possible, pick_of, possible_steps
from .walk import Walk

NEW_TEMPO = 2_000
"""Steps after which others are the slow ones, and the clients more or less patient."""
PATIENCE = (0.1, 0.5, 2.0)
"""Times the number of instances: one step in so many is one of the environment, while anything else is possible."""
STALLED = 50_000
"""Steps without a request that is given up, after which no more is expected."""
PROGRESS = 500
"""Steps between two words about progress."""

Watch = Callable[[int, int], None]
"""Is told the steps and the requests given up so far."""


@dataclass
class Campaign:
    """What a long run did, and how it failed. `aborts` counts requests that were given up, `fired` steps by action."""

    steps: int = 0
    aborts: int = 0
    lives: int = 0
    fired: Counter[str] = field(default_factory=Counter[str])
    failure: Failure | None = None


def campaign(
    check: Check, aborts: int, seed: int, source: Mapping[str, object] | None = None, watch: Watch | None = None
) -> Campaign:
    """Runs a check until so many requests have been given up, or no more can be, and then to rest.

    A request is given up by an environment step that befalls it; once it has happened on one rank, the other ranks get
    it too. Every property is asked after each step, and at rest whether all memory is free again.
    """
    return _Campaign(check, aborts, seed, watch).run(source or {})


class _Campaign:
    """A campaign under way."""

    def __init__(self, check: Check, aborts: int, seed: int, watch: Watch | None) -> None:
        self._check = check
        self._wanted = aborts
        self._seed = seed
        self._chance = Random(seed)
        self._watch = watch
        self._pace = Pace(check)
        self._groups = groups_of(check)
        self._owed: set[int] = set()
        self._no_ends = set(range(len(check.model.instances))) - self._groups.keys()
        self._walk = Walk(check.model, check.properties, self._chance.choice(check.model.initial_states()))
        self._done = Campaign()

    def run(self, source: Mapping[str, object]) -> Campaign:
        """The whole of it."""
        done, last_abort, known = self._done, 0, 0
        while not (failed := failure_in(self._check, self._walk)):
            if done.steps % NEW_TEMPO == 0:
                self._weights = self._pace.weights(self._chance.randrange(1, DRAWS))
                self._patience = max(1, round(self._chance.choice(PATIENCE) * len(self._check.model.instances)))
            if done.aborts > known:
                known, last_abort = done.aborts, done.steps
            going = done.aborts < self._wanted and done.steps - last_abort < STALLED
            step = self._next(going)
            if step is None:
                break
            self._take(step)
            if self._watch and done.steps % PROGRESS == 0:
                self._watch(done.steps, done.aborts)
        check = self._check
        at_rest = not failed
        if at_rest:
            given_back = all_given_back(check.model)
            check = replace(check, properties=(*check.properties, given_back))
            failed = NAME if given_back.violation(check.model, self._walk.values) else ""
        if failed:
            recipe = self._walk.recipe()
            done.failure = Failure(check, failed, self._walk.initial, recipe, source, self._seed)
        return done

    def _next(self, going: bool) -> Possible | None:
        possible = possible_steps(self._walk, self._weights, self._pace.unfair - self._owed)
        if going and (not possible or self._chance.randrange(self._patience) == 0):
            excluded = [each.number for each in possible]
            environment = possible_steps(self._walk, self._weights, excluded)
            if environment:
                return self._chance.choice(environment)
        if not possible:  # what waits for ever is given up some time
            possible = possible_steps(self._walk, self._weights, self._no_ends)
        return pick_of(possible, self._chance.randrange(DRAWS), DRAWS) if possible else None

    def _take(self, step: Possible) -> None:
        done, number = self._done, step.number
        self._walk.take(number, step.move)
        name = self._check.model.instances[number].action.name
        done.steps += 1
        done.fired[name] += 1
        group = self._groups.get(number, ())
        if name in RENEWALS:
            done.lives += 1
        elif number in self._owed:
            self._owed.discard(number)
        elif group:
            done.aborts += 1
            self._owed |= set(group) - {number}
