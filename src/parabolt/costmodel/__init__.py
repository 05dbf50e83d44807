"""What physics says of a configuration: step time, peak memory and the risk of running out of it."""
