"""The package `draincheck` itself: its floors are `draincheck.protocol`, `.models`, `.properties` and `.explorer`."""

from importlib.metadata import version

__version__ = version("draincheck")
