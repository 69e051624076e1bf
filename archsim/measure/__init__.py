"""Runs networks on this computer, for measurements beside the predictions."""
