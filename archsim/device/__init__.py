"""Devices: what a data sheet says about a CPU or GPU, each number with its source."""
