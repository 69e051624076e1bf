"""Sweeps over tile and stages of one product: rows, remarks, and what is refused."""

from pathlib import Path

import pytest

from archsim.evidence.pattern import ProductPattern
from archsim.evidence.readers import read_files

HEADER = "M,N,K,TILE_M,TILE_N,TILE_K,STAGES,dtype,time_ms,TFLOPS\n"


def written(folder: Path, *lines: str, before: str = "", header: str = HEADER) -> Path:
    file = folder / "sweep.csv"
    file.write_text(before + header + "".join(f"{line}\n" for line in lines))
    return file


def test_a_row_is_one_product_of_one_cta(tmp_path: Path) -> None:
    file = written(tmp_path, "128,64,4096,128,64,32,0,FP8_E4M3,0.5,1.0")
    (case,), skips = read_files([file])
    assert not skips
    assert case.pattern == ProductPattern(m=128, n=64, k=4096, tile_k=32, stages=0, operand=1.0)
    assert (case.hardware, case.precision, case.clock, case.measured) == ("b200_sxm", "fp8", 1.3e9, 0.5e-3)


def test_remarks_are_no_rows_and_keep_the_numbers_of_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "# BUILD_FAILED: 64,16", "64,16,4096,64,16,32,2,BF16,0.5,1.0", before="# a remark\n")
    (case,), _ = read_files([file])
    assert case.line == 4


def test_several_tiles_and_unknown_precisions_are_skipped(tmp_path: Path) -> None:
    file = written(tmp_path, "256,64,4096,128,64,32,2,BF16,0.5,1", "128,64,4096,128,64,32,2,INT3,0.5,1")
    cases, skips = read_files([file])
    assert not cases
    assert [skip.reason for skip in skips] == [
        "the product has more than one tile", "no precision 'INT3'; there are BF16, FP16, FP8_E4M3",
    ]  # fmt: skip


def test_hardware_and_clock_of_a_file_go_before_those_of_the_benchmark(tmp_path: Path) -> None:
    header = HEADER.strip() + ",hardware,clock_mhz\n"
    file = written(tmp_path, "128,64,4096,128,64,32,2,BF16,0.5,1,h100_sxm5_80gb,1500", header=header)
    (case,), _ = read_files([file])
    assert (case.hardware, case.clock) == ("h100_sxm5_80gb", 1.5e9)


@pytest.mark.parametrize(("row", "problem"), [
    ("128,64,4096,128,64,32,2.5,BF16,0.5,1", "STAGES"), ("128,64,4096,128,64,0,2,BF16,0.5,1", "TILE_K"),
    ("128,64,4096,128,64,32,2,BF16,nan,1", "time_ms"), ("128,64,4096,128,64,32,2,BF16,,1", "no value in time_ms"),
])  # fmt: skip
def test_malformed_cells_are_named(tmp_path: Path, row: str, problem: str) -> None:
    _, (skip,) = read_files([written(tmp_path, row)])
    assert (skip.line, problem in skip.reason) == (2, True)
