"""Random runs: walks, swarms, Hypothesis machines, and how a failing run is made short."""
