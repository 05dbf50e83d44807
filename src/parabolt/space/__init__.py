"""Knobs, configurations, the rules that make them valid, and the lattice of all that are."""
