"""Floor 4: the engines, traces and their renderings, reports, and the command line."""

from ..protocol import loaded as loaded  # first: see there
