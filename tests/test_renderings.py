"""Traces as diagrams: each step is there once, what is said is the trace's, and no text breaks a format."""

from __future__ import annotations

import io
import json
import re
import shutil
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import itf_py
import pytest
from draincheck.explorer.traces import render_mermaid
from draincheck.explorer.traces.render_graphviz import RenderError, dot_source, render
from draincheck.explorer.traces.render_itf import itf
from draincheck.explorer.traces.render_mermaid import LIMIT, MermaidLimitError, escape, mermaid
from draincheck.explorer.traces.render_terminal import terminal, terminal_text
from draincheck.explorer.traces.trace import Arrow, Change, Trace, TraceStep, rerun, violation_trace
from draincheck.models.small.reference import no_late_write, reference
from draincheck.protocol.language.model import SlotView
from draincheck.protocol.language.property import Violation
from rich.console import Console

LATE_WRITE = (
    "admit(q=0)",
    "produce(p=0, q=0)",
    "dequeue(p=0, q=0)",
    "abort(q=0)",
    "tick(q=0)",
    "timeout(q=0)",
    "admit(q=1)",
    "land(p=0, q=0, c=0)",
)
GOLDEN = Path(__file__).parent / "golden"
HOSTILE = 'a;b#c\n"<>\\N &lt; %%{x}%% $$ end\x1b[31m'
HOSTILE_LINE = 'a;b#c "<>\\N &lt; %%{x}%% $$ end [31m'
"""The same text in one line, without the control character that starts a terminal's escape sequence."""

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="the program dot is not installed")


@pytest.fixture(scope="module")
def trace() -> Trace:
    """A shortest late write of the small timed reference model, run again: the golden files need this very one."""
    model = reference(1, rooms=2, ranks=1, chunks=1, slots=2)
    [initial] = model.initial_states()
    taken = rerun(model, initial, [(label, ()) for label in LATE_WRITE])
    return violation_trace(model, no_late_write, initial, taken, {})


def step(number: int, lane: str = "left", arrow: Arrow | None = None, **more: Any) -> TraceStep:
    """`act(n=number)`, which sets the only cell."""
    plain = TraceStep(
        number=number,
        label=f"act(n={number})",
        lane=lane,
        sentence="It happens",
        choice="",
        arrow=arrow,
        sends=(),
        changes=(Change("cell", "0", "1", False),),
        slots=(SlotView("slot 0", "free", "-"),),
        values=(number,),
    )
    return replace(plain, **more)


def made(*steps: TraceStep, **more: Any) -> Trace:
    """A trace that no model has run, for what the reference model does not show."""
    plain = Trace(
        model="made",
        kind="witness",
        subject="goal",
        sentence="A goal.",
        violation=None,
        initial=(0,),
        initial_slots=(SlotView("slot 0", "free", "-"),),
        steps=steps,
        lanes=("left", "middle", "right"),
        pending=(),
        bounds={},
        taken=(),
        cells=("cell",),
    )
    return replace(plain, **more)


def hostile() -> Trace:
    """Text that breaks formats, everywhere."""
    lanes = (f"one {HOSTILE}", f"two {HOSTILE}")
    only = step(
        1,
        lanes[0],
        Arrow(lanes[0], lanes[1], HOSTILE),
        label=HOSTILE,
        sentence=HOSTILE,
        choice=HOSTILE,
        changes=(Change(HOSTILE, HOSTILE, HOSTILE, True),),
        slots=(SlotView(HOSTILE, HOSTILE, HOSTILE),),
    )
    return made(
        only,
        model=HOSTILE,
        kind="violation",
        subject=HOSTILE,
        sentence=HOSTILE,
        violation=Violation("p", HOSTILE, {"x": "1"}),
        lanes=lanes,
        pending=(HOSTILE,),
        bounds={HOSTILE: HOSTILE},
    )


NUMBERS: dict[str, tuple[Callable[[Trace], str], str]] = {
    "terminal": (terminal_text, r"^ ?(\d+) "),
    "terminal as a list": (lambda trace: terminal_text(trace, 30), r"^ ?(\d+)\. "),
    "mermaid": (mermaid, r"^ +(?:Note over L\d+|L\d+-\)L\d+): (\d+)\. "),
    "graphviz": (dot_source, r"^\tstep(\d+) \["),
}


@pytest.mark.parametrize("form", NUMBERS)
def test_every_step_appears_once_and_in_order(trace: Trace, form: str) -> None:
    rendered, pattern = NUMBERS[form]
    found = [int(number) for number in re.findall(pattern, rendered(trace), re.MULTILINE)]
    assert found == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("form", NUMBERS)
def test_every_step_says_what_it_does_and_changes(trace: Trace, form: str) -> None:
    text = NUMBERS[form][0](trace)
    for each in trace.steps:
        assert each.label.split("(")[0] in text
        for change in each.changes:
            # A narrow list breaks lines between words, so the arrow may stand on the next line.
            assert f"{change.cell}: {change.before}" in text
    assert "hold[1]" not in text, "a cell that never changes is not shown"


@pytest.mark.parametrize("form", NUMBERS)
def test_the_false_conjunct_is_shown_with_its_values(trace: Trace, form: str) -> None:
    text = " ".join(NUMBERS[form][0](trace).replace("&#x27;", "'").split())
    assert "no write has landed in another room's slot is false" in text
    assert "bad = yes" in text


@pytest.mark.parametrize("form", NUMBERS)
def test_a_property_that_is_false_at_the_start_has_a_diagram_without_steps(form: str) -> None:
    rendered, pattern = NUMBERS[form]
    shown = made(lanes=(), kind="violation", violation=Violation("p", "it holds", {"at": "slot 3"}))
    text = " ".join(rendered(shown).split())
    assert not re.findall(pattern, rendered(shown), re.MULTILINE)
    assert "after 0 steps" in text
    assert "it holds is false" in text and "at = slot 3" in text


@pytest.mark.parametrize(("name", "rendered"), [("late_write.txt", terminal_text), ("late_write.mmd", mermaid)])
def test_golden(trace: Trace, name: str, rendered: Callable[[Trace], str]) -> None:
    assert rendered(trace) == (GOLDEN / name).read_text("utf-8")


# Terminal.


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r" ?\d+ ", line)]


def test_each_dot_stands_below_the_heading_of_its_lane(trace: Trace) -> None:
    text = terminal_text(trace, 100)
    heading = next(line for line in text.splitlines() if line.strip().startswith("decode  "))
    found = re.finditer(r"\S+(?: \S+)*", heading)
    middles = {match[0]: match.start() + len(match[0]) // 2 for match in found}
    assert tuple(middles) == trace.lanes
    for row, each in zip(rows(text), trace.steps, strict=True):
        assert row.index("●") == middles[each.lane]


def test_arrows_lead_from_source_to_target_and_cross_lifelines() -> None:
    shown = made(
        step(1, "left", Arrow("left", "right", "m")),
        step(2, "right", Arrow("left", "right", "m (sent in step 1)")),
        step(3, "right", Arrow("right", "left", "m")),
        step(4, "middle", Arrow("middle", "middle", "m")),
    )
    out, received, back, own = rows(terminal_text(shown, 80))
    left, middle, right = own.index("│"), own.index("●"), own.rindex("│")
    assert re.fullmatch(r"●─+ act\(n=1\) ─+▶│", out[left : right + 1])
    assert re.fullmatch(r"├─+┼─+▶● act\(n=2\)", received[left:]) and received[middle] == "┼"
    assert re.fullmatch(r"│◀─+ act\(n=3\) ─+●", back[left : right + 1])
    assert not set(own) & set("▶◀─")


def test_messages_are_received_delivered_and_sent_each_once() -> None:
    shown = made(
        step(1, sends=("wire: ping",)),
        step(2, "right", Arrow("left", "right", "wire: ping (sent in step 1)")),
        step(3, "left", Arrow("left", "right", "bus: write"), sends=("bus: write",)),
        step(4, "middle", Arrow("middle", "right", "bus: write (sent in step 3)")),
        pending=("wire: pong (sent in step 2 by right)",),
    )
    text = terminal_text(shown)
    assert re.findall(r"(?:receives|delivers|sends) [\w:]+ \w+", text) == [
        "sends wire: ping", "receives wire: ping", "sends bus: write", "delivers bus: write",
    ]  # fmt: skip
    assert "still on their way: wire: pong (sent in step 2 by right)" in text


def test_the_slot_map_is_shown_where_it_changes(trace: Trace) -> None:
    shown = [line.strip() for line in terminal_text(trace).splitlines() if line.startswith("    slot 0:")]
    assert shown == [
        "slot 0: free → room 0, not written · slot 1: free, not written",
        "slot 0: room 0 → free, not written · slot 1: free, not written",
        "slot 0: free → room 1, not written · slot 1: free, not written",
        "slot 0: room 1, last written by nobody → room 0 · slot 1: free, not written",
    ]


def test_ghost_state_is_marked_and_the_mark_is_explained(trace: Trace) -> None:
    text = terminal_text(trace)
    assert "~bad: no → yes" in text and "~call" not in text
    assert "~ marks ghost state" in text
    assert "~" not in terminal_text(made(step(1)))


def wide_trace() -> Trace:
    lanes = tuple(f"decode scheduler {number}" for number in range(6))
    steps = [
        step(number, lanes[number % 6], Arrow(lanes[number % 6], lanes[number * 5 % 6], "m"), choice="x" * 90)
        for number in range(1, 30)
    ]
    return made(*steps, lanes=lanes, bounds={"a bound with a long name": "and a value"})


@pytest.mark.parametrize("width", [20, 40, 60, 61, 62, 70, 80, 100, 140, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(trace: Trace, width: int) -> None:
    for shown in (trace, wide_trace()):
        assert max(map(len, terminal_text(shown, width).splitlines())) <= width


def test_a_narrow_terminal_gets_a_list() -> None:
    shown = made(step(1, "left", Arrow("left", "right", "m")))
    listed = terminal_text(shown, 16).splitlines()
    assert " 1. left:" in listed and "    left ──▶" in listed
    assert not any("│" in line for line in listed)
    assert "│" in terminal_text(shown, 40)


def test_colours_are_for_terminals_only(trace: Trace) -> None:
    def printed(**options: Any) -> str:
        console = Console(file=io.StringIO(), width=100, **options)
        console.print(terminal(trace, 100))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    assert printed() == terminal_text(trace, 100)
    coloured = printed(force_terminal=True, color_system="standard")
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == terminal_text(trace, 100)


def test_no_text_can_drive_the_terminal() -> None:
    text = terminal_text(hostile(), 200)
    assert "\x1b" not in text
    assert HOSTILE_LINE in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("violation", "made: goal is violated after 1 step"),
        ("witness", "made: goal is reached after 1 step"),
        ("deadlock", "made: nothing can happen any more after 1 step"),
    ],
)
def test_the_headline_says_why_the_trace_is_shown(kind: str, words: str) -> None:
    assert terminal_text(made(step(1), kind=kind)).splitlines()[0] == words


# Mermaid.

STATEMENT = re.compile(
    r"sequenceDiagram|end|rect rgba\(255, 0, 0, 0\.15\)"
    r"|(?:participant L\d+ as|Note over L\d+(?:,L\d+)?:|L\d+-\)L\d+:) (?P<text>\S.*)"
)


def statements(source: str) -> Iterator[tuple[str, str]]:
    """Each line and its text; fails on a line that Mermaid would not read as we mean it."""
    for line in source.splitlines():
        found = STATEMENT.fullmatch(line.strip())
        assert found, line
        yield line, found["text"] or ""


def test_hostile_text_cannot_leave_its_statement() -> None:
    assert escape('a;b#c\n"<>') == "a#59;b#35;c #34;#60;#62;"
    texts = [text for _, text in statements(mermaid(hostile()))]
    for text in texts:
        assert not re.search(r"[#;<>\"%{}$&\\]", re.sub(r"#\d+;|<br/>", "", text))
    assert any("a#59;b#35;c" in text for text in texts)


def test_lanes_have_opaque_names() -> None:
    source = mermaid(made(step(1, "end", Arrow("end", "loop", "")), lanes=("end", "loop")))
    assert "participant L0 as end" in source and "participant L1 as loop" in source
    assert "L0-)L1: 1. act(n=1)" in source


def test_the_failing_step_is_highlighted(trace: Trace) -> None:
    lines = [line.strip() for line in mermaid(trace).splitlines()]
    start, end = lines.index("rect rgba(255, 0, 0, 0.15)"), lines.index("end")
    assert lines[start + 1].startswith("L1-)L0: 8. land(")
    assert lines[end - 1].startswith("Note over L0,L3: ✗ no write has landed")
    assert "rect" not in mermaid(made(step(1)))


def long_trace(steps: int, changes: int) -> Trace:
    changed = tuple(Change(f"cell[{number}]", "before", "after", False) for number in range(changes))
    return made(*(step(number, changes=changed) for number in range(1, steps + 1)))


def numbered(source: str) -> list[int]:
    return [int(number) for number in re.findall(NUMBERS["mermaid"][1], source, re.MULTILINE)]


def test_a_short_trace_is_complete(trace: Trace) -> None:
    assert "left out" not in mermaid(trace)


def test_a_long_trace_leaves_out_the_changes_first_and_says_so() -> None:
    source = mermaid(long_trace(400, 10))
    assert len(source) < LIMIT
    assert numbered(source) == list(range(1, 401))
    assert "cell[0]" not in source
    assert "What each step changes is left out" in source


def test_a_longer_trace_leaves_out_steps_in_the_middle_and_says_how_many() -> None:
    source = mermaid(long_trace(5_000, 1))
    numbers = numbered(source)
    shown = re.search(r"\.\.\. ([\d,]+) steps are left out here", source)
    assert shown and int(shown[1].replace(",", "")) == 5_000 - len(numbers)
    gap = len(numbers) // 2
    assert numbers == [*range(1, gap + 1), *range(5_000 - len(numbers) + gap + 1, 5_001)]
    assert LIMIT - 200 < len(source) < LIMIT, "as much is kept as fits"


def test_a_text_without_end_is_cut_and_says_so() -> None:
    source = mermaid(made(step(1, choice="word " * 20_000)))
    assert re.search(r"\(2,?\d+ more lines are left out\)", source)
    assert len(source) < 3_000


def test_lanes_that_leave_no_room_are_an_error() -> None:
    with pytest.raises(MermaidLimitError, match=r"50,000 characters.*another format"):
        mermaid(made(step(1), lanes=("left", *(f"lane {number}" for number in range(3_000)))))


def test_the_limit_is_exclusive(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    full = mermaid(trace)
    monkeypatch.setattr(render_mermaid, "LIMIT", len(full) + 1)
    assert mermaid(trace) == full
    monkeypatch.setattr(render_mermaid, "LIMIT", len(full))
    assert "left out" in mermaid(trace)
    shown = long_trace(60, 0)
    for limit in range(1_500, 1_600):
        monkeypatch.setattr(render_mermaid, "LIMIT", limit)
        assert len(mermaid(shown)) < limit


# Graphviz.


def positions(source: str) -> dict[str, tuple[float, float]]:
    found = re.findall(r'^\t"?(\w[\w ]*?)"? \[.*pos="(-?[\d.]+),(-?[\d.]+)!"', source, re.MULTILINE)
    return {name: (float(x), float(y)) for name, x, y in found}


def test_lanes_are_columns_and_steps_are_rows(trace: Trace) -> None:
    at = positions(dot_source(trace))
    for each in trace.steps:
        assert at[f"step{each.number}"][0] == at[f"lane{trace.lanes.index(each.lane)}"][0]
    heights = [at[f"step{each.number}"][1] for each in trace.steps]
    assert all(above - below >= 32 for above, below in pairwise(heights))
    columns = [at[f"lane{number}"][0] for number in range(len(trace.lanes))]
    assert columns == sorted(columns) and len(set(columns)) == 4


def test_arrows_point_from_the_step_or_to_it() -> None:
    shown = made(step(1, "left", Arrow("left", "right", "out")), step(2, "left", Arrow("right", "left", "in")))
    source = dot_source(shown)
    at = positions(source)
    assert "\tstep1 -> other1 [" in source and "\tother2 -> step2 [" in source
    assert at["other1"] == (at["lane2"][0], at["step1"][1])


def test_slots_are_drawn_beside_the_rows_where_they_change(trace: Trace) -> None:
    at = positions(dot_source(trace))
    tables = {name: place for name, place in at.items() if re.fullmatch(r"slots\d+", name)}
    assert set(tables) == {"slots1", "slots6", "slots7", "slots8"}
    assert all(y == at[name.replace("slots", "step")][1] for name, (_, y) in tables.items())


def test_what_changes_in_a_slot_is_marked(trace: Trace) -> None:
    tables = re.findall(r"^\tslots\d+ \[label=<(.*?)> pos=", dot_source(trace), re.MULTILINE)
    cells = [re.findall(r'BGCOLOR="(#\w+)"><FONT[^>]*>([^<]+)<', table) for table in tables]
    marked = [[text for color, text in table if color != "#ffffff"] for table in cells]
    assert marked == [["room 0"], ["free"], ["room 1"], ["room 0"]]
    assert [text for _, text in cells[-1]][3:6] == ["slot 0", "room 1", "room 0"]


def test_only_the_failing_step_is_red(trace: Trace) -> None:
    boxes = re.findall(r"^\tstep(\d+) \[.* color=\"(#\w+)\"", dot_source(trace), re.MULTILINE)
    assert len(boxes) == 8
    assert [number for number, color in boxes if color == "#b3261e"] == ["8"]


def texts(drawing: Path) -> str:
    """What an SVG shows, without its line breaks. Fails if it is not well-formed."""
    root = xml.fromstring(drawing.read_text("utf-8"))
    return " ".join(each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text"))


@needs_dot
@pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_drawings(trace: Trace, tmp_path: Path, suffix: str, magic: bytes) -> None:
    drawn = render(trace, tmp_path / f"late write.{suffix}")
    assert drawn == tmp_path / f"late write.{suffix}"
    assert drawn.read_bytes().startswith(magic)


@needs_dot
def test_a_drawing_shows_text_as_it_is(tmp_path: Path) -> None:
    shown = " ".join(texts(render(hostile(), tmp_path / "hostile.svg")).split())
    assert f"{HOSTILE_LINE}: {HOSTILE_LINE} is violated after 1 step" in shown
    assert f"✗ {HOSTILE_LINE} is false" in shown
    assert f"still on its way: {HOSTILE_LINE}" in shown


@needs_dot
def test_a_drawing_explains_each_step_on_hover(trace: Trace, tmp_path: Path) -> None:
    text = render(trace, tmp_path / "trace.svg").read_text("utf-8")
    assert 'xlink:title="timeout(q=0): The hold ends by its timer, whatever is still in flight"' in text


def test_without_dot_the_error_says_what_to_install(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RenderError, match=r"apt install graphviz.*Mermaid format, which needs nothing"):
        render(trace, tmp_path / "trace.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["trace.gif", "trace", "svg"])
def test_another_suffix_is_refused_with_the_ones_there_are(trace: Trace, tmp_path: Path, name: str) -> None:
    with pytest.raises(RenderError, match=rf"{name}: .*\.svg, \.png, \.pdf"):
        render(trace, tmp_path / name)
    assert not list(tmp_path.iterdir())


# ITF.


def decoded(value: Any) -> Any:
    match value:
        case {"#bigint": digits}:
            return int(digits)
        case {"#tup": parts}:
            return tuple(map(decoded, parts))
        case {"#map": pairs}:
            return {decoded(key): decoded(each) for key, each in pairs}
        case str():
            return value
        case _:
            raise AssertionError(f"not ITF: {value}")


def test_itf_holds_every_state_whole(trace: Trace) -> None:
    document = json.loads(itf(trace))
    assert document["#meta"]["format"] == "ITF"
    assert document["#meta"]["source"] == "reference timed T=1"
    assert [state["#meta"] for state in document["states"]] == [{"index": number} for number in range(9)]
    states = [trace.initial, *(each.values for each in trace.steps)]
    for state, values in zip(document["states"], states, strict=True):
        variables = {name: decoded(value) for name, value in state.items() if name != "#meta"}
        assert list(variables) == document["vars"]
        for cell, value in zip(trace.cells, values, strict=True):
            name, _, index = cell.rstrip("]").partition("[")
            key = tuple(map(int, index.split(","))) if index else ()
            found = variables[name] if not key else variables[name][key if len(key) > 1 else key[0]]
            assert found == value


def test_itf_names_the_action_of_each_state(trace: Trace) -> None:
    taken = [state["mbt::actionTaken"] for state in json.loads(itf(trace))["states"]]
    assert taken == ["init", *(each.label for each in trace.steps)]


def test_itf_is_read_and_written_back_by_another_library(trace: Trace) -> None:
    document = json.loads(itf(trace))
    read = itf_py.trace_from_json(document)
    assert read.states[-1].values["bad"] == 1
    assert read.states[-1].values["owner"] == {0: 1, 1: -1}
    assert itf_py.trace_to_json(read)["states"] == document["states"]
