"""Cost: time bounds, traffic and energy of kernels on a device, as closed forms over columns."""
