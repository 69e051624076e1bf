"""Predicted beside measured: cases, scores, fits, intervals."""
