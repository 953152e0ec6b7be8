"""A question to an engine: a model, what must hold in it, and what must be reachable for a pass to count."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.model import Model
from ..protocol.language import DeclarationError
from .property import Probe, Property


@dataclass(frozen=True)
class Check:
    """A model with properties (true in every reachable state) and probes (true in at least one).

    `deadlock` asks that every state without a step is one that the model declares terminal.
    """

    model: Model
    properties: tuple[Property, ...]
    probes: tuple[Probe, ...] = ()
    deadlock: bool = True

    def __post_init__(self) -> None:
        for asked, kind in ((self.properties, Property), (self.probes, Probe)):
            for each in asked:
                if not isinstance(each, kind):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise DeclarationError(f"check of {self.model.name}: {each!r} is no {kind.__name__.lower()}")
        names = [each.name for each in (*self.properties, *self.probes)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DeclarationError(f"check of {self.model.name}: {', '.join(twice)} is asked twice")
