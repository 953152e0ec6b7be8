"""The hold inequality as a theorem, discharged by Z3 over the reals: sufficient, and tight.

The timed model. Decode holds at time 0. A prefill rank has a queue delay of at most q, then produces chunk after
chunk, each within p of the one before, writes them one after another, each within w, and may retry a failed write for
at most r. It launches nothing once it has acted on the ABORT, at some time a of at most A. Decode releases at T. A
write is late if it lands at T or behind it: at the same instant either may come first.

The induction is over the chunks, so any number of them is covered; sizes of chunks may differ. Every obligation is
also asked whether its hypotheses can be met at all, and every mutant of the claim (a term dropped, > made >=) must be
refuted: an obligation that is built from the wrong inputs proves the mutants too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..solver import library

TIMEOUT_MILLISECONDS = 30_000
TERMS = ("t_abort_propagation", "t_remaining_chunks", "t_in_flight_call", "t_retry_tail")


@dataclass(frozen=True)
class Chunk:
    """A chunk of a rank: when it was put in the queue, launched, and over; reals or symbols."""

    ready: Any
    launch: Any
    over: Any


Step = Callable[[Chunk, Any, Any], Chunk]


def following(chunk: Chunk, produce: Any, write: Any) -> Chunk:
    """The chunk behind one, if it takes so long to produce, and so long to write."""
    ready = chunk.ready + produce
    launch = larger(chunk.over, ready)
    return Chunk(ready, launch, launch + write)


@dataclass(frozen=True)
class Claim:
    """What is to be proved, of which model: the right ones by default, mutants otherwise."""

    step: Step = following
    dropped: frozenset[str] = frozenset()
    strict: bool = True

    def kept(self, term: str, value: Any) -> Any:
        """A term's value; nothing if the term is dropped."""
        return library().RealVal(0) if term in self.dropped else value


@dataclass(frozen=True)
class Obligation:
    """Hypotheses that must imply a conclusion, for all reals."""

    name: str
    sentence: str
    hypotheses: Sequence[Any]
    conclusion: Any


@dataclass(frozen=True)
class Proof:
    """What Z3 says of an obligation: proved, refuted or unknown. `vacuous` if its hypotheses cannot be met."""

    name: str
    sentence: str
    status: str
    vacuous: bool
    counterexample: Mapping[str, str]


@dataclass(frozen=True)
class Mutant:
    """A claim that is wrong, and the proof that must fail for it; None if every obligation still holds."""

    name: str
    refuted_by: Proof | None


@dataclass(frozen=True)
class Theorem:
    """Everything that was asked of Z3."""

    proofs: Sequence[Proof]
    mutants: Sequence[Mutant] = field(default_factory=list[Mutant])

    @property
    def proved(self) -> bool:
        """Whether every obligation is, none is empty, and every mutant is refuted."""
        sound = all(each.status == "proved" and not each.vacuous for each in self.proofs)
        return sound and bool(self.mutants) and all(each.refuted_by for each in self.mutants)


def prove(claim: Claim | None = None) -> Theorem:
    """Discharges the theorem, and looks for each mutant's counterexample."""
    claim = claim or Claim()
    mutants = [Mutant(name, _refutation(each)) for name, each in mutants_of(claim).items()]
    return Theorem([discharge(each) for each in obligations(claim)], mutants)


def mutants_of(claim: Claim) -> dict[str, Claim]:
    """The claim without each of its terms, and without its strictness."""
    found = {f"without {term}": replace(claim, dropped=frozenset({term})) for term in TERMS}
    found[">= for >"] = replace(claim, strict=False)
    return found


def _refutation(claim: Claim) -> Proof | None:
    proofs = (discharge(each) for each in obligations(claim))
    return next((proof for proof in proofs if proof.status == "refuted"), None)


def discharge(obligation: Obligation) -> Proof:
    """Asks Z3 for values that meet the hypotheses and not the conclusion, and whether any meet the hypotheses."""
    z3 = library()
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MILLISECONDS)
    solver.add(*obligation.hypotheses)
    vacuous = str(solver.check()) != "sat"
    solver.add(z3.Not(obligation.conclusion))
    status = {"unsat": "proved", "sat": "refuted"}.get(str(solver.check()), "unknown")
    found: dict[str, str] = {}
    if status == "refuted":
        model = solver.model()
        found = {str(each): str(model[each]) for each in sorted(model.decls(), key=str)}
    return Proof(obligation.name, obligation.sentence, status, vacuous, found)


def larger(one: Any, other: Any) -> Any:
    """The larger of two reals."""
    return library().If(one >= other, one, other)


def smaller(one: Any, other: Any) -> Any:
    """The smaller of two reals."""
    return library().If(one <= other, one, other)


def obligations(claim: Claim) -> list[Obligation]:
    """Sufficiency for chunks of any number, of any sizes, and with calls that take their budget; then tightness."""
    return [*_sufficient(claim), *_of_any_size(claim), *_of_whole_budgets(claim), *_tight(claim)]


def _reals(names: str) -> list[Any]:
    return [library().Real(name) for name in names.split()]


def _sufficient(claim: Claim) -> list[Obligation]:
    """By induction over the chunks: the i-th is launched at most at latest_i, and over at most w behind it."""
    z3 = library()
    propagation, q, p, w, r, hold = _reals("A q p w r T")
    ready, launch, over, produce, write, latest, chunks = _reals("ready launch over produce write latest i")
    acted, retried, seen_after = _reals("a retried d")
    bounds = [each >= 0 for each in (propagation, q, p, w, r)]
    durations = [produce >= 0, produce <= p, write >= 0, write <= w]
    slower = larger(p, w)
    in_flight = claim.kept(TERMS[2], w)

    def invariant(chunk: Chunk, until: Any) -> Any:
        return z3.And(chunk.ready <= until, chunk.launch <= until, chunk.over <= until + in_flight)

    def until(count: Any) -> Any:
        return claim.kept(TERMS[1], q + p + (count - 1) * slower)

    first = claim.step(Chunk(ready, z3.RealVal(0), z3.RealVal(0)), produce, write)
    chunk = Chunk(ready, launch, over)
    after = claim.step(chunk, produce, write)
    last = launch + write
    stop = smaller(claim.kept(TERMS[0], propagation), latest)
    tail = claim.kept(TERMS[3], r)
    bound = stop + in_flight + tail
    outlasts = hold > bound if claim.strict else hold >= bound
    return [
        Obligation(
            "base",
            "The first chunk is launched at most at q + p, and over at most w later.",
            [*bounds, *durations, ready >= 0, ready <= q],
            invariant(first, claim.kept(TERMS[1], q + p)),
        ),
        Obligation(
            "step",
            "If the i-th chunk keeps latest_i, the next one keeps latest_i + max(p, w).",
            [*bounds, *durations, invariant(chunk, latest)],
            invariant(after, latest + claim.kept(TERMS[1], slower)),
        ),
        Obligation(
            "closed form",
            "latest_i = q + p + (i - 1) max(p, w).",
            [*bounds, chunks >= 1],
            z3.And(until(z3.RealVal(1)) == claim.kept(TERMS[1], q + p), until(chunks + 1) == until(chunks) + slower),
        ),
        Obligation(
            "ABORT",
            "A chunk that is launched before the rank has acted on the ABORT is over by min(A, latest_n) + w + r.",
            [*bounds, *durations, retried >= 0, retried <= r, acted <= propagation, launch <= acted, launch <= latest],
            last + retried <= bound,
        ),
        Obligation(
            "no late write",
            "If T > min(A, latest_n) + w + r, every write of the rank lands before the release.",
            [*bounds, latest >= 0, over <= smaller(propagation, latest) + w, retried >= 0, retried <= r, outlasts],
            over + retried < hold,
        ),
        Obligation(
            "rank with a failed send",
            "Decode learns of the error behind it: siblings are over by w, what is retried by r more.",
            [*bounds, over <= 0, write >= 0, write <= w, retried >= 0, retried <= r],
            over + write + retried <= in_flight + tail,
        ),
        Obligation(
            "dead rank",
            "Decode notices at least d behind the death: what was launched is over by w + r - d.",
            [*bounds, seen_after >= 0, launch <= -seen_after, write >= 0, write <= w, retried >= 0, retried <= r],
            last + retried <= in_flight + tail - seen_after,
        ),
    ]


def _of_any_size(claim: Claim) -> list[Obligation]:
    """Chunks of at most c tokens, with p and w now per token: the closed form that `draincheck hold` evaluates."""
    z3 = library()
    q, p, w, most, done, size, context = _reals("q p w c done z context")
    over, ready = _reals("over ready")
    bounds = [q >= 0, p >= 0, w >= 0, most > 0, done >= 0, size > 0, size <= most]

    def end(tokens: Any) -> Any:
        full = smaller(most, tokens)
        return q + z3.If(p >= w, tokens * p + full * w, full * p + tokens * w)

    remaining = claim.kept(TERMS[1], q + larger(context * p, most * p + (context - most) * w))
    after = claim.step(Chunk(ready, z3.RealVal(0), over), size * p, size * w)
    return [
        Obligation(
            "any sizes: step",
            "If the chunks before are over by end(done), one of z <= c tokens more is over by end(done + z).",
            [*bounds, ready <= q + done * p, over <= end(done)],
            z3.And(after.over <= end(done + size), after.ready <= q + (done + size) * p),
        ),
        Obligation(
            "any sizes: closed form",
            "end(context) <= q + max(context p, c p + (context - c) w) + c w, whatever the sizes.",
            [*bounds, context >= most],
            end(context) <= remaining + claim.kept(TERMS[2], most * w),
        ),
    ]


def _of_whole_budgets(claim: Claim) -> list[Obligation]:
    """Every chunk may take w, however small: n chunks, at most one more than fit, so n - 1 = context / c."""
    p, w, most, context, chunks, behind, over, done = _reals("p w c context n j over done")
    bounds = [p >= 0, w >= 0, most > 0, context >= most, (chunks - 1) * most == context]
    remaining = claim.kept(TERMS[1], larger(context * p, most * p + (chunks - 2) * w) + w)
    total = remaining + claim.kept(TERMS[2], w)
    after = claim.step(Chunk(done * p, library().RealVal(0), over), library().RealVal(0), w)
    fits = [done >= 0, done <= context, done <= (chunks - behind) * most, behind >= 0, behind <= chunks - 1]
    return [
        Obligation(
            f"whole budgets: {name}",
            f"With j chunks behind it ({words}), a chunk leaves them time: it is over by the end minus j w.",
            [*bounds, *fits, *which, over <= total - (behind + 1) * w],
            after.over <= total - behind * w,
        )
        for name, words, which in (("last", "j = 0", [behind == 0]), ("step", "j >= 1", [behind >= 1]))
    ]


def _tight(claim: Claim) -> list[Obligation]:
    """The run in which everything takes its bound, slowed down so that the last launch is at min(A, latest_n)."""
    z3 = library()
    propagation, q, p, w, r, hold = _reals("A q p w r T")
    ready, launch, over, latest, scale = _reals("ready launch over latest scale")
    bounds = [each >= 0 for each in (propagation, q, p, w, r)]
    slower = larger(p, w)
    first = claim.step(Chunk(q, z3.RealVal(0), z3.RealVal(0)), p, w)

    def exact(chunk: Chunk, until: Any) -> Any:
        keeps_up = z3.And(chunk.ready <= until, z3.Implies(p >= w, chunk.ready == until))
        return z3.And(chunk.launch == until, chunk.over == until + w, keeps_up)

    chunk = Chunk(ready, launch, over)
    after = claim.step(chunk, p, w)
    scaled = claim.step(Chunk(scale * ready, scale * launch, scale * over), scale * p, scale * w)
    stop = smaller(propagation, latest)
    slowed = z3.If(latest > 0, stop / latest, z3.RealVal(0))
    bound = stop + w + r
    outlived = hold <= bound if claim.strict else hold < bound
    return [
        Obligation(
            "tight: base",
            "If everything takes its bound, the first chunk is launched at q + p and over w later.",
            bounds,
            exact(first, q + p),
        ),
        Obligation(
            "tight: step",
            "If everything takes its bound, each chunk is launched exactly max(p, w) behind the one before.",
            [*bounds, exact(chunk, latest)],
            exact(after, latest + slower),
        ),
        Obligation(
            "tight: scaling",
            "A run slowed down by a factor of at most 1 is a run of the model.",
            [*bounds, scale >= 0, scale <= 1],
            z3.And(
                scaled.ready == scale * after.ready,
                scaled.launch == scale * after.launch,
                scaled.over == scale * after.over,
                scale * p <= p,
                scale * w <= w,
                scale * q <= q,
            ),
        ),
        Obligation(
            "tight: late write",
            "If T <= min(A, latest_n) + w + r, the last chunk is launched no later than A and lands at T or later.",
            [*bounds, latest >= 0, scale == slowed, launch == scale * latest, outlived],
            z3.And(scale >= 0, scale <= 1, launch <= propagation, launch + w + r >= hold),
        ),
    ]
