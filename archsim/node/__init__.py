"""Nodes: several devices, their links, and the host that feeds them."""
