"""Trace-driven cache simulation: exact hits, misses and bytes between levels, and the address streams of kernels."""
