"""Published measurements as cases: what ran, on what, and how it was timed."""
