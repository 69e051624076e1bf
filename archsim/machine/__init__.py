"""Machines with several devices: what connects them, and what feeds them."""
