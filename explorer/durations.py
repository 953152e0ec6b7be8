"""Measured durations from a file: one column of seconds, without a heading."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from ..protocol.language.errors import DraincheckError
from .quantities import QuantityError, number

LONGEST = 10**9
"""Seconds: what is longer is a mistake, a time of day or nanoseconds."""


class DurationsError(DraincheckError):
    """A file of durations that cannot be read; the message names the file and the line."""


def load_durations(path: Path) -> list[Fraction]:
    """The durations of a file, exactly, in seconds and in its order; at least one. Raises DurationsError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = [_seconds(row, f"{path}, line {line}") for line, row in _rows(file, path)]
    except OSError as error:
        raise DurationsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DurationsError(f"{path}: byte {error.start} is not UTF-8; expected is text, one number a line") from None
    if not found:
        raise DurationsError(f"{path}: is empty; expected is one number of seconds a line")
    return found


def _rows(file: Iterator[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of their lines."""
    reader = csv.reader(file)
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
