"""Traces: executed, saved, and drawn in each format."""
