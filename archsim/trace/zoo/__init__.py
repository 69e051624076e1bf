"""Builders of the shipped networks; `python -m archsim.trace.zoo` writes the trace files."""
