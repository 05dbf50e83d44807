"""Files to typed columns, block by block."""
