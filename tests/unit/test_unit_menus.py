"""Which tiles a library has for a product: by the bytes of an operand, the architecture, and the sizes that each is meant for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archsim.base.errors import InputError, MissingFile
from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.cost.gpu import GpuTerms, compute_bound
from archsim.device.catalog import find
from archsim.device.device import Gpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.evidence.op_rows import forward
from archsim.lower.context import Context
from archsim.lower.kernel import GpuKernels
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.stack.launched import RecordedLaunch, launches_of, row_of, rows_of, table_of
from archsim.stack.loop import UNKNOWN, ScalarLoop, loop_table, loops_of
from archsim.stack.menu import COLUMNS, Menu, Tile, filled
from archsim.stack.stack import NEVER_AGAIN, AttentionChoice, Stack
from archsim.trace.op import Attention, Linear
from archsim.trace.trace import BoundOp
from tests import shipped
from tests.data.regenerate import kernel_tables
from tests.each import each

TILE = Tile(m=64, n=64, k=32, threads=128, registers=96, shared=8192)
SIDES = {32.0, 64.0, 128.0}  # rows of generic tiles for lanes
BYTE, ADA, NARROW = (Menu(tiles=(replace(TILE, m=side),)) for side in (128, 32, 16))


def library(**menus: Menu) -> Stack:
    """The ideal stack with these menus, `_` of their names for a point."""
    named = {name.replace("__", "."): menu for name, menu in menus.items()}
    return replace(stacks.find("ideal"), menus=named)


def context(stack: Stack, element: int, architecture: str = "hopper") -> Context:
    return Context(stack=stack, device_kind="gpu", element=element, training=False, tensor=True, architecture=architecture)


def kernels(op: BoundOp, stack: Stack, precision: str) -> GpuKernels:
    found = lower((op,), stack, "gpu", precision, False, True, "ada").kernels
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


def test_products_of_one_row_run_by_values_on_tensor_cores_and_of_up_to_eight_on_lanes() -> None:
    made = library(gemm_tensor=Menu(tiles=(TILE,)), gemm=Menu(tiles=(TILE,)))
    for rows, precision, names in ((1, "bf16", ["gemv"]), (2, "bf16", ["gemm"]), (8, "fp32", ["gemv"]), (9, "fp32", ["gemm"])):
        found = lower((product(rows, 4096, 512),), made, "gpu", precision, False, precision == "bf16", "ada").kernels
        assert [kernel.name for kernel in found.kernels] == names


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


@pytest.mark.parametrize(("step", "keys"), [(32, 256.0), (128, 256.0), (256, 384.0)])
def test_a_tile_of_queries_under_a_window_goes_through_whole_steps_of_keys(step: int, keys: float) -> None:
    """128 queries with 128 keys before each: two blocks of 128, or on average one and a half of 256."""
    found = kernels(attention(8192, 4, window=128), attending(replace(TILE, k=step)), "bf16")
    (reached,), (work,) = (set(column[found.exps > 0]) for column in (found.k, found.work))
    assert reached == keys
    assert 0.5 * work * reached == pytest.approx(keys, rel=0.03)


def test_a_tile_without_splits_stands_beside_others() -> None:
    menu = Menu(tiles=(TILE, replace(TILE, m=16, whole=True)), split_k=(1, 2, 4))
    found = kernels(product(64, 128, 4096), library(gemm_tensor=menu), "bf16")
    assert sorted(found.split[found.tile_m == 64].tolist()) == [1, 2, 4]
    assert found.split[found.tile_m == 16].tolist() == [1]


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


# ------------------------------------------------------------------------------------------------- tiles of traces/kernels


def test_a_library_has_the_generic_tiles_of_a_generation_from_its_smallest_on() -> None:
    whole, large = filled({"gemm": Menu(), "gemm.large": Menu(least=(64, 64), least_results=8192)}).values()
    sizes = [{(tile.m, tile.n) for tile in menu.on("maxwell")} for menu in (whole, large)]
    assert min(m * n for m, n in sizes[0]) == 32 * 32
    assert sizes[1] == {(128, 128), (128, 64), (64, 128)}
    assert min(tile.registers for tile in whole.on("kepler")) == 63  # what its first chips can name
    assert {tile.k for tile in filled({"gemm_tensor": Menu()})["gemm_tensor"].on("ampere")} == {64}


def test_a_row_of_a_library_comes_before_generic_ones_for_the_results_that_it_names(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text(f"{','.join(COLUMNS)}\ngemm,ada,..15,,,16,256,64,128,96,8192,2,persistent,,a profile\n", "utf-8")
    stack = library(**filled({"gemm": Menu(kernels=(str(own), "generic"))}))
    few, more, elsewhere = (lower((product(tokens, rows, 512),), stack, "gpu", "fp32", False, architecture=where).kernels
                            for tokens, rows, where in ((16, 10, "ada"), (16, 16, "ada"), (16, 10, "ampere")))  # fmt: skip
    assert [set(kernels.tile_m.tolist()) for kernels in (few, more, elsewhere)] == [{16.0}, SIDES, SIDES]
    assert (few.cluster.item(), few.persistent.item()) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("row", "problem"),
    [("gemm,,..x,,,1,1,1,1,1,1,,,,", "rows: '..x'"), ("gemm,,,,,a,1,1,1,1,1,,,,", "m: 'a'"),
     ("gemm,,,,,1,1,1,1,1,1,,fast,,", "loop: 'fast'"), ("gemm,,,,,0,1,1,1,1,1,,,,", "m: '0'"),
     ("gemm,,,,,1,1,1,1,1,1,,,nan,", "score_slots: 'nan'"), ("gemm,,,,,1,1,1,,1,1,,,,", "threads: is empty"),
     ("gemm,,,,,1,1", "must have 15 cells"), ("gemm,,8..y,,,1,1,1,1,1,1,,,,", "rows: '8..y'")],
)  # fmt: skip
def test_a_cell_that_is_none_is_named_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    own = tmp_path / "own.csv"
    own.write_text(f"{','.join(COLUMNS)}\n{row}\n", "utf-8")
    with pytest.raises(InputError, match=rf"own\.csv: line 2: {re.escape(problem)}"):
        filled({"gemm": Menu(kernels=(str(own),))})


def test_a_table_that_is_missing_or_has_other_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"kernels.cutlas\.csv: no such file"):
        filled({"gemm": Menu(kernels=("cutlas",))})
    (tmp_path / "own.csv").write_text("role,m\ngemm,1\n", "utf-8")
    with pytest.raises(InputError, match="line 1: the columns must be role, architectures"):
        filled({"gemm": Menu(kernels=(str(tmp_path / "own.csv"),))})


# -------------------------------------------------------------------------- tiles from what a profiler records of launches

WORDS = ("role", "m", "n", "k", "cluster", "loop")


def launch(name: str, threads: int = 128) -> RecordedLaunch:
    return RecordedLaunch(name=name, threads=threads, registers=168, shared=1024)


@each(("name", "words"), [
    ("nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_coopA_bias_TNN", ("gemm_tensor", "128", "256", "64", "2", "persistent")),
    ("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x96x64_warpgroupsize2x1x1_g1_cudnn",
     ("conv_forward_tensor", "96", "256", "64", "", "persistent")),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_ffma_aligna4", ("gemm", "64", "256", "8", "", "")),
    ("void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_128x64_32x2_nn_align1>(...)",
     ("gemm_narrow_tensor", "128", "64", "32", "", "warp_mma")),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(...)", ("gemm", "256", "128", "8", "", "")),
    ("maxwell_scudnn_128x64_relu_interior_nn", ("conv_forward", "128", "64", "8", "", "")),
    ("volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_tn", ("gemm_tensor", "256", "128", "32", "", "warp_mma")),
])  # fmt: skip
def test_names_say_role_tile_and_loop(name: str, words: tuple[str, ...]) -> None:
    row = row_of(launch(name), "hopper", "a profile")
    assert row is not None
    assert tuple(row[word] for word in WORDS) == words
    assert (row["threads"], row["registers"], row["shared"], row["source"]) == ("128", "168", "1024", "a profile")


@each("name", ["void at::native::vectorized_elementwise_kernel<4, Add>(int)", "splitKreduce_kernel<32, 16, int>",
               "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1"])  # fmt: skip
def test_other_kernels_have_no_row(name: str) -> None:
    assert row_of(launch(name), "hopper", "") is None


def test_a_tile_is_listed_once_as_it_is_launched_most_often() -> None:
    small, large = (launch(f"ampere_sgemm_{size}_tn") for size in ("64x64", "128x64"))
    rows = rows_of([small, large, launch("ampere_sgemm_128x64_tn", 256), large], "ampere", "")
    assert [(row["m"], row["threads"]) for row in rows] == [("128", "128"), ("64", "128")]
    assert [row["m"] for row in rows_of([small, large, large], "ampere", "", least=2)] == ["128"]


def test_the_tables_of_hopper_are_those_of_its_profiles() -> None:
    for name, text in kernel_tables().items():
        assert data_folder("traces/kernels").joinpath(f"{name}.csv").read_text("utf-8") == text


def test_a_trace_becomes_a_file_that_a_menu_reads(tmp_path: Path) -> None:
    args = {"block": [128, 1, 1], "registers per thread": 168, "shared memory": 1024}
    events = [{"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_tn", "ts": 0, "dur": 1, "args": args},
              {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 1, "args": {}}]  # fmt: skip
    trace, file = tmp_path / "trace.json", tmp_path / "mine.csv"
    trace.write_text(json.dumps({"traceEvents": events}), "utf-8")
    file.write_text(table_of(rows_of(launches_of(trace), "ampere", "")), "utf-8")
    (tile,) = filled({"gemm": Menu(kernels=(str(file),))})["gemm"].on("ampere")
    assert (tile.m, tile.n, tile.k, tile.threads, tile.registers, tile.shared) == (128, 64, 8, 128, 168, 1024)
    trace.write_text(json.dumps({"traceEvents": events[1:]}), "utf-8")
    with pytest.raises(InputError, match="no kernels with block"):
        list(launches_of(trace))


# ---------------------------------------------------------------------------------------------------------------- loops

LOOPS = "op,phase,does,source\n"


def loops_file(folder: Path, row: str) -> str:
    (folder / "mine.csv").write_text(f"{LOOPS}{row}\n", "utf-8")
    return str(folder / "mine.csv")


def test_a_row_of_the_phase_comes_before_that_of_the_op() -> None:
    caffe = stacks.find("caffe-openblas")
    found = [caffe.loop_of("relu", phase).operations for phase in ("backward", "training", "")]
    assert (found, caffe.loop_of("concat", "")) == ([8, 5, 5], UNKNOWN)
    assert caffe.without(["loops"]).loop_of("relu", "") is UNKNOWN


def test_the_first_file_with_a_row_serves_the_op(tmp_path: Path) -> None:
    found = loops_of((loops_file(tmp_path, "tanh,,steps=2,guessed"), "caffe"))
    assert (found["tanh"], found["sigmoid"]) == (ScalarLoop(steps=2), loop_table("caffe")["sigmoid"])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tanh,,steps,guessed", r"line 2: does: 'steps' has no number above 0"),
        ("tanh,,steps=-1,guessed", r"line 2: does: 'steps=-1' has no number above 0"),
        ("tanh,,hops=1,guessed", r"line 2: does: 'hops' is none of elements, operations, "),
        ("tanh,,,guessed", "line 2: does: is empty"),
        ("tanh,forward,steps=1,guessed", "line 2: must have an op, and a phase: nothing, training or backward"),
        ("tanh,steps=1", "line 2: must have 4 cells"),
        ("tanh,,steps=1,guessed\ntanh,,steps=2,guessed", "line 3: tanh: has a row already"),
    ],
)
def test_a_row_that_says_nothing_is_refused(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"mine.csv.*{problem}"):
        loop_table.__wrapped__(loops_file(tmp_path, row))


def test_a_file_that_is_not_there_or_has_other_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"none\.csv: no such file; `loops` names files of traces/kernels/loops"):
        loops_of(("none",))
    (tmp_path / "other.csv").write_text("op,does\n", "utf-8")
    with pytest.raises(InputError, match="line 1: the columns must be op, phase, does, source"):
        loops_of((str(tmp_path / "other.csv"),))


def test_a_loop_of_one_s_own_is_one_row(tmp_path: Path) -> None:
    """A ReLU that takes a power of the C library for each value."""
    rows = loops_file(tmp_path, "relu,,pows=1,guessed")
    mine = tmp_path / "mine.toml"
    mine.write_text(f'schema = 1\nid = "mine"\nlike = "caffe-openblas"\nloops = ["{rows}", "caffe"]\n', "utf-8")
    usual, own = (run(make_request("alexnet", "i7_6700k", stack=stack)) for stack in ("caffe-openblas", str(mine)))
    assert own.latency_s[0] > 1.02 * usual.latency_s[0]
