"""A question to an engine: a model, what must hold in it, and what must be reachable for a pass to count."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import cast

from .errors import DeclarationError
from .model import Model
from .property import Probe, Promise, Property, claim
from .whitelist import calls, require_language


@dataclass(frozen=True)
class Check:
    """A model with properties (true in every reachable state) and probes (true in at least one).

    `deadlock` asks that every state without a step is one that the model declares terminal.

    `promises` must come to an end in every fair run. A run is fair if no instance of an action named in `fair` can
    happen from some moment on without ever happening. Default: every action of the model, but for faults of channels.
    """

    model: Model
    properties: tuple[Property, ...]
    probes: tuple[Probe, ...] = ()
    deadlock: bool = True
    promises: tuple[Promise, ...] = ()
    fair: frozenset[str] | None = None

    def __post_init__(self) -> None:
        kinds = ((self.properties, Property), (self.probes, Probe), (self.promises, Promise))
        for asked, kind in kinds:
            for each in asked:
                if not isinstance(each, kind):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise DeclarationError(f"check of {self.model.name}: {each!r} is no {kind.__name__.lower()}")
        names = [each.name for each in (*self.properties, *self.probes, *self.promises)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DeclarationError(f"check of {self.model.name}: {', '.join(twice)} is asked twice")
        for each in (*self.properties, *self.probes, *self.promises):
            require_language(each.function, f"{type(each).__name__.lower()} {each.name}")
        for each in self.properties:
            if not calls(cast(FunctionType, each.function), cast(FunctionType, claim)):
                raise DeclarationError(f"property {each.name}: it claims nothing, so it cannot fail; use claim()")
        unknown = sorted((self.fair or frozenset()) - {each.name for each in self.model.all_actions})
        if unknown:
            raise DeclarationError(f"check of {self.model.name}: fair names {', '.join(unknown)}, which is no action")

    @property
    def fair_actions(self) -> frozenset[str]:
        """Actions that happen at some time if they can for ever."""
        return frozenset(each.name for each in self.model.actions) if self.fair is None else self.fair

    @property
    def unfair_actions(self) -> tuple[str, ...]:
        """The other ones: they need not happen, in the order of the model."""
        return tuple(each.name for each in self.model.all_actions if each.name not in self.fair_actions)
