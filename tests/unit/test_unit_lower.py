"""Lowering: sizes of products against hand counts, and which algorithm applies where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archsim.base.errors import InputError, Unsupported
from archsim.calibration.constants import FULL
from archsim.lower.columns import Role
from archsim.lower.context import element_wise
from archsim.lower.kernel import Kernel, Option
from archsim.lower.lower import Lowered, lower
from archsim.stack import catalog as stacks
from archsim.stack.menu import Menu, Tile
from archsim.stack.parts import Passes, UpdatePasses
from archsim.stack.stack import AttentionChoice, Stack
from archsim.trace import BoundTrace, load

from ..each import each
from ..shipped import line, network

TILE = Tile(m=32, n=32, k=8, threads=64, registers=64, shared=4096)
MENUS = ("gemm", "conv_forward", "conv_backward_data", "conv_backward_filter", "winograd", "transformed")


def stack(*algorithms: str, **conv: Any) -> Stack:
    """A stack without losses that has these algorithms in every phase, and a menu of one tile for everything."""
    ideal = stacks.find("ideal", fusion="none")
    rows = {phase: dict.fromkeys(algorithms, FULL) for phase in ("forward", "backward_data", "backward_filter")}
    menus = {name: Menu(tiles=(TILE,)) for name in MENUS}
    made = replace(ideal, conv=replace(ideal.conv, algorithms=rows, **conv), menus=menus, vector_bytes=0)
    return made


def looping(loop: str) -> Stack:
    """The same stack, whose kernels go through windows by this loop."""
    return replace(stack(), window_loop=loop)


def conv(out: list[Any], **words: Any) -> dict[str, Any]:
    return line("conv2d", "c", "data", out, **{"bias": False, **words})


def options(lowered: Lowered, op: int = 0) -> list[Option]:
    columns, plan = lowered.kernels, int(lowered.plan_of[op])
    ends = [*columns.plan_start.tolist(), len(columns.options)]
    return list(columns.options[ends[plan] : ends[plan + 1]])


def lowered(trace: BoundTrace, chosen: Stack, kind: str = "gpu", precision: str = "fp32") -> Lowered:
    return lower(trace.ops, chosen, kind, precision, any(op.phase != "forward" for op in trace.ops))


def by_phase(trace: BoundTrace, chosen: Stack) -> dict[str, list[Option]]:
    result = lowered(trace, chosen)
    return {op.phase: options(result, i) for i, op in enumerate(result.ops) if op.kind.op == "conv2d"}


def matrix_kernels(option: Option) -> list[Kernel]:
    return [kernel for kernel in option.kernels if kernel.menu]


# A layer small enough to count by hand: [2, 6, 9, 9] -> [2, 8, 7, 7], 3 x 3, after a layer so that it has a data gradient.
FC = line("linear", "fc", "data", ["N", 64], bias=False)
RELU = network(line("relu", "r", "data", ["N", 8, 8]), data=["N", 8, 8])
FIRST = line("conv2d", "first", "data", ["N", 6, 9, 9], kernel=[1, 1], bias=False)
LAYER = conv(["N", 8, 7, 7], kernel=[3, 3]) | {"in": ["first"]}
MACS = 2 * 8 * 7 * 7 * 6 * 9


def test_implicit_product_sizes_in_each_phase() -> None:
    trace = network(FIRST, LAYER, task="forward_backward", data=["N", 3, 9, 9])
    result = lowered(trace, stack("implicit_gemm"))
    found = {op.phase: options(result, i)[0].kernels[0] for i, op in enumerate(result.ops) if "first" not in op.name}
    sizes = {phase: (kernel.m, kernel.n, kernel.k, kernel.repeat) for phase, kernel in found.items()}
    assert sizes == {
        "forward": (8, 2 * 7 * 7, 6 * 9, 1),
        "backward_data": (6, 2 * 9 * 9, 8 * 9, 1),
        "backward_filter": (8, 6 * 9, 2 * 7 * 7, 1),
    }
    assert {phase: kernel.flop for phase, kernel in found.items()} == dict.fromkeys(found, 2.0 * MACS)
    data, filters, result_bytes = 4 * 2 * 6 * 81, 4 * 8 * 6 * 9, 4 * 2 * 8 * 49
    tensors = {phase: (k.a_bytes, k.b_bytes, k.c_bytes) for phase, k in found.items()}
    assert tensors == {
        "forward": (filters, data, result_bytes),
        "backward_data": (filters, result_bytes, data),
        "backward_filter": (result_bytes, data, filters),
    }


def test_groups_run_one_after_the_other_or_as_one_batch() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3], groups=2), data=["N", 6, 9, 9])
    for rule, repeat, count in (("sequential", 2, 1), ("batched", 1, 2)):
        kernel = options(lowered(trace, stack("implicit_gemm", grouped=rule)))[0].kernels[0]
        assert (kernel.m, kernel.n, kernel.k, kernel.repeat, kernel.count) == (4, 98, 27, repeat, count)
        assert kernel.flop * kernel.repeat == 2 * 2 * 8 * 49 * 3 * 9
        assert kernel.a_bytes * kernel.repeat == 4 * 8 * 3 * 9


def test_unfolding_per_image() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    (option,) = options(lowered(trace, stack("im2col")))
    unfold, gemm = option.kernels
    assert (unfold.name, unfold.repeat) == ("im2col", 2)
    assert (unfold.b_bytes, unfold.c_bytes) == (4 * 6 * 81, 4 * 6 * 9 * 49)
    assert (gemm.m, gemm.n, gemm.k, gemm.repeat, gemm.flop) == (8, 49, 54, 2, 2 * 8 * 49 * 54)
    assert option.workspace == 4 * 6 * 9 * 49


def test_unfolding_in_the_gradients() -> None:
    trace = network(FIRST, LAYER, task="forward_backward", data=["N", 3, 9, 9])
    result = lowered(trace, stack("im2col"))
    found = {op.phase: options(result, i)[0] for i, op in enumerate(result.ops) if "first" not in op.name}
    data, filters = found["backward_data"].kernels, found["backward_filter"].kernels
    assert [kernel.name for kernel in data] == ["gemm", "col2im"]
    assert (data[0].m, data[0].n, data[0].k) == (54, 49, 8)
    assert [kernel.name for kernel in filters] == ["im2col", "gemm"]
    assert (filters[1].m, filters[1].n, filters[1].k) == (8, 54, 49)


def test_a_one_by_one_convolution_needs_no_unfolding() -> None:
    trace = network(conv(["N", 8, 9, 9], kernel=[1, 1]), data=["N", 6, 9, 9])
    (option,) = options(lowered(trace, stack("im2col")))
    assert [kernel.name for kernel in option.kernels] == ["gemm"]
    assert option.workspace == 0
    strided = network(conv(["N", 8, 5, 5], kernel=[1, 1], stride=[2, 2]), data=["N", 6, 9, 9])
    assert len(options(lowered(strided, stack("im2col")))[0].kernels) == 2


@pytest.mark.parametrize(("bias", "written"), [(True, "bias"), (False, "zeros")])
def test_what_a_product_adds_to_is_written_for_each_image(bias: bool, written: str) -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3], bias=bias), task="forward_backward", data=["N", 6, 9, 9])
    result = lowered(trace, stack("im2col", bias="prefilled"))
    found = {op.phase: options(result, i)[0].kernels for i, op in enumerate(result.ops)}
    fill = found["forward"][-1]
    assert (fill.name, fill.repeat, fill.c_bytes, bool(fill.menu)) == (written, 2, 4 * 8 * 49, bias)
    assert fill.b_bytes == (4 * 49 if bias else 0)  # a vector of ones, or nothing
    assert ("bias_gradient" in [kernel.name for kernel in found["backward_filter"]]) == bias


@each(
    ("words", "out", "applies"),
    [({"kernel": [3, 3]}, 7, True), ({"kernel": [3, 3], "stride": [2, 2]}, 4, False), ({"kernel": [5, 5]}, 5, False),
     ({"kernel": [1, 1]}, 9, False), ({"kernel": [3, 3], "dilation": [2, 2]}, 5, False)],
)  # fmt: skip
@each("algorithm", ["winograd", "winograd_nonfused"])
def test_winograd_is_for_three_by_three_with_stride_one(algorithm: str, words: dict[str, Any], out: int, applies: bool) -> None:
    trace = network(conv(["N", 8, out, out], **words), data=["N", 6, 9, 9])
    names = [option.algorithm for option in options(lowered(trace, stack("implicit_gemm", algorithm)))]
    assert names == (["implicit_gemm", algorithm] if applies else ["implicit_gemm"])


def test_multiplications_of_winograd() -> None:
    trace = network(conv(["N", 8, 8, 8], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 8, 8])
    direct, fused, through_memory = options(lowered(trace, stack("implicit_gemm", "winograd", "winograd_nonfused")))
    useful = direct.kernels[0].flop
    assert useful == 2 * 2 * 8 * 64 * 6 * 9
    assert matrix_kernels(fused)[0].flop == useful * 16 / 36  # F(2x2, 3x3)
    assert matrix_kernels(through_memory)[0].flop == useful * 36 / 144  # F(4x4, 3x3)


def test_a_patch_of_winograd_tiles_is_computed_whole() -> None:
    """8 x 8 results are 4 x 4 tiles of 2 x 2: half of a patch of 4 x 8 in one image, a whole one of 2 x 4 x 4."""
    trace = network(conv(["N", 8, 8, 8], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 8, 8])
    tiles = {patch: matrix_kernels(options(lowered(trace, stack("winograd", winograd_patches=(patch,))))[0])[0].n
             for patch in ((1, 4, 8), (2, 4, 4))}  # fmt: skip
    assert tiles == {(1, 4, 8): 2 * 32, (2, 4, 4): 2 * 16}


def test_winograd_of_five_by_five_goes_through_memory() -> None:
    trace = network(conv(["N", 8, 8, 8], kernel=[5, 5], pad=[2, 2]), data=["N", 6, 8, 8])
    direct, through_memory = options(lowered(trace, stack("implicit_gemm", "winograd_nonfused_5x5")))
    assert matrix_kernels(through_memory)[0].flop == direct.kernels[0].flop * 64 / 400  # F(4x4, 5x5)


def test_a_scattered_gradient_is_added_to_zeros() -> None:
    trace = network(FIRST, LAYER, task="forward_backward", data=["N", 3, 9, 9])
    zeros, product = by_phase(trace, stack("implicit_gemm", "scatter_gemm"))["backward_data"][1].kernels
    image = 2 * 6 * 9 * 9 * 4
    assert (zeros.c_bytes, product.c_bytes) == (image, 2 * image)  # written, then read and written again
    assert product.gpu.cache_bytes == 64 * (6 * 9) * (2 * 7 * 7)  # a sector in and out for each addition


def test_halves_are_scattered_only_where_nothing_else_is_there() -> None:
    trace = network(FIRST, LAYER, task="forward_backward", data=["N", 3, 9, 9])
    both = stack("implicit_gemm", "scatter_gemm")
    rows = both.conv.algorithms | {"backward_data": {"scatter_gemm": FULL}}
    only = replace(both, conv=replace(both.conv, algorithms=rows))
    for chosen, expected in ((both, {"implicit_gemm"}), (only, {"scatter_gemm"})):
        result = lowered(trace, chosen, precision="fp16")
        gradients = [i for i, op in enumerate(result.ops) if op.phase == "backward_data"]
        assert {option.algorithm for option in options(result, gradients[0])} == expected


def test_tensor_cores_pad_channels_to_whole_loads_and_multiply_no_zeros() -> None:
    layer = conv(["N", 8, 5, 5], kernel=[3, 3], stride=[2, 2], pad=[1, 1]) | {"in": ["first"]}
    trace = network(FIRST, layer, task="forward_backward", data=["N", 3, 9, 9])
    for precision, forward, backward in (("fp32", 6 * 9, 8 * 9), ("fp16", 8 * 9, 8 * 9 / 4)):
        result = lowered(trace, stack("implicit_gemm"), precision=precision)
        found = {op.phase: options(result, i)[0].kernels[0].k for i, op in enumerate(result.ops) if "first" not in op.name}
        assert (found["forward"], found["backward_data"]) == (forward, backward)


@pytest.mark.parametrize(("channels", "depth"), [(3, 4), (4, 4), (5, 16), (17, 32)])
def test_few_input_channels_are_padded_to_a_word(channels: int, depth: int) -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", channels, 9, 9])
    assert options(lowered(trace, stack("implicit_gemm"), precision="int8"))[0].kernels[-1].k == depth * 9


def test_a_load_of_several_values_goes_through_their_windows_at_once() -> None:
    pool = line("max_pool", "pool", "data", ["N", 8, 4, 4], kernel=[2, 2], stride=[2, 2])
    trace = network(pool, data=["N", 8, 8, 8])
    for vector, each_value in ((0, 4), (16, 1)):
        made = replace(stack("implicit_gemm"), window_loop="unrolled", vector_bytes=vector)
        assert options(lowered(trace, made))[0].kernels[0].gpu.unrolled == each_value * 2 * 8 * 16


def test_indices_are_stored_before_an_implicit_product() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    names = [kernel.name for kernel in options(lowered(trace, stack("implicit_gemm", index_launches=1)))[0].kernels]
    assert names == ["indices", "implicit_gemm"]


def test_winograd_on_tensor_cores_needs_channels_that_fill_its_loads() -> None:
    for channels, algorithms in ((6, {"implicit_gemm"}), (8, {"implicit_gemm", "winograd_nonfused"})):
        trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", channels, 9, 9])
        result = lowered(trace, stack("implicit_gemm", "winograd_nonfused"), precision="fp16")
        assert {option.algorithm for option in options(result)} == algorithms


def test_a_depthwise_convolution_is_no_product() -> None:
    trace = network(conv(["N", 6, 7, 7], kernel=[3, 3], groups=6), data=["N", 6, 9, 9])
    implicit, direct = options(lowered(trace, stack("implicit_gemm", "depthwise")))
    assert (direct.kernels[0].menu, direct.kernels[0].flop) == ("", 6 * implicit.kernels[0].flop)  # six groups in one kernel
    dense = network(conv(["N", 6, 7, 7], kernel=[3, 3], groups=3), data=["N", 6, 9, 9])
    assert [option.algorithm for option in options(lowered(dense, stack("implicit_gemm", "depthwise")))] == ["implicit_gemm"]


def test_multiplications_of_the_frequency_domain() -> None:
    """32 x 32 tiles of 30 x 30 results: 32 x 17 complex products, 4 real multiplications each."""
    trace = network(conv(["N", 8, 30, 30], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 30, 30])
    (option,) = options(lowered(trace, stack("fft_tiling")))
    (gemm,) = matrix_kernels(option)
    assert (gemm.m, gemm.n, gemm.k, gemm.count, gemm.work) == (8, 2, 6, 32 * 17, 4)
    assert gemm.flop == 2 * 4 * 32 * 17 * 8 * 2 * 6


@pytest.mark.parametrize(("side", "passes"), [(13, 1), (14, 1), (15, 2), (30, 2)])
def test_images_too_large_for_one_kernel_are_transformed_by_rows_and_by_columns(side: int, passes: int) -> None:
    """Two more pixels of padding decide; tiles of a fixed size are always transformed in one kernel."""
    trace = network(conv(["N", 8, side, side], kernel=[3, 3], pad=[1, 1]), data=["N", 6, side, side])
    for algorithm, expected in (("fft", passes), ("fft_tiling", 1)):
        (option,) = options(lowered(trace, stack(algorithm, fft_fused_side=16)))
        of_filter, of_input, gemm, back = option.kernels
        tensors = 4 * 8 * 6 * 9, 4 * 2 * 6 * side**2, 4 * 2 * 8 * side**2
        written = of_filter.c_bytes, of_input.c_bytes, back.b_bytes
        assert written == (expected * gemm.a_bytes, expected * gemm.b_bytes, expected * gemm.c_bytes)
        again = [(expected - 1) * size for size in (gemm.a_bytes, gemm.b_bytes, gemm.c_bytes)]
        assert [of_filter.b_bytes, of_input.b_bytes, back.c_bytes] == [a + b for a, b in zip(tensors, again, strict=True)]


def test_taps_share_the_pixels_of_a_tile() -> None:
    trace = network(conv(["N", 8, 32, 32], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 32, 32])
    for pixels, share in ((0, 1.0), (32, 3 * 34 / (32 * 9)), (128, 6 * 34 / (4 * 32 * 9))):
        kernel = options(lowered(trace, stack("implicit_gemm", tile_pixels=pixels)))[0].kernels[0]
        assert kernel.operand_b == pytest.approx(4 * share)


def test_an_algorithm_whose_workspace_is_over_the_limit_is_left_out() -> None:
    trace = network(conv(["N", 8, 8, 8], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 8, 8])
    found = options(lowered(trace, stack("implicit_gemm", "winograd_nonfused", workspace_limit=1.0)))
    assert [option.algorithm for option in found] == ["implicit_gemm"]
    with pytest.raises(Unsupported, match="no algorithm for c"):
        lowered(trace, stack("winograd_nonfused", workspace_limit=1.0))


def test_an_unknown_algorithm_and_a_missing_menu_are_problems_of_the_stack() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    with pytest.raises(InputError, match="no algorithm 'implicit_gem'; nearest: implicit_gemm"):
        lowered(trace, stack("implicit_gem"))
    bare = replace(stack("implicit_gemm"), menus={"gemm": Menu(tiles=(TILE,))})
    with pytest.raises(InputError, match=r"menus\.conv_forward: is missing"):
        lowered(trace, bare)


def test_a_separate_bias_is_a_pass_over_the_output() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]) | {"bias": True}, data=["N", 6, 9, 9])
    fused, separate = (options(lowered(trace, stack("implicit_gemm", bias=rule)))[0] for rule in ("fused", "separate"))
    assert [kernel.name for kernel in fused.kernels] == ["implicit_gemm"]
    assert [kernel.name for kernel in separate.kernels] == ["implicit_gemm", "bias"]
    bias = separate.kernels[1]
    assert bias.b_bytes == bias.c_bytes == 4 * 2 * 8 * 49


def test_a_bias_of_an_epilogue_has_a_gradient_of_its_own() -> None:
    """Forward it is part of the product; its gradient sums the rows in a kernel of its own, which one that is fused hides."""
    fc = [line("linear", name, before, ["N", 32]) for name, before in (("a", "data"), ("b", "a"))]
    trace = network(*fc, task="forward_backward", batch=16, data=["N", 32])
    for rule, gradient in (("epilogue", ["gemm", "bias_gradient"]), ("fused", ["gemm"]), ("separate", ["gemm", "bias_gradient"])):
        chosen = replace(stack("implicit_gemm"), linear_bias=rule)
        found = {op.phase: options(lowered(trace, chosen), i)[0].kernels for i, op in enumerate(lowered(trace, chosen).ops)}
        assert [kernel.name for kernel in found["backward_filter"]] == gradient
        assert [kernel.name for kernel in found["forward"]] == (["gemm", "bias"] if rule == "separate" else ["gemm"])


@pytest.mark.parametrize(("inner", "architecture", "constant"), [
    (64, "pascal_gp100", "gemm.cublas11.transposed"), (63, "pascal_gp100", "gemm.cublas11.unaligned"),
    (63, "turing", "gemm.cublas11.linear"), (64, "volta", FULL),
])  # fmt: skip
def test_rows_that_wide_loads_do_not_divide_have_a_constant_where_the_library_has_one(
    inner: int, architecture: str, constant: str
) -> None:
    trace = network(line("linear", "fc", "data", ["N", 512]), batch=256, data=["N", inner])
    made = lower(trace.ops, stacks.find("pytorch-2"), "gpu", "fp32", training=False, architecture=architecture)
    kernels = made.kernels
    assert {kernels.constants[int(index)] for index in kernels.efficiency} == {constant}


@pytest.mark.parametrize(("inner_first", "contiguous"), [(False, "forward"), (True, "backward_data")])
def test_weights_that_lie_the_other_way_round_are_contiguous_in_the_other_pass(inner_first: bool, contiguous: str) -> None:
    fc = [line("linear", name, before, ["N", 32], inner_first=inner_first)
          for name, before in (("a", "data"), ("b", "a"))]  # fmt: skip
    trace = network(*fc, task="forward_backward", batch=16, data=["N", 32])
    made = lowered(trace, stack("implicit_gemm"))
    rows = {op.phase: options(made, i)[0].kernels[0].gpu.row_bytes for i, op in enumerate(made.ops)}
    assert [phase for phase, size in rows.items() if size] == [contiguous]


def test_fully_connected_sizes_in_each_phase() -> None:
    fc = [line("linear", name, before, ["N", size], bias=False) for name, before, size in
          (("a", "data", 48), ("b", "a", 32))]  # fmt: skip
    trace = network(*fc, task="forward_backward", batch=16, data=["N", 24])
    result = lowered(trace, stack("implicit_gemm"))
    found = {op.phase: options(result, i)[0].kernels[0] for i, op in enumerate(result.ops) if op.name.startswith("b")}
    assert {phase: (k.m, k.n, k.k) for phase, k in found.items()} == {
        "forward": (32, 16, 48), "backward_data": (48, 16, 32), "backward_filter": (32, 48, 16),
    }  # fmt: skip
    assert {k.flop for k in found.values()} == {2.0 * 16 * 32 * 48}


def test_rows_of_a_batched_product_are_the_columns_of_its_kernel() -> None:
    """[3, 40, 24] x [3, 24, 16]: a library that counts columns first computes 16 x 40."""
    mm = line("matmul", "mm", "x y", ["N", 40, 16])
    trace = network(mm, batch=3, x=["N", 40, 24], y=["N", 24, 16])
    (kernel,) = options(lowered(trace, stack("implicit_gemm")))[0].kernels
    assert (kernel.m, kernel.n, kernel.k, kernel.count) == (16, 40, 24, 3)
    assert (kernel.a_bytes, kernel.b_bytes) == (4 * 3 * 24 * 16, 4 * 3 * 40 * 24)


@pytest.mark.parametrize(("batch", "name"), [(1, "gemv_batched"), (3, "gemm_batched")])
def test_thin_products_of_a_batch_are_no_matrix_vector_products(batch: int, name: str) -> None:
    mm = line("matmul", "mm", "x y", ["N", 40, 2])
    trace = network(mm, batch=batch, x=["N", 40, 24], y=["N", 24, 2])
    assert options(lowered(trace, stack("implicit_gemm")))[0].kernels[0].name == name


@pytest.mark.parametrize(
    ("m", "n", "k", "tiles", "splits"),
    [
        (64, 64, 4096, {32, 8}, {1, 2, 4}),
        (64, 16, 4096, {32}, {1, 2, 4}),  # the tile of 8 is for more than 16 columns
        (64, 64, 4095, {32, 8}, {1, 2}),  # parts no shorter than 1024
        (64, 64, 100, {32, 8}, {1}),
    ],
)
def test_a_library_chooses_among_the_tiles_and_splits_meant_for_the_size(
    m: int, n: int, k: int, tiles: set[int], splits: set[int]
) -> None:
    fc = line("linear", "fc", "data", ["N", m], bias=False)
    menu = Menu(tiles=(TILE, replace(TILE, n=8, least_n=17)), split_k=(1, 2, 4), split_least_k=1024)
    chosen = replace(stack("implicit_gemm"), menus={"gemm": menu})
    columns = lowered(network(fc, batch=n, data=["N", k]), chosen).kernels
    assert (set(columns.tile_n.tolist()), set(columns.split.tolist())) == (tiles, splits)


WIDE = {"split_least_k": 256, "split_wide_side": 32}
FEW = WIDE | {"split_k": (1, 2, 4, 8), "split_wide": 2, "split_wide_part": 4096}
LONG = WIDE | {"split_k": (1, 2), "split_wide_least": 640}


@pytest.mark.parametrize(
    ("words", "n", "k", "splits"),
    [
        (FEW, 64, 4096, {1, 2}),  # wide in both directions: two parts at most
        (FEW | {"split_wide": 0}, 64, 4096, {1, 2, 4, 8}),
        (FEW, 32, 4096, {1, 2, 4, 8}),  # thin: whatever is no shorter than 256
        (FEW, 64, 4 * 4096, {1, 2, 4}),  # parts so long that width does not matter
        (LONG, 64, 1279, {1}), (LONG, 64, 1280, {1, 2}), (LONG, 32, 512, {1, 2}),  # a shortest part of its own
    ],
)  # fmt: skip
def test_a_wide_product_is_cut_into_few_long_parts(words: dict[str, Any], n: int, k: int, splits: set[int]) -> None:
    chosen = replace(stack("implicit_gemm"), menus={"gemm": Menu(tiles=(TILE,), **words)})
    assert set(lowered(network(FC, batch=n, data=["N", k]), chosen).kernels.split.tolist()) == splits


def test_kernels_of_one_architecture_take_the_place_of_the_others() -> None:
    small = Menu(tiles=(replace(TILE, m=16),), architectures=("volta",))
    menus = {"gemm": Menu(tiles=(TILE,)), "gemm_batched": Menu(tiles=(replace(TILE, m=64),)), "gemm_batched.small": small}
    efficiency = {"gemm": FULL, "gemm.transposed": "gemm.cublas7", "gemm.transposed.volta": "gemm.cublas11.transposed"}
    chosen = replace(stack("implicit_gemm"), menus=menus, efficiency=efficiency)
    batched = line("matmul", "mm", "x x", ["N", 24, 24])
    fc = line("linear", "fc", "mm", ["N", 24, 48], bias=False)
    trace = network(batched, fc, batch=3, x=["N", 24, 24])
    found = {}
    for architecture in ("volta", "turing"):
        kernels = lower(trace.ops, chosen, "gpu", "fp32", False, architecture=architecture).kernels
        found[architecture] = kernels.tile_m.tolist(), [kernel.efficiency for kernel in kernels.kernels]
    assert found == {"volta": ([16, 32], [FULL, "gemm.cublas11.transposed"]), "turing": ([64, 32], [FULL, "gemm.cublas7"])}


def test_only_forward_products_of_a_layer_read_both_operands_along_k() -> None:
    fc = [line("linear", name, before, ["N", 48], bias=False) for name, before in
          (("a", "data"), ("b", "a"))]  # fmt: skip
    trace = network(*fc, task="forward_backward", batch=16, data=["N", 24])
    chosen = replace(stack("implicit_gemm"), efficiency={"gemm": FULL, "gemm.transposed": "gemm.cublas7"})
    result = lowered(trace, chosen)
    found = {op.phase: options(result, i)[0].kernels[0].efficiency for i, op in enumerate(result.ops) if op.kind.op == "linear"}
    assert found == {"forward": "gemm.cublas7", "backward_data": FULL, "backward_filter": FULL}


def test_calls_that_a_call_dispatches_are_counted_beside_it() -> None:
    relu = line("relu", "r", "fc", ["N", 48])
    fc = line("linear", "fc", "data", ["N", 48])
    chosen = replace(stack("implicit_gemm"), host_calls={"linear": 3}, nested_calls={"linear": 2})
    kernels = lowered(network(fc, relu, batch=16, data=["N", 24]), chosen).kernels
    assert (kernels.host_ops.tolist(), kernels.nested.tolist()) == ([3, 1], [2, 0])


def test_streams_move_what_the_stack_says() -> None:
    relu = line("relu", "r", "data", ["N", 8, 8])
    (option,) = options(lowered(network(relu, data=["N", 8, 8]), stack("implicit_gemm")))
    (kernel,) = option.kernels
    assert (kernel.a_bytes, kernel.b_bytes, kernel.c_bytes) == (0, 4 * 128, 4 * 128)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ({"op": "max_pool", "kernel": [3, 3], "stride": [2, 2], "out": ["N", 8, 4, 4]}, 2 * 8 * 4 * 4 * 9),
        ({"op": "lrn", "size": 5, "out": ["N", 8, 9, 9]}, 2 * 8 * 9 * 9 * 5),
    ],
)
def test_a_kernel_goes_through_each_value_of_its_windows_by_the_loop_of_the_stack(words: dict[str, Any], values: int) -> None:
    """Pixels of a pooling, channels of a normalisation. They are no arithmetic: neither energy nor a roofline counts them."""
    trace = network({"name": "w", "in": ["data"], **words}, data=["N", 8, 9, 9])
    found = {loop: options(lowered(trace, looping(loop)))[0].kernels[0] for loop in ("streaming", "checked", "unrolled")}
    assert {loop: (kernel.gpu.checked, kernel.gpu.unrolled) for loop, kernel in found.items()} == {
        "streaming": (0, 0), "checked": (values, 0), "unrolled": (0, values),
    }  # fmt: skip
    assert {kernel.flop for kernel in found.values()} == {trace.ops[0].flop}
    assert {kernel.gpu.cache_bytes for kernel in found.values()} == {4 * values}


def test_ops_without_windows_go_through_none() -> None:
    for loop in ("checked", "unrolled"):
        kernels = lowered(RELU, looping(loop)).kernels
        assert (kernels.checked.tolist(), kernels.unrolled.tolist(), kernels.flop.tolist()) == ([0], [0], [RELU.ops[0].flop])


def test_a_thread_loads_several_values_where_the_stack_says_so() -> None:
    wide = replace(stack(), vector_bytes=16, host_calls={"relu": 2})
    one, four = (lowered(RELU, chosen).kernels for chosen in (stack(), wide))
    assert (one.items.item(), four.items.item(), four.operand_b.item()) == (128, 32, 16)
    assert (one.host_ops.item(), four.host_ops.item()) == (1.0, 2.0)
    assert (one.b_bytes.item(), four.b_bytes.item()) == (512, 512)


def test_narrow_values_are_half_as_large() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    wide, narrow = (options(lowered(trace, stack("implicit_gemm"), precision=p))[0].kernels[0] for p in ("fp32", "fp16"))
    assert (wide.b_bytes, wide.flop) == (2 * narrow.b_bytes, narrow.flop)
    assert options(lowered(RELU, stack("implicit_gemm"), precision="fp16"))[0].kernels[0].b_bytes == 2 * 128


def test_views_and_dropout_launch_nothing_in_inference() -> None:
    ops = [line("reshape", "flat", "data", ["N", 64]),
           line("dropout", "drop", "flat", ["N", 64]),
           line("relu", "r", "drop", ["N", 64])]  # fmt: skip
    result = lowered(network(*ops, data=["N", 8, 8]), stack("implicit_gemm"))
    assert (result.plan_of >= 0).tolist() == [False, False, True]


def test_equal_layers_share_one_plan() -> None:
    same = [
        conv(["N", 6, 9, 9], kernel=[3, 3], pad=[1, 1]) | {"name": f"c{i}", "in": [f"c{i - 1}" if i else "data"]}
        for i in range(4)
    ]
    other = conv(["N", 6, 9, 9], kernel=[5, 5], pad=[2, 2]) | {"in": ["c3"]}
    result = lowered(network(*same, other, data=["N", 6, 9, 9]), stack("implicit_gemm"))
    assert result.plan_of.tolist() == [0, 0, 0, 0, 1]
    assert len(result.kernels.plan_start) == 2


def test_a_stack_of_the_other_kind_is_refused() -> None:
    ops = load("alexnet").bind(N=1).ops
    with pytest.raises(Unsupported, match="not a cpu"):
        lower(ops, stacks.find("caffe-cudnn4"), "cpu", "fp32", False)
    with pytest.raises(Unsupported, match="fp17"):
        lower(ops, stacks.find("caffe-cudnn4"), "gpu", "fp17", False)


@pytest.mark.parametrize("net", ["alexnet", "googlenet", "mobilenet_v2"])
def test_products_of_a_direct_network_count_twice_its_macs(net: str) -> None:
    """Nothing is lost or counted twice on the way from ops to kernels."""
    trace = load(net).bind(N=8)
    result = lowered(trace, stack("perfect"))
    for i, op in enumerate(trace.ops):
        if op.kind.op in ("conv2d", "linear"):
            total = sum(k.flop * k.repeat for k in options(result, i)[0].kernels if k.name != "bias")
            assert total == 2 * op.macs, op.name


def test_columns_nest() -> None:
    columns = lowered(load("alexnet").bind(N=8), stack("implicit_gemm", "im2col", "winograd")).kernels
    assert columns.kernel_start.tolist() == sorted(columns.kernel_start.tolist())
    assert len(columns.kernel_start) == len(columns.kernels)
    assert len(columns.option_start) == len(columns.options)
    assert columns.kernel_of.tolist() == sorted(columns.kernel_of.tolist())
    assert all(
        len(getattr(columns, name)) == len(columns.kernel_of) for name in ("m", "n", "k", "flop", "tile_m", "split", "efficiency")
    )
    assert sum(len(option.kernels) for option in columns.options) == len(columns.kernels)


def recurrent(menus: tuple[str, ...], cell: str = "lstm", **words: Any) -> dict[str, dict[str, Kernel]]:
    """Kernels by phase and name of a recurrent layer of 12 units over 3 steps."""
    trace = network(
        line(cell, "l", "data", [3, "N", 12], hidden=12, **words), task="forward_backward",
        batch=10, data=[3, "N", 12],
    )  # fmt: skip
    made = replace(stack(), menus={name: Menu(tiles=(TILE,)) for name in menus})
    result = lowered(trace, made)
    return {op.phase: {k.name: k for k in options(result, i)[0].kernels} for i, op in enumerate(result.ops)}


def test_a_sequence_call_of_the_library_has_products_of_its_own_for_the_steps() -> None:
    library, framework = recurrent(("gemm", "recurrent")), recurrent(("gemm",))
    step = library["backward_data"]["gemm_recurrent"]
    assert (step.menu, step.m, step.n, step.k, step.count, step.repeat) == ("recurrent", 12, 10, 12, 4, 3)
    step = framework["backward_data"]["gemm_recurrent"]
    assert (step.menu, step.m, step.n, step.k, step.count, step.repeat) == ("gemm", 12, 10, 48, 1, 3)
    assert library["forward"]["gemm_input"].menu == "gemm"


def test_a_skipped_input_is_not_multiplied() -> None:
    kernels = recurrent(("gemm",), skip_input=True)
    assert {phase: sorted(rows) for phase, rows in kernels.items()} == {
        "forward": ["gates", "gemm_recurrent"], "backward_data": ["gates", "gemm_recurrent"],
        "backward_filter": ["gemm_recurrent_weights"],
    }  # fmt: skip


@pytest.mark.parametrize(("cell", "gates"), [("lstm", 4), ("gru", 3), ("rnn", 1)])
def test_a_step_multiplies_once_for_each_gate(cell: str, gates: int) -> None:
    kernels = recurrent(("gemm", "recurrent"), cell)
    sizes = {name: (k.m, k.n, k.k, k.count, k.repeat) for name, k in kernels["forward"].items() if k.menu}
    assert sizes == {"gemm_input": (12 * gates, 3 * 10, 12, 1, 1), "gemm_recurrent": (12 * gates, 10, 12, 1, 3)}
    step = kernels["backward_data"]["gemm_recurrent"]
    assert (step.m, step.n, step.k, step.count) == (12, 10, 12, gates)
    assert {(k.m, k.n, k.k) for k in kernels["backward_filter"].values()} == {(12 * gates, 12, 3 * 10)}


@pytest.mark.parametrize(("cell", "read", "written", "activations"), [("lstm", 5, 2, 5), ("gru", 7, 1, 3), ("rnn", 1, 1, 1)])
def test_gates_read_their_sums_and_the_state_and_a_reset_both_products(
    cell: str, read: int, written: int, activations: int
) -> None:
    gates, state = recurrent(("gemm",), cell)["forward"]["gates"], 10 * 12 * 4
    assert (gates.b_bytes, gates.c_bytes, gates.repeat) == (read * state, written * state, 3)
    assert gates.flop == 5 * activations * 10 * 12


def test_both_directions_of_a_layer_multiply_and_the_next_reads_both() -> None:
    layer = line("gru", "l", "data", [3, "N", 24], hidden=12, layers=2, bidirectional=True)
    kernels = options(lowered(network(layer, batch=10, data=[3, "N", 9]), stack()))[0].kernels
    assert [(k.m, k.n, k.k) for k in kernels if k.name == "gemm_input"] == [(36, 30, 9)] * 2 + [(36, 30, 24)] * 2
    assert [(k.m, k.n, k.k, k.repeat) for k in kernels if k.name == "gemm_recurrent"] == [(36, 10, 12, 3)] * 4


def test_a_framework_launches_as_many_kernels_for_a_gate_as_for_one_of_an_lstm() -> None:
    """13 for each step of an LSTM are one product and 12 others: 9 of them for three gates, 3 for one."""
    found = {}
    for cell in ("lstm", "gru", "rnn"):
        trace = network(line(cell, "l", "data", [3, "N", 6], hidden=6), data=[3, "N", 6])
        made = replace(stack(), recurrent="steps", recurrent_launches=13)
        result = lowered(trace, made)
        gates = options(result)[0].kernels[-1]
        found[cell] = (gates.repeat, float(result.kernels.host_ops[0]))
    assert found == {"lstm": (3 * 12, 3 * 13), "gru": (3 * 9, 3 * 10), "rnn": (3 * 3, 3 * 4)}


def test_a_transposed_convolution_is_the_data_gradient_of_the_plain_one() -> None:
    """[2, 6, 9, 9] -> [2, 8, 19, 19] by windows of 3 and a stride of 2, and its gradients: the same products, roles exchanged."""
    layer = line("conv_transpose2d", "c", "first", ["N", 8, 19, 19], kernel=[3, 3], stride=[2, 2])
    trace = network(FIRST, layer, task="forward_backward", data=["N", 3, 9, 9])
    result = lowered(trace, stack("implicit_gemm", bias="separate"))
    found = {op.phase: options(result, i)[0].kernels for i, op in enumerate(result.ops) if op.kind.op == "conv_transpose2d"}
    assert {phase: (kernels[0].m, kernels[0].n, kernels[0].k) for phase, kernels in found.items()} == {
        "forward": (8, 2 * 19 * 19, 6 * 9), "backward_data": (6, 2 * 9 * 9, 8 * 9), "backward_filter": (6, 8 * 9, 2 * 9 * 9),
    }  # fmt: skip
    assert {kernels[0].flop for kernels in found.values()} == {2 * 2 * 6 * 81 * 8 * 9}
    output = 2 * 8 * 19 * 19 * 4
    assert [(k.name, k.b_bytes, k.c_bytes) for k in found["forward"][1:]] == [("bias", output, output)]
    assert [k.name for k in found["backward_filter"][1:]] == ["bias_gradient"]
    assert len(found["backward_data"]) == 1


@pytest.mark.parametrize(("dynamic", "names"), [(False, ["quantise"]), (True, ["largest", "quantise"])])
def test_rounding_reads_halves_and_writes_bytes_and_a_scale_takes_a_pass_before(dynamic: bool, names: list[str]) -> None:
    trace = network(line("quantise", "q", "data", ["N", 64], dynamic=dynamic), data=["N", 64])
    kernels = options(lowered(trace, stack(), precision="fp8"))[0].kernels
    assert [kernel.name for kernel in kernels] == names
    assert {kernel.b_bytes for kernel in kernels} == {2 * 64 * 2}
    assert sum(kernel.c_bytes for kernel in kernels) == 2 * 64


def attended(
    queries: int, keys: int, precision: str = "bf16", phase: str = "forward", **words: Any
) -> list[Kernel]:
    """Kernels of attention with 8 heads of 64 features that share 2 key heads, over 3 samples."""
    op = line("attention", "a", "q k k", ["N", queries, 512], heads=8, kv_heads=2, **words)
    trace = network(op, batch=3, q=["N", queries, 512], k=["N", keys, 128])
    trace = replace(trace, ops=tuple(replace(one, phase=phase) for one in trace.ops))
    menus = dict.fromkeys(("attention_tensor", "attention_cached_tensor"), Menu(tiles=(TILE,)))
    rows = {"forward": Passes(inputs=1, outputs=1)}
    made = replace(
        stack(), menus=menus,
        attention=AttentionChoice(cache_kernels=(2, 0)),
        passes=stack().passes | {"quantise_attention": rows},
    )  # fmt: skip
    (option,) = options(lowered(trace, made, precision=precision))
    return list(option.kernels)


def test_a_tile_of_queries_meets_all_keys_of_its_head() -> None:
    store, fused = attended(256, 256)
    assert (fused.menu, fused.m, fused.n, fused.k, fused.count) == ("attention_tensor", 4 * 256, 64, 256, 3 * 2)
    assert fused.m * fused.n * fused.k * fused.count * fused.work == 2 * 3 * 8 * 256 * 256 * 64
    assert (fused.exps, fused.operand_a, fused.operand_b) == (1.0, 0.0, 2 * 2)
    assert (store.repeat, store.repeat * store.b_bytes) == (2, 2 * 3 * 256 * 128 * 2)


def test_the_backward_pass_of_attention_has_five_products_where_the_forward_pass_has_two() -> None:
    once, again = (attended(256, 256, phase=phase)[-1] for phase in ("forward", "backward"))
    assert (once.work, again.work) == (2.0, 5.0)  # of m n k each; scores are computed again
    assert again.flop == 2.5 * once.flop


def test_a_causal_mask_leaves_half_of_the_pairs_and_the_blocks_on_the_diagonal() -> None:
    _, whole = attended(1024, 1024)
    _, fused = attended(1024, 1024, causal=True)
    assert fused.work / whole.work == pytest.approx((1024 + 128) / (2 * 1024))
    _, short = attended(16, 16, causal=True)
    assert short.exps == 1.0  # one block


def test_a_window_leaves_its_keys_and_the_blocks_on_both_of_its_edges() -> None:
    _, whole = attended(4096, 4096)
    _, fused = attended(4096, 4096, causal=True, window=512)
    pairs = 512 * 513 / 2 + (4096 - 512) * 512
    cut = 4096 * 127 / 2 + (4096 - 512) * 128 / 2
    assert fused.k == 512 + 128
    assert fused.work * fused.k == pytest.approx(2 * (pairs + cut) / 4096)
    assert whole.work * whole.k == 2 * 4096


def test_one_query_over_cached_keys_packs_the_heads_that_share_them() -> None:
    (fused,) = attended(1, 256)
    assert (fused.menu, fused.m, fused.count) == ("attention_cached_tensor", 4, 3 * 2)


def test_attention_in_one_byte_rounds_its_inputs_and_writes_two() -> None:
    rounded, _, fused = sorted(attended(256, 256, precision="fp8"), key=lambda kernel: ("qsa".index(kernel.name[0])))
    values = 3 * 256 * (512 + 2 * 128)
    assert (rounded.b_bytes, rounded.c_bytes) == (2 * values, values)
    assert fused.c_bytes == 2 * 3 * 256 * 512
    assert fused.a_bytes == 2 * 3 * 256 * 128


def test_a_stack_that_rounds_activations_does_so_before_each_narrow_product() -> None:
    made = replace(stack(), passes=stack().passes | {"quantise": {"forward": Passes(inputs=2, outputs=1)}})
    trace = network(FC, batch=8, data=["N", 32])
    (option,) = options(lowered(trace, made, precision="fp8"))
    rounded, product = option.kernels
    assert (rounded.name, rounded.b_bytes, rounded.c_bytes) == ("quantise", 2 * 2 * 8 * 32, 8 * 32)
    assert (product.a_bytes, product.c_bytes) == (64 * 32, 2 * 8 * 64)
    assert len(options(lowered(trace, made, precision="bf16"))[0].kernels) == 1


def test_thin_products_are_matrix_vector_products_up_to_eight_rows_unless_they_are_very_deep() -> None:
    for batch, depth, name in ((8, 32, "gemv"), (9, 32, "gemm"), (8, 65536, "gemv"), (8, 65537, "gemm"), (1, 65537, "gemv")):
        (kernel,) = options(lowered(network(FC, batch=batch, data=["N", depth]), stack("implicit_gemm")))[0].kernels
        assert kernel.name == name


def test_unfolding_the_whole_batch_takes_the_columns_of_all_images() -> None:
    (option,) = options(lowered(network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9]), stack("im2col_batch")))
    unfold, gemm, swap = option.kernels
    columns, out = 4 * 6 * 9 * 2 * 49, 4 * 8 * 2 * 49
    assert (unfold.b_bytes, unfold.c_bytes, unfold.repeat) == (4 * 2 * 6 * 81, columns, 1)
    assert (gemm.m, gemm.n, gemm.k) == (8, 2 * 49, 54)
    assert (swap.b_bytes, swap.c_bytes) == (out, out)
    assert option.workspace == columns + out


def test_taps_that_overlap_are_fetched_once_with_the_halo_of_their_window() -> None:
    """A tile covers the 7 x 7 results, whose windows cover 9 x 9 pixels; 9 taps each would fetch 441 values."""
    made = stack("implicit_gemm", tile_pixels=128)
    (option,) = options(lowered(network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9]), made))
    assert option.kernels[0].operand_b == pytest.approx(4 * 81 / 441)
    strided = network(conv(["N", 8, 4, 4], kernel=[3, 3], stride=[2, 2]), data=["N", 6, 9, 9])
    assert options(lowered(strided, made))[0].kernels[0].operand_b == pytest.approx(4 * 81 / (16 * 9))


def test_an_optimiser_reads_and_writes_master_copies_in_single_precision() -> None:
    rows = UpdatePasses(inputs=3, outputs=2, launches=2)
    made = replace(stack("implicit_gemm"), optimiser_passes={"default": rows})
    for precision in ("fp32", "fp16"):
        result = lowered(network(FC, task="training_step", batch=8, data=["N", 32]), made, precision=precision)
        (update,) = [options(result, i)[0].kernels[0] for i, op in enumerate(result.ops) if op.phase == "update"]
        assert (update.b_bytes, update.c_bytes, update.repeat) == (4 * 64 * 32 * 3 / 2, 4 * 64 * 32 * 2 / 2, 2)


def test_an_element_wise_kernel_has_an_item_for_each_value_of_its_larger_side() -> None:
    sizes = ({"reads": 8, "writes": 4096}, {"reads": 4096, "writes": 8}, {"reads": 8, "writes": 8, "weights": 4088})
    assert [element_wise("x", Role.PASS, **words).items for words in sizes] == [1024, 1024, 1024]
    assert element_wise("x", Role.PASS, 0.0, 0.0).items == 1


def test_the_gradient_of_a_window_looks_up_a_value_and_its_gradient() -> None:
    pool = line("max_pool", "pool", "first", ["N", 6, 4, 4], kernel=[3, 3], stride=[2, 2])
    trace = network(FIRST, pool, task="forward_backward", data=["N", 3, 9, 9])
    result = lowered(trace, stack("implicit_gemm"))
    found = {op.phase: options(result, i)[0].kernels[0] for i, op in enumerate(result.ops) if op.kind.op == "max_pool"}
    values = 2 * 6 * 4 * 4 * 9
    assert {phase: (kernel.gpu.cache_bytes, kernel.values) for phase, kernel in found.items()} == {
        "forward": (4 * values, values), "backward": (8 * values, 2 * values),
    }  # fmt: skip


def test_a_concatenation_copies_each_input_in_a_launch_of_its_own() -> None:
    op = line("concat", "c", "x y z", ["N", 12, 5, 5], axis=1)
    (option,) = options(lowered(network(op, x=["N", 3, 5, 5], y=["N", 4, 5, 5], z=["N", 5, 5, 5]), stack()))
    (kernel,) = option.kernels
    assert (kernel.repeat, kernel.repeat * kernel.b_bytes, kernel.repeat * kernel.c_bytes) == (3, 2400, 2400)


def test_a_transform_adds_five_times_for_each_value_that_it_writes() -> None:
    trace = network(conv(["N", 8, 30, 30], kernel=[3, 3], pad=[1, 1]), data=["N", 6, 30, 30])
    of_filter, of_input, gemm, back = options(lowered(trace, stack("fft_tiling")))[0].kernels
    complex_values = [size / 8 for size in (gemm.a_bytes, gemm.b_bytes, gemm.c_bytes)]
    assert [of_filter.flop, of_input.flop, back.flop] == [5 * values for values in complex_values]


def test_an_algorithm_in_the_layout_of_the_framework_needs_no_copies() -> None:
    trace = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    found = options(lowered(trace, stack("implicit_gemm", "plain_gemm", layout_copies="all"), precision="fp16"))
    roles = {option.algorithm: [kernel.role for kernel in option.kernels] for option in found}
    assert roles == {"implicit_gemm": [Role.LAYOUT, Role.LAYOUT, Role.CONVOLUTION], "plain_gemm": [Role.CONVOLUTION]}
    assert [kernel.gpu.plain for option in found for kernel in matrix_kernels(option)] == [0, 1]


def test_keys_and_values_are_stored_as_results_are_written() -> None:
    stores = [next(k for k in attended(256, 256, precision=p) if k.role is Role.STORE) for p in ("bf16", "fp8")]
    assert [store.repeat * store.c_bytes for store in stores] == [2 * 2 * 3 * 256 * 128] * 2


def test_the_rows_of_a_transposed_product_are_as_long_as_its_depth() -> None:
    (option,) = options(lowered(network(FC, batch=16, data=["N", 32]), stack()))
    assert option.kernels[0].gpu.row_bytes == 32 * 4


def test_the_least_traffic_is_that_of_the_tensors_or_of_kernels_that_move_less() -> None:
    relu = network(line("relu", "r", "data", ["N", 64]), data=["N", 64])
    for passes, least in ((1.0, (512, 512)), (0.25, (256, 256))):
        rows = {"relu": {"forward": Passes(inputs=passes, outputs=passes)}}
        kernels = lowered(relu, replace(stack(), passes=stack().passes | rows)).kernels
        assert (kernels.read_bytes.item(), kernels.write_bytes.item()) == least
    product = network(conv(["N", 8, 7, 7], kernel=[3, 3]), data=["N", 6, 9, 9])
    kernels = lowered(product, stack("im2col")).kernels
    assert (kernels.read_bytes.item(), kernels.write_bytes.item()) == (4 * (2 * 6 * 81 + 8 * 6 * 9), 4 * 2 * 8 * 49)


def test_a_loss_of_single_ops_has_the_passes_of_its_own_row() -> None:
    rows = {"forward": Passes(inputs=12, outputs=0, launches=7), "backward": Passes(inputs=20, outputs=0, launches=9)}
    passes = {**stack().passes, "apart_cross_entropy": rows}
    chosen = replace(stack(), passes=passes)
    for apart, launches in ((False, [1]), (True, [7])):
        loss = line("cross_entropy", "l", "data", ["N"], apart=apart)
        found = options(lowered(network(loss, batch=4, data=["N", 50]), chosen), 0)[0].kernels
        assert [kernel.repeat for kernel in found] == launches


def test_normalisation_by_stored_statistics_has_passes_of_its_own_where_the_stack_has_some() -> None:
    norm = line("batch_norm", "n", "data", ["N", 8, 5, 5], stored=True)
    trace = network(norm, task="forward_backward", data=["N", 8, 5, 5])
    result = lower(trace.ops, stacks.find("caffe-cudnn5.1"), "gpu", "fp32", True)
    launches = {op.phase: options(result, i)[0].kernels[0].repeat for i, op in enumerate(result.ops)}
    assert launches == {"forward": 14, "backward": 8}
    plain = lowered(trace, stack())
    assert {options(plain, i)[0].kernels[0].repeat for i in range(2)} == {1}


def test_gradients_of_a_layer_read_its_subnormal_values_and_the_forward_pass_does_not() -> None:
    fc = line("linear", "a", "data", ["N", 64], subnormal=0.25)
    step = network(fc, task="training_step", batch=16, data=["N", 64])
    result = lower(step.ops, stacks.find("tensorflow-eigen"), "cpu", "fp32", True)
    linear = [(i, op.phase) for i, op in enumerate(result.ops) if op.kind.op == "linear"]
    shares = {phase: options(result, i)[0].kernels[0].cpu.subnormal for i, phase in linear}
    assert shares == {"forward": 0.0, "backward_filter": 0.25}
