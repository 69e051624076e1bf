"""This very machine, described as a spec: what the system tells, what was measured, and what had to be assumed."""
