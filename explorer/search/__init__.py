"""Exhaustive search: loops, visited states, promises, memory, and what is executed again."""
