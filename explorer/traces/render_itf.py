"""A trace in the Informal Trace Format of Apalache and Quint, for their viewers and test generators.

Format: ADR 015 of Apalache. A state maps each variable to a value; the variable `mbt::actionTaken` names the
action that led to the state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .trace import Trace
from .words import headline

ACTION = "mbt::actionTaken"
FORMAT_DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"

Index = tuple[int, ...]


def itf(trace: Trace) -> str:
    """The trace as ITF JSON: every integer as `#bigint`, every table as a `#map` from its index.

    A key is an integer, or a `#tup` of integers if the table has several dimensions. Parts of channels are
    tables like any other, under their cells' names (`control.0.kind`). A broken promise has a `loop`: the number of
    the state that the last one leads back to, and is the same as.
    """
    fields = _fields(trace.cells)
    states = [_state(0, "init", fields, trace.initial)]
    states += [_state(step.number, step.label, fields, step.values) for step in trace.steps]
    document = {
        "#meta": {
            "format": "ITF",
            "format-description": FORMAT_DESCRIPTION,
            "description": f"{headline(trace)}. {trace.sentence}",
            "source": trace.model,
            "status": trace.kind,
        },
        "vars": [*(field.name for field in fields), ACTION],
        "states": states,
        **({} if trace.loop is None else {"loop": trace.loop}),
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class _Field:
    """A field, and where its elements stand in a state; the index of a scalar is empty."""

    name: str
    places: tuple[tuple[Index, int], ...]


def _fields(cells: Sequence[str]) -> list[_Field]:
    places: dict[str, list[tuple[Index, int]]] = {}
    for place, cell in enumerate(cells):
        name, _, index = cell.removesuffix("]").partition("[")
        places.setdefault(name, []).append((tuple(map(int, index.split(","))) if index else (), place))
    return [_Field(name, tuple(found)) for name, found in places.items()]


def _state(number: int, action: str, fields: Sequence[_Field], values: Sequence[int]) -> dict[str, Any]:
    state: dict[str, Any] = {"#meta": {"index": number}}
    state.update((field.name, _value(field, values)) for field in fields)
    return {**state, ACTION: action}


def _value(field: _Field, values: Sequence[int]) -> dict[str, Any]:
    if field.places[0][0] == ():
        return _integer(values[field.places[0][1]])
    return {"#map": [[_key(index), _integer(values[place])] for index, place in field.places]}


def _key(index: Index) -> dict[str, Any]:
    numbers = [_integer(number) for number in index]
    return numbers[0] if len(numbers) == 1 else {"#tup": numbers}


def _integer(value: int) -> dict[str, Any]:
    return {"#bigint": str(int(value))}
