"""The shipped pipelines of CPU cores: complete, used, and in agreement with what the devices themselves declare."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from archsim.base.files import data_folder
from archsim.cycle.core.bounds import bounds
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import CoreLoop, Operation
from archsim.cycle.core.product import gemm_block
from archsim.cycle.core.run import run_loop
from archsim.detect.architecture import CoreRow, rows
from archsim.device import catalog
from tests import shipped

from ..each import each
from .test_cpu_specs import CPUS

FAMILIES = tuple(sorted({catalog.find(name).identity.architecture for name in CPUS}))
BASIC = ("int", "branch", "load", "store_address", "store_data", "add", "mul", "divide", "shuffle", "vint", "logic", "dot")


def machine(name: str) -> CoreMachine:
    device = shipped.cpu(name)
    return core_machine(device, 3e9)


def table(architecture: str) -> dict[str, Any]:
    path = data_folder(catalog.FOLDER).joinpath("architectures", f"{architecture}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@each("name", CPUS)
def test_every_cpu_has_a_pipeline(name: str) -> None:
    device = shipped.cpu(name)
    assert None not in (device.pipeline, device.port, device.latency, device.hold)
    assert device.l2.tlb_entries is not None
    assert device.l2.miss_buffers is not None


@each("name", CPUS)
def test_a_core_has_a_port_for_each_basic_kind(name: str) -> None:
    core = machine(name)
    for kind in BASIC:
        assert core.ports_of(kind, 128), f"{name}: {kind}"


def products(core: CoreMachine, width: int) -> CoreLoop:
    """Independent multiply-adds; multiplications beside additions on a core that has none."""
    fused = "fma" in core.masks
    kinds = ("fma",) * 12 if fused else ("mul", "add") * 12
    operations = tuple(Operation(kind=kind, width=width) for kind in kinds)
    return CoreLoop(name="products", operations=operations)


@each("name", CPUS)
def test_independent_products_reach_the_declared_ports(name: str) -> None:
    device = shipped.cpu(name)
    core = machine(name)
    if name in MIXED:
        return
    rate = 12.0 / run_loop(core, products(core, int(device.core.simd))).cycles
    declared = float(device.core.fma_ports)
    assert abs(rate / declared - 1.0) < 0.03, f"{name}: {rate:.2f} a clock, core.fma_ports is {declared:g}"


MIXED = ("i7_12700h",)  # its core.fma_ports is the mean of two kinds of cores


@each("name", CPUS)
def test_registers_of_the_program_are_fewer_than_those_of_the_core(name: str) -> None:
    device = shipped.cpu(name)
    assert device.pipeline is not None
    for physical, named in ((device.pipeline.vector_registers, device.core.registers), (device.pipeline.int_registers, 16)):
        assert physical is None or float(physical) > float(named)


@each("architecture", FAMILIES)
def test_every_latency_is_that_of_a_kind_with_a_port(architecture: str) -> None:
    """A latency, hold or number of micro-operations of a kind that no port takes would move nothing."""
    words = table(architecture)
    core = machine(next(name for name in CPUS if catalog.find(name).identity.architecture == architecture))
    for part in ("latency", "hold", "cracked"):
        for key in words.get(part, {}):
            kind = key.removesuffix("_chain").rstrip("0123456789")
            if kind in ("gather", "indexed"):
                continue
            assert core.ports_of(kind, 128), f"{architecture}: {part}.{key}"


@each("architecture", FAMILIES)
def test_ports_of_wide_operations_are_ports_of_the_core(architecture: str) -> None:
    words = table(architecture)
    known = {word for value in words["port"].values() for word in value["value"].split()}
    for kind, value in words.get("port512", {}).items():
        assert set(value["value"].split()) <= known, f"{architecture}: port512.{kind}"


@each("architecture", FAMILIES)
def test_a_window_is_larger_than_its_queues(architecture: str) -> None:
    pipeline = {key: value["value"] for key, value in table(architecture)["pipeline"].items()}
    for key in ("scheduler", "load_queue", "store_queue"):
        if key in pipeline and "window" in pipeline and architecture != "cortex_a53":
            assert pipeline[key] < pipeline["window"], f"{architecture}: {key}"


@each("row", rows)
def test_a_core_that_a_computer_may_have_has_a_pipeline(row: CoreRow) -> None:
    """The first lines of a spec that `detect` writes name the architecture, whose file gives the rest."""
    path = data_folder(catalog.FOLDER).joinpath("architectures", f"{row.architecture}.toml")
    assert path.is_file() or not row.same, f"{row.architecture} is told to be the core of {row.like}, and has no file"
    assert catalog.find(row.like).device.pipeline is not None  # type: ignore[union-attr]


PEAKS = (  # multiply-adds of 32 bit per clock of one core, as the makers and tests of products print them
    ("i7_3820", 8), ("xeon_e5_2680_v2", 8), ("i7_5930k", 16), ("i7_6700k", 16), ("xeon_gold_6148", 32),
    ("xeon_platinum_8280", 32), ("xeon_platinum_8380", 32), ("i9_11900k", 16), ("i9_12900k", 16), ("xeon_platinum_8480", 32),
    ("epyc_7601", 8), ("epyc_7742", 16), ("epyc_7763", 16), ("epyc_9654", 16), ("epyc_9655", 32), ("raspberry_pi_3", 4),
    ("tegra_x1_cpu", 4), ("raspberry_pi_4", 4), ("raspberry_pi_5", 8), ("graviton2", 8), ("graviton3", 16), ("grace", 16),
    ("apple_m1", 16),
)  # fmt: skip


@each(("name", "peak"), PEAKS)
def test_the_pipeline_reaches_the_printed_peak_and_no_more(name: str, peak: float) -> None:
    device = shipped.cpu(name)
    rate = 12.0 / run_loop(machine(name), products(machine(name), int(device.core.simd))).cycles * float(device.core.simd) / 32
    assert 0.97 * peak < rate <= peak * 1.001, f"{name}: {rate:.1f} a clock"


@each(("name", "clocks"), [
    ("xeon_e5_2650_v3", 6.0), ("i7_6700k", 6.0), ("xeon_gold_6148", 6.0), ("epyc_7601", 12.0), ("epyc_7742", 6.0),
    ("epyc_9654", 6.0), ("xeon_platinum_8480", 6.0),
])  # fmt: skip
def test_a_block_of_six_by_sixteen_is_bound_by_its_products(name: str, clocks: float) -> None:
    assert run_loop(machine(name), gemm_block(6, 16, 256, a_level=1, b_level=1)).cycles == pytest.approx(clocks, rel=0.02)


@each("name", CPUS)
def test_no_block_passes_its_bounds_and_one_of_them_explains_it(name: str) -> None:
    core = machine(name)
    width = int(float(catalog.find(name).device.core.simd))  # type: ignore[union-attr]
    of_arm = "element" if core.registers == 32 and width < 512 else "register"
    product = "fma" if "fma" in core.masks else "muladd"
    loop = gemm_block(6, 2 * width // 32, width, broadcast=of_arm, a_level=1, b_level=1, product=product)
    run = run_loop(core, loop)
    most = max(bounds(core, loop, run.rows).values())
    assert run.cycles > 0.995 * most
    assert run.cycles < (2.0 if core.pipeline.order == "in" else 1.1) * most, f"{name}: {run.cycles:.2f} of {most:.2f}"
