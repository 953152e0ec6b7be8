"""How a command ends: whatever goes wrong, with one line, and with an exit code that says what kind of end it is.

0, 1, 2 and 3 are answers. An inner fault, an interruption and an output that nobody reads have codes of their own, so
that no script takes them for "a property fails".
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import click

from ...protocol.language.errors import DraincheckError
from .console import complain, document_printed, forget_document, message, print_document
from .interruption import heard

WRONG_INPUT, UNDETERMINED, INNER_FAULT, INTERRUPTED, OUTPUT_CLOSED = 2, 3, 70, 130, 141
"""70 as sysexits.h's EX_SOFTWARE; 130 and 141 as a shell's for SIGINT and SIGPIPE."""
DEBUG = "DRAINCHECK_DEBUG"
"""The environment variable that shows where an inner fault came from."""


class OutputLost(Exception):
    """Standard output did not take what was written. No OSError: nobody who expects one of those may end it with 1."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        self.closed = isinstance(error, BrokenPipeError)


class _Output(io.FileIO):
    """Standard output, whose failures are told from those of other files and pipes."""

    def write(self, data: Any) -> int:
        """Writes bytes. Raises OutputLost."""
        try:
            return super().write(data)
        except OSError as error:
            raise OutputLost(error) from None


class _Messages(io.FileIO):
    """Standard error: where it takes nothing, the answer is still given."""

    def write(self, data: Any) -> int:
        """Writes bytes, if it can."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def exit_code_of(command: Callable[[], object], *, as_json: bool) -> int:
    """Runs a command and gives the exit code for how it ended. Says in one line on standard error what went wrong.

    With `as_json`, a command that could not print its document prints one that says why.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - so it is where the shell has closed it
        complain("standard output is closed, so no answer could be given; send it to a file, or to /dev/null")
        return INNER_FAULT
    forget_document()
    with _told_apart(), heard() as known:
        try:
            code = _run(command)
        except BaseException as error:  # nothing may leave with Python's own code, which is 1
            cause = KeyboardInterrupt() if known.signalled and isinstance(error, Exception) else error
            return _end(cause, as_json)
        late = KeyboardInterrupt("interrupted; what was printed may not be all")
        return _end(late, as_json) if known.signalled else code


@contextmanager
def _told_apart() -> Generator[None]:
    """Standard output and error by ways on which their failures are seen, where they are the process's own."""
    before = sys.stdout, sys.stderr
    for name, kind in (("stdout", _Output), ("stderr", _Messages)):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            through = io.BufferedWriter(kind(stream.fileno(), "w", closefd=False))
            at_once = name == "stderr" or stream.isatty()
            setattr(sys, name, io.TextIOWrapper(through, stream.encoding, "replace", line_buffering=at_once))
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OutputLost:  # Python would try again at its end, and fail with a code of its own
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            sys.stdout.flush()
        sys.stdout, sys.stderr = before


def _run(command: Callable[[], object]) -> int:
    code: object = 0
    try:
        command()
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except SystemExit as leaving:
        code = leaving.code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _end(error: BaseException, as_json: bool) -> int:
    code, told = _told(error)
    line = message(told)
    if os.environ.get(DEBUG) and code == INNER_FAULT:
        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    elif line:
        complain(line + _where_help_is(error))
    if as_json and code in (UNDETERMINED, INNER_FAULT, INTERRUPTED) and not document_printed():
        with suppress(OutputLost):
            print_document({"format": "draincheck-partial", "version": 1, "partial": line, "exit_code": code})
    return code


def _where_help_is(error: BaseException) -> str:
    """Which help says how a command is used, where it was used wrongly."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" ({context.command_path} --help says how it is used)" if context else ""


def _told(error: BaseException) -> tuple[int, str]:
    """The exit code for an end that is none of the command's own, and what to say of it."""
    if isinstance(error, click.ClickException):
        return WRONG_INPUT, error.format_message()
    if isinstance(error, DraincheckError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, str(error) or "interrupted; what was asked is not decided"
    if isinstance(error, MemoryError):
        return UNDETERMINED, "UNDETERMINED: memory ran out; ask for less (smaller sizes, fewer jobs), or give more"
    if isinstance(error, OutputLost):
        cut = f"standard output cannot be written: {error}; what was written is cut off"
        return (OUTPUT_CLOSED, "") if error.closed else (INNER_FAULT, cut)
    described = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return INNER_FAULT, f"inner fault, nothing is decided: {described}; please report it, with what {DEBUG}=1 shows"
