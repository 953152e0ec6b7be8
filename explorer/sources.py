"""Text from where an operator has it: a file, standard input (`-`), or an http(s) URL.

Whatever is wrong with a source becomes one line that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ..models.reading import opened
from ..protocol.language.errors import DraincheckError

STANDARD_INPUT = "-"
MAX_BYTES = 256 * 2**20
MAX_LINE_BYTES = 2**20
"""No exposition is larger and no line longer: what is, is something else."""

URL_SCHEMES = ("http://", "https://")


class SourceError(DraincheckError):
    """A source that cannot be read, or does not hold what was expected."""


def name_of(source: str) -> str:
    """What a source is called in messages."""
    return "standard input" if source == STANDARD_INPUT else source


def read_text(source: str, timeout_seconds: float) -> str:
    """The whole text of a source, which must be UTF-8. Raises SourceError."""
    with _opened(source, timeout_seconds) as stream:
        data = stream.read(MAX_BYTES + 1)
        left: int | None = getattr(stream, "length", None)  # of an HTTP answer: what was announced and did not come
    if left and len(data) <= MAX_BYTES:
        raise SourceError(f"{source}: the answer broke off, {left:,} bytes before its end")
    if len(data) > MAX_BYTES:
        raise SourceError(f"{name_of(source)}: larger than {MAX_BYTES:,} bytes; expected a text of metrics")
    for number, line in enumerate(data.split(b"\n"), 1):
        _refuse_binary(source, number, line)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{name_of(source)}, line {number}: not UTF-8; expected a text of metrics") from None


def read_lines(source: str) -> Generator[tuple[int, str]]:
    """The lines of a file or of standard input with their numbers from 1, one at a time: logs are large.

    Bytes that are not UTF-8 are replaced, because anything may have written into a log. Raises SourceError.
    """
    if source.startswith(URL_SCHEMES):
        raise SourceError(f"{source}: a log is read from a file or from - (standard input), not from a URL")
    with _opened(source, 0) as stream:
        for number, line in enumerate(_limited_lines(source, stream), 1):
            _refuse_binary(source, number, line)
            yield number, line.decode("utf-8", errors="replace").rstrip("\r\n")


def _limited_lines(source: str, stream: BinaryIO) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise SourceError(f"{name_of(source)}, line {number}: longer than {MAX_LINE_BYTES:,} bytes; is it a text?")
        yield line


def _refuse_binary(source: str, number: int, line: bytes) -> None:
    if b"\0" in line:
        raise SourceError(f"{name_of(source)}, line {number}: a NUL byte; this is a binary file, expected a text")


@contextmanager
def _opened(source: str, timeout_seconds: float) -> Generator[BinaryIO]:
    """A source opened for reading; errors of opening and of reading become SourceErrors."""
    try:
        if source == STANDARD_INPUT:
            yield _standard_input()
        elif source.startswith(URL_SCHEMES):
            with urlopen(Request(source, headers={"Accept": "text/plain"}), timeout=timeout_seconds) as answer:
                yield answer
        else:
            with opened(Path(source), "a text") as file:
                yield file
    except HTTPError as error:
        raise SourceError(f"{source}: the server answered {error.code} {error.reason}; expected metrics") from None
    except URLError as error:
        raise SourceError(f"{source}: cannot be reached: {_plain(error.reason)}") from None
    except TimeoutError:
        raise SourceError(f"{source}: no answer within {timeout_seconds:g} s; see --timeout") from None
    except HTTPException as error:
        raise SourceError(f"{source}: the answer broke off or is no HTTP: {_plain(error)}") from None
    except OSError as error:
        raise SourceError(f"{name_of(source)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SourceError(f"{source}: cannot be read: {error}") from None


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] it is, where it was closed by the caller
        raise SourceError("standard input: it is closed; give a file or a URL")
    return sys.stdin.buffer


def _plain(reason: object) -> str:
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
