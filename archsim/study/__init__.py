"""Studies: many machines, networks and settings at once, and what changes between them."""
