"""What physics says of a configuration: step time, peak memory and P(OOM)."""
