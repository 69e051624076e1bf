"""Trace-driven caches: exact hits, misses and bytes between levels, and the streams that feed them."""
