"""Many estimates at once: sweeps, sensitivity, search, comparison of devices, what-ifs."""
