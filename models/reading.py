"""Files that a user names: read up to a limit, as text where text is expected. What is wrong with one is one line.

A file may be regular or a pipe. Devices are refused, since some of them never end, and no read takes more than the
limit, whatever size a file claims to have.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..protocol.language.errors import DraincheckError

TOML_BYTES = 2**18
MAX_KEY_PARTS = 16
"""No key of ours has more than two; the time and memory of the parser grow with the square of their number."""

# The bound of a quoted part keeps the look-out linear; of longer ones, a file of this size has too few to matter.
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.){0,200}+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


class ReadingError(DraincheckError):
    """A file that cannot be read, or cannot be what was expected; the message names it."""


@contextmanager
def opened(path: Path, expected: str, *, pipes: bool = True) -> Generator[BinaryIO]:
    """A file opened for reading bytes. `expected` says what it should hold, as in "a profile".

    Raises ReadingError, also for a directory, a device and, without `pipes`, a pipe.
    """
    if "\0" in str(path):
        raise ReadingError(f"{str(path)!r}: a NUL byte is no part of a path")
    try:
        # Without O_NONBLOCK, opening a named pipe waits for somebody to write to it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) and not (pipes and stat.S_ISFIFO(mode)):
                raise ReadingError(f"{path}: is no regular file; expected is {expected}")
            os.set_blocking(file.fileno(), True)
            yield file
    except OSError as error:
        raise ReadingError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_bytes(path: Path, limit: int, expected: str, *, pipes: bool = True) -> bytes:
    """The contents of a file of at most `limit` bytes. Raises ReadingError for all that `opened` refuses, and more."""
    with opened(path, expected, pipes=pipes) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(limit + 1)
    if max(size, len(data)) > limit:
        raise ReadingError(f"{path}: larger than {limit:,} bytes; expected is {expected}")
    return data


def read_text(path: Path, limit: int, expected: str) -> str:
    """The text of a file of at most `limit` bytes: UTF-8, with or without a byte order mark. Raises ReadingError."""
    return decode(read_bytes(path, limit, expected), str(path), expected)


def decode(data: bytes, origin: str, expected: str) -> str:
    """Bytes as text, without a byte order mark. Raises ReadingError naming the first line that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ReadingError(f"{origin}, line {line}: is not UTF-8 text; expected is {expected}") from None


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """TOML as data. Raises ReadingError also for what the parser would need too much for, or gives up on."""
    if len(text) > TOML_BYTES:
        raise ReadingError(f"{origin}: more than {TOML_BYTES:,} characters of TOML")
    long = _LONG_KEY.search(text)
    if long:
        line = text.count("\n", 0, long.start()) + 1
        raise ReadingError(f"{origin}, line {line}: a key of more than {MAX_KEY_PARTS} parts")
    try:
        data = tomllib.loads(text)
        _refuse_long_numbers(data)
    except tomllib.TOMLDecodeError as error:
        raise ReadingError(f"{origin}: this is no TOML: {error}") from None
    except RecursionError:
        raise ReadingError(f"{origin}: this is no TOML that can be read: its values are nested too deeply") from None
    except ValueError:  # Python converts no text of more than 4,300 digits
        raise ReadingError(f"{origin}: this is no TOML: a whole number of more than 64 bits") from None
    return data


def _refuse_long_numbers(value: object) -> None:
    """TOML's integers have 64 bits; those of the parser have any number, and some cannot be printed."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError
    if isinstance(value, dict):
        for each in cast(dict[str, object], value).values():
            _refuse_long_numbers(each)
    elif isinstance(value, list):
        for each in cast(list[object], value):
            _refuse_long_numbers(each)
