"""Throughput and memory of LLM training per parallelism configuration."""
