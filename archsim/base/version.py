"""The version of the package, which every result carries."""

__version__ = "0.1.0"
