"""Direct convolutions along the rows of images: runs of pixels, edges, channels that are filled up, filters from memory."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace as Some
from typing import Any

import pytest

import archsim
from archsim.cost.direct import direct_clocks, first_clocks, run_clocks
from archsim.device import catalog as devices
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.trace import BoundTrace, loads, task_trace

from ..each import each

COLUMNS = ("pixels", "runs", "run", "taps", "edges", "edge_taps", "depth", "deep", "block")


def text(channels: int = 64, filters: int = 64, side: int = 14, kernel: int = 3, pad: int = 1, **words: Any) -> str:
    """A network of one convolution."""
    out = (side + 2 * pad - kernel) // words.get("stride", [1])[0] + 1
    head = {"schema": "archsim-trace/1", "name": "t", "inputs": {"data": ["N", channels, side, side]}, "dtype": "fp32",
            "source": "test"}  # fmt: skip
    op = {"op": "conv2d", "name": "c", "in": ["data"], "out": ["N", filters, out, out], "kernel": [kernel, kernel],
          "pad": [pad, pad], "bias": False, **words}  # fmt: skip
    return "".join(json.dumps(one) + "\n" for one in (head, op))


def layer(**words: Any) -> BoundTrace:
    return task_trace(loads(text(**words), "t.jsonl"), "inference").bind(N=1)


def columns(trace: BoundTrace, stack: str = "onnxruntime-cpu") -> dict[str, float]:
    own = lower(trace.ops, stacks.find(stack), "cpu", "fp32", False).kernels.kernels[-1].cpu
    return {name: getattr(own, name) for name in COLUMNS}


ALONG = {
    "3 x 3": ({}, {"runs": 14, "run": 12, "edges": 2, "taps": 40 / 14 * 3, "edge_taps": 40 / 14 * 2, "deep": 0, "pixels": 3}),
    "no padding": ({"pad": 0}, {"runs": 12, "run": 12, "edges": 0, "taps": 9, "edge_taps": 0}),
    "1 x 1": ({"kernel": 1, "pad": 0}, {"runs": 1, "run": 196, "edges": 0, "taps": 1, "deep": 128}),
    "1 x 1 with a stride": ({"kernel": 1, "pad": 0, "stride": [2, 2]}, {"runs": 7, "run": 7, "deep": 128}),
    "depthwise": ({"groups": 64}, {"runs": 14, "depth": 1, "block": 1, "deep": 0}),
    "groups": ({"groups": 2}, {"runs": 28, "depth": 32, "block": 4}),
}


@each("case", ALONG)
def test_a_kernel_goes_along_rows_and_takes_edges_alone(case: str) -> None:
    words, expected = ALONG[case]
    found = columns(layer(**words))
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_stack_without_such_a_kernel_has_no_runs() -> None:
    assert columns(layer(), "mxnet-mkldnn")["pixels"] == 0


def clocks(**words: float) -> float:
    usual = {"pixels": 3.0, "runs": 1.0, "run": 12.0, "taps": 9.0, "edges": 0.0, "edge_taps": 0.0, "depth": 64.0, "deep": 0.0,
             "channels": 64.0, "block": 4.0}  # fmt: skip
    return float(direct_clocks(Some(**usual | words), devices.find("epyc_9655").device, 32.0))  # type: ignore[arg-type]


def test_channels_are_filled_up_to_whole_registers() -> None:
    assert clocks(depth=24.0) == clocks(depth=32.0) > clocks(depth=16.0)
    assert clocks(channels=40.0) == clocks(channels=48.0) > clocks(channels=32.0)
    assert 4 * clocks(depth=3.0) == clocks(depth=12.0)  # an image that is not blocked, channel by channel


def test_a_block_of_few_pixels_and_channels_waits_for_its_sums() -> None:
    assert clocks(run=6.0) == clocks(run=12.0) / 2
    assert clocks(run=1.0) == clocks(run=2.0)  # 4 registers of one pixel: 2 clocks of arithmetic, 4 of latency
    assert clocks(run=6.0, channels=16.0) > clocks(run=6.0) / 4


@pytest.mark.parametrize(("pixels", "clocks"), [(6.0, 6.0), (7.0, 10.0), (10.0, 14.0), (11.0, 14.0), (13.0, 16.0), (27.0, 28.0)])
def test_the_pixels_beyond_a_block_go_by_threes_twos_and_one(pixels: float, clocks: float) -> None:
    """Blocks of six pixels, a clock each; fewer than four wait for their sums, which take four."""
    cpu = devices.find("epyc_9655").device
    assert run_clocks(Some(pixels=3.0, run=pixels), cpu, 16.0, 1.0).item() == clocks  # type: ignore[arg-type]


@pytest.mark.parametrize("registers", [1.0, 2.0, 4.0, 8.0])
def test_a_single_pixel_takes_all_its_registers_or_a_latency(registers: float) -> None:
    cpu = devices.find("epyc_9655").device
    assert run_clocks(Some(pixels=3.0, run=1.0), cpu, 16.0, registers).item() == max(registers, 4.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("pixels", "clocks"), [(3.0, 12.0), (8.0, 32.0), (9.0, 36.0), (10.0, 40.0)])
def test_pixels_of_four_registers_take_a_clock_for_each(pixels: float, clocks: float) -> None:
    cpu = devices.find("epyc_9655").device
    assert run_clocks(Some(pixels=3.0, run=pixels), cpu, 16.0, 4.0).item() == clocks  # type: ignore[arg-type]
    assert run_clocks(Some(pixels=3.0, run=pixels), cpu, 8.0, 4.0).item() == 2 * clocks  # type: ignore[arg-type]


def test_an_edge_that_comes_first_waits_for_its_filters_as_well() -> None:
    """A visit of one channel: three taps of six pixels, 12 clocks each, and two taps of one at either edge, 4 clocks each."""
    cpu = devices.find("epyc_9655").device
    row = Some(pixels=3.0, run=6.0, taps=3.0, edges=2.0, edge_taps=2.0, depth=8.0, deep=0.0)
    assert first_clocks(row, cpu, 32.0, 4.0).item() == 3 * 12 + 2 * 2 * 4  # type: ignore[arg-type]
    assert first_clocks(row, cpu, 4.0, 4.0).item() == 3 * 96 + 2 * 2 * 16  # type: ignore[arg-type]


def test_filters_of_small_images_are_waited_for(tmp_path: Path) -> None:
    def rate(side: int) -> float:
        words = {"channels": 512, "filters": 512, "side": side, "kernel": 1, "pad": 0}
        (tmp_path / "t.jsonl").write_text(text(**words))
        found = archsim.estimate(net=str(tmp_path / "t.jsonl"), hw="epyc_9655", stack="onnxruntime-cpu", batch=1, threads=1)
        return layer(**words).ops[0].macs / float(found.latency_s)

    assert rate(7) < 0.95 * rate(14) < 0.95 * rate(28)
