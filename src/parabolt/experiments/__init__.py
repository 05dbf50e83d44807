"""Protocols, runs, the runner and the store of finished runs."""
