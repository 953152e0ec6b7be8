"""Anybody's own model: a Python file, whose checks are cases like those of a profile.

Every `Check` at the top of the file is a case under its variable's name, or a mapping `checks` names them. To read a
file is to run it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast

from ..models.reading import read_bytes
from ..protocol.language import DraincheckError
from ..protocol.language.check import Check
from ..protocol.language.model import Model
from .case import Case, Question

SUFFIX = ".py"
MAX_BYTES = 2**20
KIND = "file"
CHECKS = "checks"


class OwnModelError(DraincheckError):
    """A file that cannot be run, or has no check."""


@dataclass(frozen=True)
class OwnModel:
    """The checks of a file by name; `digest` is the SHA-256 of what was run."""

    path: str
    digest: str
    checks: Mapping[str, Check]


_loaded: dict[tuple[str, str], OwnModel] = {}


def is_own(name: str) -> bool:
    """Whether a name on the command line is that of a file with a model."""
    return name.endswith(SUFFIX)


def load_own(path: str) -> OwnModel:
    """Runs the file, once for each content. Raises OwnModelError, with file and line, and ReadingError."""
    content = read_bytes(Path(path), MAX_BYTES, "a Python file with a model", pipes=False)
    digest = sha256(content).hexdigest()
    key = (str(Path(path).resolve()), digest)
    if key not in _loaded:
        module = _run(path, digest)
        _loaded[key] = OwnModel(path, digest, _checks_of(module, path))
    return _loaded[key]


def own_cases(path: str, names: Sequence[str] = (), sizes: Mapping[str, int] | None = None) -> list[Case]:
    """The cases of a file: all, or those of these names. `sizes` are numbers by the names of index types.

    Raises OwnModelError for a name or a type that is not there, and DeclarationError for a size that fits no model.
    """
    model = load_own(path)
    for name in names:
        if name not in model.checks:
            raise OwnModelError(f"{path}: no check is called {name}; it has {', '.join(model.checks)}")
    given = sizes or {}
    return [_case(model, name, _sized(model.checks[name], given, path), given) for name in names or model.checks]


def _case(model: OwnModel, name: str, check: Check, sizes: Mapping[str, int]) -> Case:
    source = {
        "kind": KIND,
        "path": str(Path(model.path).resolve()),
        "digest": model.digest,
        "check": name,
        "sizes": dict(sizes),
    }
    probes = tuple(each.name for each in check.probes)
    question = Question(check, probes, source)
    return Case(Path(model.path).name, name, question, None, probes[0] if probes else "")


def _sized(check: Check, sizes: Mapping[str, int], path: str) -> Check:
    known = {each.__name__: each for each in check.model.sizes}
    for name in sizes:
        if name not in known:
            raise OwnModelError(f"{path}: the model has no index type {name}; it has {', '.join(known) or 'none'}")
    changed = {known[name]: size for name, size in sizes.items()}
    model = replace(check.model, sizes={**check.model.sizes, **changed})
    return replace(check, model=replace(model, bounds={**_bounds_of(model), **model.bounds}))


def _bounds_of(model: Model) -> dict[str, str]:
    """What a verdict about the model is limited to: how many there are of each, and which faults there may be."""
    sizes = {kind.__name__: str(size) for kind, size in model.sizes.items()}
    faults = {
        f"{kind} of {channel}": str(count)
        for channel, budget in model.faults.items()
        for kind, count in asdict(budget).items()
        if count
    }
    return sizes | faults


def _run(path: str, digest: str) -> ModuleType:
    name = f"own_model_{digest[:16]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OwnModelError(f"{path}: this is no Python file; its name must end in {SUFFIX}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise OwnModelError(f"{_place(error, path)}: {_words(error)}") from error
    finally:
        sys.path.remove(folder)
    return module


def _place(error: BaseException, path: str) -> str:
    """The file and line where it went wrong: the last of the user's own."""
    if isinstance(error, SyntaxError) and error.lineno and error.filename:
        return f"{path}:{error.lineno}"
    own = Path(path).resolve()
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).resolve() == own]
    return f"{path}:{lines[-1]}" if lines else path


def _words(error: BaseException) -> str:
    if isinstance(error, DraincheckError):
        return str(error)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"it cannot be run: {type(error).__name__}" + (f": {' '.join(said.split())}" if said else "")


def _checks_of(module: ModuleType, path: str) -> dict[str, Check]:
    """The checks of a module, by name."""
    named: object = getattr(module, CHECKS, vars(module))
    if not isinstance(named, Mapping):
        raise OwnModelError(f"{path}: {CHECKS} is no mapping; write {CHECKS} = {{'name': Check(model, ...)}}")
    values = cast(Mapping[object, object], named)
    found = {str(name): each for name, each in values.items() if isinstance(each, Check)}
    if named is not vars(module) and len(found) < len(values):
        raise OwnModelError(f"{path}: {CHECKS} has a value that is no Check")
    if not found:
        raise OwnModelError(f"{path}: it has no check; write NAME = Check(model, (property, ...)) at its top level")
    return found
