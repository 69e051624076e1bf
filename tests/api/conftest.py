"""The command line beside the functions."""

from tests.cli.conftest import cli

__all__ = ["cli"]
