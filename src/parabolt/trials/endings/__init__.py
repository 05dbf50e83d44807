"""How a trial ended, read from exit codes, signals and logs."""
