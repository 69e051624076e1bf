"""Serving, data-parallel training and all-reduce, simulated in events."""
