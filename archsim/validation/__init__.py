"""Predictions beside measurements: scores, fits, intervals, cross-validation, checks of new files."""
