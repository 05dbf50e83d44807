"""From a raw sweep to a checked Parquet file with its card, and the Hub."""
