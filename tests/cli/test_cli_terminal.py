"""On a terminal: colours for who wants them, and how far a long command is. `tests/contract` holds widths."""

from __future__ import annotations

import io
import re
import time

import pytest

from archsim.cli.terminal import Progress

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
ONE = ("--net", "alexnet", "--hw", "gtx_1080")


@pytest.mark.parametrize(
    ("mode", "terminal_", "no_color", "colored"),
    [(None, False, "", False), (None, True, "", True), (None, True, "1", False), ("always", False, "", True),
     ("always", True, "1", True),
     ("never", True, "", False), ("auto", True, "1", False), ("auto", False, "", False)],
)  # fmt: skip
def test_who_wants_no_colour_gets_none(cli, monkeypatch, mode, terminal_, no_color, colored):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal_, raising=False)
    found = cli("list", "fidelities", *(("--color", mode) if mode else ()))
    assert bool(ESCAPES.search(found.out)) == colored


def test_json_and_csv_have_no_colour(cli):
    for form in ("--json", "--csv"):
        assert not ESCAPES.search(cli("estimate", *ONE, form, "--color", "always").out)


class Stream(io.StringIO):
    """A terminal, or what is none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal_", [True, False])
def test_progress_says_how_far_it_is_and_what_is_left(monkeypatch, terminal_):
    now, stream = [100.0], Stream(terminal_)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "70")
    with Progress() as tell:
        for done in range(0, 600, 100):
            tell(f"{done:,} of 1,000 points")
            now[0] += 10.0
        tell("a part that does not count, and whose text is much longer than any line of this terminal is wide")
    lines = [line.removeprefix("archsim: ") for line in stream.getvalue().split("\r\x1b[K")]
    if not terminal_:
        assert stream.getvalue() == ""
        return
    assert "500 of 1,000 points, 50 s left" in lines
    assert max(map(len, lines)) < 70
    assert lines[-1] == ""
