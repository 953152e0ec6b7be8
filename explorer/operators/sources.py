"""Text from where an operator has it: a file, standard input (`-`), or an http(s) URL.

Whatever is wrong with a source becomes one line that names it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ...models.reading import opened
from ..terminal.web import Asking, SourceError, fetch, is_address, without_secrets

STANDARD_INPUT = "-"
MAX_BYTES = 256 * 2**20
MAX_LINE_BYTES = 2**20
"""No exposition is larger and no line longer: what is, is something else."""
_LIKE_AN_ADDRESS = re.compile(r"[^/\s]+:[0-9]{1,5}(/\S*)?|\S+/metrics/?")


def name_of(source: str) -> str:
    """What a source is called in messages, without secrets."""
    return "standard input" if source == STANDARD_INPUT else without_secrets(source)


def read_text(source: str, asking: Asking) -> str:
    """The whole text of a source, which must be UTF-8. Raises SourceError."""
    with _opened(source, asking) as stream:
        data = stream.read(MAX_BYTES + 1)
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
    if is_address(source):
        raise SourceError(f"{name_of(source)}: a log is read from a file or from - (standard input), not from a URL")
    with _opened(source) as stream:
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
def _opened(source: str, asking: Asking | None = None) -> Generator[BinaryIO]:
    """A source opened for reading; what is wrong is a SourceError, or a ReadingError of a file."""
    try:
        if source == STANDARD_INPUT:
            yield _standard_input()
        elif asking and is_address(source):
            yield BytesIO(fetch(source, asking, MAX_BYTES))
        elif hint := _hint(source):
            raise SourceError(f"{name_of(source)}: there is no such file; {hint}")
        else:
            with opened(Path(source), "a text") as file:
                yield file
    except OSError as error:
        raise SourceError(f"{name_of(source)}: cannot be read: {error.strerror or error}") from None


def _hint(source: str) -> str:
    """What may have been meant by the name of a file that is not there."""
    if os.path.exists(source):
        return ""
    if "://" in source:
        return "of addresses, those with http:// and https:// are read"
    return f"if it is an address, write http://{source}" if _LIKE_AN_ADDRESS.fullmatch(source) else ""


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] it is, where it was closed by the caller
        raise SourceError("standard input: it is closed; give a file or a URL")
    return sys.stdin.buffer
