"""Pools from start-up logs: one line per server process that prints, with its pool and its context length.

The line is printed by tensor rank 0 only (of each data-parallel replica and pipeline stage that has one); metrics show
all ranks. Newer servers add a warning on every rank when the pool is shorter than the context; it counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...properties.deployment.pools import Pool
from .sources import SourceError, name_of

T = TypeVar("T")

_SIZES = re.compile(r"\bmax_total_num_tokens=(?P<pool>[^\s,\"']*)(?:.*?\bcontext_len=(?P<context>[^\s,\"']*))?")
_WARNING = re.compile(r"KV pool holds (?P<pool>\S+) tokens, fewer than --context-length (?P<context>\d+)")
_RANK = re.compile(r"\[[^\[\]]*?(?P<rank>(?: [A-Z][A-Z_]*\d+)+)\]")
_NUMBER = re.compile(r"[0-9]{1,15}")
_ARGUMENTS = re.compile(r"\bserver_args=")
# The arguments are printed as a call (name=value) or as a dictionary ('name': value), depending on the release.
_MODE = re.compile(r"\bdisaggregation_mode[\"']?(?:=|: )[\"']?(\w+)")
_PAGE = re.compile(r"\bpage_size[\"']?(?:=|: )([1-9][0-9]{0,14})\b")
_RESERVE = re.compile(r"\bnum_reserved_decode_tokens[\"']?(?:=|: )([0-9]{1,15})\b")
_SIDE = {"null": "unified", "None": "unified"}


@dataclass(frozen=True)
class Stated:
    """What the user says of the servers, which goes before what the log says; None or empty leaves it to the log."""

    side: str = ""
    context: int | None = None
    page: int | None = None
    reserve: int | None = None


def pools(source: str, lines: Iterable[tuple[int, str]], stated: Stated) -> list[Pool]:
    """The pools of a log's lines, each once.

    Side, page size and decode's reserve come from the printed server arguments, if all that the log has of them agree.
    Raises SourceError for a line with a pool that is no number or has no context, and for a side that is not the log's.
    """
    found: dict[tuple[str, int, int], Pool] = {}
    arguments: list[Stated] = []
    for number, line in lines:
        if _ARGUMENTS.search(line):
            arguments.append(_arguments(line))
        match = _SIZES.search(line) or _WARNING.search(line)
        if match:
            pool = _pool(f"{name_of(source)}, line {number}", line, match, stated.context)
            found.setdefault((pool.rank, pool.tokens, pool.context), pool)
    others = sorted({each.side for each in arguments} - {"", stated.side})
    if stated.side and others:
        raise SourceError(
            f"{name_of(source)}: given as {stated.side}, but its server arguments say {', '.join(others)}"
        )
    side = stated.side or _agreed([each.side for each in arguments]) or ""
    page = stated.page or _agreed([each.page for each in arguments])
    reserve = _agreed([each.reserve for each in arguments]) if stated.reserve is None else stated.reserve
    return [replace(pool, side=side, page=page, reserve=reserve) for pool in found.values()]


def _arguments(line: str) -> Stated:
    mode, page, reserve = _MODE.search(line), _PAGE.search(line), _RESERVE.search(line)
    return Stated(
        side=_SIDE.get(mode[1], mode[1]) if mode else "",
        page=int(page[1]) if page else None,
        reserve=int(reserve[1]) if reserve else None,
    )


def _agreed(values: Sequence[T]) -> T | None:
    """The value that all have, if there is one."""
    return values[0] if len(set(values)) == 1 else None


def _pool(where: str, line: str, match: re.Match[str], context: int | None) -> Pool:
    rank = _RANK.search(line)
    own = None if match["context"] is None else _whole(where, "context_len", match["context"])
    window = context or own
    if window is None:
        raise SourceError(f"{where}: max_total_num_tokens without context_len on the same line; give --context")
    return Pool(
        where=where,
        side="",
        rank=rank["rank"].strip() if rank else "",
        tokens=_whole(where, "max_total_num_tokens", match["pool"]),
        context=window,
        server_context=own,
    )


def _whole(where: str, name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text) or not int(text):
        raise SourceError(f"{where}: {name} is {text!r}; expected a whole number greater than 0")
    return int(text)
