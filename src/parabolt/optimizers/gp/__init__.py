"""Gaussian processes over a finite candidate set, and what the published methods share of them."""
