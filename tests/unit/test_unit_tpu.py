"""Tensor processing units: costs by hand, published workloads, and what is not modelled."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import default
from archsim.cli.main import group
from archsim.cost.evaluate import tpu_cost
from archsim.cost.roofline import units
from archsim.device.catalog import find, names
from archsim.device.device import Tpu
from archsim.device.spec import keys
from archsim.estimation.estimate import estimate
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request, with_spec
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel, Option, Plan, TpuKernels, pack_tpu
from tests.each import each

TPUS = [name for name in names() if find(name).kind == "tpu"]
PUBLISHED = (Path(__file__).parent / "data" / "jouppi2017.csv").read_text("utf-8")
WORKLOADS = list(csv.DictReader(line for line in PUBLISHED.splitlines() if not line.startswith("#")))
APART = 0.25  # of a published workload: how far its time may be off


def one(**sizes: float) -> TpuKernels:
    """A product alone."""
    kernel = Kernel(name="gemm", role=Role.PRODUCT, efficiency="full", menu="gemm", operand_a=1, operand_b=1, **sizes)
    return pack_tpu([Plan(options=(Option(algorithm="gemm", kernels=(kernel,)),), read_bytes=0, write_bytes=0)])


def v1() -> Tpu:
    device = find("tpu_v1").device
    assert isinstance(device, Tpu)
    return device


def test_a_layer_of_few_rows_takes_what_memory_takes_for_its_tiles() -> None:
    cost = tpu_cost(one(m=2000, n=200, k=2000), v1(), "int8", 7e8, default())
    assert cost.dram_bytes.item() == 64 * 65536  # 8 x 8 tiles, the last of each side not full
    assert cost.busy_s.item() == pytest.approx(64 * 65536 / (34e9 * 0.947))


def test_a_layer_of_many_rows_takes_what_passes_through_its_tiles() -> None:
    cost = tpu_cost(one(m=256, n=2888, k=2304), v1(), "int8", 7e8, default())
    assert cost.bounds["compute"].item() * 7e8 == pytest.approx(9 * 2888 + 256 + 510)  # two blocks of 1444 rows for 9 tiles
    assert cost.dram_bytes.item() == 2 * 9 * 65536  # whose weights come twice


def test_times_are_the_largest_bound_where_all_is_prefetched() -> None:
    cost = tpu_cost(one(m=256, n=2048, k=256), v1(), "int8", 7e8, default())
    assert cost.busy_s.item() == max(bound.item() for bound in cost.bounds.values())


@each("row", WORKLOADS)
def test_the_workloads_of_the_first_tpu_run_as_fast_as_published(row: dict[str, str]) -> None:
    found = estimate(row["network"], "tpu_v1", batch=int(row["batch"]), fidelity="cycle")
    off = float(row["teraops"]) * 1e12 * found.latency_s / found.flop - 1.0
    assert abs(off) <= APART, f"{row['network']}: {off:+.0%}"


def test_the_closed_form_is_near_the_array_tile_by_tile() -> None:
    for network, batch in (("resnet_50", 1), ("resnet_50", 32), ("alexnet", 16), ("jouppi_mlp0", 200)):
        closed, tiled = (estimate(network, "tpu_v1", batch=batch, fidelity=name).latency_s for name in ("analytical", "cycle"))
        assert closed == pytest.approx(tiled, rel=0.1)


@each("name", TPUS)
def test_every_tpu_estimates_a_network_with_few_assumed_values(name: str) -> None:
    spec = find(name)
    assert sum(entry.kind == "assumed" for entry in spec.entries.values()) <= 6
    found = estimate("resnet_50", name, batch=8)
    assert found.latency_s > found.flop / float(spec.device.peak_flops(found.precision))
    assert found.fits
    assert float(spec.device.power.idle) <= found.power_w <= float(spec.device.power.tdp)


def test_power_is_idle_while_the_chip_waits_and_busy_while_it_runs() -> None:
    found = estimate("jouppi_mlp0", "tpu_v1", batch=200)
    assert found.power_w == pytest.approx(40.0, rel=0.01)
    assert found.energy_j == pytest.approx(sum(found.energy_breakdown_j.values()))


def test_no_class_of_errors_is_claimed_without_a_measured_row() -> None:
    found = estimate("resnet_50", "tpu_v4")
    assert found.held_out.rows == 0
    assert any("no measured row of a TPU" in line for line in found.warnings)
    assert estimate("resnet_50", "gtx_1080").held_out.rows > 0


def test_factors_of_fp32_are_rounded_to_bf16_by_xla_alone() -> None:
    wide, narrow = (estimate("resnet_50", "tpu_v3", precision=name, batch=64) for name in ("fp32", "bf16"))
    assert wide.latency_s > narrow.latency_s  # twice the bytes, the same products
    assert any("rounds the factors" in line for line in wide.assumptions)
    with pytest.raises(ArchsimError, match="precision fp32: the cells of tpu_v3 multiply bf16"):
        estimate("resnet_50", "tpu_v3", precision="fp32", stack="ideal")


@each(("asked", "said"), [
    ({"hw": "tpu_v1", "task": "training"}, "tpu_v1 runs inference alone"),
    ({"hw": "tpu_v4", "task": "training"}, "training is not modelled"),
    ({"hw": "tpu_v1", "precision": "fp16"}, "precision fp16: the cells of tpu_v1 multiply int8"),
    ({"hw": "tpu_v1", "threads": 2}, "threads belong to a CPU"),
    ({"hw": "tpu_v1", "power_limit": 30.0}, "power limits are not modelled of a TPU"),
    ({"hw": "tpu_v1", "graph": True}, "a TPU has none"),
    ({"hw": "tpu_v1", "memory_clock": 1e9}, "only the memory of GPUs has a clock"),
    ({"hw": "tpu_v1", "net": "bert_base"}, "multiplies two activations"),
    ({"hw": "tpu_v1", "stack": "pytorch-2"}, "is for a gpu, not a tpu"),
    ({"hw": "gtx_1080", "stack": "jax-xla-tpu"}, "is for a tpu, not a gpu"),
    ({"hw": "tpu_v3", "traffic": "simulated"}, "tpu_v3 has no caches"),
])  # fmt: skip
def test_what_is_not_modelled_is_one_clear_line(asked: dict[str, object], said: str) -> None:
    with pytest.raises(ArchsimError, match=said) as caught:
        estimate(**{"net": "resnet_50", **asked})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_large_products_of_a_tpu_v6e_take_about_what_was_measured() -> None:
    read = (Path(__file__).parent / "data" / "tpu_v6e_products.csv").read_text("utf-8").splitlines()
    device, off = find("tpu_v6e").device, []
    assert isinstance(device, Tpu)
    for row in csv.DictReader(line for line in read if not line.startswith("#")):
        m, n, k = (float(row[name]) for name in "MNK")
        kernels = one(m=n, n=m, k=k, a_bytes=2 * n * k, b_bytes=2 * m * k, c_bytes=2 * m * n)
        cost = tpu_cost(kernels, device, "bf16", 1.75e9, default())
        off.append(abs((cost.busy_s + cost.overhead_s).item() / (1e-6 * float(row["device_us"])) - 1.0))
    assert sorted(off)[len(off) // 2] < 0.12


@each(("batch", "hardware", "stack", "clock", "published"), [
    (16, "tesla_k80", "tensorflow-cudnn5.1", None, 13461.0), (64, "tesla_k80", "tensorflow-cudnn5.1", None, 36465.0),
    (16, "xeon_e5_2699_v3", "intel-mkl", 2.3e9, 5482.0), (64, "xeon_e5_2699_v3", "intel-mkl", 2.3e9, 13194.0),
])  # fmt: skip
def test_mlp0_on_the_other_two_chips_runs_as_fast_as_published(
    batch: int, hardware: str, stack: str, clock: float | None, published: float
) -> None:
    # Table 4 of Jouppi et al. 2017 (recalled), inferences per second of one die; turbo was off.
    found = estimate("jouppi_mlp0", hardware, batch=batch, stack=stack, clock=clock)
    assert found.throughput_per_s == pytest.approx(published, rel=APART)


def test_activations_that_the_buffer_does_not_hold_are_said() -> None:
    few, many = (estimate("resnet_50", "tpu_v1", batch=batch).warnings for batch in (1, 64))
    assert not any("more activations than the buffer holds" in line for line in few)
    assert any("13 of 27 kernels have more activations than the buffer holds" in line for line in many)


@each(("words", "said"), [
    (["simulate", "sm", "--hw", "tpu_v1", "--kernel", "gemm_128x128_512x512x512"], "is a TPU, which has no SM"),
    (["cache", "--hw", "tpu_v1", "--net", "alexnet", "--layer", "conv2"], "caches: not modelled of a TPU such as tpu_v1"),
    (["power", "--hw", "tpu_v1", "--use", "dram=50%"], "tpu_v1 is a TPU: power by unit is modelled for GPUs and CPUs"),
    (["llm", "--net", "llama_2_7b", "--hw", "tpu_v4", "--input", "64", "--output", "8"], "engines are described for GPUs only"),
    (["whatif", "--net", "alexnet", "--hw", "tpu_v1", "--set", "array.rows=512", "--area"], "area: modelled for GPUs only"),
])  # fmt: skip
def test_commands_for_other_devices_end_in_one_line(words: list[str], said: str) -> None:
    done = CliRunner().invoke(group, words)
    assert done.exit_code != 0
    assert said in (done.output or str(done.exception))


@each("words", [
    ["list", "hw"], ["show", "hw", "tpu_v1"], ["compare", "--net", "alexnet", "--hw", "tpu_v1,tpu_v4,gtx_1080"],
    ["sweep", "--net", "alexnet", "--hw", "tpu_v1", "--vary", "array.rows=64,256"],
    ["tune", "--net", "alexnet", "--hw", "tpu_v1"],
    ["explain", "--net", "alexnet", "--hw", "tpu_v1", "--layer", "conv1"], ["sensitivity", "--net", "alexnet", "--hw", "tpu_v4"],
    ["explain", "--net", "alexnet", "--hw", "tpu_v1", "--layer", "conv1", "--fidelity", "cycle"],
])  # fmt: skip
def test_commands_take_a_tpu(words: list[str]) -> None:
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    assert "tpu_v" in done.output.lower().replace(" ", "_")


MOVED = {"vector.rate": ("resnet_50", 1), "launch.latency": ("resnet_50", 1), "buffer.size": ("vgg_16", 64)}  # by key
SAME = ("memory.capacity", "power.tdp", "fifo.tiles")  # what fits; a limit; a queue evens out bursts, which one product has not


def test_every_number_of_a_tpu_moves_a_prediction() -> None:
    spec = find("tpu_v1")
    for key, unit, _ in keys("tpu"):
        entry = spec.entries.get(key)
        if entry is None or isinstance(entry.value, str) or unit.informational or key in SAME:
            continue
        net, batch = MOVED.get(key, ("resnet_50", 32))
        value = 0.0 if key == "buffer.resident" else float(entry.number) / 2 if float(entry.number) >= 2 * unit.low else 2.0
        how: dict[str, Any] = {"batch": batch, "fidelity": "cycle" if unit.cycle else "analytical"}
        request = make_request(net, "tpu_v1", **how)
        before, after = (run(with_spec(request, one)) for one in (spec, spec.with_values({key: value})))
        assert any(getattr(before, name)[0] != getattr(after, name)[0] for name in ("latency_s", "total_energy_j")), key


def test_the_roofline_counts_the_cells_of_all_arrays() -> None:
    assert units(find("tpu_v1").device, 1) == 256 * 256
    array = find("tpu_v3").device
    assert isinstance(array, Tpu)
    assert units(array, 1) == array.array.count * 128 * 128 > 128 * 128
