"""`import draincheck`: what it gives is there, typed, documented, and does what its examples say."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import draincheck as dc
import pytest
from draincheck.explorer import front
from draincheck.explorer.commands import cli
from draincheck.explorer.traces import formats


def test_the_examples_do_what_they_say() -> None:
    found = doctest.testmod(front)
    assert found.attempted >= 6 and found.failed == 0


def test_all_that_is_listed_is_there() -> None:
    assert front.__all__ == sorted(front.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in front.__all__:
        assert getattr(dc, name) is getattr(front, name)
        if inspect.isfunction(getattr(dc, name)) or inspect.isclass(getattr(dc, name)):
            assert inspect.getdoc(getattr(dc, name)), name
    assert set(front.__all__) < set(dir(dc))
    assert (Path(dc.__file__).parent / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dc.nothing  # type: ignore[attr-defined]


def test_a_trace_is_saved_in_the_format_of_its_suffix(tmp_path: Path) -> None:
    row = dc.verify("sglang-0.5.18-mooncake", "abort")
    assert row.trace is not None and "no_late_write is violated after 17 steps" in str(row.trace)
    begins = {
        "late.txt": "sglang", "late.mmd": "sequenceDiagram", "late.dot": "digraph", "late.py": "from draincheck import",
        "late.itf.json": "{", "late.json": "{",
    }  # fmt: skip
    for name, words in begins.items():
        path = row.trace.save(tmp_path / name)
        assert path.read_text("utf-8").lstrip("/ \n").startswith(words), name
    assert dc.load(tmp_path / "late.json") == row.trace
    with pytest.raises(dc.DraincheckError, match=r"late\.jpg: the suffix says no format; known are \.txt"):
        row.trace.save(tmp_path / "late.jpg")


def test_one_case_is_meant(tmp_path: Path) -> None:
    mine = tmp_path / "two.py"
    mine.write_text(
        "import draincheck as dc\n"
        "class S(dc.State[None]):\n"
        "    n = dc.field(dc.upto(3), means='a number')\n"
        "@dc.action('t')\n"
        "def up(s: S) -> None:\n"
        "    '''Counts.'''\n"
        "    dc.require(s.n < 3)\n"
        "    s.n += 1\n"
        "@dc.invariant(kind=dc.Kind.LEAK)\n"
        "def low(s: S) -> None:\n"
        "    '''It is low.'''\n"
        "    dc.claim(s.n < 3, 'it is below three')\n"
        "model = dc.Model(name='up', state=S, actions=(up,), sizes={}, terminal=lambda s: s.n == 3)\n"
        "a = dc.Check(model, (low,))\n"
        "b = dc.Check(model, ())\n",
        "utf-8",
    )
    assert dc.verify(str(mine), "a").verdict is dc.Verdict.LEAKS
    with pytest.raises(dc.DraincheckError, match="several checks; name one: a, b"):
        dc.verify(str(mine))
    row = dc.verify(str(mine), "b")
    assert row.verdict is dc.Verdict.UNDETERMINED and row.reasons == ("no property is asked for",)


def test_the_command_line_and_the_registry_know_the_same_formats() -> None:
    assert tuple(formats.FORMATS) == cli.FORMATS
