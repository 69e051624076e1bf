"""The command line, run inside this process."""

from __future__ import annotations

import csv
import io
import json
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from archsim.cli.main import main


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.out)))


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("list", "hw")` gives exit code and output; a traceback in either fails the test."""

    # Otherwise click takes escape sequences out of what is no terminal, and a test would not see them.
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_, **__: False)

    def call(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["archsim", *words])
        with pytest.raises(SystemExit) as leaving:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        assert isinstance(leaving.value.code, int)
        return Outcome(leaving.value.code, captured.out, captured.err)

    return call


def heard() -> None:
    """In a child before it begins: interrupts are heard again, which whatever started the tests may have had ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
