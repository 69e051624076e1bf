"""The shipped CPUs: clocks, caches and sockets that go together, and figures that their makers print."""

from __future__ import annotations

from itertools import pairwise

import pytest

from archsim.device import catalog
from tests.shipped import cpu, kind_of

from ..each import each

CPUS = tuple(name for name in catalog.names() if kind_of(name) == "cpu")


@each("name", CPUS)
def test_clocks_are_ordered(name: str) -> None:
    clock = cpu(name).clock
    assert clock.base <= clock.all_core <= clock.boost
    assert clock.simd <= clock.all_core
    assert clock.simd512 is None or clock.simd512 <= clock.simd


@each("name", CPUS)
def test_a_clock_for_wide_code_comes_with_wide_registers(name: str) -> None:
    device = cpu(name)
    assert (device.clock.simd512 is not None) == (device.core.simd == 512)
    of_arm = device.identity.architecture.startswith(("cortex", "neoverse", "apple", "carmel", "taishan"))
    assert device.core.registers == (32 if of_arm else {256: 16, 512: 32}[int(device.core.simd)])


@each("name", CPUS)
def test_caches_grow_and_slow_with_distance(name: str) -> None:
    device = cpu(name)
    levels = [level for level in (device.l1, device.l2, device.l3) if level is not None]
    for near, far in pairwise(levels):
        assert near.size < far.size
        assert near.latency < far.latency
        assert near.bandwidth >= far.bandwidth
        assert near.shared_by <= far.shared_by
    farthest = levels[-1].latency / device.clock.boost
    assert farthest < device.memory.latency


@each("name", CPUS)
def test_caches_have_a_whole_number_of_lines_in_each_way(name: str) -> None:
    device = cpu(name)
    for level in (device.l1, device.l2, device.l3):
        if level is not None:
            assert (level.size / (level.ways * level.line)) % 1 == 0


@each("name", CPUS)
def test_sockets_share_evenly(name: str) -> None:
    device = cpu(name)
    assert device.core.count % device.core.sockets == 0
    if device.l3 is not None:
        assert (device.core.count / device.core.sockets) % device.l3.shared_by == 0


# What two sockets double; everything else is as in one.
DOUBLED = (
    "core.count", "core.threads", "core.sockets", "memory.bandwidth", "memory.bus", "memory.channels", "memory.capacity",
    "power.tdp", "power.idle", "market.price",
)  # fmt: skip


def test_two_sockets_are_twice_one() -> None:
    one, two = catalog.find("xeon_e5_2630_v3"), catalog.find("xeon_e5_2630_v3_2s")
    assert one.entries.keys() == two.entries.keys() - {"core.link"}
    for key, entry in one.entries.items():
        factor = 2 if key in DOUBLED else 1
        if isinstance(entry.value, str):
            assert two.entries[key].value == entry.value, key
        else:
            assert two.entries[key].value == pytest.approx(factor * entry.value), key
    assert two.device.peak_flops("fp32") == 2 * one.device.peak_flops("fp32")


# Figures that are printed as one number, against the product of ours. FLOP per clock are those of one core in fp32.
GIGA = 1e9
MIB = 2.0**20
FACTS = (
    ("i7_6700k", "cores", lambda d: d.core.count, 4),
    ("i7_6700k", "threads", lambda d: d.core.threads, 8),
    ("i7_6700k", "fp32 GFLOP/s at 4.0 GHz", lambda d: d.peak_flops("fp32", 4.0e9) / GIGA, 512),
    ("i7_6700k", "fp64 GFLOP/s at 4.0 GHz", lambda d: d.peak_flops("fp64", 4.0e9) / GIGA, 256),
    ("i7_6700k", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 2),
    ("i7_3820", "fp32 FLOP/clk, AVX without FMA", lambda d: 2 * d.pipe("fp32"), 16),
    ("i7_3820", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 2.5),
    ("xeon_e5_2630_v3", "fp32 FLOP/clk, AVX2", lambda d: 2 * d.pipe("fp32"), 32),
    ("xeon_e5_2630_v3", "fp64 GFLOP/s at base", lambda d: d.peak_flops("fp64", d.clock.base) / GIGA, 307.2),
    ("xeon_e5_2630_v3_2s", "threads", lambda d: d.core.threads, 32),
    ("xeon_e5_2630_v3_2s", "L3 of all sockets, MiB", lambda d: d.core.sockets * d.l3.size / MIB, 40),
    ("xeon_e5_2698_v3", "fp64 GFLOP/s of a core at 2.3 GHz", lambda d: d.peak_flops("fp64", 2.3e9) / 16 / GIGA, 36.8),
    ("xeon_e5_2698_v3", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 2.5),
    ("xeon_e5_2650_v3_2s", "cores", lambda d: d.core.count, 2 * 10),
    ("i7_5930k", "threads", lambda d: d.core.threads, 12),
    ("i9_10980xe", "fp32 FLOP/clk, AVX-512", lambda d: 2 * d.pipe("fp32"), 64),
    ("i9_10980xe", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 1.375),
    ("i9_10940x", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 1.375),
    ("xeon_platinum_8124m", "hardware threads of both", lambda d: d.core.threads, 72),
    ("xeon_platinum_8480", "L3 a core, MiB", lambda d: d.l3.size / d.core.count / MIB, 1.875),
    ("i7_12700h", "fp32 FLOP/clk of six P- and eight E-cores", lambda d: 2 * 14 * d.pipe("fp32"), 6 * 32 + 8 * 16),
    ("epyc_7742", "L3 of all complexes, MiB", lambda d: d.core.count / d.l3.shared_by * d.l3.size / MIB, 256),
    ("epyc_7742", "fp64 TFLOP/s at base", lambda d: d.peak_flops("fp64", d.clock.base) / 1e12, 2.304),
    ("epyc_9654", "L3 of all dies, MiB", lambda d: d.core.count / d.l3.shared_by * d.l3.size / MIB, 384),
    ("epyc_9654", "fp32 FLOP/clk, AVX-512 on half-width units", lambda d: 2 * d.pipe("fp32"), 32),
    ("tegra_x1_cpu", "fp32 FLOP/clk, NEON", lambda d: 2 * d.pipe("fp32"), 8),
    ("tegra_x1_cpu", "memory of the GPU beside it, GB/s", lambda d: d.memory.bandwidth / GIGA, 25.6),
)  # fmt: skip


@each(("name", "what", "ours", "printed"), FACTS)
def test_well_known_facts(name: str, what: str, ours, printed: float) -> None:
    assert ours(cpu(name)) == pytest.approx(printed, rel=0.002), what


def test_one_core_has_one_scalar_speed_per_clock() -> None:
    found: dict[str, set[float]] = {}
    for name in CPUS:
        spec = catalog.find(name)
        found.setdefault(spec.identity.architecture, set()).add(float(cpu(name).core.scalar_ipc))
    assert {architecture: values for architecture, values in found.items() if len(values) > 1} == {}
    assert found["haswell"] == {1.0}


LINES = (
    ("sandy_bridge", "ivy_bridge", "haswell", "broadwell", "skylake", "ice_lake", "sapphire_rapids"),
    ("zen1", "zen2", "zen3", "zen4", "zen5"), ("cortex_a53", "cortex_a57", "cortex_a72", "cortex_a76", "cortex_a78"),
    ("neoverse_n1", "neoverse_v1", "neoverse_v2"),
)  # fmt: skip


def test_later_cores_of_a_maker_do_more_per_clock() -> None:
    by_architecture = {catalog.find(name).identity.architecture: float(cpu(name).core.scalar_ipc) for name in CPUS}
    for line in LINES:
        speeds = [by_architecture[core] for core in line]
        assert speeds == sorted(speeds)
        assert len(set(speeds)) == len(speeds)


@pytest.mark.parametrize("name", ["tegra_x1", "tegra_x2"])
def test_the_module_has_one_memory(name: str) -> None:
    gpu, cpus = catalog.find(name).device, cpu(f"{name}_cpu")
    for name in ("bandwidth", "capacity", "bus", "data_rate"):
        assert getattr(gpu.memory, name) == getattr(cpus.memory, name), name
    for name in ("tdp", "idle", "boundary"):
        assert getattr(gpu.power, name) == getattr(cpus.power, name), name
