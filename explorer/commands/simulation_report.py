"""What random runs of a case found, as traces, as a table, and as one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from ...properties.case import Question
from ...protocol.language.model import Values
from ...protocol.language.property import Property
from ..search.search import compile_check
from ..terminal.console import text_cell
from ..traces.trace import Trace, deadlock_trace, follow, violation_trace
from ..verdicts.verify import EXPLANATION, Finding, Verdict, Weakness, class_of, losing, weaknesses_of
from ..walks.shorten import shorten
from ..walks.swarm import Plan, Sighting, Simulation, simulate
from .report import STYLE

FORMAT = "draincheck-simulate"
VERSION = 1
NOTHING = "nothing found"
EXPLAIN_NOTHING = (
    f"{NOTHING}: no walk met a state in which a property fails. That is no proof: a random run can miss it "
    "(draincheck verify looks at every state)"
)


@dataclass(frozen=True)
class Walked:
    """A case after its simulation: what fails, the worst class first, each with a shortened run."""

    profile: str
    scenario: str
    simulation: Simulation
    findings: tuple[Finding, ...]
    weaknesses: tuple[Weakness, ...]
    stuck: Trace | None
    assumed: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The runs to show and to save."""
        return tuple(each.trace for each in self.findings) or ((self.stuck,) if self.stuck else ())

    @property
    def subject(self) -> str:
        """The property of the worst finding, or an empty string."""
        return self.traces[0].subject if self.traces else ""


def walk(
    profile: str,
    scenario: str,
    question: Question,
    lost: Verdict,
    plan: Plan,
    *,
    assumed: Mapping[str, object] | None = None,
    progress: Callable[[Simulation], None] | None = None,
) -> Walked:
    """Simulates a question; a loss of memory counts as `lost`, and ends it. Raises DraincheckError."""
    until = losing(question.check)
    simulation = simulate(compile_check(question.check), plan, until=until, progress=progress)
    check, properties = question.check, {each.name: each for each in question.check.properties}
    traces = {
        name: _violation(question, simulation, properties[name], sighting)
        for name, sighting in simulation.violated.items()
    }
    findings = [Finding(class_of(check, name, lost), name, trace) for name, trace in traces.items()]
    order = list(Verdict)
    return Walked(
        profile,
        scenario,
        simulation,
        tuple(
            sorted(
                (each for each in findings if each.subject not in weaknesses_of(check)),
                key=lambda each: order.index(each.verdict),
            )
        ),
        tuple(Weakness(name, trace) for name, trace in traces.items() if name in weaknesses_of(check)),
        _deadlock(question, simulation),
        assumed or {},
    )


def _violation(question: Question, simulation: Simulation, prop: Property, sighting: Sighting) -> Trace:
    model = question.check.model
    states = simulation.path_to(sighting)
    taken = shorten(model, states[0], follow(model, states), lambda values: prop.violation(model, values) is not None)
    return violation_trace(model, prop, states[0], taken, question.source)


def _deadlock(question: Question, simulation: Simulation) -> Trace | None:
    if simulation.deadlock is None:
        return None
    model = question.check.model

    def stuck(values: Values) -> bool:
        return not model.is_terminal(values) and next(model.steps(values), None) is None

    states = simulation.path_to(simulation.deadlock)
    taken = shorten(model, states[0], follow(model, states), stuck)
    return deadlock_trace(model, states[0], taken, question.source)


def exit_code(rows: Sequence[Walked]) -> int:
    """1 if a property fails in a row, else 3: a random run decides nothing else."""
    return 1 if any(row.findings for row in rows) else 3


def table(rows: Sequence[Walked]) -> Table:
    """Profile x scenario x what was found x length of the shortened trace x how much was walked and covered."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    left = ("profile", "scenario", "found", "property")
    for heading in (*left, "trace", "steps", "walks", "actions", "pairs", "steps/s"):
        result.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    for row in rows:
        done = row.simulation
        result.add_row(
            text_cell(row.profile),
            text_cell(row.scenario),
            _found(row),
            row.subject or "-",
            str(len(row.traces[0])) if row.traces else "-",
            f"{done.steps:,}",
            f"{done.walks:,}",
            f"{_fired(done)} of {len(done.hits)}",
            f"{len(done.pairs):,} of {len(done.hits) ** 2:,}",
            f"{done.steps / max(done.seconds, 1e-6):,.0f}",
        )
    return result


def _found(row: Walked) -> Text:
    if row.findings:
        classes = dict.fromkeys(finding.verdict for finding in row.findings)
        return Text(", ").join(Text(verdict, style=STYLE[verdict]) for verdict in classes)
    return Text("a deadlock" if row.stuck else NOTHING, style=STYLE[Verdict.UNDETERMINED])


def _fired(done: Simulation) -> int:
    return sum(count > 0 for count in done.hits.values())


def legend(rows: Sequence[Walked]) -> list[str]:
    """What the table means, within which bounds, what was not covered, and how to walk the same way again."""
    found = {finding.verdict for row in rows for finding in row.findings}
    lines = [f"{verdict}: {EXPLANATION[verdict]}" for verdict in Verdict if verdict in found]
    lines += [EXPLAIN_NOTHING] if any(not row.traces for row in rows) else []
    lines += ["a deadlock: a state that is not terminal has no step"] if any(row.stuck for row in rows) else []
    lines += [f"Bounds: {bounds}" for bounds in dict.fromkeys(_bounds(row) for row in rows)]
    assumed = {(row.profile, name): value for row in rows for name, value in row.assumed.items()}
    lines += [f"{profile}: {name} is unknown and taken as {value}" for (profile, name), value in assumed.items()]
    for row in rows:
        lines += [f"{row.profile} / {row.scenario}: {line}" for line in _notes(row)]
    return lines


def _bounds(row: Walked) -> str:
    bounds = row.simulation.check.model.bounds
    return f"{row.scenario}: {', '.join(f'{name} {value}' for name, value in bounds.items())}"


def _notes(row: Walked) -> list[str]:
    done = row.simulation
    lines = [f"{done.stopped}; deepest walk {done.deepest} steps; the same again: {again(done)}"]
    if done.never_fired:
        lines.append(f"weaker for it: never happened: {', '.join(done.never_fired)}")
    if done.never_reached:
        lines.append(f"weaker for it: never reached: {', '.join(done.never_reached)}")
    lines += [
        f"{each.subject} fails after {len(each.trace)} steps: "
        "other properties rest on it, though by itself it loses nothing"
        for each in row.weaknesses
    ]
    return lines


def again(done: Simulation) -> str:
    """The options that take the same steps again."""
    plan = done.plan
    return (
        f"--seed {plan.seed} --steps {max(done.turns, 1)} --scheduler {plan.scheduler} --walks {plan.walks} "
        f"--depth {plan.depth} --changes {plan.changes}"
    )


def document(rows: Sequence[Walked], plan: Plan) -> dict[str, Any]:
    """The rows as one JSON document; docs/json.md describes it."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "seed": plan.seed,
        "scheduler": str(plan.scheduler),
        "walks_at_once": plan.walks,
        "depth": plan.depth,
        "changes": plan.changes,
        "rows": [_row(row) for row in rows],
    }


def _row(row: Walked) -> dict[str, Any]:
    done = row.simulation
    pairs: dict[str, dict[str, int]] = {}
    for (first, then), count in done.pairs.items():
        pairs.setdefault(first, {})[then] = count
    return {
        "profile": row.profile,
        "scenario": row.scenario,
        "verdict": str(row.findings[0].verdict if row.findings else Verdict.UNDETERMINED),
        "property": row.subject or None,
        "trace_length": len(row.traces[0]) if row.traces else None,
        "trace": [step.label for step in row.traces[0].steps] if row.traces else None,
        "findings": [
            {
                "verdict": str(each.verdict),
                "property": each.subject,
                "trace_length": len(each.trace),
                "walk_length": done.violated[each.subject].depth,
            }
            for each in row.findings
        ],
        "weaknesses": [{"property": each.subject, "trace_length": len(each.trace)} for each in row.weaknesses],
        "stopped": done.stopped,
        "turns": done.turns,
        "steps": done.steps,
        "walks": done.walks,
        "deepest": done.deepest,
        "seconds": round(done.seconds, 6),
        "hits": dict(done.hits),
        "pairs": pairs,
        "pairs_seen": len(done.pairs),
        "never_fired": done.never_fired,
        "never_reached": done.never_reached,
        "counts": dict(done.counts),
        "bounds": dict(done.check.model.bounds),
        "assumed": dict(row.assumed),
    }
