"""The journal of real trials: a file of events, and the trials that they add up to."""
