"""Files that a user names: nothing is read without a bound, and what is wrong is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from draincheck.explorer.operators.durations import load_durations
from draincheck.explorer.operators.sources import read_lines
from draincheck.explorer.operators.sources import read_text as read_source
from draincheck.explorer.traces.storage import load
from draincheck.models.catalogue.profile import load_profile
from draincheck.models.reading import TOML_BYTES, ReadingError, parse_toml, read_bytes, read_text

LIMIT = 100
ENDLESS = Path("/dev/zero")
READERS = {
    "profile": lambda path: load_profile(str(path)),
    "trace": load,
    "durations": load_durations,
    "metrics": lambda path: read_source(str(path), 1.0),
    "log": lambda path: list(read_lines(str(path))),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_device_without_end_is_refused_by_every_reader(reader: str) -> None:
    with pytest.raises(ReadingError, match="/dev/zero: is no regular file; expected is "):
        READERS[reader](ENDLESS)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * LIMIT)
    assert read_bytes(path, LIMIT, "text") == b"a" * LIMIT
    path.write_bytes(b"a" * (LIMIT + 1))
    with pytest.raises(ReadingError, match="file: larger than 100 bytes; expected is text"):
        read_bytes(path, LIMIT, "text")


def test_a_file_that_claims_no_size_is_bounded_too() -> None:
    """Files of the kernel have size 0 whatever they hold."""
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    with pytest.raises(ReadingError, match="larger than 100 bytes"):
        read_bytes(path, LIMIT, "text")


def test_a_pipe_is_read_where_pipes_are_meant(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_bytes(pipe, LIMIT, "text") == b""  # nobody writes to it: opening it does not wait for that
    with pytest.raises(ReadingError, match="is no regular file"):
        read_bytes(pipe, LIMIT, "text", pipes=False)
    read, write = os.pipe()
    os.write(write, b"text")
    os.close(write)
    assert read_text(Path(f"/dev/fd/{read}"), LIMIT, "text") == "text"
    os.close(read)


def test_text_is_utf8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert read_text(path, LIMIT, "text") == "one\r\ntwo"
    path.write_bytes(b"one\n\xff")
    with pytest.raises(ReadingError, match="file, line 2: is not UTF-8 text; expected is a poem"):
        read_text(path, LIMIT, "a poem")


def test_paths_that_cannot_be() -> None:
    for path, message in (("a\0b", "a NUL byte"), ("x" * 300, "File name too long"), ("/", "Is a directory")):
        with pytest.raises(ReadingError, match=message) as caught:
            read_bytes(Path(path), LIMIT, "text")
        assert "\0" not in str(caught.value)


HOSTILE = {
    "dotted key": ("a." * 100_000 + "a = 1", "more than 262,144|a key of more than 16 parts"),
    "smaller dotted key": ("a." * 16 + "a = 1", "line 1: a key of more than 16 parts"),
    "quoted key": ('x = 1\n"a" . ' + "'b'. " * 16 + "a = 1", "line 2: a key of more than 16 parts"),
    "header": ("[" + "a." * 20_000 + "a]", "a key of more than 16 parts"),
    "key in an inline table": ("x = {" + "a." * 20_000 + "a = 1}", "a key of more than 16 parts"),
    "escaped quotes in keys": (r'"\"" . ' * 20_000 + "a = 1", "a key of more than 16 parts"),
    "nested lists": ("x = " + "[" * 1000 + "]" * 1000, "nested too deeply"),
    "nested tables": ("x = " + "{a = " * 1000 + "1" + "}" * 1000, "nested too deeply"),
    "digits": ("x = " + "1" * 5000, "a whole number of more than 64 bits"),
    "hexadecimal digits": ("x = [{y = 0x" + "f" * 5000 + "}]", "a whole number of more than 64 bits"),
    "size": ("#" * (TOML_BYTES + 1), "more than 262,144 characters"),
    "no TOML": ("x = ", "this is no TOML: Invalid value"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_toml_that_would_take_too_much_is_one_line(kind: str) -> None:
    text, message = HOSTILE[kind]
    with pytest.raises(ReadingError, match=f"^mine.*({message})") as caught:
        parse_toml(text, "mine")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("unit", ["a", '"\\', "'", "a\n", '"' + "x" * 202 + '".', "a = 1.5\n", "a.b-c ", " ."])
def test_no_text_takes_much_memory(unit: str) -> None:
    """Whatever the look-out for long keys lets through is parsed, or refused, in little memory.

    The most that `getrusage` knows would be that of the process which began this one.
    """
    program = (
        "import sys; from draincheck.models.reading import *\n"
        "try: parse_toml((sys.argv[1] * TOML_BYTES)[:TOML_BYTES - 10] + 'a = 1', 'mine')\n"
        "except ReadingError: pass\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    run = subprocess.run([sys.executable, "-c", program, unit], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 200_000  # KiB, the interpreter and the text included


def test_good_toml_is_what_tomllib_says() -> None:
    text = 'a.b.c = "x.y.z"\n["q.r".s]\nx = [1, -9223372036854775808, 1.5]\ne = "evidence: a.b.c, ..."\n'
    assert parse_toml(text, "mine") == {
        "a": {"b": {"c": "x.y.z"}},
        "q.r": {"s": {"x": [1, -(2**63), 1.5], "e": "evidence: a.b.c, ..."}},
    }
