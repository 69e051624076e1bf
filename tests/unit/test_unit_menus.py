"""Which tiles a library has for a product: by the bytes of an operand, the architecture, and the sizes that each is meant for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost.gpu import GpuTerms, compute_bound
from archsim.device.catalog import find
from archsim.device.device import Gpu
from archsim.evidence.kernel_ops import forward
from archsim.lower.context import Context, Stored
from archsim.lower.kernel import GpuKernels, Kernel, Option, Plan, pack_gpu
from archsim.lower.lower import lower
from archsim.lower.role import Role
from archsim.stack import catalog as stacks
from archsim.stack.menu import Menu, Tile
from archsim.stack.stack import NEVER_AGAIN, AttentionChoice, Stack
from archsim.trace.op import Attention, Linear
from archsim.trace.trace import BoundOp
from tests import shipped

TILE = Tile(m=64, n=64, k=32, threads=128, registers=96, shared=8192)
BYTE, ADA, NARROW = (Menu(tiles=(replace(TILE, m=side),)) for side in (128, 32, 16))


def library(**menus: Menu) -> Stack:
    """The ideal stack with these menus, `_` of their names for a point."""
    named = {name.replace("__", "."): menu for name, menu in menus.items()}
    return replace(stacks.find("ideal"), menus=named)


def context(stack: Stack, element: int, architecture: str = "hopper") -> Context:
    return Context(stack=stack, device_kind="gpu", element=element, training=False, tensor=True, architecture=architecture)


def kernels(op: BoundOp, stack: Stack, precision: str) -> GpuKernels:
    found = lower((op,), stack, "gpu", precision, False, {precision}.__contains__, "ada").kernels
    assert isinstance(found, GpuKernels)
    return found


def product(tokens: int, features: int, inner: int) -> BoundOp:
    return forward(Linear(bias=False), (tokens, features), (tokens, inner))


def test_operands_of_one_byte_have_tiles_of_their_own_where_the_library_has_some() -> None:
    both = library(gemm_tensor=Menu(tiles=(TILE,)), gemm_tensor_byte=BYTE)
    assert [context(both, element).menu("gemm") for element in (1, 2)] == ["gemm_tensor_byte", "gemm_tensor"]
    assert context(both, 1).menu("gemm_batched", "gemm") == "gemm_tensor"  # another kernel of the library
    here = library(gemm_tensor=Menu(tiles=(TILE,)), gemm_tensor_byte__ada=replace(BYTE, architectures=("ada",)))
    assert [context(here, 1, name).menu("gemm") for name in ("ada", "hopper")] == ["gemm_tensor_byte.ada", "gemm_tensor"]


def test_a_menu_called_as_the_architecture_comes_before_one_that_lists_it() -> None:
    made = library(
        gemm_tensor=Menu(tiles=(TILE,)), gemm_tensor__ampere=replace(BYTE, architectures=("ampere", "ada")),
        gemm_tensor__ada=replace(ADA, architectures=("ada",)),
    )  # fmt: skip
    assert [context(made, 2, name).menu("gemm") for name in ("ada", "ampere")] == ["gemm_tensor.ada", "gemm_tensor.ampere"]


@pytest.mark.parametrize(("tokens", "features", "side"), [(16, 64, 16), (17, 64, 64), (16, 8193, 64)])
def test_a_tile_is_taken_up_to_its_largest_result(tokens: int, features: int, side: int) -> None:
    tiles = (replace(TILE, n=16, most_n=16, most_m=8192), replace(TILE, least_n=17), replace(TILE, least_m=8193))
    found = kernels(product(tokens, features, 512), library(gemm_tensor=Menu(tiles=tiles)), "bf16")
    assert set(found.tile_n.tolist()) == {side}


def test_thin_products_run_in_the_tiles_of_a_library_that_has_no_other_kernel() -> None:
    for rows, thin, names in ((8, 9, ["gemv"]), (9, 9, ["gemm"]), (1, 2, ["gemv"]), (2, 2, ["gemm"]), (1, 1, ["gemm"])):
        made = library(gemm_tensor=Menu(tiles=(TILE,), thin=thin))
        assert [kernel.name for kernel in kernels(product(rows, 4096, 4096), made, "bf16").kernels] == names


def attention(queries: int, heads: int, window: int = 0, causal: bool = True) -> BoundOp:
    shape = (1, queries, heads * 64)
    return forward(Attention(heads=heads, causal=causal, window=window), shape, *[shape] * 3)


def attending(tile: Tile = TILE) -> Stack:
    made = library(attention_tensor=Menu(tiles=(tile,)), gemm_tensor=Menu(tiles=(tile,)))
    return replace(made, attention=AttentionChoice(fused=True))


def seconds(op: BoundOp, stack: Stack) -> float:
    gpu = find("l40s").device
    terms = GpuTerms(kernels=kernels(op, stack, "bf16"), device=gpu, precision="bf16", clock=2e9, constants=default())
    return float(np.min(compute_bound(terms)))


def test_few_tiles_of_queries_take_as_long_as_the_last_which_sees_all_keys() -> None:
    few, many = (seconds(attention(4096, heads), attending()) for heads in (1, 64))
    without, throughout = (seconds(attention(4096, heads, causal=False), attending()) for heads in (1, 64))
    assert few == pytest.approx(without, rel=0.04)  # 64 tiles on 142 SMs
    assert many < 0.6 * throughout


def test_slots_of_a_score_lengthen_the_softmax() -> None:
    op = attention(4096, 64)
    assert seconds(op, attending(replace(TILE, score_slots=40.0))) > 1.5 * seconds(op, attending())


def heads(stack: Stack, queries: int, keys: int, size: int, kv_heads: int) -> GpuKernels:
    op = forward(Attention(heads=8, kv_heads=kv_heads), (2, queries, 8 * size), (2, queries, 8 * size),
                 (2, keys, kv_heads * size), (2, keys, kv_heads * size))  # fmt: skip
    return kernels(op, stack, "bf16")


def choosing(rules: AttentionChoice, menu: Menu) -> Stack:
    return replace(library(gemm_tensor=Menu(tiles=(TILE,)), attention_tensor=menu), attention=replace(rules, fused=True))


@pytest.mark.parametrize(("size", "widths"), [(64, {64.0}), (80, {96.0}), (128, {128.0}), (256, {64.0, 96.0, 128.0})])
def test_a_cta_of_attention_holds_whole_heads_in_the_narrowest_tile_that_does(size: int, widths: set[float]) -> None:
    menu = Menu(tiles=tuple(replace(TILE, n=width) for width in (64, 96, 128)))
    found = heads(choosing(AttentionChoice(), menu), 256, 256, size, 8)
    assert set(found.tile_n[found.exps > 0]) == widths


@pytest.mark.parametrize(
    ("queries", "kv_heads", "alone", "most"),
    [(1, 8, ("ada",), 1.0), (1, 2, ("ada",), 4.0), (1, 8, ("ampere",), 4.0), (256, 8, ("ada",), 4.0)],
)
def test_cached_keys_of_heads_that_share_none_are_whole_where_the_stack_says_so(
    queries: int, kv_heads: int, alone: tuple[str, ...], most: float
) -> None:
    menu = Menu(tiles=(TILE,), split_k=(1, 2, 4))
    found = heads(choosing(AttentionChoice(whole_alone=alone), menu), queries, 4096, 64, kv_heads)
    assert found.split[found.exps > 0].max() == most


@pytest.mark.parametrize(("window", "apart", "packed"), [(128, ("ada",), False), (128, ("ampere",), True), (0, ("ada",), True)])
def test_heads_that_share_cached_keys_are_apart_under_a_window_where_the_stack_says_so(
    window: int, apart: tuple[str, ...], packed: bool
) -> None:
    rules = AttentionChoice(packed_heads="always", windows_apart=apart)
    op = forward(Attention(heads=8, kv_heads=2, causal=window > 0, window=window), (2, 1, 512), (2, 1, 512), (2, 128, 128),
                 (2, 128, 128))  # fmt: skip
    found = kernels(op, choosing(rules, Menu(tiles=(TILE,))), "bf16")
    assert set(found.m[found.exps > 0]) == {4.0 if packed else 1.0}


@pytest.mark.parametrize(("step", "keys"), [(32, 256.0), (128, 256.0), (256, 384.0)])
def test_a_tile_of_queries_under_a_window_goes_through_whole_steps_of_keys(step: int, keys: float) -> None:
    """128 queries with 128 keys before each: two blocks of 128, or on average one and a half of 256."""
    found = kernels(attention(8192, 4, window=128), attending(replace(TILE, k=step)), "bf16")
    (reached,), (work,) = (set(column[found.exps > 0]) for column in (found.k, found.work))
    assert reached == keys
    assert 0.5 * work * reached == pytest.approx(keys, rel=0.03)


def test_a_tile_without_splits_stands_beside_others_that_add_up_one_after_the_other() -> None:
    menu = Menu(tiles=(TILE, replace(TILE, m=16, whole=True)), split_k=(1, 2, 4), split_serial=True, in_rows=True)
    found = kernels(product(64, 128, 4096), library(gemm_tensor=menu), "bf16")
    assert sorted(found.split[found.tile_m == 64].tolist()) == [1, 2, 4]
    assert found.split[found.tile_m == 16].tolist() == [1]
    assert found.queued.tolist() == (found.split - 1).tolist()
    assert found.in_rows.all()
    at_once = kernels(product(64, 128, 4096), library(gemm_tensor=replace(menu, split_serial=False)), "bf16")
    assert not at_once.queued.any()
    slower, faster = (bound(one)[one.split == 4][0] for one in (found, at_once))
    assert slower - faster == pytest.approx(3 * 4 * card().l2.latency / 2e9)  # three parts wait, four visits to the L2 each


def test_lanes_widen_weights_of_fewer_bytes() -> None:
    made = library(gemm_tensor=Menu(tiles=(TILE,)))
    slow = replace(made, weight_slots=2.0)
    op = product(64, 64, 4096)
    stored = Stored(weight_bytes=1.0)
    plain, widened = (lower((op,), stack, "gpu", "bf16", False, {"bf16"}.__contains__, "ada", stored=stored).kernels
                      for stack in (made, slow))  # fmt: skip
    assert isinstance(plain, GpuKernels)
    assert isinstance(widened, GpuKernels)
    assert not plain.widened_rows.any()
    assert widened.widened_rows.tolist() == [2.0]
    assert bound(widened)[0] > bound(plain)[0]


def card() -> Gpu:
    return shipped.gpu("l40s")


def bound(found: GpuKernels) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Time of the busiest SM of each variant at 2 GHz [s]."""
    return np.ravel(compute_bound(GpuTerms(kernels=found, device=card(), precision="bf16", clock=2e9, constants=default())))


def test_a_loop_through_sets_writes_its_results_in_one_place() -> None:
    """Three sets of 64 x 4096 weights, 64 x 4096 activations and 64 x 64 results of two bytes."""
    made = replace(library(gemm_tensor=Menu(tiles=(TILE,))), operand_sets=3)
    found = kernels(product(64, 64, 4096), made, "bf16")
    reads, writes = 2 * 2 * 64 * 4096, 2 * 64 * 64
    assert set(np.ravel(found.round_bytes)) == {3 * (reads + writes)}
    assert set(np.ravel(found.reread_bytes)) == {3 * reads + writes}
    assert set(np.ravel(found.call_bytes)) == {reads + writes}
    once = kernels(product(64, 64, 4096), replace(made, operand_sets=NEVER_AGAIN), "bf16")
    assert np.isinf(once.round_bytes)
    assert set(np.ravel(once.call_bytes)) == {reads + writes}


def test_a_menu_of_one_architecture_alone_serves_it_and_no_other() -> None:
    made = library(gemm_tensor=Menu(tiles=(TILE,)), gemm_batched_tensor__ampere=replace(BYTE, architectures=("ampere",)))
    found = [context(made, 2, name).menu("gemm_batched", "gemm") for name in ("ampere", "ada")]
    assert found == ["gemm_batched_tensor.ampere", "gemm_tensor"]


def test_few_rows_take_the_small_tiles_of_cublas_on_ampere() -> None:
    """16 x 16 and 32 x 32 results: 8 tokens of a fully connected layer, and none of them in batched products."""
    menus = stacks.find("pytorch-2").menus
    sides = {name: min(tile.m * tile.n for tile in menus[name].tiles)
             for name in ("gemm_tensor.ampere", "gemm_batched_tensor.ampere")}  # fmt: skip
    assert sides == {"gemm_tensor.ampere": 256, "gemm_batched_tensor.ampere": 4096}


# ------------------------------------------- batched products, whose tiles are chosen as if each product were alone


def tiles_taken(m: int, n: int, fill: int) -> list[tuple[float, float]]:
    sizes = ((128, 128), (64, 64), (32, 32))
    menu = Menu(tiles=tuple(Tile(m=a, n=b, k=16, threads=256, registers=64, shared=0) for a, b in sizes), fill=fill)
    kernel = Kernel(name="bmm", role=Role.PRODUCT, efficiency="full", menu="some", m=m, n=n, k=64, count=1000)
    packed = pack_gpu([Plan(options=(Option(algorithm="gemm", kernels=(kernel,)),), read_bytes=0, write_bytes=0)], {"some": menu})
    return list(zip(packed.tile_m.tolist(), packed.tile_n.tolist(), strict=True))


def test_a_product_has_at_least_so_many_tiles_however_many_products_there_are() -> None:
    assert tiles_taken(512, 512, fill=1) == [(128, 128), (64, 64), (32, 32)]
    assert tiles_taken(512, 512, fill=64) == [(64, 64), (32, 32)]
    assert tiles_taken(511, 511, fill=65) == [(32, 32)]


def test_where_no_tile_is_small_enough_it_has_the_most_that_there_can_be() -> None:
    assert tiles_taken(64, 64, fill=64) == [(32, 32)]
