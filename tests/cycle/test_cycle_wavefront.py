"""Wavefronts of 64 threads are a value of the spec: a user's own GPU with four SIMDs of 16 lanes."""

from pathlib import Path

import pytest

from archsim.device.catalog import find
from archsim.device.spec import Spec
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request, with_spec
from archsim.evidence.readers import read_files
from archsim.simulate.sm import SimulatedSm, simulate_sm
from archsim.validation.predict import simulated_pattern

GPU = """
schema = 1
id = "wide"
name = "A GPU with wavefronts of 64"
vendor = "AMD"
architecture = "cdna1"
year = 2020
inherits = "tesla_v100_sxm2"

[sm]
warp = { value = 64, source = "rocprofiler-compute: pipeline descriptions", kind = "datasheet" }
warps = { value = 40, source = "rocprofiler-compute: pipeline descriptions", kind = "datasheet" }
int_lanes = { value = 0, source = "rocprofiler-compute: pipeline descriptions", kind = "datasheet" }
alu_latency = { value = "4 clk", source = "LLVM, SISchedule.td", kind = "datasheet" }

[rate]
fp32 = { value = "64 FMA/clk", source = "rocprofiler-compute: pipeline descriptions", kind = "datasheet" }

[clock]
sustained = { value = "1430 MHz", source = "gpu-benches", kind = "measured" }

[l1]
size = { value = "16 KiB", source = "AMD CDNA whitepaper", kind = "datasheet" }
latency = { value = "134 clk", source = "gpu-benches", kind = "measured" }
tlb_reach = { value = "64 MiB", source = "gpu-benches", kind = "derived", note = "a random chain takes longer beyond" }
tlb_miss = { value = "90 clk", source = "gpu-benches", kind = "derived", note = "636 clocks far beyond, 548 before" }

[l2]
size = { value = "8 MiB", source = "AMD CDNA whitepaper", kind = "datasheet" }
latency = { value = "264 clk", source = "gpu-benches", kind = "measured" }

[memory]
latency = { value = "378 ns", source = "gpu-benches", kind = "derived", note = "540 clocks at 1430 MHz" }

[power]
idle = { value = "35 W", source = "none published", kind = "assumed", note = "for a test" }
"""
# gpu-benches@3be3ab1, gpu-latency of an MI100 at 1430 MHz: working set [B], clocks
CHAIN = ((8192, 133.0), (1_048_576, 265.0), (33_554_432, 540.0), (436_207_616, 617.0), (2_147_483_648, 636.0))
COLUMNS = ("source,source_ref,hardware,benchmark,kernel,variant,param,elem_bytes,block_threads,blocks_per_sm,threads,occupancy,"
           "working_set_bytes,stride,clock_mhz,metric,stat,value,value_step,spread_rel,split,note")  # fmt: skip


@pytest.fixture
def wide(tmp_path: Path) -> Spec:
    place = tmp_path / "wide.toml"
    place.write_text(GPU, "utf-8")
    return find(str(place))


def sm(spec: Spec, kernel: str, **settings: str) -> SimulatedSm:
    return simulate_sm(spec.with_settings({"sm.fetch_interval": "0.1 clk", **settings}), kernel, clock=1e9, depth=128, fast=False)


def test_a_wavefront_issues_once_for_64_threads(wide: Spec) -> None:
    kernel = "stream read=1 write=1 threads=256"
    waves, warps = sm(wide, kernel), sm(wide, kernel, **{"sm.warp": "32", "sm.warps": "80"})
    assert waves.result.issued * 2 == warps.result.issued
    assert waves.result.ctas == warps.result.ctas
    assert (waves.result.dram, waves.result.stored) == (warps.result.dram, warps.result.stored)
    assert waves.occupancy == warps.occupancy == 0.8  # registers for 8 CTAs of 256 threads, whatever the width


def test_it_takes_its_lanes_four_clocks(wide: Spec) -> None:
    found = sm(wide, "gemm 64x64x8 threads=64 l2=0")
    assert 0.6 < (found.peak_share or 0.0) <= 1.0
    assert found.result.ipc <= 4 * 16 / 64 + 0.2  # multiply-adds of four schedulers, and what goes to other pipes beside them


@pytest.mark.slow
@pytest.mark.parametrize("fidelity", ["analytical", "event", "cycle"])
def test_networks_run_on_it(wide: Spec, fidelity: str) -> None:
    request = make_request("alexnet", "tesla_v100_sxm2", fidelity=fidelity, batch=4)
    assert float(run(with_spec(request, wide)).latency_s[0]) > 0


def test_measured_rows_of_a_user_s_card_are_simulated(wide: Spec, tmp_path: Path) -> None:
    own = tmp_path / "wide.toml"
    rows = [f"bench,run,{own},gpu-latency,pchase,,,8,1,1,1,,{size},128,1430,latency_clk,trimmed_mean,{clk},1,,,"
            for size, clk in CHAIN]  # fmt: skip
    place = tmp_path / "rows.csv"
    place.write_text("\n".join([COLUMNS, *rows]) + "\n", "utf-8")
    cases, skipped, *_ = read_files([place])
    assert (len(cases), len(skipped)) == (len(CHAIN), 0)
    for case in cases:
        assert simulated_pattern(case, "cycle") == pytest.approx(case.measured, rel=0.02)
