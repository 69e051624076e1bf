"""The reader of ONNX files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from archsim.trace.readers.model import checked
from archsim.trace.readers.onnx_file import read_model
from archsim.trace.readers.read import trace_of
from archsim.trace.trace import Trace


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of an ONNX file. Raises MissingExtra, MissingFile, InputError, Unsupported or ArgumentError."""
    return trace_of(checked(read_model(path)), sizes)
