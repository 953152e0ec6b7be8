"""Measured durations from a file: one column of seconds, without a heading."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from io import StringIO
from pathlib import Path

from ...models.reading import read_text
from ...protocol.language.errors import DraincheckError
from .quantities import QuantityError, number

LONGEST = 10**9
"""Seconds: what is longer is a mistake, a time of day or nanoseconds."""

MAX_BYTES = 2**23
"""About a million durations."""


class DurationsError(DraincheckError):
    """A file of durations that cannot be read; the message names the file and the line."""


def load_durations(path: Path) -> list[Fraction]:
    """The durations of a file, exactly, in seconds and in its order; at least one.

    Raises DurationsError and ReadingError.
    """
    text = read_text(path, MAX_BYTES, "one number of seconds a line")
    found = [_seconds(row, f"{path}, line {line}") for line, row in _rows(text, path)]
    if not found:
        raise DurationsError(f"{path}: is empty; expected is one number of seconds a line")
    return found


def _rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of their lines."""
    reader = csv.reader(StringIO(text, newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DurationsError(f"{path}, line {reader.line_num}: {error}; expected is one number of seconds") from None


def _seconds(row: list[str], where: str) -> Fraction:
    if len(row) != 1:
        raise DurationsError(
            f"{where}: the line {f'has {len(row)} columns' if row else 'is empty'}; expected is one number of seconds"
            f"{', with a decimal point' * (len(row) == 2)}"
        )
    try:
        seconds = number(row[0].strip())
    except QuantityError as error:
        raise DurationsError(f"{where}: {error}; expected is one number of seconds, and no heading") from None
    if not 0 <= seconds <= LONGEST:
        raise DurationsError(f"{where}: {float(seconds):g} is no duration; expected are 0 to {LONGEST:,} seconds")
    return seconds
