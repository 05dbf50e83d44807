"""From specifications and trials to beliefs about the coefficients."""
