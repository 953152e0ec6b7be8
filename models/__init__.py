"""Floor 2: what is closed and can be checked. Models, profiles of releases, scenarios."""
