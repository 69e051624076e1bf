"""Kernels of today's libraries: rows that begin anywhere, images that are copied around, instructions that are counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.cost.occupancy import mixed_work, narrow_loads
from archsim.cost.retention import shared_size
from archsim.cost.sm import neighbours
from archsim.evidence.family import family_called
from archsim.evidence.network_rows import read_network
from archsim.evidence.row import row_of
from archsim.evidence.table import Row
from archsim.lower.kernel import Kernel, Option
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.stack.choose import searching
from archsim.stack.stack import Stack
from archsim.trace import BoundTrace
from tests.shipped import line, network

TODAY, LAST = "pytorch-2-cuda12", "pytorch-2-cuda12-channels-last"


def options(trace: BoundTrace, stack: str | Stack, precision: str = "fp16", op: int = 0) -> dict[str, Option]:
    chosen = stacks.find(stack, "hopper") if isinstance(stack, str) else stack
    found = lower(trace.ops, chosen, "gpu", precision, False, architecture="hopper")
    plan = int(found.plan_of[op])
    ends = [*found.kernels.plan_start.tolist(), len(found.kernels.options)]
    return {option.algorithm: option for option in found.kernels.options[ends[plan] : ends[plan + 1]]}


def linear(rows: int, inner: int, features: int) -> BoundTrace:
    return network(line("linear", "fc", "x", [rows, features], bias=False), x=[rows, inner])


def conv(channels: int, side: int, filters: int, window: int = 1) -> BoundTrace:
    pad = window // 2
    return network(line("conv2d", "c", "x", [2, filters, side, side], kernel=[window, window], stride=[1, 1],
                        pad=[pad, pad], bias=False), x=[2, channels, side, side])  # fmt: skip


def product(option: Option) -> Kernel:
    return next(kernel for kernel in option.kernels if kernel.menu)


@pytest.mark.parametrize(("features", "inner", "load"), [(4096, 4096, 16), (30522, 768, 4), (4097, 4096, 2), (4096, 4095, 2)])
def test_rows_that_begin_at_no_multiple_of_16_bytes_are_loaded_in_narrower_pieces(features: int, inner: int, load: int) -> None:
    kernel = product(options(linear(512, inner, features), TODAY)["gemm"])
    assert kernel.gpu.load == load
    assert kernel.menu == ("gemm_tensor.hopper" if load == 16 else "gemm_narrow_tensor")
    assert product(options(linear(512, inner, features), TODAY, "fp32")["gemm"]).gpu.load == 16  # lanes load one value anyway


def test_images_channels_first_are_copied_before_and_after_tensor_cores_and_filters_too() -> None:
    around = options(conv(64, 28, 64, 3), TODAY)["implicit_gemm"].kernels
    assert [kernel.name for kernel in around] == ["transpose", "transpose", "implicit_gemm", "transpose"]
    filters, images, _, results = around
    assert (filters.b_bytes, images.b_bytes, results.c_bytes) == (64 * 64 * 9 * 2, 2 * 64 * 784 * 2, 2 * 64 * 784 * 2)
    assert filters.gpu.cache_bytes == pytest.approx(2 * filters.b_bytes * 32 / 9)  # nine taps in blocks of 32
    for spared in (LAST, searching(stacks.find(TODAY, "hopper"))):
        assert [kernel.name for kernel in options(conv(64, 28, 64, 3), spared)["implicit_gemm"].kernels] == ["implicit_gemm"]
    assert [kernel.name for kernel in options(conv(64, 28, 64, 3), TODAY, "fp32")["implicit_gemm"].kernels] == ["implicit_gemm"]


def test_filters_of_one_pixel_are_products_in_either_layout() -> None:
    first = options(conv(64, 28, 128), TODAY)["pixel_gemm"].kernels
    (kernel,) = first
    assert (kernel.m, kernel.n, kernel.k, kernel.count) == (784, 128, 64, 2)
    assert kernel.flop == 2 * 2 * 784 * 128 * 64
    (last,) = options(conv(64, 28, 128), LAST)["pixel_gemm"].kernels
    assert (last.m, last.n, last.k, last.count) == (128, 2 * 784, 64, 1)
    assert "pixel_gemm" not in options(conv(64, 7, 128), TODAY), "49 pixels of two bytes begin at no multiple of 16"
    assert "pixel_gemm" in options(conv(64, 7, 128), LAST)
    assert "pixel_gemm" not in options(conv(64, 28, 128, 3), LAST)
    assert "pixel_gemm" not in options(conv(64, 28, 128), LAST, "fp32")


def test_winograd_and_fourier_transforms_are_not_taken_on_hopper() -> None:
    assert set(options(conv(64, 28, 64, 3), TODAY, "fp32")) == {"implicit_gemm"}


def test_instructions_of_values_and_rows_are_counted() -> None:
    softmax = network(line("softmax", "s", "x", [64, 512]), x=[64, 512])
    (kernel,) = options(softmax, TODAY)["element_wise"].kernels
    assert kernel.gpu.slots == 64 * 512 * stacks.find(TODAY).passes["softmax"]["forward"].value_slots > 0
    norm = network(line("layer_norm", "n", "x", [64, 512]), x=[64, 512])
    rows = stacks.find(TODAY).passes["layer_norm"]["forward"]
    (kernel,) = options(norm, TODAY)["element_wise"].kernels
    assert kernel.gpu.slots == 64 * 512 * rows.value_slots


def softmax(length: int, stack: str, precision: str = "fp32") -> Kernel:
    rows = network(line("softmax", "s", "x", [64, length]), x=[64, length])
    return options(rows, stack, precision)["element_wise"].kernels[0]


def test_rows_of_a_softmax_are_read_once_by_newer_versions() -> None:
    assert [softmax(length, stack).b_bytes / (64 * length * 4) for stack in ("pytorch-2", TODAY) for length in (1024, 16384)] == [
        3, 3, 1, 1]  # fmt: skip


def test_a_lane_alone_has_its_part_of_a_row() -> None:
    rows = stacks.find(TODAY).passes
    norm = network(line("layer_norm", "n", "x", [64, 1024]), x=[64, 1024])
    full, half = (options(norm, TODAY, precision)["element_wise"].kernels[0] for precision in ("fp32", "fp16"))
    of = rows["layer_norm"]["forward"]
    assert full.gpu.lane_slots == half.gpu.lane_slots == 1024 / 128 * of.value_slots


def pooled(kind: str, stack: str, precision: str) -> Kernel:
    pool = line(kind, "p", "x", [2, 64, 8, 8], kernel=[2, 2], stride=[2, 2], pad=[0, 0])
    return options(network(pool, x=[2, 64, 16, 16]), stack, precision)["element_wise"].kernels[0]


def test_poolings_of_the_framework_divide_for_each_result_and_check_each_value() -> None:
    rows, results = stacks.find(TODAY).passes, 2 * 64 * 64
    for kind, stack, precision, name in (
        ("max_pool", TODAY, "fp32", "native_max_pool"), ("max_pool", TODAY, "fp16", "half_max_pool"),
        ("avg_pool", TODAY, "fp16", "native_avg_pool"), ("avg_pool", LAST, "fp16", "last_avg_pool"),
    ):  # fmt: skip
        kernel, row = pooled(kind, stack, precision), rows[name]["forward"]
        assert kernel.gpu.slots == results * row.value_slots
        assert (kernel.gpu.checked, kernel.gpu.unrolled) == (4 * results, 0)
    assert rows["last_avg_pool"]["forward"].value_slots > rows["native_avg_pool"]["forward"].value_slots
    compiled = pooled("max_pool", "pytorch-2-compile", "fp16")
    assert (compiled.gpu.slots, compiled.gpu.checked) == (0, 4 * results)




def test_a_stack_that_replays_a_graph_is_predicted_as_one() -> None:
    cells = dict.fromkeys(("seq_len", "threads", "clock_mhz", "source_ref"), "") | {
        "source": "mine", "network": "resnet_18", "hardware": "h100_sxm5_80gb", "task": "inference", "batch": "1",
        "precision": "fp16", "devices": "1", "metric": "latency_s", "value": "0.001", "split": "test"}  # fmt: skip
    replayed, launched = (next(read_network(row_of(family_called("networks"), Row(2, {**cells, "stack": stack}), "mine.csv")))
                          for stack in (f"{TODAY}-graphs", TODAY))  # fmt: skip
    assert (replayed.timer.graph, launched.timer.graph) == (True, False)


def test_each_narrow_load_takes_slots_of_its_own() -> None:
    kernel = SimpleNamespace(tile_m=100.0, tile_n=28.0, operand_a=2.0, load=np.array([2.0, 8.0, 16.0]))
    gpu: Any = SimpleNamespace(sm=SimpleNamespace(schedulers=4.0, warp=32.0))
    found = narrow_loads(kernel, gpu, np.array(8.0), {"gemm.narrow_slots": 16.0})  # type: ignore[arg-type]
    assert found.tolist() == [16 * 8 * 0.875, 16 * 8 * 0.125, 0.0]  # 128 values a step, 128 slots a clock
    slots: Any = SimpleNamespace(slots=1280.0)
    assert mixed_work(slots, gpu, np.array(64.0)).item() == 640.0


def test_a_cta_that_goes_from_tile_to_tile_fills_the_start_of_the_next() -> None:
    made = {"exps": np.array([0.0, 0.0, 1.0]), "tile_m": np.full(3, 64.0), "m": np.full(3, 512.0), "k": 512.0}
    kernel: Any = SimpleNamespace(persistent=np.array([0.0, 1.0, 1.0]), **made)
    gpu: Any = SimpleNamespace(sm=SimpleNamespace(count=10.0))
    assert neighbours(kernel, gpu, np.full(3, 200.0), np.full(3, 2.0)).tolist() == [2.0, 20.0, 20.0]


def test_parts_of_an_l2_that_keep_copies_hold_half_as_much() -> None:
    def size(parts: float | None) -> float:
        return float(shared_size(SimpleNamespace(l2=SimpleNamespace(size=8e6, partitions=parts))))  # type: ignore[arg-type]

    assert (size(None), size(1.0), size(2.0)) == (8e6, 8e6, 4e6)
