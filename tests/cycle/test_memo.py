"""What has been simulated is remembered between processes, and by every thread of a server."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from archsim.estimation.memo import Memo, _file


def test_another_thread_writes_to_the_file_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = Memo(_file())
    writing = Thread(target=first.__setitem__, args=(b"key", 12.5))
    writing.start()
    writing.join()
    first.close()
    second = Memo(_file())
    assert second[b"key"] == 12.5
    second.close()
