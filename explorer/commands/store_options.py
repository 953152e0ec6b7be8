"""Options that say where results are kept, the same for every command that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..terminal.console import complain

if TYPE_CHECKING:
    from ..verdicts.store import Store


def store_options() -> Callable[[Any], Any]:
    """Adds --store and --no-store to a command, which gets `folder` and `no_store`."""

    def add(command: Any) -> Any:
        command = click.option("--no-store", is_flag=True, help="Search everything, and keep nothing.")(command)
        return click.option(
            "--store",
            "folder",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            envvar="DRAINCHECK_STORE",
            show_envvar=True,
            help="Keep results here, and take from here those that are still valid (default: a folder of the user's "
            "cache).",
        )(command)

    return add


def store_of(folder: Path | None, no_store: bool) -> Store | None:
    """The store that these options name; None for none."""
    from platformdirs import user_cache_path

    from ..verdicts.store import Store

    return None if no_store else Store(folder or user_cache_path("draincheck", appauthor=False))


def say_what_is_not_kept(store: Store | None) -> None:
    """One line for each thing that could not be kept for the next run."""
    from ..kept.loop_cache import LOOPS

    if store and store.trouble:
        complain(f"results are not kept: {store.trouble}")
    if LOOPS.trouble:
        complain(f"compiled loops are not kept: {LOOPS.trouble}")
