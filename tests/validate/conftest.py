"""Small measurement files, and the command line inside this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archsim.cli.main import main

HEAD = "source,network,hardware,stack,task,batch,precision,threads,devices,clock_mhz,metric,value,split"
ROW = "me,alexnet,gtx_1080,caffe-cudnn5.1,inference,16,fp32,,1,,latency_s,0.01,calibrate"

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(rows...)` makes a file of network rows, `write(text, raw=True)` one of exactly this content."""

    def make(*rows: str | bytes, raw: bool = False, name: str = "mine.csv", head: str = HEAD) -> str:
        place = tmp_path / name
        if raw:
            content = b"".join(row if isinstance(row, bytes) else row.encode() for row in rows)
        else:
            content = ("\n".join([head, *map(str, rows)]) + "\n").encode()
        place.write_bytes(content)
        return str(place)

    return make


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
