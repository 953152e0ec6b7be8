"""Floor 3: what must hold, and what must be reachable for a pass to mean anything."""

from ..protocol import loaded as loaded  # first: see there
