"""Studies: many devices, batches and what-ifs at once, and what they say together."""
