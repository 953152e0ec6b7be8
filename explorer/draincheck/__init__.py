"""When is a KV-cache slot really free? A model checker for the abort/drain protocol, and for models like it.

    import draincheck as dc

    row = dc.verify("sglang-0.5.18-mooncake", "abort")
    print(row.verdict)
    print(row.trace)

`dir(draincheck)` lists what there is; `draincheck.explorer.front` declares it. It is loaded when it is first asked for,
so that the command line starts at once.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draincheck.explorer.front import *  # pyright: ignore # noqa: F403

__version__ = version("draincheck")


def _front() -> Any:
    return import_module("draincheck.explorer.front")


def __getattr__(name: str) -> Any:
    if name == "__all__":  # from draincheck import *
        return _front().__all__
    if not name.startswith("_") and name not in ("explorer", "properties", "models", "protocol"):
        front = _front()
        if name in front.__all__:
            return getattr(front, name)
    raise AttributeError(f"module 'draincheck' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_front().__all__})
