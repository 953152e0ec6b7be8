"""The command `simulate`: random walks, many at once. docs/simulation.md says how to read what it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..kept.writing import folder_for_output
from ..terminal.console import echo, echo_lines, note, print_document, print_wide, screen
from .asked import REFERENCE, cases_asked, require_no_files
from .size_options import own_sizes, size_options

if TYPE_CHECKING:
    from ...properties.case import Case, Question
    from ..verdicts.verify import Verdict
    from ..walks.swarm import Plan, Simulation
    from .simulation_report import Walked

DEFAULT_SECONDS = 5.0


@click.command()
@click.argument("profiles", nargs=-1)
@click.option("--scenario", "scenarios", multiple=True, help='Only this scenario (may be repeated); "all" for all.')
@size_options()
@own_sizes()
@click.option(
    "--release-timer",
    type=click.Choice(("off", "late", "any")),
    default="off",
    show_default=True,
    help="When it may end a hold: never, once the writes are over, or at any moment.",
)
@click.option("--timer", type=int, help="For the reference model: the hold, in ticks.")
@click.option("--steps", type=int, help="Take so many steps for each row; a return to the start counts as one.")
@click.option(
    "--seconds",
    type=float,
    help=f"Walk for so much time for each row (default: {DEFAULT_SECONDS:g}, unless --steps is given).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random numbers.")
@click.option("--walks", type=int, default=1024, show_default=True, help="Walk so many ways at once.")
@click.option("--depth", type=int, default=200, show_default=True, help="Start a walk anew after so many steps.")
@click.option(
    "--scheduler",
    type=click.Choice(("uniform", "priority", "mixed")),
    default="mixed",
    show_default=True,
    help="Who moves next: anybody; the thread of highest priority; half of the walks each way.",
)
@click.option("--changes", type=int, default=3, show_default=True, help="So often in a walk a thread loses priority.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Save the traces here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def simulate(
    profiles: tuple[str, ...],
    scenarios: tuple[str, ...],
    prefill_ranks: int | None,
    decode_ranks: int | None,
    rooms: int | None,
    chunks: int | None,
    slots: int | None,
    own: tuple[tuple[str, int], ...],
    release_timer: str,
    timer: int | None,
    steps: int | None,
    seconds: float | None,
    seed: int,
    walks: int,
    depth: int,
    scheduler: str,
    changes: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Walks at random through each profile in each scenario, and shows a short trace of each failure it meets.

    PROFILES are as for verify. Use it where there are too many states to look at all of them: it takes millions of
    steps a second and little memory. The same seed and steps give the same result; with --seconds, the number of steps
    depends on the machine.

    Exit codes: 1 a property fails, 2 the input is wrong, 3 nothing was found, which decides nothing.
    """
    from ..walks.swarm import Plan, Scheduler
    from .simulation_report import exit_code

    if steps is None and seconds is None:
        seconds = DEFAULT_SECONDS
    plan = Plan(seed, walks, depth, Scheduler(scheduler), changes, steps, seconds)
    sizes = {"ranks": prefill_ranks, "decode_ranks": decode_ranks, "rooms": rooms, "chunks": chunks, "slots": slots}
    chosen = {name: size for name, size in sizes.items() if size is not None}
    cases = _cases(profiles, scenarios, chosen, own, release_timer, timer)
    if save:
        folder_for_output(save)
    rows = _walk_all(cases, release_timer if timer is None else "any", plan)
    cut = ""
    if len(rows) < len(cases) or rows[-1].simulation.stopped == "interrupted":
        cut = f"interrupted; {len(cases) - len(rows)} rows are not known"
    if cut and not rows:
        raise KeyboardInterrupt(cut)
    _print(rows, plan, as_json, cut)
    if save:
        _save(rows, save)
    if cut:
        raise KeyboardInterrupt(cut)
    sys.exit(exit_code(rows))


def _cases(
    profiles: Sequence[str],
    scenarios: Sequence[str],
    sizes: dict[str, int],
    own: Sequence[tuple[str, int]],
    release_timer: str,
    timer: int | None,
) -> list[Case]:
    from ...models.catalogue.profile import headlines

    if timer is not None and set(profiles) != {REFERENCE}:
        raise click.UsageError("--timer belongs to the reference model; profiles take --release-timer")
    if REFERENCE in profiles and release_timer != "off":
        raise click.UsageError("--release-timer belongs to profiles; the reference model takes --timer TICKS")
    if release_timer != "off":
        require_no_files(profiles, "--release-timer")
    return cases_asked(profiles or headlines(), scenarios, sizes, own, timer=release_timer != "off", ticks=timer)


def _question(case: Case, release_timer: str) -> tuple[Question, Verdict]:
    """The check of a case with this timer, and the class of a loss in it; without one where no hold has a timer."""
    from ..verdicts.verify import Verdict

    if release_timer == "any" and case.timed:
        return case.timed, Verdict.CONDITIONAL
    if release_timer == "late" and case.patient:
        return case.patient, Verdict.CORRUPTS
    return case.untimed, Verdict.CORRUPTS


def _walk_all(cases: Sequence[Case], release_timer: str, plan: Plan) -> list[Walked]:
    """The cases one after the other; fewer if the user interrupts."""
    from .simulation_report import walk

    rows: list[Walked] = []
    with note() as say:
        for number, case in enumerate(cases, 1):
            title = f"{number} of {len(cases)}: {case.profile} / {case.scenario}"
            say(f"{title}: loading (the first run after an installation compiles the loops, some seconds)")
            question, lost = _question(case, release_timer)
            progress = _progress(say, title)
            try:
                row = walk(case.profile, case.scenario, question, lost, plan, assumed=case.assumed, progress=progress)
            except KeyboardInterrupt:  # while the model was traced, or a trace was shortened
                break
            rows.append(row)
            if row.simulation.stopped == "interrupted":
                break
    return rows


def _progress(say: Callable[[str], None], title: str) -> Callable[[Simulation], None]:
    def progress(at: Simulation) -> None:
        rate = at.steps / max(at.seconds, 1e-6)
        say(f"{title}: {at.steps:,} steps, {rate:,.0f} steps/s, {at.walks:,} walks, {len(at.pairs):,} pairs of actions")

    return progress


def _print(rows: Sequence[Walked], plan: Plan, as_json: bool, cut: str) -> None:
    from .simulation_report import document, legend, table

    if as_json:
        print_document(document(rows, plan), cut)
        return

    from ..traces.render_terminal import terminal

    console = screen()
    for row in rows:
        for trace in row.traces:
            console.print(terminal(trace, console.width))
            console.print()
    print_wide(table(rows))
    console.print()
    echo_lines(legend(rows))


def _save(rows: Sequence[Walked], folder: Path) -> None:
    from ..traces.storage import save

    for row in rows:
        for trace in row.traces:
            echo(f"saved {save(trace, folder)}", err=True)
