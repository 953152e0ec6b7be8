"""Which results are the same: a key for everything that a case's result depends on, and for nothing else.

The key is made of the code that would run and of what it would be given: the model's state, actions, knobs, sizes and
faults, the properties and probes, the scenario and the release timer. A profile's name, title and evidence are no part
of it. What cannot be described with certainty has no key: it is neither shared nor kept.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from types import FunctionType
from typing import Any, cast

from ...properties.case import Case, Question
from ...protocol.language.model import Model
from ...protocol.loaded import PACKAGE, code_files, unchanged

LIBRARIES = ("numba", "llvmlite", "numpy", "scipy")
NAMES: Mapping[type, tuple[str, ...]] = {
    Case: ("profile", "assumed", "alternatives", "untried", "unasked"),
    Model: ("name",),
}
"""Fields that say what something is called, or what else is searched. A row gets its own."""
PROFILES = ("profile", "prefill")
"""The profiles in a question's source; their knobs are in the model."""


class NoKey(Exception):
    """Something whose description could be that of something else."""


def fingerprint() -> str:
    """A hash of all code that results depend on: every Python file of draincheck, the libraries, and Python.

    Raises NoKey once a file is not what this process has loaded: what runs is then no file's content.
    """
    digest = _digest()
    if not unchanged():
        raise NoKey("the code of draincheck was edited after it was loaded; start a new process")
    return digest


@cache
def _digest() -> str:
    digest = sha256()
    for text in (sys.version, platform.machine(), *(f"{name} {version(name)}" for name in LIBRARIES)):
        digest.update(f"{text}\0".encode())
    for name, path in code_files().items():
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def key_of(case: Case) -> str | None:
    """64 hexadecimal digits that equal cases share under the same code, or None if the case cannot be described."""
    try:
        return sha256(f"{fingerprint()}\n{json.dumps(_plain(case))}".encode()).hexdigest()
    except (NoKey, RecursionError):
        return None


def _plain(value: object) -> Any:
    """A value as JSON: different for different values. Raises NoKey where that is not certain."""
    if isinstance(value, Enum):  # first: it may be text or a number as well
        return [_plain(type(value)), value.name]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return [type(value).__name__, repr(value)]
    if isinstance(value, type):
        return ["type", *_place(value)]
    if isinstance(value, FunctionType | partial):
        return _plain_function(cast(Callable[..., Any], value))
    if isinstance(value, Mapping):
        pairs = cast(Mapping[object, object], value)
        return ["mapping", *sorted(([_plain(key), _plain(each)] for key, each in pairs.items()), key=json.dumps)]
    if isinstance(value, set | frozenset):
        return ["set", *sorted((_plain(each) for each in cast(set[object], value)), key=json.dumps)]
    if isinstance(value, list | tuple):
        return ["list", *(_plain(each) for each in cast(list[object], value))]
    if is_dataclass(value):
        names = NAMES.get(cast(type, type(value)), ())
        kept = [each.name for each in fields(value) if each.name not in names]
        return [_plain(type(value)), *([name, _plain(_content(value, name))] for name in kept)]
    raise NoKey(f"{value!r}")


def _content(value: object, name: str) -> object:
    if isinstance(value, Question) and name == "source":
        return {key: each for key, each in value.source.items() if key not in PROFILES}
    return getattr(value, name)


def _plain_function(function: Callable[..., Any]) -> Any:
    """A function by its place in our code, which the fingerprint covers, and what it was made with."""
    if isinstance(function, partial):
        made = cast(partial[Any], function)
        return ["partial", _plain(made.func), _plain(made.args), _plain(made.keywords)]
    code = function.__code__
    inside = [_plain(cell.cell_contents) for cell in function.__closure__ or ()]
    defaults = [_plain(function.__defaults__), _plain(function.__kwdefaults__)]
    return ["function", *_place(function), code.co_firstlineno, inside, defaults]


def _place(thing: Any) -> tuple[str, str]:
    """Module and name. Raises NoKey for code that the fingerprint does not cover, and for classes without a name."""
    module, name = thing.__module__, thing.__qualname__
    ours = module.split(".")[0] == PACKAGE
    if not ours and module != "builtins":
        raise NoKey(f"{module}.{name} is no part of {PACKAGE}")
    if isinstance(thing, type) and "<locals>" in name:
        raise NoKey(f"{name} is a class of a function")
    return module, name
