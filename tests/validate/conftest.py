"""The command line inside this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from archsim.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("validate", ...)` gives exit code, output and errors."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["archsim", *words])
        with pytest.raises(SystemExit) as leaving:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        assert isinstance(leaving.value.code, int)
        return leaving.value.code, captured.out, captured.err

    return call
