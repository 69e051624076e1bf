"""The command line inside this process: `run("validate", ...)` gives exit code, output and errors."""

from __future__ import annotations

from ..cli.conftest import cli as run

__all__ = ["run"]
