"""Verdicts: one case, many cases with workers and stored results, proofs, histories, relations."""
