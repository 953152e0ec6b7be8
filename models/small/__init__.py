"""Small models: the reference model, and the hold in integer time."""
