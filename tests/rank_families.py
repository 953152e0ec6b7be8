"""Families of models in which ranks vote: traps that are true of few ranks and false of more, and some that are true.

In each trap something is decided before all ranks have voted, or a goal says less of few ranks than of many. A proof
for any number of ranks that takes one of them for proved is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from draincheck.protocol.language import (
    NONE,
    Action,
    Index,
    Message,
    State,
    action,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    require,
    upto,
)
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import Property, claim, invariant


class Rank(Index):
    """A rank."""


class Place(Index):
    """Something else that there are two of."""


class Ballot(Message):
    """A vote on its way."""

    yes = part(flag)


class Vote(State[Any]):
    """Ranks that vote, and what they decide."""

    voted = field(flag, Rank, means="the rank has voted")
    no = field(flag, Rank, means="it has voted no")
    level = field(upto(3), Rank, means="its colour")
    exempt = field(flag, Rank, means="it need not vote")
    seen = field(flag, Rank, means="the decision has been told to it")
    decided = field(flag, means="it is decided")
    some_yes = field(flag, means="somebody has voted yes")
    some_no = field(flag, means="somebody has voted no")
    two = field(flag, means="two have voted")
    count = field(upto(9), means="votes counted")
    box = channel(Ballot, Rank, capacity=1, means="a rank to the server")
    noted = ghost(flag, means="somebody has voted")


@action("rank {r}")
def vote(s: Vote, r: Rank) -> None:
    """The rank votes, once."""
    require(not s.voted[r])
    s.voted[r] = True


@action("rank {r}")
def vote_either_way(s: Vote, r: Rank) -> None:
    """The rank votes, yes or no, once."""
    require(not s.voted[r])
    s.voted[r] = True
    s.no[r] = s.choose([False, True])


@action("rank {r}")
def vote_a_colour(s: Vote, r: Rank) -> None:
    """The rank votes for one of three colours."""
    require(not s.voted[r])
    s.voted[r] = True
    s.level[r] = s.choose([1, 2, 3])


@invariant
def decided_by_all(s: Vote) -> None:
    """What is decided was decided by all ranks."""
    for r in s.all(Rank):
        claim((s.decided == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@invariant
def decided_by_all_that_must(s: Vote) -> None:
    """What is decided was decided by all ranks that are not exempt."""
    for r in s.all(Rank):
        claim((s.decided == 0) | (s.voted[r] != 0) | (s.exempt[r] != 0), "the rank has voted", rank=r)


@invariant
def a_no_is_a_vote(s: Vote) -> None:
    """Who has said no has voted."""
    for r in s.all(Rank):
        claim((s.no[r] == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@invariant
def a_colour_is_a_vote(s: Vote) -> None:
    """Who has a colour has voted."""
    for r in s.all(Rank):
        claim((s.level[r] == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@dataclass(frozen=True)
class Family:
    """A model without its number of ranks, and what is asked of it.

    `condition` is that of the theorem which it does not meet, or nothing if it meets all and two ranks are not proved;
    `fails_at` is the least number of ranks at which the goal is false, 0 if there is none.
    """

    name: str
    model: Model
    goal: Property
    lemmas: tuple[Property, ...] = ()
    condition: str = ""
    fails_at: int = 0


def voting(name: str, *actions: Action, state: type[State[Any]] = Vote, **more: Any) -> Model:
    """A model of such steps, each of which may rest."""
    names = frozenset(each.name for each in actions)
    sizes = {Rank: 1, Place: 2}
    return Model(name=name, state=state, actions=actions, sizes=sizes, may_rest=names, terminal=lambda s: 1, **more)


TRAPS: list[Family] = []


def trap(
    condition: str,
    fails_at: int,
    *steps: Action,
    goal: Property = decided_by_all,
    lemmas: tuple[Property, ...] = (),
    **more: Any,
) -> Callable[[Action], Action]:
    """Declares a step that decides, together with `vote` or the given steps, as a trap."""

    def declare(decide: Action) -> Action:
        model = voting(decide.name, *(steps or (vote,)), decide, **more)
        TRAPS.append(Family(decide.name, model, goal, lemmas, condition, fails_at))
        return decide

    return declare


OUTSIDE: list[Action] = []


def outside(decide: Action) -> Action:
    """Declares a step that is no trap: there is no model with it, since it is outside the language."""
    OUTSIDE.append(decide)
    return decide


# So many votes are enough.


def threshold(enough: int) -> None:
    @action("all")
    def decide(s: Vote) -> None:
        """Enough have voted."""
        votes = 0
        for r in s.all(Rank):
            votes = votes + s.voted[r]
        require(votes >= enough)
        s.decided = True

    model = voting(f"{enough} votes", vote, decide)
    TRAPS.append(Family(model.name, model, decided_by_all, (), "loop-form", enough + 1))


for number in (1, 2, 3, 4, 5, 6):
    threshold(number)


@trap("loop-form", 3)
@action("all")
def majority(s: Vote) -> None:
    """More than half have voted: of two, that is both."""
    votes = 0
    for r in s.all(Rank):
        votes += s.voted[r]
    require(2 * votes > s.size(Rank))
    s.decided = True


@trap("loop-form", 3)
@action("all")
def odd_or_even(s: Vote) -> None:
    """Some have voted, and an even number of them."""
    odd, some = 0, 0
    for r in s.all(Rank):
        odd = odd + s.voted[r] - 2 * odd * s.voted[r]
        some |= s.voted[r]
    require(some & (odd == 0))
    s.decided = True


@trap("loop-form", 3)
@action("all")
def sum_of_votes(s: Vote) -> None:
    """The sum says that two have voted."""
    require(sum(s.voted[r] for r in s.all(Rank)) >= 2)
    s.decided = True


def tally(s: Vote) -> int:
    """A count, out of sight."""
    votes = 0
    for r in s.all(Rank):
        votes += s.voted[r]
    return votes


@trap("loop-form", 3)
@action("all")
def hidden_count(s: Vote) -> None:
    """A function counts."""
    require(tally(s) >= 2)
    s.decided = True


@trap("own-rank", 3)
@action("all")
def counted_in_the_state(s: Vote) -> None:
    """The count is kept in a cell."""
    s.count = 0
    for r in s.all(Rank):
        s.count += s.voted[r]
    require(s.count >= 2)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def carried_in_the_state(s: Vote) -> None:
    """Two flags make a count."""
    s.two = False
    s.some_yes = False
    for r in s.all(Rank):
        if s.voted[r]:
            if s.some_yes:
                s.two = True
            s.some_yes = True
    require(s.two)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def carried_in_names(s: Vote) -> None:
    """Two names make a count."""
    one, two = 0, 0
    for r in s.all(Rank):
        two |= one & s.voted[r]
        one |= s.voted[r]
    require(two)
    s.decided = True


@trap("form", 3)
@action("all")
def listed(s: Vote) -> None:
    """A list of those who have voted has two members."""
    found: list[int] = []
    for r in s.all(Rank):
        if s.voted[r]:
            found.append(1)  # noqa: PERF401
    require(len(found) >= 2)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def chosen_list(s: Vote) -> None:
    """A comprehension picks two out."""
    require(len([r for r in s.all(Rank) if s.voted[r]]) >= 2)
    s.decided = True


@outside
@action("all")
def set_of_ranks(s: Vote) -> None:
    """A set of ranks has two members."""
    require(len({int(r) for r in s.all(Rank) if s.voted[r]}) >= 2)
    s.decided = True


def voters(s: Vote) -> Iterator[int]:
    """Those who have voted."""
    for r in s.all(Rank):
        if s.voted[r]:
            yield r


@trap("loop-form", 3)
@action("all")
def generated(s: Vote) -> None:
    """A generator gives those who have voted, and they are counted."""
    votes = 0
    for _ in voters(s):
        votes += 1
    require(votes >= 2)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def hidden_in_a_lambda(s: Vote) -> None:
    """A lambda counts."""
    votes = lambda: sum(s.voted[r] for r in s.all(Rank))  # noqa: E731
    require(votes() >= 2)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def drawn_up_by_sorting(s: Vote) -> None:
    """The second highest has voted."""
    require(sorted([0, 0, *(int(s.voted[r] != 0) for r in s.all(Rank))])[-2])
    s.decided = True


# Some ranks are not like the others.


@trap("own-rank", 3)
@action("all")
def first_two(s: Vote) -> None:
    """The first and the second are asked."""
    require(s.voted[0])
    require(s.voted[1 if s.size(Rank) > 1 else 0])
    s.decided = True


@trap("no-rank-values", 3)
@action("all")
def last_two(s: Vote) -> None:
    """The last and the one before are asked."""
    require(s.voted[s.size(Rank) - 1])
    require(s.voted[max(0, s.size(Rank) - 2)])
    s.decided = True


@trap("no-rank-values", 3)
@action("all")
def lower_numbers(s: Vote) -> None:
    """Ranks with low numbers are asked."""
    for r in s.all(Rank):
        if r < 2:
            require(s.voted[r])
    s.decided = True


@trap("no-rank-values", 3)
@action("all")
def every_third(s: Vote) -> None:
    """Every third rank is left out."""
    for r in s.all(Rank):
        require((r % 3 == 2) | s.voted[r])
    s.decided = True


@trap("no-rank-values", 3)
@action("all")
def neighbours(s: Vote) -> None:
    """A rank is asked unless its second neighbour is there."""
    for r in s.all(Rank):
        if r + 2 < s.size(Rank):
            continue
        require(s.voted[r])
    s.decided = True


@trap("no-rank-values", 4)
@action("all")
def few_only(s: Vote) -> None:
    """Where there are many, nobody is asked."""
    if s.size(Rank) < 4:
        for r in s.all(Rank):
            require(s.voted[r])
    s.decided = True


@trap("loop-form", 5)
@action("all")
def few_by_length(s: Vote) -> None:
    """Where there are many, nobody is asked."""
    if len(s.all(Rank)) < 5:
        for r in s.all(Rank):
            require(s.voted[r])
    s.decided = True


@outside
@action("all")
def few_by_layout(s: Vote) -> None:
    """Where there are many, nobody is asked: by a number that is not asked for in the usual way."""
    if s.layout.sizes[Rank] < 4:
        for r in s.all(Rank):
            require(s.voted[r])
    s.decided = True


@trap("form", 3)
@action("all")
def sliced(s: Vote) -> None:
    """Two are taken out of all."""
    for r in s.all(Rank)[:2]:
        require(s.voted[r])
    s.decided = True


@trap("loop-form", 3)
@action("all")
def numbered(s: Vote) -> None:
    """Two of the enumeration are asked."""
    for at, r in enumerate(s.all(Rank)):
        if at < 2:
            require(s.voted[r])
    s.decided = True


@trap("loop-form", 3)
@action("all")
def zipped(s: Vote) -> None:
    """Two are asked, since there are two places."""
    for r, _ in zip(s.all(Rank), s.all(Place), strict=False):
        require(s.voted[r])
    s.decided = True


@outside
@action("all")
def counted_up(s: Vote) -> None:
    """A loop with a counter of its own."""
    r = 0
    while r < min(2, s.size(Rank)):
        require(s.voted[r])
        r += 1
    s.decided = True


@trap("own-rank", 3)
@action("all")
def other_index(s: Vote) -> None:
    """Places are taken for ranks."""
    for place in s.all(Place):
        require(s.voted[min(place, s.size(Rank) - 1)] if place else s.voted[place])
    s.decided = True


# A loop that does not go to its end, or remembers where it was.


@trap("loop-form", 3)
@action("all")
def broken_off(s: Vote) -> None:
    """The loop is left behind the second rank."""
    first = True
    for r in s.all(Rank):
        require(s.voted[r])
        if not first:
            break
        first = False
    s.decided = True


@trap("loop-form", 3)
@action("all")
def returned_from(s: Vote) -> None:
    """The step ends with the second vote."""
    one = 0
    for r in s.all(Rank):
        if s.voted[r] & one:
            s.decided = True
            return
        one |= s.voted[r]
    require(False)


@trap("loop-form", 3)
@action("all")
def remembered(s: Vote) -> None:
    """What one rank says counts for the next but one."""
    before, at_all = 1, 1
    for r in s.all(Rank):
        require(s.voted[r] | (before == 0) | (at_all == 0))
        at_all = before
        before = 1 - s.voted[r] if at_all == 2 else before - at_all * (1 - before)
        before = 0 if at_all == 1 and before == 1 and r > 0 else before
    s.decided = True


@trap("own-rank", 2)
@action("all")
def last_word(s: Vote) -> None:
    """The last rank's vote stands for all."""
    for r in s.all(Rank):
        s.some_yes = s.voted[r]
    require(s.some_yes)
    s.decided = True


@trap("loop-form", 2)
@action("all")
def last_name(s: Vote) -> None:
    """The last rank's vote stands for all."""
    last = 0
    for r in s.all(Rank):
        last = s.voted[r]
    require(last)
    s.decided = True


@trap("loop-form", 2)
@action("all")
def left_over(s: Vote) -> None:
    """The name of the loop is used behind it."""
    for r in s.all(Rank):  # noqa: B007
        pass
    require(s.voted[r])
    s.decided = True


@trap("loop-form", 3, vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def mixed(s: Vote) -> None:
    """Conditions that grow and shrink: there is a no behind a yes, or a yes behind a no."""
    no, yes = 0, 0
    for r in s.all(Rank):
        said_no, said_yes = s.voted[r] & s.no[r], s.voted[r] & (s.no[r] == 0)
        no &= said_yes
        no |= said_no
        yes &= said_no
        yes |= said_yes
    require(no & yes)
    s.decided = True


# Several ranks at once.


@trap("loop-form", 3)
@action("all")
def pairs(s: Vote) -> None:
    """Two have voted, as a loop in a loop finds."""
    found = 0
    for r in s.all(Rank):
        for other in s.all(Rank):
            if r < other:
                found |= s.voted[r] & s.voted[other]
    require(found)
    s.decided = True


@trap("loop-form", 3)
@action("all")
def combined(s: Vote) -> None:
    """Two have voted, as a library finds."""
    require(any(s.voted[a] and s.voted[b] for a, b in combinations(s.all(Rank), 2)))
    s.decided = True


@trap("one-witness", 3, vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def one_of_each(s: Vote) -> None:
    """Somebody has said yes and somebody no: of two, that is both."""
    yes, no = 0, 0
    for r in s.all(Rank):
        yes |= (s.voted[r] != 0) & (s.no[r] == 0)
        no |= s.no[r]
    require(yes & no)
    s.decided = True


@trap("one-witness", 3, vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def any_of_each(s: Vote) -> None:
    """The same with any."""
    require(any(s.voted[r] and not s.no[r] for r in s.all(Rank)))
    require(any(s.no[r] for r in s.all(Rank)))
    s.decided = True


@trap("one-witness", 3, vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def not_all_alike(s: Vote) -> None:
    """Not all say yes and not all say no: the same once more."""
    require(not all(s.no[r] or not s.voted[r] for r in s.all(Rank)))
    require(not all(not s.no[r] for r in s.all(Rank)))
    s.decided = True


@trap("one-witness", 3, vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def written_for_each(s: Vote) -> None:
    """Two cells say that there is one of each."""
    s.some_yes = False
    s.some_no = False
    for r in s.all(Rank):
        if s.voted[r] and s.no[r]:
            s.some_no = True
        if s.voted[r] and not s.no[r]:
            s.some_yes = True
    require(s.some_yes & s.some_no)
    s.decided = True


@trap("one-witness", 4, vote_a_colour, lemmas=(a_colour_is_a_vote,))
@action("all")
def three_colours(s: Vote) -> None:
    """Three colours are there: of three ranks, that is all."""
    red, green, blue = 0, 0, 0
    for r in s.all(Rank):
        red |= s.level[r] == 1
        green |= s.level[r] == 2
        blue |= s.level[r] == 3
    require(red & green & blue)
    s.decided = True


@trap("one-actor", 3)
@action("ranks {a} and {b}")
def two_actors(s: Vote, a: Rank, b: Rank) -> None:
    """Two ranks decide together."""
    require(a != b and s.voted[a] and s.voted[b])
    s.decided = True


@trap("no-rank-values", 3)
@action("rank {r}")
def actor_and_another(s: Vote, r: Rank) -> None:
    """A rank decides with any other one."""
    require(s.voted[r])
    other = s.choose(s.all(Rank))
    require(other != r and s.voted[other])
    s.decided = True


@trap("one-actor", 3)
@action("rank {r}")
def actor_asks_around(s: Vote, r: Rank) -> None:
    """A rank decides when somebody else has voted."""
    helped = 0
    for other in s.all(Rank):
        helped |= (other != r) & s.voted[other]
    require(helped & s.voted[r])
    s.decided = True


@trap("no-rank-values", 3)
@action("all")
def two_chosen(s: Vote) -> None:
    """Two are chosen."""
    a, b = s.choose(Rank), s.choose(Rank)
    require(a != b and s.voted[a] and s.voted[b])
    s.decided = True


def from_here(s: Vote, r: int) -> None:
    """Asks this rank and the next, and ends there."""
    if r < min(2, s.size(Rank)):
        require(s.voted[r])
        from_here(s, r + 1)


@trap("no-rank-values", 3)
@action("all")
def recursive(s: Vote) -> None:
    """A function calls itself for the next rank."""
    from_here(s, 0)
    s.decided = True


# Starts and constants.


def only_when_three(s: Vote) -> None:
    """From three ranks on it is decided at the start."""
    s.decided = s.size(Rank) > 2


def last_exempt(s: Vote) -> None:
    """From three ranks on the first need not vote."""
    for r in s.all(Rank):
        s.exempt[r] = (r == 0) & (s.size(Rank) > 2)


def first_exempt(s: Vote) -> None:
    """The first of several need not vote; the last must."""
    s.exempt[0] = s.size(Rank) > 1


def others_have_voted(s: Vote) -> None:
    """All but the first have no say."""
    for r in s.all(Rank):
        if r > 0:
            s.no[r] = True


def nowhere(s: Vote) -> None:
    """There is no such start."""
    require(s.decided)


@invariant
def nobody_says_no(s: Vote) -> None:
    """Nobody has said no."""
    for r in s.all(Rank):
        claim(s.no[r] == 0, "the rank has not said no", rank=r)


@invariant
def nothing_is_decided(s: Vote) -> None:
    """Nothing is decided."""
    claim(s.decided == 0, "nothing is decided")


@action("all")
def decide_when_all(s: Vote) -> None:
    """All that must have voted."""
    for r in s.all(Rank):
        require(s.voted[r] | s.exempt[r])
    s.decided = True


def started(name: str, start: Callable[[Any], None], goal: Property, condition: str, fails_at: int) -> None:
    TRAPS.append(Family(name, voting(name, vote, decide_when_all, start=start), goal, (), condition, fails_at))


started("the start of three", only_when_three, decided_by_all, "no-rank-values", 3)
started("constants of three", last_exempt, decided_by_all, "no-rank-values", 3)
started("constants of the first", first_exempt, decided_by_all, "no-rank-values", 2)
started("the start of others", others_have_voted, nobody_says_no, "no-rank-values", 2)
NO_START = Family("no start", voting("no start", vote, start=nowhere), nothing_is_decided, (), "consistent", 0)


# Goals about several ranks.


@invariant
def not_two(s: Vote) -> None:
    """No two have voted."""
    for r in s.all(Rank):
        for other in s.all(Rank):
            if other < r:
                claim((s.voted[r] == 0) | (s.voted[other] == 0), "one of two has not voted")


@invariant
def not_three(s: Vote) -> None:
    """No three have voted."""
    for a in s.all(Rank):
        for b in s.all(Rank):
            for c in s.all(Rank):
                if a < b < c:
                    claim((s.voted[a] == 0) | (s.voted[b] == 0) | (s.voted[c] == 0), "one of three has not voted")


@invariant
def at_most_two(s: Vote) -> None:
    """At most two have voted."""
    votes = 0
    for r in s.all(Rank):
        votes = votes + s.voted[r]
    claim(votes <= 2, "two at most")


@invariant
def at_most_five(s: Vote) -> None:
    """At most five have voted."""
    claim(tally(s) <= 5, "five at most")


@invariant
def third_does_not_vote(s: Vote) -> None:
    """The third rank has not voted."""
    for r in s.all(Rank):
        if r == 2:
            claim(s.voted[r] == 0, "it has not voted")


@invariant
def few_do_not_vote(s: Vote) -> None:
    """Where there are three, nobody has voted."""
    if s.size(Rank) > 2:
        for r in s.all(Rank):
            claim(s.voted[r] == 0, "it has not voted")


@invariant
def some_number_has_not_voted(s: Vote) -> None:
    """Of three or more, somebody has not voted."""
    claim(len(s.all(Rank)) < 3 or any(not s.voted[r] for r in s.all(Rank)), "somebody has not voted")


@invariant
def looked_at_in_order(s: Vote) -> None:
    """Behind two that have voted nobody has: where a loop is left."""
    behind, before = 0, 0
    for r in s.all(Rank):
        claim((behind == 0) | (s.voted[r] == 0), "it has not voted")
        behind, before = before & s.voted[r], s.voted[r]


for goal, condition, least in (
    (not_two, "goal-width", 2),
    (not_three, "goal-width", 3),
    (at_most_two, "loop-form", 3),
    (at_most_five, "loop-form", 6),
    (third_does_not_vote, "no-rank-values", 3),
    (few_do_not_vote, "no-rank-values", 3),
    (some_number_has_not_voted, "loop-form", 3),
    (looked_at_in_order, "loop-form", 3),
):
    TRAPS.append(Family(goal.name, voting(goal.name, vote), goal, (), condition, least))


# Cells and wires that hold ranks, or relate them.


class Log(Vote):
    """Who was first, and who was last."""

    first = field(maybe(Rank), means="who has voted first")
    last = field(maybe(Rank), means="who has voted last")


@action("rank {r}")
def vote_and_log(s: Log, r: Rank) -> None:
    """The rank votes, and is written down."""
    require(not s.voted[r])
    s.voted[r] = True
    if s.first == NONE:
        s.first = r
    else:
        s.last = r


@invariant
def log_is_true(s: Log) -> None:
    """Two are written down, and both have voted."""
    claim((s.last == NONE) | (s.last != s.first), "they are two")
    for r in s.all(Rank):
        claim((s.first != r) & (s.last != r) | s.voted[r], "the rank has voted", rank=r)


@trap("no-rank-values", 3, vote_and_log, lemmas=(log_is_true,), state=Log)
@action("all")
def two_logged(s: Log) -> None:
    """A first and a last are written down."""
    require(s.first != NONE and s.last != NONE)
    s.decided = True


class Counted(Vote):
    """Votes counted up to the number of ranks."""

    votes = field(upto(Rank), means="votes")


@action("rank {r}")
def vote_and_count(s: Counted, r: Rank) -> None:
    """The rank votes, and is counted."""
    require(not s.voted[r])
    s.voted[r] = True
    s.votes += 1


@trap("no-rank-values", 3, vote_and_count, state=Counted)
@action("all")
def two_counted(s: Counted) -> None:
    """Two are counted."""
    require(s.votes > 1)
    s.decided = True


class Boxed(Vote):
    """A box as large as there are ranks."""

    ballots = channel(Ballot, capacity=lambda sizes: sizes[Rank], means="ranks to the server")


@action("rank {r}")
def vote_by_box(s: Boxed, r: Rank) -> None:
    """The rank puts its vote into the box."""
    require(not s.voted[r])
    s.voted[r] = True
    s.ballots[()].send(yes=True)


@trap("no-rank-values", 3, vote_by_box, state=Boxed)
@action("all")
def two_in_the_box(s: Boxed) -> None:
    """Two lie in the box."""
    require(s.ballots[()].length > 1)
    s.decided = True


class Signed(Message):
    """A vote with its sender."""

    sender = part(Rank)


class Posted(Vote):
    """Two letters, each with its sender."""

    one = channel(Signed, capacity=1, means="the first letter")
    other = channel(Signed, capacity=1, means="the second letter")


@action("rank {r}")
def vote_by_letter(s: Posted, r: Rank) -> None:
    """The rank sends a letter, if two were not sent yet."""
    require(not s.voted[r])
    s.voted[r] = True
    if s.one[()].length == 0:
        s.one[()].send(sender=r)
    elif s.other[()].length == 0:
        s.other[()].send(sender=r)


def is_from(s: Posted, r: int) -> int:
    """Whether the rank has sent a letter."""
    return s.one[()].some(lambda letter: letter.sender == r) | s.other[()].some(lambda letter: letter.sender == r)


def has_sent_the_other(s: Posted, sender: int) -> int:
    """Whether the other letter is of the same rank."""
    return s.other[()].some(lambda letter: letter.sender == sender)


@invariant
def letters_are_votes(s: Posted) -> None:
    """Two letters are of two ranks, and both have voted."""
    for letter in s.one[()].waiting():
        claim(has_sent_the_other(s, letter.sender) == 0, "they are of two ranks")
    for r in s.all(Rank):
        claim((is_from(s, r) == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@trap("no-rank-values", 3, vote_by_letter, lemmas=(letters_are_votes,), state=Posted)
@action("all")
def two_letters(s: Posted) -> None:
    """Two letters have come."""
    require((s.one[()].length > 0) & (s.other[()].length > 0))
    s.decided = True


class Paired(Vote):
    """Who has heard of whom."""

    heard = field(flag, Rank, Rank, means="the first has heard that the second has voted")


@action("ranks")
def hear(s: Paired) -> None:
    """Everybody hears of everybody who has voted."""
    for r in s.all(Rank):
        for other in s.all(Rank):
            if s.voted[other]:
                s.heard[r, other] = True


@trap("own-rank", 3, vote, hear, state=Paired)
@action("all")
def two_heard(s: Paired) -> None:
    """Somebody has heard of somebody else."""
    found = 0
    for r in s.all(Rank):
        for other in s.all(Rank):
            if other != r:
                found |= s.heard[r, other] & s.voted[r] & s.voted[other]
    require(found)
    s.decided = True


@action("rank {r}")
def vote_into_a_small_counter(s: Vote, r: Rank) -> None:
    """The rank votes, and so far as there is room it is counted."""
    require(not s.voted[r])
    s.voted[r] = True
    if s.count < 2:
        s.count += 1


@trap("", 3, vote_into_a_small_counter)
@action("all")
def counter_is_full(s: Vote) -> None:
    """Each rank counts itself: that two are all of two is about both ranks, and no lemma about one says it."""
    require(s.count == 2)
    s.decided = True


# What is true of any number of ranks.

TRUE: list[Family] = []


def true_of_all(
    *steps: Action, goal: Property = decided_by_all, lemmas: tuple[Property, ...] = (), **more: Any
) -> Callable[[Action], Action]:
    """Declares a step that decides rightly."""

    def declare(decide: Action) -> Action:
        TRUE.append(Family(decide.name, voting(decide.name, *(steps or (vote,)), decide, **more), goal, lemmas))
        return decide

    return declare


@true_of_all()
@action("all")
def each_is_asked(s: Vote) -> None:
    """Everybody is asked."""
    for r in s.all(Rank):
        require(s.voted[r])
    s.decided = True


@true_of_all()
@action("all")
def all_of_them(s: Vote) -> None:
    """The same in one question."""
    require(all(s.voted[r] for r in s.all(Rank)))
    s.decided = True


@true_of_all()
@action("all")
def nobody_is_missing(s: Vote) -> None:
    """The same, gathered."""
    missing, whole = 0, 1
    for r in s.all(Rank):
        missing |= s.voted[r] == 0
    require(missing == 0)
    s.decided = whole


@true_of_all()
@action("all")
def all_at_once(s: Vote) -> None:
    """The same, where a condition shrinks."""
    whole = 1
    for r in s.all(Rank):
        whole &= s.voted[r]
    if whole:
        s.decided = True


@true_of_all(vote_either_way, lemmas=(a_no_is_a_vote,), goal=a_no_is_a_vote)
@action("all")
def one_no_is_enough(s: Vote) -> None:
    """Somebody has said no."""
    require(any(s.no[r] for r in s.all(Rank)))
    s.decided = True


def forget(s: Vote, r: int) -> None:
    """The rank begins anew."""
    if s.no[r]:
        s.no[r] = False
        return
    s.voted[r] = False


@true_of_all(vote_either_way, lemmas=(a_no_is_a_vote,))
@action("all")
def begin_anew(s: Vote) -> None:
    """Each begins anew, or only takes its no back, and what was decided is no more."""
    for r in s.all(Rank):
        forget(s, r)
    s.decided = False


@ghost_code
def note(s: Vote) -> None:
    """Keeps that somebody has voted."""
    for r in s.all(Rank):
        if s.voted[r]:
            s.noted = True


@invariant
def noted_before_decided(s: Vote) -> None:
    """What is decided was noted, and by all."""
    claim((s.decided == 0) | (s.noted != 0), "it was noted")
    for r in s.all(Rank):
        claim((s.decided == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@true_of_all(goal=noted_before_decided)
@action("all")
def noted_and_decided(s: Vote) -> None:
    """All have voted, which is noted."""
    for r in s.all(Rank):
        require(s.voted[r])
    note(s)
    s.decided = True


def exempt_by_choice(s: Vote) -> None:
    """All are exempt, or nobody is."""
    exempt = s.choose([False, True])
    for r in s.all(Rank):
        s.exempt[r] = exempt


@true_of_all(goal=decided_by_all_that_must, start=exempt_by_choice)
@action("all")
def those_who_must(s: Vote) -> None:
    """All that must have voted."""
    for r in s.all(Rank):
        if not s.exempt[r]:
            require(s.voted[r])
    s.decided = True


@action("rank {r}")
def vote_by_wire(s: Vote, r: Rank) -> None:
    """The rank sends its vote."""
    require(not s.voted[r])
    s.voted[r] = True
    s.box[r].send(yes=s.choose([False, True]))


@action("server")
def take_all(s: Vote) -> None:
    """Every vote is there, and all are taken."""
    for r in s.all(Rank):
        ballot = s.box[r].receive()
        s.no[r] = not ballot.yes
        s.seen[r] = True


def everybody(s: Vote) -> Iterator[tuple[int, int]]:
    """Each rank with each place."""
    for r in s.all(Rank):
        for place in s.all(Place):
            yield r, place


@invariant
def wires_carry_votes(s: Vote) -> None:
    """What is on a wire or seen is of a rank that has voted."""
    for r, place in everybody(s):
        known = (s.box[r].length != 0) | s.seen[r] | (s.no[r] & (place >= 0))
        claim((known == 0) | (s.voted[r] != 0), "the rank has voted", rank=r)


@true_of_all(vote_by_wire, take_all, lemmas=(wires_carry_votes,))
@action("server")
def all_seen(s: Vote) -> None:
    """Everybody's vote was seen, whatever it was."""
    for place in s.all(Place):
        for r in s.all(Rank):
            require(s.seen[r] | (place > 9))
    s.decided = True


def with_ranks(family: Family, ranks: int) -> Model:
    """The member of the family with so many ranks."""
    return replace(family.model, sizes={**family.model.sizes, Rank: ranks})
