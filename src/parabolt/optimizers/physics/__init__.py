"""The `parabolt` optimizer: physics with uncertain coefficients, structure and censored memory."""
