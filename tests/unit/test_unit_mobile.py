"""What software of boards and phones does with a convolution: copies, Winograd of several sizes, whole blocks of channels."""

from __future__ import annotations

from types import SimpleNamespace as some
from typing import Any

import pytest

from archsim.cost.cores import load_clocks
from archsim.device.catalog import find as device
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel
from archsim.lower.lower import lower
from archsim.lower.processor import runtime_of
from archsim.stack.catalog import find as stack
from archsim.trace import loads, task_trace

HEADER = '{"schema": "archsim-trace/1", "name": "t", "inputs": {"data": ["N", 64, 56, 56]}, "dtype": "fp32", "source": "test"}\n'


def conv(words: str = '"kernel": [3, 3], "pad": [1, 1]', size: int = 56, channels: int = 64) -> Any:
    out = f'["N", 64, {size}, {size}]'
    op = f'{{"op": "conv2d", "name": "c", "in": ["data"], "out": {out}, "bias": false, {words}}}\n'
    header = HEADER.replace('["N", 64,', f'["N", {channels},')
    return task_trace(loads(header + op, "t.jsonl"), "inference").bind(N=1)


def products(trace: Any, precision: str = "fp32") -> dict[float, tuple[Kernel, ...]]:
    """The kernels of each way to run it, by the number of products that it makes at once."""
    found = lower(trace.ops, stack("ncnn-cpu"), "cpu", precision, False).kernels.options
    return {next(k for k in option.kernels if k.menu).count: option.kernels for option in found}


def test_winograd_of_three_sizes_transforms_its_filters_ahead_of_the_run() -> None:
    """Points of F(2, 3), F(4, 3) and F(6, 3) beside the one product of unfolded images."""
    found = products(conv())
    assert set(found) == {1, 16, 36, 64}
    assert all("filter" not in kernel.name for kernels in found.values() for kernel in kernels)
    tiles = {count: next(k.m for k in kernels if k.menu) for count, kernels in found.items()}
    assert tiles == {1: 56 * 56, 16: 28 * 28, 36: 14 * 14, 64: 10 * 10}


@pytest.mark.parametrize(("channels", "family"), [(3, "cpu.ncnn_images"), (4, "cpu.assembly")])
def test_images_of_three_channels_do_not_fill_a_register(channels: int, family: str) -> None:
    for kernels in products(conv(channels=channels)).values():
        assert [kernel.efficiency for kernel in kernels if kernel.menu] == [family]


def test_an_image_is_copied_with_its_border_and_one_without_is_not() -> None:
    assert products(conv())[1][0].name == "border"
    assert products(conv('"kernel": [1, 1]'))[1][0].name != "border"


def test_images_are_rounded_before_and_results_widened_after_a_convolution_of_int8() -> None:
    narrow, wide = products(conv(), "int8"), products(conv())
    assert set(narrow) == {1, 16, 36}  # a product, F(2, 3) and F(4, 3); F(6, 3) has fractions
    first, product = narrow[1][0], narrow[1][-1]
    assert (first.name, first.b_bytes, first.c_bytes) == ("quantise", 4 * 64 * 56 * 56, 64 * 56 * 56)
    assert product.c_bytes == wide[1][-1].c_bytes


def test_weights_are_packed_ahead_and_images_by_simd_instructions() -> None:
    product = products(conv())[1][-1]
    assert product.cpu is not None
    assert product.cpu.copied == product.m * product.k


def test_output_channels_lie_in_the_lanes_and_each_block_of_them_goes_through_all_pixels() -> None:
    """Eight blocks of two registers of four; F(2, 3) copies its transformed images on all threads."""
    plain, transformed = (next(k for k in products(conv())[count] if k.menu) for count in (1, 16))
    assert plain.cpu is not None
    assert transformed.cpu is not None
    assert (plain.m, plain.n) == (56 * 56, 64)
    assert (plain.cpu.packed, plain.cpu.tiled) == (1, 56 * 56 * 64 * 9 * 4)
    assert (transformed.cpu.packed, transformed.cpu.tiled) == (1, 0)
    assert transformed.cpu.copied == 16 * 28 * 28 * 64


def test_images_are_unfolded_in_tiles_of_one_thread() -> None:
    unfolding = next(k for k in products(conv())[1] if k.role is Role.IM2COL)
    assert unfolding.cpu is not None
    assert unfolding.cpu.tiled == unfolding.c_bytes == 56 * 56 * 64 * 9 * 4


def test_images_of_three_channels_have_an_efficiency_of_their_own_in_int8() -> None:
    for kernels in products(conv(channels=3), "int8").values():
        assert [kernel.efficiency for kernel in kernels if kernel.menu] == ["cpu.ncnn_images_byte"]


def test_values_between_products_of_int8_are_halves_on_cores_that_compute_them() -> None:
    read = [lower(conv().ops, stack("ncnn-cpu"), "cpu", "int8", False, halves=halves).kernels.kernels[0].b_bytes
            for halves in (False, True)]  # fmt: skip
    assert read == [4 * 64 * 56 * 56, 2 * 64 * 56 * 56]


@pytest.mark.parametrize(("op", "threaded"), [("concat", 0), ("add", 1)])
def test_channels_are_concatenated_on_one_thread(op: str, threaded: int) -> None:
    channels = 128 if op == "concat" else 64
    one = f'{{"op": "{op}", "name": "x", "in": ["data", "data"], "out": ["N", {channels}, 56, 56]}}\n'
    trace = task_trace(loads(HEADER + one, "t.jsonl"), "inference").bind(N=1)
    (kernel,) = lower(trace.ops, stack("ncnn-cpu"), "cpu", "fp32", False).kernels.kernels
    assert kernel.cpu is not None
    assert kernel.cpu.threaded == threaded

def test_threads_take_whole_blocks_of_output_channels() -> None:
    product = products(conv())[1][-1]
    assert product.cpu is not None
    assert product.cpu.channels == 64
    assert runtime_of(stack("ncnn-cpu")).block_registers == 2


def test_a_core_in_order_spends_clocks_on_loads_and_one_out_of_order_hides_them() -> None:
    product = some(m=14.0, n=8.0, k=100.0, count=1.0, operand_a=4.0, depthwise=0.0)
    assert load_clocks(product, device("raspberry_pi_4").device) == 0.0
    assert float(load_clocks(product, device("raspberry_pi_3").device)) == pytest.approx(1100.0)
    alone = some(**{**vars(product), "depthwise": 1.0})
    assert float(load_clocks(alone, device("raspberry_pi_3").device)) == pytest.approx(14 * 8 * 100 * 4 / 8)
