"""What is checked of a table, and how a fault is told."""
