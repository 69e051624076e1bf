"""Energy: levels in their order, nodes that shrink, clocks that fall, idle below load, and a limit that slows what is changed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import archsim
from archsim.calibration.constants import default
from archsim.cost.energy import IDLE
from archsim.cost.idle import idle_clock_power, idle_parts, leakage_power
from archsim.cost.switched import (
    cache_energy,
    clock_energy,
    issue_energy,
    mac_energy,
    memory_energy,
    node_energy,
    operation_energy,
    process_energy,
    voltage,
)
from archsim.cost.units import package_power, unit_power
from archsim.device import catalog
from archsim.device.device import Cpu, Device, Gpu, Tpu
from archsim.device.silicon import silicon
from archsim.device.units import UnitClocks
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request

pytestmark = pytest.mark.shipped_fit
FULL = np.ones(1)  # the voltage at the highest clock
NODES = st.floats(1.4e-9, 45e-9)
SOME = ("titan_x_maxwell", "gtx_1080", "a100_sxm4_40gb", "h100_sxm5_80gb", "jetson_agx_orin", "i7_6700k", "epyc_9654")


@cache
def shipped() -> tuple[Device, ...]:
    """All GPUs and CPUs; of TPUs no parts are known."""
    devices = [catalog.find(name).device for name in catalog.names()]
    return tuple(device for device in devices if not isinstance(device, Tpu))


def of_node(device: Device, node: float) -> Device:
    return replace(device, chip=replace(device.chip, node=node))


def levels(device: Device, volt: np.ndarray = FULL) -> list[float]:
    """A byte of registers, of shared memory or L1, of the shared cache and of memory, with the modules outside a package [J]."""
    constants = default()
    node = node_energy(device, constants)
    operation = operation_energy(device, node)
    if isinstance(device, Gpu):  # an instruction on values in registers moves four words of them
        near = [issue_energy(device, volt, operation, constants) / 16.0, node * constants["energy.shared"] * volt**2]
    else:
        assert isinstance(device, Cpu)
        device = replace(device, power=replace(device.power, boundary="board"))
        vector = operation * volt**2 / (4.0 * device.pipe("fp32") / device.core.fma_ports)  # each byte of a register
        near = [constants["energy.core_mac"] * operation * volt**2 / 16.0, constants["energy.core_vector"] * vector]
    found = [*near, cache_energy(device, volt, constants), memory_energy(device, volt, constants)]
    return [float(np.ravel(one)[0]) for one in found]


@given(NODES, st.floats(0.4, 1.0))
def test_what_is_farther_away_takes_more_at_any_node(node: float, volt: float) -> None:
    """Registers < shared memory or L1 < L2 < DRAM (Horowitz, ISSCC 2014, figure 1.1.9), of every device that ships."""
    for device in shipped():
        for one in (device, of_node(device, node)):
            found = levels(one, np.full(1, volt))
            assert found == sorted(set(found)), (one.identity.id, found)


@given(st.tuples(NODES, NODES))
def test_a_smaller_node_never_takes_more(nodes: tuple[float, float]) -> None:
    constants = default()
    for device in shipped():
        small, large = (of_node(device, node) for node in sorted(nodes))
        for energy in (process_energy, node_energy):
            assert energy(small, constants) <= energy(large, constants), device.identity.id
        assert [a <= b for a, b in zip(levels(small), levels(large), strict=True)] == [True] * 4, device.identity.id


def test_ranges_of_nodes_do_not_overlap() -> None:
    """So that no fit can turn the law around."""
    for family in ("energy.node.", "energy.core_node."):
        rows = [row for name, row in default().constants.items() if name.startswith(family)]
        assert len(rows) > 5
        assert all(larger.low >= smaller.high for larger, smaller in pairwise(rows)), family


@pytest.mark.parametrize(
    ("old", "new", "published"),
    [
        (7.0, 5.0, (0.70, 0.70)),  # TSMC, N5: 30 % less power than N7 at the same speed
        (5.0, 3.0, (0.70, 0.75)),  # TSMC, N3: 25 to 30 % less than N5
        (3.0, 2.0, (0.70, 0.75)),  # TSMC, N2: 25 to 30 % less than N3E
        (28.0, 16.0, (0.4, 0.7)),  # TSMC: 20 nm a quarter less than 28 nm, 16FF+ half of 20 nm; Stillmaker and Baas (2017): 0.55
        (16.0, 7.0, (0.36, 0.70)),  # TSMC: 40 % less to 10 nm, 40 % less to 7 nm; whole chips gain less
    ],
)
def test_nodes_scale_as_foundries_state(old: float, new: float, published: tuple[float, float]) -> None:
    device, constants = catalog.find("a100_sxm4_40gb").device, default()
    before, after = (process_energy(of_node(device, node * 1e-9), constants).item() for node in (old, new))
    assert published[0] - 0.005 <= after / before <= published[1] + 0.005


def test_an_a100_of_other_nodes_takes_less_the_smaller_they_are() -> None:
    of = {"net": "resnet_50", "hw": "a100_sxm4_40gb", "batch": 64, "precision": "fp16"}
    found = [archsim.whatif(**of, set={"chip.node": f"{node} nm"}).after for node in (10, 8, 5, 4, 3, 2, 1.4)]
    energies = [one.energy_j for one in found]
    assert energies == sorted(energies, reverse=True)
    assert energies[2] == energies[3]  # 4N and N4 are of the 5 nm class
    said = ["chip.node" in " ".join(one.warnings) for one in found]
    assert said == [False] * 4 + [True] * 3
    assert "continued beyond 2 nm" in " ".join(found[-1].warnings)


PUBLISHED = {  # pJ per bit of DRAM and its link
    "HBM2": (3.9, 6.0),  # O'Connor et al., MICRO 2017; Micron 2020
    "HBM3": (3.5, 4.0), "HBM4": (2.0, 3.5), "LPDDR4": (4.0, 8.0), "LPDDR5": (3.0, 6.0), "LPDDR6": (2.0, 5.0),
    "GDDR7": (4.0, 7.0), "GDDR6": (7.0, 8.0),  # Micron 2020: 7.5
    "GDDR5X": (7.0, 14.0), "GDDR5": (7.0, 14.0), "DDR4": (15.0, 25.0),
}  # fmt: skip
ORDER = ("HBM4", "HBM3", "HBM2", "LPDDR4", "GDDR6", "GDDR5X", "GDDR5", "DDR4")


def test_memories_take_what_is_published() -> None:
    found = {}
    for written, (low, high) in PUBLISHED.items():
        family = silicon().family(written)
        assert family is not None, written
        found[written] = default()[f"energy.byte.{family.energy}"] / 8e-12
        assert low <= found[written] <= high, (written, found[written])
    assert [found[written] for written in ORDER] == sorted(found[written] for written in ORDER)
    assert found["LPDDR6"] < found["LPDDR5"] < found["LPDDR4"]
    assert found["GDDR7"] < found["GDDR6"]


def test_no_energy_of_a_memory_stands_at_a_bound() -> None:
    rows = {name: row for name, row in default().constants.items() if name.startswith("energy.byte.")}
    assert all(row.low < row.value < row.high for row in rows.values())
    assert {family.energy for family in silicon().memory.values()} == {name.removeprefix("energy.byte.") for name in rows}


@given(st.tuples(st.floats(0.05, 1.2), st.floats(0.05, 1.2)))
def test_a_slower_clock_never_takes_more_energy_a_clock(shares: tuple[float, float]) -> None:
    constants = default()

    def switched(device: Device, clock: float) -> np.ndarray:
        """Energy of a clock, of an operation, of bytes, and of the trees that always run for one clock [J]; leakage [W]."""
        volt, node = voltage(clock, device, constants), node_energy(device, constants)
        always = [idle_clock_power(device, clock, volt, constants) / clock, leakage_power(device, volt, constants)]
        found = [clock_energy(device, volt, node, constants), mac_energy(device, "fp32", volt, node, constants),
                 cache_energy(device, volt, constants), memory_energy(device, volt, constants), *always]  # fmt: skip
        return np.array([float(np.ravel(one)[0]) for one in found])

    for device in shipped():
        slow, fast = (switched(device, share * float(device.clock.boost)) for share in sorted(shares))
        assert np.all(slow <= fast * (1 + 1e-12)), device.identity.id


@given(st.dictionaries(st.sampled_from(("fp32", "int", "shared", "l2", "dram", "simd", "llc")), st.floats(0.01, 1.0)),
       st.floats(0.2, 1.0))  # fmt: skip
def test_idle_is_below_load(shares: dict[str, float], clock: float) -> None:
    constants = default()
    for device in shipped():
        at = clock * float(device.clock.boost)
        found = [package_power(device, busy, at, constants) if isinstance(device, Cpu) else
                 unit_power(device, busy, UnitClocks(core=at), constants) for busy in ({}, shares)]  # fmt: skip
        idle, load = (sum(float(np.ravel(part)[0]) for part in parts.values()) for parts in found)
        assert 0.0 < idle <= load, device.identity.id
        assert idle < load or not shares.keys() & found[1].keys(), device.identity.id
        assert sum(float(np.ravel(part)[0]) for part in idle_parts(device, at, constants).values()) <= device.power.tdp


GROWN = {"gpu": ("sm.count", "sm.registers", "sm.shared_memory", "sm.warps", "rate.fp32", "l2.size", "l2.bandwidth",
                 "memory.bandwidth", "power.idle"),
         "cpu": ("core.count", "core.fma_ports", "l2.size", "l3.size", "memory.bandwidth", "power.idle")}  # fmt: skip


@given(st.data(), st.sampled_from(SOME))
def test_no_key_makes_an_energy_negative_or_passes_the_limit(data: st.DataObject, hw: str) -> None:
    spec = catalog.find(hw)
    known = [key for key in GROWN[spec.kind] if key in spec.entries]
    scales = data.draw(st.dictionaries(st.sampled_from(known), st.sampled_from((0.5, 2.0, 4.0)), min_size=1, max_size=3))
    request = make_request("alexnet", hw, batch=8, scales=scales)
    cost = run(request).cost
    assert {*cost.energy_j} >= {*IDLE}
    assert all(np.all(np.isfinite(part)) and np.all(part >= 0.0) for part in cost.energy_j.values()), scales
    assert request.limit is not None
    assert np.all(cost.kernel_power_w <= request.limit * (1 + 1e-6)), scales


@pytest.mark.parametrize("fidelity", ["analytical", "cycle"])
def test_a_device_that_would_draw_more_than_its_limit_is_slower(fidelity: str) -> None:
    """Four times the SMs and the bandwidth on a board of 180 W, and on one of 720 W: P = W f V^2 / t leaves no free lunch."""
    of = {"net": "vgg_16", "hw": "gtx_1080", "batch": 64, "fidelity": fidelity}
    wide = {"sm.count": 4.0, "memory.bandwidth": 4.0}
    tight, free = (archsim.whatif(**of, scale={**wide, **more}).after for more in ({}, {"power.tdp": 4.0}))
    assert tight.power_w <= 180.0 < free.power_w
    assert tight.latency_s > 1.1 * free.latency_s
    assert tight.clock_hz < 0.85 * free.clock_hz
    for one in (tight, free):
        assert one.energy_j == pytest.approx(one.power_w * one.latency_s, rel=1e-9)
