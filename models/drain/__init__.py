"""The protocol under a profile and a scenario, closed."""
