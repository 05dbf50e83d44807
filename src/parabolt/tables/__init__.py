"""Measured tables: schema, reading, checking, and the embedded pco32 and pco64."""
