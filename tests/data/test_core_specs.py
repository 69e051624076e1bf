"""The shipped pipelines of CPU cores: complete, used, and in agreement with what the devices themselves declare."""

from __future__ import annotations

import tomllib
from typing import Any

from archsim.base.files import data_folder
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import CoreLoop, Operation
from archsim.cycle.core.run import run_loop
from archsim.device import catalog
from archsim.device.device import Cpu

from ..each import each
from .test_cpu_specs import CPUS

FAMILIES = tuple(sorted({catalog.find(name).identity.architecture for name in CPUS}))
BASIC = ("int", "branch", "load", "store_address", "store_data", "add", "mul", "divide", "shuffle", "vint", "logic", "dot")


def machine(name: str) -> CoreMachine:
    device = catalog.find(name).device
    assert isinstance(device, Cpu)
    return core_machine(device, 3e9)


def table(architecture: str) -> dict[str, Any]:
    path = data_folder(catalog.FOLDER).joinpath("architectures", f"{architecture}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@each("name", CPUS)
def test_every_cpu_has_a_pipeline(name: str) -> None:
    device = catalog.find(name).device
    assert isinstance(device, Cpu)
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
    device = catalog.find(name).device
    assert isinstance(device, Cpu)
    core = machine(name)
    if name in MIXED:
        return
    rate = 12.0 / run_loop(core, products(core, int(device.core.simd))).cycles
    declared = float(device.core.fma_ports)
    assert abs(rate / declared - 1.0) < 0.03, f"{name}: {rate:.2f} a clock, core.fma_ports is {declared:g}"


MIXED = ("i7_12700h",)  # its core.fma_ports is the mean of two kinds of cores


@each("name", CPUS)
def test_registers_of_the_program_are_fewer_than_those_of_the_core(name: str) -> None:
    device = catalog.find(name).device
    assert isinstance(device, Cpu)
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
