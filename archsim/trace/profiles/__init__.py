"""Profiles that frameworks and tools recorded: what ran, with which shapes, and how long it took."""
