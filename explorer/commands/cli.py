"""The command line: `draincheck verify`, `draincheck show`, `draincheck profile`.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..kept.writing import folder_for_output, write_output
from ..operators.hold import hold
from ..operators.operate import gate, metrics
from ..operators.sizing import risk, size
from ..terminal.console import echo, echo_lines, echo_text, note, print_document, print_wide, screen
from ..terminal.ending import exit_code_of
from .asked import REFERENCE, cases_asked, require_no_files
from .explore import explore
from .prove import prove
from .relate import relate
from .simulate import simulate
from .size_options import own_sizes, size_options
from .store_options import say_what_is_not_kept, store_of, store_options

if TYPE_CHECKING:
    from ...properties.case import Case
    from ..search.search import Limits, Progress
    from ..traces.trace import Trace
    from ..verdicts.batch import Batch, Status
    from ..verdicts.history import Chapter
    from ..verdicts.store import Store
    from ..verdicts.verify import Row

SEARCHES_SHOWN = 8
JOBS = click.IntRange(1, 1024)
FORMATS = ("terminal", "mermaid", "dot", "svg", "png", "pdf", "itf", "pytest")


COMPLETION = "_DRAINCHECK_COMPLETE"
"""Set by a shell that asks click for completions."""


GROUPS = {
    "Verdicts and runs": ("verify", "show", "simulate", "explore", "prove"),
    "Releases beside each other": ("profile", "calibrate", "history", "degrade", "relate"),
    "Running a deployment": ("hold", "gate", "metrics", "size", "risk"),
}
"""The commands, as the help lists them."""


class _Group(click.Group):
    """Ends with one line and an exit code that says what kind of end it is, whatever goes wrong; see `ending`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands by what they are for."""
        room = formatter.width - 6 - max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(room)) for name in names])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command. In click's own way only for completions, and where the caller catches errors himself."""
        if not standalone_mode or COMPLETION in os.environ:
            return super().main(args, prog_name, complete_var, standalone_mode, **extra)
        arguments = sys.argv[1:] if args is None else list(args)

        def command() -> None:
            with self.make_context(prog_name or "draincheck", list(arguments), **extra) as context:
                self.invoke(context)

        sys.exit(exit_code_of(command, as_json="--json" in arguments))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="draincheck")
def main() -> None:
    """Checks the abort/drain protocol that decides when a KV-cache slot is free.

    Exit codes: 0 all as required, 1 a property fails, 2 the input is wrong, 3 undetermined, 70 an inner fault, 130
    interrupted, 141 nobody reads the output any more.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a diagram in a terminal without arrows is better than none


@main.command()
@click.argument("profiles", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every profile of the catalogue in every scenario.")
@click.option("--scenario", "scenarios", multiple=True, help='Only this scenario (may be repeated); "all" for all.')
@size_options()
@own_sizes()
@click.option("--no-timer", is_flag=True, help="Switch the release timer off: a hold ends by acks only.")
@click.option("--timer", type=int, help="For the reference model: the hold, in ticks.")
@click.option("--max-states", type=int, help="Give up after so many states.")
@click.option("--max-seconds", type=float, help="Give up after so much time, for each search.")
@click.option(
    "--max-memory",
    type=float,
    metavar="GIB",
    help="Give up before a process that searches has so much (default: 70 % of what is available, shared by the jobs).",
)
@click.option("--jobs", type=JOBS, metavar="N", help="Search so many cases at once (default: cores).")
@store_options()
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Save the traces here.")
@click.option("--traces", is_flag=True, help="With --all, show the traces as well as the table.")
@click.option("--witness", is_flag=True, help="Where nothing fails, show a run that exercises the property.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def verify(
    profiles: tuple[str, ...],
    everything: bool,
    scenarios: tuple[str, ...],
    prefill_ranks: int | None,
    decode_ranks: int | None,
    rooms: int | None,
    chunks: int | None,
    slots: int | None,
    own: tuple[tuple[str, int], ...],
    no_timer: bool,
    timer: int | None,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    jobs: int | None,
    folder: Path | None,
    no_store: bool,
    save: Path | None,
    traces: bool,
    witness: bool,
    as_json: bool,
) -> None:
    """Gives a verdict for each profile in each scenario, and the shortest trace of each failure.

    PROFILES are names of the catalogue, paths of TOML files, Python files with a model of your own (docs/own-models.md;
    to verify a file is to run it), or "reference" for the reference model. Without any, the headline profiles of the
    catalogue are verified, in the default scenarios.
    """
    from ...models.catalogue.profile import headlines
    from ...models.drain.scenario import SCENARIOS
    from ...properties.own import is_own
    from ..search.search import INTERRUPTED, Limits
    from ..verdicts.pool import available_cores
    from ..verdicts.verify import exit_code

    sizes = {"ranks": prefill_ranks, "decode_ranks": decode_ranks, "rooms": rooms, "chunks": chunks, "slots": slots}
    chosen = {name: size for name, size in sizes.items() if size is not None}
    if max_memory is not None and not 0 < max_memory < 2**20:
        raise click.UsageError(f"--max-memory {max_memory}: give a number of GiB greater than 0")
    memory = None if max_memory is None else int(max_memory * 2**30)
    if everything:
        if profiles:
            raise click.UsageError("--all takes the whole catalogue; name no profiles beside it")
        from ...models.catalogue.profile import catalogue

        profiles = tuple(catalogue())
        scenarios = scenarios or ("all",)
    cases = _cases(profiles or headlines(), scenarios, chosen, own, timer, no_timer)
    store = store_of(folder, no_store)
    if save:
        folder_for_output(save)
    batch = _run_cases(cases, Limits(max_states, max_seconds, memory), jobs or available_cores(), store)
    rows = batch.rows
    unknown = len(cases) - sum(INTERRUPTED not in row.reasons for row in rows)
    cut = f"interrupted; {unknown} rows are not known" if batch.interrupted else ""
    if cut and not rows:
        raise KeyboardInterrupt(cut)
    if as_json:
        from .report import document

        print_document(document(rows), cut)
    else:
        _print(rows, witness, traces or not everything)
        releases = [name for name in profiles or headlines() if name != REFERENCE and not is_own(name)]
        if releases and not scenarios:
            _print_not_asked()
        _print_left_out(releases, tuple(SCENARIOS) if "all" in scenarios else scenarios)
    if save:
        _save(rows, save)
    say_what_is_not_kept(store)
    if cut:
        raise KeyboardInterrupt(cut)
    sys.exit(exit_code(rows))


def _cases(
    profiles: Sequence[str],
    scenarios: Sequence[str],
    sizes: dict[str, int],
    own: Sequence[tuple[str, int]],
    timer: int | None,
    no_timer: bool,
) -> list[Case]:
    if timer is not None and set(profiles) != {REFERENCE}:
        raise click.UsageError("--timer belongs to the reference model; profiles take --no-timer")
    if timer is not None and no_timer:
        raise click.UsageError("--timer and --no-timer exclude each other")
    if no_timer:
        require_no_files(profiles, "--no-timer")
    return cases_asked(profiles, scenarios, sizes, own, timer=not no_timer, ticks=timer)


def _run_cases(cases: Sequence[Case], limits: Limits, jobs: int, store: Store | None) -> Batch:
    """The rows of the cases; fewer if the user interrupts."""
    from ..verdicts.batch import verify_all

    with _progress() as watch:
        return verify_all(cases, limits, jobs=jobs, store=store, watch=watch)


@contextmanager
def _progress() -> Generator[Callable[[Status], None] | None]:
    """Lines on the terminal that say how far the searches are; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.text import Text

    from ..terminal.screen import Screen

    note = "loading the search loops (the first run after an installation compiles them, a few seconds)"
    with Screen(stderr=True).status(note) as status:

        def watch(at: Status) -> None:
            lines = [f"{at.done} of {at.rows} rows", *(_search_words(*each) for each in at.running[:SEARCHES_SHOWN])]
            if len(at.running) > SEARCHES_SHOWN:
                lines.append(f"and {len(at.running) - SEARCHES_SHOWN} more")
            status.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"))

        yield watch


def _search_words(title: str, at: Progress) -> str:
    rate = at.states / max(at.seconds, 1e-6)
    return f"{title}: {at.states:,} states, {rate:,.0f} states/s, depth {at.depth}, frontier {at.frontier:,}"


def _save(rows: Sequence[Row], folder: Path) -> None:
    from ..traces.storage import save

    for row in rows:
        for trace in (*row.traces, row.witness):
            if trace:
                echo(f"saved {save(trace, folder)}", err=True)


def _print(rows: Sequence[Row], witness: bool, traces: bool) -> None:
    from ..traces.render_terminal import terminal
    from .report import legend, table

    console = screen()
    shown: dict[tuple[str, ...], str] = {}
    for row in rows:
        for trace in (*(row.traces if traces else ()), row.witness if witness else None):
            if trace is None:
                continue
            steps = (trace.subject, *(step.label for step in trace.steps))
            if steps in shown:
                same = f"{trace.model}: {trace.kind} of {trace.subject}, the same steps as {shown[steps]}\n"
                console.print(same, soft_wrap=True)
                continue
            shown[steps] = trace.model
            console.print(terminal(trace, console.width))
            console.print()
    print_wide(table(rows))
    console.print()
    echo_lines(legend(rows))


def _print_not_asked() -> None:
    from ...models.drain.scenario import DEFAULT, SCENARIOS

    others = [name for name in SCENARIOS if name not in DEFAULT]
    echo(f"Not asked (--scenario NAME, or all; docs/scenarios.md says what each is): {', '.join(others)}")


def _print_left_out(profiles: Sequence[str], scenarios: Sequence[str]) -> None:
    from ...properties.drain.cases import left_out

    for scenario, names in left_out(profiles, scenarios).items():
        echo(f"No verdict on {scenario}, which start-up refuses or the release does not have: {', '.join(names)}")


@main.command()
@click.argument("trace_file", type=click.Path(path_type=Path), metavar="TRACE")
@click.option("--format", "form", type=click.Choice(FORMATS), default="terminal", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
def show(trace_file: Path, form: str, output: Path | None) -> None:
    """Executes a saved trace again and draws it as a sequence diagram, or writes it as a test.

    svg, png and pdf are drawn by Graphviz, and need --output.
    """
    from ..traces.storage import load

    trace = load(trace_file)
    if form in ("svg", "png", "pdf"):
        _draw(trace, form, output)
        return
    text = _terminal_text(trace) if form == "terminal" else _text_of(trace, form)
    if output:
        write_output(output, text.encode("utf-8", "replace"))
    else:
        echo_text(text)


def _draw(trace: Trace, form: str, output: Path | None) -> None:
    from ..traces.render_graphviz import render

    if output is None:
        raise click.UsageError(f"--format {form} makes a file; add --output FILE.{form}")
    if output.suffix != f".{form}":
        raise click.UsageError(f"--output {output} does not end in .{form}")
    echo(f"wrote {render(trace, output)}", err=True)


def _text_of(trace: Trace, form: str) -> str:
    from ..traces.formats import FORMATS

    text = FORMATS[form].text
    assert text is not None, "what Graphviz draws is no text"
    return text(trace)


def _terminal_text(trace: Trace) -> str:
    from ..traces.render_terminal import terminal

    console = screen()
    with console.capture() as captured:
        console.print(terminal(trace, console.width))
    return captured.get()


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def history(as_json: bool) -> None:
    """Takes each change of the protocol's history away again, and shows which property then fails.

    Exit code 1 if the model does not say what the history does.
    """
    from ...models.mutants.changes import changes
    from ..verdicts.history import tell
    from .report import history_document, history_table

    chapters: list[Chapter] = []
    everything = changes()
    with note() as say, suppress(KeyboardInterrupt):
        for number, change in enumerate(everything, 1):
            say(f"{number} of {len(everything)}: {change.name}")
            chapters.append(tell(change))
    missing = len(everything) - len(chapters)
    cut = f"interrupted; {missing} changes are not told" if missing else ""
    if cut and not chapters:
        raise KeyboardInterrupt(cut)
    if as_json:
        print_document(history_document(chapters), cut)
    else:
        print_wide(history_table(chapters))
    if cut:
        raise KeyboardInterrupt(cut)
    sys.exit(0 if all(chapter.as_said for chapter in chapters) else 1)


@main.command()
@click.option("--jobs", type=JOBS, metavar="N", help="Search so many cases at once (default: cores).")
@store_options()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def calibrate(jobs: int | None, folder: Path | None, no_store: bool, as_json: bool) -> None:
    """Looks for each known bug in each release, and compares with what is known of the releases.

    Exit code 1 if a cell comes out otherwise than it is accounted for.
    """
    from ..verdicts.calibration import calibrate as fill
    from ..verdicts.pool import available_cores
    from .report import calibration_document, calibration_notes, calibration_table

    with _progress() as watch:
        store = store_of(folder, no_store)
        cells, interrupted = fill(jobs=jobs or available_cores(), store=store, watch=watch)
    cut = "interrupted; not all cells are known" if interrupted else ""
    if as_json:
        print_document(calibration_document(cells), cut)
    else:
        print_wide(calibration_table(cells))
        echo_lines(calibration_notes(cells))
    say_what_is_not_kept(store)
    if cut:
        raise KeyboardInterrupt(cut)
    sys.exit(0 if all(cell.accounted_for for cell in cells) else 1)


@main.command()
@click.argument("profiles", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every profile of the catalogue.")
@click.option("--jobs", type=JOBS, metavar="N", help="Search so many cases at once (default: cores).")
@store_options()
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Save the traces here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def degrade(
    profiles: tuple[str, ...],
    everything: bool,
    jobs: int | None,
    folder: Path | None,
    no_store: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Asks whether what goes wrong ever makes decode give memory back earlier than without it.

    PROFILES are as for verify. Exit code 1 if it does for one of them.
    """
    from ...models.catalogue.profile import catalogue, headlines, load_profile
    from ..traces.render_terminal import terminal
    from ..verdicts.degradation import relate, relations_document, relations_table
    from ..verdicts.pool import available_cores

    if everything and profiles:
        raise click.UsageError("--all takes the whole catalogue; name no profiles beside it")
    with _progress() as watch:
        chosen = [load_profile(name) for name in profiles or (catalogue() if everything else headlines())]
        store = store_of(folder, no_store)
        if save:
            folder_for_output(save)
        relations, interrupted = relate(chosen, jobs=jobs or available_cores(), store=store, watch=watch)
    traces = [trace for each in relations for trace in each.traces]
    cut = "interrupted; not all relations are known" if interrupted else ""
    if as_json:
        print_document(relations_document(relations), cut)
    else:
        console = screen()
        for trace in traces:
            console.print(terminal(trace, console.width))
        print_wide(relations_table(relations))
        echo("held: without it, a hold ends by acks, or by its timer; at once: there is no hold to lengthen.")
    if save:
        from ..traces.storage import save as save_trace

        for trace in traces:
            echo(f"saved {save_trace(trace, save)}", err=True)
    say_what_is_not_kept(store)
    if cut:
        raise KeyboardInterrupt(cut)
    if any(each.earlier for each in relations):
        sys.exit(1)
    sys.exit(0 if all(each.known for each in relations) else 3)


@main.command()
@click.argument("name", required=False)
def profile(name: str | None) -> None:
    """Prints a profile of the catalogue, to start one of your own from; without NAME, lists what there is."""
    from importlib.resources import files

    from ...models.catalogue.profile import catalogue, load_profile
    from ...models.drain.scenario import SCENARIOS

    if name is None:
        for each in catalogue():
            echo(f"{each}: {load_profile(each).title}")
        for scenario in SCENARIOS.values():
            echo(f"scenario {scenario.name}: {scenario.sentence}")
        return
    load_profile(name)
    if name not in catalogue():
        raise click.UsageError(f"{name} is a file of yours; name a profile of the catalogue")
    echo_text(files("draincheck.models.catalogue").joinpath(f"{name}.toml").read_text("utf-8"))


main.add_command(gate)
main.add_command(metrics)
main.add_command(size)
main.add_command(risk)
main.add_command(hold)
main.add_command(prove)
main.add_command(simulate)
main.add_command(explore)
main.add_command(relate)

if __name__ == "__main__":
    main()
