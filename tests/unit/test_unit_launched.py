"""Tiles from what a profiler records of launches: names of kernels that cuBLAS, cuDNN and CUTLASS launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.stack.launched import Launch, launches_of, row_of, rows_of, table_of
from archsim.stack.menu import Menu, filled
from tests.data.kernels import tables

from ..each import each

WORDS = ("role", "m", "n", "k", "cluster", "loop")


def launch(name: str, threads: int = 128) -> Launch:
    return Launch(name=name, threads=threads, registers=168, shared=1024)


@each(("name", "words"), [
    ("nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_coopA_bias_TNN", ("gemm_tensor", "128", "256", "64", "2", "persistent")),
    ("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x96x64_warpgroupsize2x1x1_g1_cudnn",
     ("conv_forward_tensor", "96", "256", "64", "", "persistent")),
    ("sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_nhwc_tilesize128x32x16_stage1_tensor16x8x16",
     ("conv_gathered_tensor", "32", "128", "16", "", "warp_mma")),
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
    for name, text in tables().items():
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
