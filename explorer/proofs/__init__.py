"""Proofs by Z3: terms, bounded checking, induction, any number of ranks, refinement."""
