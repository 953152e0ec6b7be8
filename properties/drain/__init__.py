"""The properties of the drain, its cases, and what relates its runs."""
