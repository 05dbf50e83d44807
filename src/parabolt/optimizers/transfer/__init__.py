"""Optimizers that learn from trials of other instances."""
