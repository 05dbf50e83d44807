"""Metrics, statistics, figures and the report of finished runs."""
