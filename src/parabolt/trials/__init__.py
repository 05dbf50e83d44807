"""Real trials: launching a training program, reading what it measured, and the search over it."""
