"""Command lines one after the other in one process, each through `main` of the command line: they start once and read once.

`python tests/readme/shell.py` runs those that come in, a line of JSON each: {"words": [...], "folder": "..."}.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from unittest import mock

from archsim.cli.main import main
from archsim.evidence import readers
from archsim.evidence.case import Case, Skip
from archsim.evidence.family import shipped_files


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run(words: list[str], folder: str) -> Outcome:
    """Run `archsim` with these words in a folder."""
    code: object = None
    with (
        mock.patch.object(sys, "argv", ["archsim", *words]),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        reading_once(),
    ):
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
    assert isinstance(code, int)
    return Outcome(code=code, out=out.getvalue(), err=err.getvalue())


_read = readers.read


@cache
def _shipped(place: Path) -> tuple[list[Case], list[Skip]]:
    return _read(place)


@contextlib.contextmanager
def reading_once() -> Iterator[None]:
    """Read each shipped table of measurements once, whoever asks for it: all of them take four seconds."""
    shipped = set(shipped_files(with_peers=True))

    def read(place: Path, specs: Mapping[str, str] = MappingProxyType({})) -> tuple[list[Case], list[Skip]]:
        return _shipped(place) if place in shipped and not specs else _read(place, specs)

    with mock.patch.object(readers, "read", read):
        yield


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what writes past `sys.stdout`
    for line in sys.stdin:
        print(json.dumps(asdict(run(**json.loads(line)))), file=answers, flush=True)
