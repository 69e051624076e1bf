"""Rows of power by how busy units are, powers of runs whose rates are known, and sweeps over tile and stages of one product."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.files import data_folder
from archsim.device.catalog import find
from archsim.device.units import AWAKE, UnitClocks, unit_rates
from archsim.evidence.case import Case, ProductPattern, UnitPattern
from archsim.evidence.family import family_called
from archsim.evidence.readers import read_files
from archsim.evidence.unit_rows import SHARES
from tests.shipped import gpu

HEADER = ("source,source_ref,hardware,kind,app,power_w,core_mhz,mem_mhz,ref_core_mhz,ref_mem_mhz,util_fp32,util_int,util_fp64,"
          "util_sfu,util_shared,util_l2,util_dram,split")  # fmt: skip
SOURCE = "hpc-ulisboa/gpupowermodel"
ROW = {"source": SOURCE, "source_ref": "x", "hardware": "titan_xp", "kind": "micro", "app": "fma", "power_w": "150",
       "core_mhz": "911", "mem_mhz": "5705", "ref_core_mhz": "1404", "ref_mem_mhz": "5705",
       "util_fp32": "0.9", "util_int": "0.1", "util_fp64": "0",
       "util_sfu": "0", "util_shared": "0", "util_l2": "0.05", "util_dram": "0.2", "split": "calibrate"}  # fmt: skip
RUNS = ("source,source_ref,hardware,benchmark,kernel,variant,param,elem_bytes,block_threads,working_set_bytes,clock_mhz,metric,"
        "stat,value,split")  # fmt: skip
RUN = {"source": "RRZE-HPC/gpu-benches", "source_ref": "r:2", "hardware": "a100_sxm4_40gb", "benchmark": "gpu-roofline",
       "kernel": "fma_fp32", "variant": "gpu=0", "param": "its=0", "elem_bytes": "4", "block_threads": "256",
       "working_set_bytes": "7077888000", "clock_mhz": "1410", "metric": "power_w", "stat": "max",
       "value": "230", "split": "calibrate"}  # fmt: skip


def table(folder: Path, header: str, *rows: dict[str, str]) -> Path:
    file = folder / "rows.csv"
    lines = [",".join(row.get(name, "") for name in header.split(",")) for row in rows]
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


def read(folder: Path, **changed: str) -> tuple[list[Case], list[str]]:
    cases, skips = read_files([table(folder, HEADER, {**ROW, **changed})])
    return cases, [skip.reason for skip in skips]


def pattern_of(case: Case) -> UnitPattern:
    assert isinstance(case.pattern, UnitPattern)
    return case.pattern


def test_a_row_is_a_power_at_a_clock_with_shares_counted_at_another(tmp_path: Path) -> None:
    (case,), skips = read(tmp_path, mem_mhz="810")
    pattern, usual = pattern_of(case), gpu("titan_xp").memory_clock or 0.0
    assert not skips
    assert (case.hardware, case.metric, case.measured, case.clock) == ("titan_xp", "power_w", 150.0, 911e6)
    assert pattern.core == 1404e6
    assert (pattern.memory, pattern.memory_now) == pytest.approx((5705e6 / usual, 810e6 / usual))
    assert {unit: share for unit, share in pattern.shares.items() if share} == {
        AWAKE: 1.0, "fp32": 0.9, "int": 0.1, "l2": 0.05, "dram": 0.2}  # fmt: skip
    assert set(SHARES.values()) < set(pattern.shares)


def test_an_idle_row_has_no_unit_at_work(tmp_path: Path) -> None:
    (case,), _ = read(tmp_path, kind="idle", app="", util_fp32="0", util_int="", util_dram="0", util_l2="0")
    assert pattern_of(case).shares == {}
    assert case.label == "idle"


def test_an_empty_share_is_of_a_unit_that_was_not_counted(tmp_path: Path) -> None:
    (case,), skips = read(tmp_path, util_int="")
    assert not skips
    assert pattern_of(case).shares["int"] == 0.0


def test_a_little_below_zero_is_zero_and_less_is_miscounted(tmp_path: Path) -> None:
    """Differences of counters come out a little negative; a count that has run over does not."""
    (case,), _ = read(tmp_path, util_int="-1.4e-11")
    assert pattern_of(case).shares["int"] == 0.0
    cases, reasons = read(tmp_path, util_fp32="-8.0e+08")
    assert not cases
    assert reasons == ["share of fp32 is not between 0 and 1: miscounted"]


def test_a_little_above_one_is_one_and_more_is_miscounted(tmp_path: Path) -> None:
    (case,), _ = read(tmp_path, util_fp32="1.04")
    assert pattern_of(case).shares["fp32"] == 1.0
    cases, reasons = read(tmp_path, util_dram="1.06")
    assert not cases
    assert reasons == ["share of dram is not between 0 and 1: miscounted"]


@pytest.mark.parametrize(("changed", "reason"), [
    ({"hardware": "i7_6700k"}, "i7_6700k is no GPU"), ({"hardware": "no_such_card"}, "no_such_card"),
])  # fmt: skip
def test_what_is_no_known_gpu_is_skipped(tmp_path: Path, changed: dict[str, str], reason: str) -> None:
    cases, reasons = read(tmp_path, **changed)
    assert not cases
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_a_memory_whose_usual_clock_nobody_knows_is_skipped(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    text = data_folder("hwspecs").joinpath("gtx_1080.toml").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("data_rate")]
    mine.write_text("\n".join(lines).replace('id = "gtx_1080"', 'id = "mine"') + "\n", "utf-8")
    assert find(str(mine)).device.memory_clock is None  # type: ignore[arg-type]
    cases, reasons = read(tmp_path, hardware=str(mine))
    assert not cases
    assert reasons == ["mine: the data rate of its memory is not known"]


def test_rows_of_other_boards_of_the_source_stay_out_of_the_fit(tmp_path: Path) -> None:
    (case,), _ = read(tmp_path)
    (other,), _ = read(tmp_path, source_ref="hpc-ulisboa/gpupowermodel@babdfe88f3e5:v2.0_TPDS2019/local_examples/GTX980/x.csv:3")
    assert (case.split, other.split) == ("calibrate", "doubted")


def test_every_share_has_a_column_that_may_be_missing() -> None:
    assert family_called("power by unit").counters == list(SHARES)
    assert {"util_fp32", "util_dram"} <= set(family_called("power by unit").columns)


# powers of runs


def runs(folder: Path, *rows: dict[str, str]) -> tuple[list[Case], list[str]]:
    cases, skips = read_files([table(folder, RUNS, *rows)])
    return [case for case in cases if case.metric == "power_w"], [skip.reason for skip in skips]


RATES = ({**RUN, "metric": "bandwidth_Bps", "value": "1.2e12"}, {**RUN, "metric": "flop_per_s", "value": "9.75e12"})


def test_a_power_has_the_shares_of_the_rates_of_its_run(tmp_path: Path) -> None:
    (case,), _ = runs(tmp_path, *RATES, RUN)
    most = unit_rates(gpu("a100_sxm4_40gb"), UnitClocks(core=1.41e9))
    shares = pattern_of(case).shares
    assert (case.measured, case.clock, case.label) == (230.0, 1.41e9, "gpu-roofline fma_fp32")
    assert shares == pytest.approx({AWAKE: 1.0, "fp32": 0.5 * 9.75e12 / most["fp32"], "l2": 1.2e12 / most["l2"],
                                    "dram": 1.2e12 / most["dram"]})  # fmt: skip
    assert shares["fp32"] == pytest.approx(0.5, rel=0.01)


OTHERS = tuple([{**rate, "source_ref": "r:9"} for rate in RATES])


@pytest.mark.parametrize("rows", [(RUN,), (RATES[0], RUN), (RATES[1], RUN), (*OTHERS, RUN), (*RATES, {**RUN, "clock_mhz": ""}),
                                  (*RATES, {**RUN, "kernel": "fma_fp16"})])  # fmt: skip
def test_a_power_without_its_rates_is_skipped(tmp_path: Path, rows: tuple[dict[str, str], ...]) -> None:
    cases, reasons = runs(tmp_path, *rows)
    assert not cases
    assert "a power without the rates of its run" in reasons


SWEEP = "M,N,K,TILE_M,TILE_N,TILE_K,STAGES,dtype,time_ms,TFLOPS\n"


def written(folder: Path, *lines: str, before: str = "", header: str = SWEEP) -> Path:
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
    header = SWEEP.strip() + ",hardware,clock_mhz\n"
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
