"""The command `relate`: relations between runs of a release, and the pair of runs that shows where one fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..terminal.console import echo, note, print_document, print_wide, screen

if TYPE_CHECKING:
    from rich.table import Table

    from ..verdicts.relations import Relation

FORMAT = "draincheck-relate"
VERSION = 1
EXIT_CODES = {"HOLDS": 0, "FAILS": 1, "UNDETERMINED": 3}
STYLES = {"HOLDS": "green", "FAILS": "bold red", "UNDETERMINED": "magenta"}


@click.command()
@click.argument("profile")
@click.option("--relation", "names", multiple=True, metavar="NAME", help="Only this one (may be repeated).")
@click.option("--max-states", type=int, help="Give up after so many states, in each search.")
@click.option("--max-seconds", type=float, help="Give up after so much time, for each relation (compiling excluded).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def relate(
    profile: str, names: tuple[str, ...], max_states: int | None, max_seconds: float | None, as_json: bool
) -> None:
    """Compares runs of PROFILE: degraded with plain, and in finer steps with coarser ones.

    A degradation holds if decode never gives memory back earlier in it, under a write, than in the plain run of the
    same environment. An atomicity holds if every step of the finer model is one of the coarser model, or none; or else
    if the same properties hold in both. See docs/relations.md. Exit codes: 0 all hold, 1 one fails (with the runs), 2
    wrong input, 3 undetermined.
    """
    from ...models.catalogue.profile import load_profile
    from ..search.search import Limits
    from ..verdicts.relations import relate as find
    from ..verdicts.relations import worst

    with note() as say:
        loaded = load_profile(profile)
        relations = find(loaded, names, Limits(states=max_states, seconds=max_seconds), say)
    if as_json:
        print_document(document(profile, relations))
    else:
        _print(relations)
    sys.exit(EXIT_CODES[worst(relations)])


def table(relations: Sequence[Relation]) -> Table:
    """What was asked, how, and what is known."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("relation", "of", "method", "verdict"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("states", justify="right", no_wrap=True)
    shown.add_column("seconds", justify="right", no_wrap=True)
    shown.add_column("how", no_wrap=True)
    for each in relations:
        verdict = Text(each.verdict, style=STYLES[each.verdict])
        states = "" if each.states is None else f"{each.states:,}"
        shown.add_row(each.kind, each.name, each.method, verdict, states, f"{each.seconds:.1f}", each.detail)
    return shown


def _print(relations: Sequence[Relation]) -> None:
    from ..traces.render_terminal import terminal

    console = screen()
    for each in relations:
        if each.trace:
            console.print(terminal(each.trace, console.width))
    print_wide(table(relations))
    echo("The release timer is off. What the relations say, and what they do not: docs/relations.md")


def document(profile: str, relations: Sequence[Relation]) -> dict[str, Any]:
    """The relations for programs; docs/json.md describes the fields."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "profile": profile,
        "relations": [
            {
                "relation": each.kind,
                "of": each.name,
                "model": each.model,
                "bounds": dict(each.bounds),
                "method": str(each.method),
                "verdict": str(each.verdict),
                "detail": each.detail,
                "states": each.states,
                "unmatched": list(each.unmatched),
                "seconds": round(each.seconds, 3),
                "trace": _trace_document(each),
            }
            for each in relations
        ],
    }


def _trace_document(relation: Relation) -> dict[str, Any] | None:
    if relation.trace is None:
        return None
    return {
        "kind": relation.trace.kind,
        "reachable": relation.trace.kind != "induction",
        "begins": list(relation.trace.begins),
        "steps": [step.label for step in relation.trace.steps],
        "violation": str(relation.trace.violation),
    }
