"""The machine clock by clock: programs of kernels, and the SM that runs them."""
