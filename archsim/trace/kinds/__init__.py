"""The op kinds, one module for each family."""
