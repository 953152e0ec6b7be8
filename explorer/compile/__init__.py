"""From functions to guarded commands, and from these to machine code over packed states."""
