"""Activations that engines round to one byte: kernels with a CTA for each row, and what these cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.calibration.constants import default
from archsim.cost.gpu import GpuTerms, latency_bound
from archsim.device.device import Gpu
from archsim.lower.context import Context
from archsim.lower.fusion import quantised
from archsim.lower.gemm import linear
from archsim.lower.kernel import GpuKernels, Kernel, Option, Plan, pack_gpu
from archsim.stack import catalog as stacks
from archsim.trace.op import FORWARD, Linear
from archsim.trace.trace import BoundOp
from tests import shipped

from ..each import each


def setting(stack: str, architecture: str = "hopper") -> Context:
    return Context(stack=stacks.find(stack), device_kind="gpu", element=1, training=False, tensor=True, architecture=architecture)


def rounded(stack: str, tokens: float = 4096, features: float = 8192, how: str = "quantise") -> tuple[Kernel, ...]:
    return quantised(setting(stack), tokens, features, how)


def card(name: str = "h100_sxm5_80gb") -> Gpu:
    return shipped.gpu(name)


def packed(*kernels: Kernel) -> GpuKernels:
    one = Plan(options=(Option(algorithm="element_wise", kernels=kernels),), read_bytes=0.0, write_bytes=0.0)
    return pack_gpu([one], {})


def waits(kernel: Kernel, device: Gpu, **constants: float) -> float:
    known = default().with_values({name.replace("__", "."): value for name, value in constants.items()})
    terms = GpuTerms(kernels=packed(kernel), device=device, precision="fp8", clock=1.5e9, constants=known)
    return float(np.ravel(latency_bound(terms))[0])


def test_a_cta_reads_its_token_twice_and_writes_it_in_one_byte() -> None:
    (kernel,) = rounded("serving")
    values = 4096 * 8192
    assert (kernel.b_bytes, kernel.c_bytes) == (2 * 2 * values, values)
    assert (kernel.gpu.row_count, kernel.gpu.row, kernel.gpu.row_reads) == (4096, 8192, 2)
    assert kernel.cta.threads == 256
    assert kernel.items == 4096 * 256  # a CTA for each token


@each(("features", "threads"), [(32, 2), (256, 16), (4096, 256), (16384, 256)])
def test_a_short_token_has_a_thread_for_each_16_values(features: int, threads: int) -> None:
    (kernel,) = rounded("serving", features=features)
    assert kernel.cta.threads == threads
    assert kernel.gpu.row_in_flight * threads == 2 * features


def test_a_stack_without_the_row_rounds_nothing_and_one_without_threads_streams() -> None:
    assert rounded("serving", how="quantise_attention") == ()
    (kernel,) = rounded("tensorrt-llm-fp8-block")
    assert kernel.repeat == 1
    assert kernel.gpu.row_count == 0


def test_a_grid_finds_the_largest_value_whatever_there_is_to_look_at() -> None:
    largest, others = rounded("tensorrt-llm", tokens=1, features=64)
    assert (largest.items, largest.cta.threads) == (1024 * 1024, 1024)
    assert largest.gpu.row_count == largest.gpu.updates == 1024
    assert largest.b_bytes == 128
    assert others.repeat == 3
    assert largest.b_bytes + others.repeat * others.b_bytes == 3 * 128  # the row of `passes` says three times
    stack = stacks.find("tensorrt-llm")
    rows = {"quantise": {"forward": replace(stack.passes["quantise"]["forward"], launches=1)}}
    assert quantised(replace(setting("serving"), stack=replace(stack, passes=rows)), 1, 64)[1].repeat == 1


def test_values_that_lie_in_one_byte_are_not_rounded_on_other_arithmetic() -> None:
    assert quantised(replace(setting("serving"), element=2), 4096, 8192) == ()
    assert quantised(replace(setting("serving"), tensor=False), 4096, 8192) == ()


def test_of_two_kernels_the_first_finds_the_largest_value_in_one_place() -> None:
    largest, last = rounded("sglang", tokens=1000, features=128, how="quantise_batched")
    assert (largest.name, last.name) == ("largest", "quantise")
    assert (largest.c_bytes, last.c_bytes) == (0, 128000)
    assert largest.b_bytes == last.b_bytes == 256000
    assert (largest.gpu.updates, last.gpu.updates) == (1000, 0)
    assert largest.cta.threads == 128  # however short its row
    assert largest.gpu.row_in_flight == 0  # nothing is read again


def test_updates_of_one_address_come_one_after_the_other() -> None:
    largest, _ = rounded("sglang", tokens=1e6, features=128, how="quantise_batched")
    assert waits(largest, card(), l2__update_clk=20.0) == pytest.approx(1e6 * 20.0 / 1.5e9)
    free = replace(largest, gpu=replace(largest.gpu, updates=0.0))
    assert waits(free, card(), l2__update_clk=20.0) == waits(free, card(), l2__update_clk=1.0)


@given(st.integers(1, 10**6), st.integers(16, 10**5))
def test_more_rows_never_take_less(tokens: int, features: int) -> None:
    def time(rows: int, length: int) -> float:
        return waits(rounded("serving", tokens=rows, features=length)[0], card())

    assert time(tokens, features) <= time(2 * tokens, features) * (1 + 1e-12)


@each(("tokens", "inner", "tile"), [
    (16, 512, (64, 16)), (100, 512, (128, 64)), (8192, 4096, (128, 128)), (8192, 8192, (128, 256)), (4096, 8192, (128, 128)),
])  # fmt: skip
def test_vllm_takes_the_tile_that_its_source_names_for_so_many_tokens_and_terms(
    tokens: int, inner: int, tile: tuple[int, int]
) -> None:  # fmt: skip
    stack = stacks.find("serving")
    op = BoundOp(name="fc", kind=Linear(bias=False), inputs=("x",), input_shapes=((tokens, inner),), shape=(tokens, 4096),
                 phase=FORWARD)  # fmt: skip
    plan = linear(op, setting("serving"))
    kernels = pack_gpu([plan], stack.menus, "hopper")
    product = kernels.matrix > 0
    assert set(zip(kernels.tile_m[product].tolist(), kernels.tile_n[product].tolist(), strict=True)) == {tile}
