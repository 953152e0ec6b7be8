"""That all memory is free again once a run has come to rest: asked at its end, and not on the way."""

from __future__ import annotations

from typing import Any

from ...protocol.language import machinery
from ...protocol.language.model import Model
from ...protocol.language.property import Property, claim

NAME = "all_given_back"


def all_given_back(model: Model) -> Property:
    """The property for a model whose slots are shown in diagrams; it holds in one that shows none."""

    @machinery  # it looks at what diagrams show, with their texts, and is only ever executed directly
    def function(s: Any) -> None:
        for view in model.slots(s):
            claim(view.owner == "free", f"{view.name} is free again, and not {view.owner}'s")

    return Property(NAME, "Once nothing moves any more, all memory is free again.", function)
