"""Every command that takes --set and --scale names on standard error what changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

ONE = ("--net", "alexnet", "--hw", "gtx_1080", "--scale", "sm.alu_latency=2", "--scale", "sm.count=2")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", *ONE, "--layer", "conv2"), ("sensitivity", *ONE, "--keys", "sm.warps"), ("compare", *ONE, "--batch", "1,2"),
        ("sweep", *ONE, "--vary", "l2.size=1MiB,8MiB"), ("search", *ONE, "--target", "latency=100ms", "--vary", "clock"),
        ("search", *ONE, "--minimise", "energy", "--vary", "rate.fp32=64FMA/clk,128FMA/clk"),
        ("simulate", "serve", *ONE, "--scale", "link.bandwidth=2", "--rate", "50/s", "--requests", "100"),
        ("simulate", "train", *ONE, "--devices", "1", "--batch", "4"),
    ],
)  # fmt: skip
def test_a_key_without_an_effect_is_named(cli: Any, words: tuple[str, ...]) -> None:
    found = cli(*words)
    assert found.code == 0, found.err
    said = [line for line in found.err.splitlines() if "changes no output" in line]
    assert said == ["archsim: sm.alu_latency changes no output; --fidelity cycle reads it"]


def test_what_a_search_varies_in_vain_is_named_too(cli: Any) -> None:
    vary = ("--vary", "sm.alu_latency=4clk,6clk", "--vary", "sm.count=8,16")
    found = cli("search", "--net", "alexnet", "--hw", "gtx_1080", "--minimise", "energy", *vary)
    assert found.code == 0, found.err
    assert "archsim: sm.alu_latency changes no output; --fidelity cycle reads it\n" in found.err


def test_a_device_is_named_where_a_key_has_an_effect_on_another(cli: Any) -> None:
    """A GTX 1080 multiplies halves no faster than singles; a Tesla P100 does."""
    hw = ("--hw", "gtx_1080,tesla_p100_sxm2", "--precision", "fp16")
    found = cli("compare", "--net", "alexnet", *hw, "--batch", "1,16", "--scale", "rate.fp16=1.5")
    assert "archsim: rate.fp16 changes no output on gtx_1080\n" in found.err
