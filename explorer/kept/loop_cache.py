"""Compiled loops kept on disk, for the code that runs and the processor at hand, and checked before they are loaded.

numba's own cache looks at the time of one source file only, so that a loop compiled with a constant of another file
outlives it, and it loads whatever it finds; machine code that is damaged ends the process, or does anything else.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from hashlib import sha256
from typing import Any, cast

from numba import njit  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.core import caching as _caching  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.core import compiler as _compiler  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from numba.core import serialize as _serialize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from platformdirs import user_cache_path

from .entries import Entries

MAX_BYTES = 2**26
caching, compiler, serialize = cast(Any, _caching), cast(Any, _compiler), cast(Any, _serialize)

LOOPS = Entries(user_cache_path("draincheck", appauthor=False), "loop", "bin", MAX_BYTES)
"""Always in the user's own cache: what is loaded from there is executed, so no shared store may hold it."""


def compiled_loop(function: Callable[..., Any]) -> Any:
    """Compiles a loop when it is first called, and keeps it on disk where there is a place to keep it."""
    dispatcher: Any = njit(nogil=True)(function)
    dispatcher._cache = _LoopCache(function)
    return dispatcher


class _LoopCache(caching._Cache):
    """What numba asks about the machine code of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"

    def _key(self, signature: Any, codegen: Any) -> str:
        return sha256(repr((self._name, str(signature), codegen.magic_tuple())).encode()).hexdigest()

    @property
    def cache_path(self) -> str:
        """Nowhere: numba shows it, and no path is one that it writes to."""
        return ""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for arguments of these types; None if none is kept."""
        target_context.refresh()
        content = LOOPS.read(self._key(sig, target_context.codegen()))
        return None if content is None else compiler.CompileResult._rebuild(target_context, *pickle.loads(content))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps the code for arguments of these types, if it can be loaded again."""
        if not data.library.has_dynamic_globals and all(each.can_cache for each in data.lifted):
            LOOPS.write(self._key(sig, data.codegen), serialize.dumps(data._reduce()))

    def enable(self) -> None:
        """Nothing to do: there is no state."""

    def disable(self) -> None:
        """Nothing to do: there is no state."""

    def flush(self) -> None:
        """Nothing to do: entries of other code are tidied up by `entries.py`."""
