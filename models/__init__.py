"""Floor 2: what is closed and can be checked. Models, profiles of releases, scenarios."""

from ..protocol import loaded as loaded  # first: see there
