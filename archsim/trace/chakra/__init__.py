"""Execution traces of MLCommons Chakra: what other tools recorded or drew up as a network, and an estimate as such a trace."""
