"""The command `prove`: proofs by Z3 on the guarded commands, and what is in their way."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...protocol.language.errors import DraincheckError
from ..terminal.console import echo, echo_lines, note, print_document, print_wide, screen, text_cell
from ..verdicts.status_update import assumption, words
from .asked import REFERENCE, cases_asked
from .size_options import own_sizes

if TYPE_CHECKING:
    from rich.table import Table

    from ...models.catalogue.profile import Profile
    from ...properties.case import Question
    from ...protocol.language.property import Property
    from ..verdicts.proofs import Result

FORMAT = "draincheck-prove"
VERSION = 1
METHODS = ("induction", "k-induction", "bmc", "spacer")
RANKS = ("1", "2", "any")
MAX_LEMMA_BYTES = 2**20
EXIT_CODES = {"PROVED": 0, "VIOLATED": 1, "UNDETERMINED": 3}
STYLES = {"PROVED": "green", "VIOLATED": "bold red", "UNDETERMINED": "magenta"}


class LemmaError(DraincheckError):
    """A file of lemmas cannot be used."""


@click.command()
@click.argument("profile")
@click.option("--scenario", "scenarios", multiple=True, help="Ask the bounded model that verify searches, instead.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="[default: induction; with --scenario and no lemmas: k-induction]",
)
@click.option(
    "--prefill-ranks",
    "ranks",
    multiple=True,
    metavar="N|any",
    help="Prefill ranks of the model in endless lives (may be repeated). [default: 1, 2 and any; by other methods 1]",
)
@click.option("--slots", type=click.IntRange(1, 4), default=1, show_default=True, help="Slots of a request there.")
@click.option(
    "--lemmas",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A Python file whose properties are the lemmas. [default: those of draincheck.properties.drain.lemmas]",
)
@click.option("--property", "names", multiple=True, metavar="NAME", help="Ask only for this one (may be repeated).")
@click.option("--depth", type=click.IntRange(0, 10**6), default=20, show_default=True, help="Steps of a run, at most.")
@click.option("--max-seconds", type=float, default=60.0, show_default=True, help="Give up after so long, each time.")
@own_sizes()
@click.option("--simple-path", is_flag=True, help="In k-induction, let no state come twice in a row of states.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def prove(
    profile: str,
    scenarios: tuple[str, ...],
    method: str | None,
    ranks: tuple[str, ...],
    slots: int,
    file: Path | None,
    names: tuple[str, ...],
    depth: int,
    max_seconds: float,
    own: tuple[tuple[str, int], ...],
    simple_path: bool,
    as_json: bool,
) -> None:
    """Proves that no write of PROFILE is late and that its acks are true, without bounds in time.

    The model lives without end: any number of room lives, chunks, generations, failing sends and victims, and for
    "any" of prefill ranks. What is proved, and under which assumptions, is in docs/proofs.md. PROFILE can also be
    "reference", or a Python file with a model of your own, which is run. Exit codes: 0 proved, 1 violated (with a
    run), 2 wrong input, 3 undetermined (with steps that are in the way of a proof, from a state that may be
    unreachable).
    """
    from ...models.catalogue.profile import load_profile
    from ...properties.own import is_own
    from ..verdicts.proofs import Method, worst

    free = profile == REFERENCE or is_own(profile)  # of no release
    bounded = bool(scenarios) or free
    chosen = Method(method or ("k-induction" if bounded and file is None else "induction"))
    if bounded and (ranks or slots != 1):
        raise click.UsageError("--prefill-ranks and --slots belong to endless lives; leave --scenario out")
    if simple_path and chosen is not Method.K_INDUCTION:
        raise click.UsageError("--simple-path belongs to --method k-induction")
    for each in ranks:
        if each not in RANKS:
            raise click.UsageError(f"--prefill-ranks {each}: allowed are {', '.join(RANKS)}")
    if chosen is not Method.INDUCTION and "any" in ranks:
        raise click.UsageError("any number of ranks is proved by induction only; leave --method out")
    if chosen is not Method.INDUCTION and file is not None:
        raise click.UsageError("--lemmas belong to --method induction")
    lemmas = None if file is None else _own_lemmas(file)
    if own and not is_own(profile):
        raise click.UsageError("--size belongs to Python files")
    loaded = None if free else load_profile(profile)  # once: it may come through a pipe
    limits = (depth, max_seconds)
    if loaded is None or bounded:
        questions = _free_questions(profile, scenarios, own) if loaded is None else _questions(loaded, scenarios)
        results = _bounded(questions, chosen, lemmas or [], names, limits, simple_path)
    else:
        default = RANKS if chosen is Method.INDUCTION else RANKS[:1]
        results = _endless(loaded, ranks or default, slots, chosen, lemmas, names, limits, simple_path)
    assumed = {} if loaded is None else _assumed(loaded, scenarios)
    if as_json:
        print_document(document(profile, assumed, results))
    else:
        _print(profile, results)
        for knob, value in assumed.items():
            echo(f"{profile}: {knob} is unknown and taken as {value}")
    sys.exit(EXIT_CODES[worst(results)])


def _endless(
    profile: Profile,
    ranks: Sequence[str],
    slots: int,
    method: Any,
    lemmas: Sequence[Property] | None,
    names: Sequence[str],
    limits: tuple[int, float],
    simple_path: bool,
) -> list[Result]:
    from ...models.drain.endless import endless
    from ...properties.drain.cases import drain_case
    from ...properties.drain.lemmas import GOALS, LEMMAS
    from ..proofs.unrolling import Bounds
    from ..verdicts.proofs import ANY, Method, Verdict, prove_bounded, prove_endless, refuted

    if not profile.knobs.transfers:
        raise DraincheckError(f"{profile.origin}: the backend transfers nothing; there is nothing to prove")
    goals = _chosen(names, GOALS)
    results: list[Result] = []
    with note() as say:
        for number in ranks:
            if method is not Method.INDUCTION:
                question = drain_case(profile, endless(ranks=int(number), slots=slots), timer=False).untimed
                results += prove_bounded(question, goals, method, Bounds(*limits), simple_path=simple_path, watch=say)
                continue
            for late in (False, True):
                count = number if number == ANY else int(number)
                given = LEMMAS if lemmas is None else lemmas
                say(f"{profile.name}: prefill ranks {number}")
                found = prove_endless(
                    profile, count, late_timer=late, slots=slots, lemmas=given, goals=goals, watch=say
                )
                results.append(found)
                if found.verdict is not Verdict.PROVED:
                    say(f"{profile.name}: looking for a run that fails")
                    return [*results, *refuted(profile, goals)]
    return results


def _bounded(
    questions: Sequence[Question],
    method: Any,
    lemmas: Sequence[Property],
    names: Sequence[str],
    limits: tuple[int, float],
    simple_path: bool,
) -> list[Result]:
    from ..proofs.unrolling import Bounds
    from ..verdicts.proofs import Method, prove_bounded, prove_by_induction

    results: list[Result] = []
    with note() as say:
        for question in questions:
            known = question.check.properties
            subjects = _chosen(names, known)
            if method is Method.INDUCTION:
                results.append(prove_by_induction(question.check.model, lemmas, subjects, say))
            else:
                asked = subjects if names else [*subjects, None]
                results += prove_bounded(question, asked, method, Bounds(*limits), simple_path=simple_path, watch=say)
    return results


def _assumed(profile: Profile, scenarios: Sequence[str]) -> dict[str, object]:
    """Knobs that are unknown and can matter, with the value taken for each."""
    from ...models.drain.endless import endless
    from ...properties.drain.cases import scenario_with
    from ...properties.drain.unknown import matters

    asked = [scenario_with(each, {}) for each in scenarios] or [endless()]
    unknown = [knob for knob in profile.unknown if any(matters(knob, each) for each in asked)]
    return {knob: getattr(profile.knobs, knob, None) for knob in unknown}


def _free_questions(name: str, checks: Sequence[str], own: Sequence[tuple[str, int]]) -> list[Question]:
    """What is asked of a Python file, or of the reference model."""
    return [case.untimed for case in cases_asked([name], checks, {}, own, timer=False)]


def _questions(profile: Profile, scenarios: Sequence[str]) -> list[Question]:
    """What is asked of the scenarios of a profile."""
    from ...properties.drain.cases import drain_case, scenario_with

    return [drain_case(profile, scenario_with(name, {}), timer=False).untimed for name in scenarios]


def _chosen(names: Sequence[str], known: Sequence[Property]) -> list[Property]:
    """The properties of these names; all without any."""
    by_name = {each.name: each for each in known}
    for name in names:
        if name not in by_name:
            raise click.UsageError(f"--property {name}: the model is asked for {', '.join(by_name)}")
    return [by_name[name] for name in names] or list(known)


def _own_lemmas(file: Path) -> list[Property]:
    """The lemmas of a file. Raises LemmaError if one takes the name of a shipped property that it is not."""
    from ...properties.drain import lemmas, progress, safety
    from ...protocol.language.property import Property

    defined = (each for module in (lemmas, progress, safety) for each in vars(module).values())
    shipped = {each.name: each for each in defined if isinstance(each, Property)}
    found = lemmas_of(file)
    if taken := sorted(each.name for each in found if shipped.get(each.name, each) != each):
        raise LemmaError(f"{file}: {', '.join(taken)}: a property of draincheck has this name; rename the lemma")
    return found


def lemmas_of(file: Path) -> list[Property]:
    """The lemmas of a Python file: its LEMMAS, or all properties that it defines. Raises LemmaError if it has none, or
    cannot be run."""
    from ...models.reading import read_bytes
    from ...protocol.language.property import Property

    spec = spec_from_file_location(f"lemmas_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise LemmaError(f"{file}: this is no Python file; its name must end in .py")
    read_bytes(file, MAX_LEMMA_BYTES, "a Python file of lemmas", pipes=False)
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except DraincheckError:
        raise
    except (Exception, SystemExit) as error:
        raise LemmaError(f"{file}: it cannot be run: {type(error).__name__}: {error}") from None
    listed: tuple[object, ...] = tuple(getattr(module, "LEMMAS", vars(module).values()))
    found = [each for each in listed if isinstance(each, Property)]
    if not found:
        raise LemmaError(f"{file}: it defines no lemma; write functions with @invariant, see docs/proofs.md")
    if twice := sorted({each.name for each in found if [other.name for other in found].count(each.name) > 1}):
        raise LemmaError(f"{file}: two lemmas are called {', '.join(twice)}; rename one")
    return found


def table(results: Sequence[Result]) -> Table:
    """What was asked of which model, and what is known."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("model", "prefill ranks", "release timer", "property", "method", "verdict", "how"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("seconds", justify="right", no_wrap=True)
    for each in results:
        subjects = each.subjects[0] if len(each.subjects) == 1 else f"all {len(each.subjects)}"
        ranks, timer = each.bounds.get("prefill ranks", "-"), each.bounds.get("release timer", "-")
        verdict = Text(each.verdict, style=STYLES[each.verdict])
        shown.add_row(
            text_cell(each.model), ranks, timer, subjects, each.method, verdict, each.detail, f"{each.seconds:.1f}"
        )
    return shown


def legend(profile: str, results: Sequence[Result]) -> list[str]:
    """What was proved, with what, and within which bounds."""
    lines = [f"Properties: {', '.join(names)}" for names in dict.fromkeys(each.subjects for each in results)]
    lines += [f"Lemmas: {', '.join(names)}" for names in dict.fromkeys(each.lemmas for each in results) if names]
    bounds = {each.model: each.bounds for each in results}
    lines += [
        f"Bounds: {model}: {', '.join(f'{name} {value}' for name, value in found.items() if name not in SHOWN)}"
        for model, found in bounds.items()
    ]
    lines += [f"Assumed: {each}" for each in dict.fromkeys(words(profile, each.bounds) for each in results) if each]
    return [*lines, "More assumptions: docs/proofs.md"]


SHOWN = ("prefill ranks", "release timer")
"""Bounds that have columns of their own."""


def _print(profile: str, results: Sequence[Result]) -> None:
    from ..traces.render_terminal import terminal

    console = screen()
    for each in results:
        if each.trace:
            console.print(terminal(each.trace, console.width))
    print_wide(table(results))
    echo()
    echo_lines(legend(profile, results))


def document(profile: str, assumed: Mapping[str, object], results: Sequence[Result]) -> dict[str, Any]:
    """The results for programs; docs/json.md describes the fields."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "profile": profile,
        "assumed": dict(assumed),
        "results": [
            {
                "model": each.model,
                "bounds": dict(each.bounds),
                "assumption": assumption(profile, each.bounds) or None,
                "properties": list(each.subjects),
                "method": str(each.method),
                "verdict": str(each.verdict),
                "detail": each.detail,
                "lemmas": list(each.lemmas),
                "seconds": round(each.seconds, 3),
                "depth_seconds": [round(at, 3) for at in each.times],
                "trace": _trace_document(each),
            }
            for each in results
        ],
    }


def _trace_document(result: Result) -> dict[str, Any] | None:
    if result.trace is None:
        return None
    return {
        "kind": result.trace.kind,
        "reachable": result.trace.kind != "induction",
        "begins": list(result.trace.begins),
        "steps": [step.label for step in result.trace.steps],
        "violation": str(result.trace.violation),
    }
