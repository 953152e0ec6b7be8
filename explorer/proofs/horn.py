"""Invariants without lemmas: Z3's Spacer looks for one by itself.

The model becomes Horn clauses about a relation "reachable": initial states are in it, a step leads from states in it to
states in it, and the question is whether a state in it fails. Numbers are integers here, which Spacer is best at. What
it says is checked: a run that it claims to exist is looked for by bounded model checking, and an invariant that it
found is asked again, as a lemma, of the solver (`inductive`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ...protocol.language.model import Model
from ...protocol.language.property import Property
from .symbolic import Frame, Symbolic, Term, z3
from .unrolling import NO_FAULT, subject_name


@dataclass(frozen=True)
class Found:
    """What Spacer says: `holds` if it found an invariant that was confirmed, `fails` if it says that a run fails.

    `invariant` is the confirmed one, as Z3 prints it; `stopped` says why nothing is known.
    """

    subject: str
    holds: bool = False
    fails: bool = False
    invariant: str = ""
    stopped: str = ""
    seconds: float = 0.0


def spacer(model: Model, subject: Property | None, seconds: float) -> Found:
    """Lets Spacer decide a property, or for None that no step breaks the language's rules, within some seconds."""
    began = time.perf_counter()
    symbolic = Symbolic(model, integers=True)
    before, after = symbolic.frame("before"), symbolic.frame("after")
    variables = [term for term in before if not isinstance(term, int)]
    following = [term for term in after if not isinstance(term, int)]
    reachable = z3.Function("reachable", *(term.sort() for term in variables), z3.BoolSort())
    fails = z3.Function("fails", z3.BoolSort())
    engine = z3.Fixedpoint()
    engine.set("engine", "spacer", "timeout", max(1, int(seconds * 1000)))
    engine.register_relation(reachable, fails)
    step = symbolic.step(before, after, "step")
    failure = _failure(symbolic, subject, before)
    engine.declare_var(*variables, *following, *_others(step, failure, known=[*variables, *following]))
    engine.rule(reachable(*variables), symbolic.is_initial(before))
    engine.rule(reachable(*following), [reachable(*variables), step])
    engine.rule(fails(), [reachable(*variables), failure])
    name = subject_name(subject)
    try:
        answer = engine.query(fails())
    except z3.Z3Exception as error:
        said = (
            f"Spacer gave up: {error}" if "canceled" not in str(error) else f"Spacer found nothing within {seconds:g} s"
        )
        return Found(name, stopped=said, seconds=time.perf_counter() - began)
    if answer == z3.unknown:
        stopped = f"Spacer found nothing within {seconds:g} s"
        return Found(name, stopped=stopped, seconds=time.perf_counter() - began)
    if answer == z3.sat:
        return Found(name, fails=True, seconds=time.perf_counter() - began)
    invariant = _invariant_of(engine, reachable, variables)
    spent = time.perf_counter() - began
    if not _is_invariant(symbolic, invariant, variables, following, step, before, failure):
        return Found(name, stopped="what Spacer found is no invariant", seconds=spent)
    return Found(name, holds=True, invariant=str(invariant), seconds=spent)


def _failure(symbolic: Symbolic, subject: Property | None, frame: Frame) -> Term:
    if subject is not None:
        return symbolic.fails(subject, frame)
    return z3.Or([symbolic.faults(command, frame, NO_FAULT) for command in symbolic.faulty_commands] or [False])


def _others(*terms: Term, known: list[Term]) -> list[Term]:
    """The variables of terms beyond those known: which command is taken, and which options."""
    seen = {str(term) for term in known}
    found: dict[str, Term] = {}
    waiting, visited = list(terms), set[int]()
    while waiting:
        term = waiting.pop()
        if term.get_id() in visited:
            continue
        visited.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED and str(term) not in seen:
            found[str(term)] = term
        waiting += term.children()
    return list(found.values())


def _invariant_of(engine: Any, reachable: Any, variables: list[Term]) -> Term:
    """What Spacer knows of reachable states, about these variables."""
    return z3.substitute_vars(engine.get_cover_delta(-1, reachable), *variables)


def _is_invariant(
    symbolic: Symbolic,
    invariant: Term,
    variables: list[Term],
    following: list[Term],
    step: Term,
    before: Frame,
    failure: Term,
) -> bool:
    """Asks the solver whether the invariant holds at the start, is kept by every step, and excludes failures."""
    kept = z3.substitute(invariant, *zip(variables, following, strict=True))
    questions = (
        z3.And(symbolic.is_initial(before), z3.Not(invariant)),
        z3.And(invariant, step, z3.Not(kept)),
        z3.And(invariant, failure),
    )
    for question in questions:
        solver = z3.Solver()
        solver.add(question)
        if solver.check() != z3.unsat:
            return False
    return True
