"""This computer as a device and a node."""
