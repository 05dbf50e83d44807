"""What is launched, how, and how long: the spec of real trials and its file."""
