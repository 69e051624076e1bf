"""Simulations that users ask for: serving requests, training on several devices, collectives."""
