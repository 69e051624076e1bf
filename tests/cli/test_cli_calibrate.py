"""`archsim calibrate`: what it refuses before it reads a row."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.evidence import readers


@pytest.mark.parametrize(("prefix", "near"), [("zzz", "cpu."), ("dispach.", "dispatch."), ("conv.cudn5", "conv.cudnn5")])
def test_a_prefix_without_constants_is_refused_at_once(cli: Any, monkeypatch: pytest.MonkeyPatch, prefix: str, near: str) -> None:
    monkeypatch.setattr(readers, "read_files", lambda *_: pytest.fail("rows were read"))
    result = cli("calibrate", "--fit", "gemm.", "--fit", prefix)
    assert (result.code, result.out) == (2, "")
    assert f"no constant begins with {prefix!r}" in result.err
    assert near in result.err
