"""Patterns: nodes that together are one layer, found by what they compute and not by their names."""
