"""Systolic arrays, clock by clock: programs of products as tiles of weights, and the machine that runs them."""
