"""A CPU core, clock by clock: programs of loops, the pipeline, and what binds them."""
