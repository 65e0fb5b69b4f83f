"""Sparsifiers: each has a rule by which elements of a weight become zero."""
