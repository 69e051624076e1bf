"""Laws of change: what larger and smaller numbers of a spec do to the time of a network, on random machines, in two fidelities.

The direction of a key is that of its own row (`Unit.better`). Power and clock stay as they are: under a limit larger units may
cost a lower clock. What is whole has a tolerance:

- What an SM has room for comes in whole CTAs, and products are blocked for caches and registers in whole blocks, which waste
  more at the edges of narrow results: `ROOM` and `EDGES`.
- The cycle model deals out whole warps and whole clocks, in the tile that the closed form takes for the fastest: `ROOM`, and
  `TILES` where it is another one.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import ArchsimError
from archsim.cost.occupancy import resident_ctas
from archsim.cycle.machine import machine_of
from archsim.cycle.program import Program
from archsim.cycle.run import room
from archsim.device import catalog as devices
from archsim.device.spec import keys, unit_of
from archsim.estimation.fidelity import FITTED, SIMULATED
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, make_request, with_spec

EXACT, ROOM, EDGES, TILES = 1 + 1e-9, 1.05, 1.10, 1.10
TOLERANT = {"core.registers": EDGES, **dict.fromkeys((
    "sm.registers", "sm.register_unit", "sm.warps", "sm.ctas", "sm.shared_memory", "sm.shared_unit", "sm.shared_reserved",
    "l1.size", "l2.size", "l3.size", "l1.ways", "l2.ways", "l3.ways", "l2.shared_by", "l3.shared_by"), ROOM)}  # fmt: skip
MACHINES, SIMULATIONS = 300, 60  # of each kind of device
NETWORKS = ("alexnet", "resnet_50", "bert_base")
# Neither clocks, which are named here, nor power, links and what starts kernels: no network's kernels take longer by them.
ELSEWHERE = ("clock.", "mode.", "power.", "link.", "launch.", "chip.", "memory.capacity", "memory.type")


@dataclass(frozen=True, slots=True)
class Changed:
    """One network on one device, of which one key is multiplied by a factor."""

    hw: str
    net: str
    batch: int
    key: str
    factor: float

    def __str__(self) -> str:
        return f"{self.key} x {self.factor:g} of {self.hw}, {self.net}, batch {self.batch}"

    @property
    def better(self) -> bool:
        return (self.factor > 1.0) == (unit_of(devices.find(self.hw).kind, self.key).better > 0)

    def runs(self, fidelity: str) -> tuple[Run, Run]:
        """Before and after."""
        of = (self.hw, self.net, self.batch, fidelity)
        return finished(*of), run(with_spec(usual(*of), usual(*of).spec.with_values({self.key: self.value})))

    @property
    def value(self) -> float:
        spec, unit = devices.find(self.hw), unit_of(devices.find(self.hw).kind, self.key)
        value = float(spec.entries[self.key].number) * self.factor
        return min(value, 1.0) if unit.high == 1.0 else max(1.0, round(value)) if unit.whole else value


@cache
def usual(hw: str, net: str, batch: int, fidelity: str) -> Request:
    device = devices.find(hw).device
    clock = {} if device.kind == "tpu" else {"clock": float(np.ravel(device.default_clock)[0]), "power_limit": 1e5}
    return make_request(net, hw, batch=batch, fidelity=fidelity, **clock)


@cache
def finished(hw: str, net: str, batch: int, fidelity: str) -> Run:
    return run(usual(hw, net, batch, fidelity))


def kernel_time(result: Run) -> float:
    """Time of all kernels, without waiting for the host [s]."""
    plans = result.lowered.plan_of
    return float(np.where(plans >= 0, result.cost.time_s[0][np.maximum(plans, 0)], 0.0).sum())


def tiles(result: Run) -> Any:
    choice = result.cost.choice
    return None if choice is None else (choice.option.tolist(), choice.variant.tolist())


def drawn(kind: str, count: int, seed: int, both: bool = False) -> list[Changed]:
    """Random changes; of keys that both fidelities read, where that is asked for."""
    rng, found = random.Random(seed), list[Changed]()
    names = [name for name in devices.names() if devices.find(name).kind == kind]
    units = {key: unit for key, unit, _ in keys(kind) if unit.better and not unit.cache and not key.startswith(ELSEWHERE)
             and not (both and (unit.cycle or unit.closed))}  # fmt: skip
    while len(found) < count:
        hw = rng.choice(names)
        own = [key for key in devices.find(hw).entries if key in units]
        found.append(Changed(hw, rng.choice(NETWORKS), rng.choice((1, 16)), rng.choice(own), rng.choice((0.5, 2.0))))
    return found


@cache
def ratio(change: Changed, fidelity: str) -> tuple[float, bool] | None:
    """Time after over time before, and whether another tile runs; None where the device cannot be, or cannot run the network."""
    try:
        before, after = change.runs(fidelity)
    except ArchsimError:
        return None
    return kernel_time(after) / kernel_time(before), tiles(after) != tiles(before)


def against(change: Changed, fidelity: str) -> str:
    """What is wrong with a change, in words; empty where nothing is."""
    found = ratio(change, fidelity)
    if found is None:
        return ""
    times, other = found
    most = TOLERANT.get(change.key, EXACT)
    if fidelity == SIMULATED:
        most = max(most, ROOM) * (TILES if other else 1.0)
    wrong = times if change.better else 1.0 / times
    return f"{change}: x {times:.4f} by {fidelity}" if wrong > most else ""


@pytest.mark.parametrize("kind", ["gpu", "cpu", "tpu"])
def test_more_of_what_is_good_is_never_slower(kind: str) -> None:
    assert [said for change in drawn(kind, MACHINES, 47) if (said := against(change, FITTED))] == []


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_nor_by_the_cycle_model(kind: str) -> None:
    assert [said for change in drawn(kind, SIMULATIONS, 48) if (said := against(change, SIMULATED))] == []


ALIKE, POINTS = 0.25, 0.03  # what the fidelities may part by: of the larger change, and of the time
# Where they may part by more: kind of device, `sm.pairing` of it (any, if empty), keys, and by how much of the time at most.
# archsim/manual/what-if.md has the same rows with their reasons.
PARTINGS: tuple[tuple[str, str, str, float], ...] = (
    ("gpu", "", r"sm\.(registers|warps|ctas|shared_.*)", 0.27),  # warps that hide latency, or CTAs that hide a prologue
    ("gpu", "", r"memory\.(bandwidth|achievable|data_rate|bus|latency)", 0.30),  # a CTA waits for memory, or a fitted prologue
    ("gpu", "", r"l2\.(bandwidth|size)", 0.20),  # an SM asks in bursts, and other algorithms compete
    ("gpu", "any", r"rate\.fp32|sm\.issue_width", 0.55),  # register banks feed the second instruction, or a share of the lanes
    ("gpu", "", r"rate\..*|sm\.(count|issue_width)", 0.22),  # pipes that wait for operands, slots that loads take, waves
    ("cpu", "", r"core\.(simd|registers|fma_ports|miss_buffers)", 0.60),  # ports and queues of a core, or a rate
    ("cpu", "", r"memory\..*|l[23]\..*", 0.50),  # misses of one core that its queues overlap, or one bandwidth
)


def allowed(change: Changed) -> float:
    device: Any = devices.find(change.hw).device
    own = [most for kind, pairing, key, most in PARTINGS if kind == device.kind and re.fullmatch(key, change.key)
           and (not pairing or device.sm.pairing == pairing)]  # fmt: skip
    return max(own, default=0.0)


def parted(change: Changed) -> str:
    """By how much the fidelities part over a change, in words; empty where they do not, or no more than the list says."""
    closed, simulated = ratio(change, FITTED), ratio(change, SIMULATED)
    if closed is None or simulated is None:
        return ""
    most = max(POINTS, ALIKE * max(abs(closed[0] - 1.0), abs(simulated[0] - 1.0)), allowed(change))
    words = f"{change}: x {closed[0]:.3f} by {FITTED}, x {simulated[0]:.3f} by {SIMULATED}"
    return words if abs(closed[0] - simulated[0]) > most else ""


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_both_fidelities_say_the_same_of_a_change_or_the_list_says_that_they_part(kind: str) -> None:
    assert [said for change in drawn(kind, SIMULATIONS, 48, both=True) if (said := parted(change))] == []


@pytest.mark.parametrize(("hw", "net", "batch", "key", "value", "least", "most"), [
    ("gtx_1080", "resnet_50", 16, "sm.schedulers", 1.0, 2.0, 4.0),  # one warp a clock where four started: 32 of 128 lanes
    ("gtx_1080", "resnet_50", 16, "rate.fp32", 256.0, 0.99, 1.01),  # lanes that nothing feeds
    ("tesla_v100_sxm2", "vgg_16", 16, "sm.schedulers", 1.0, 1.3, 2.0),  # 32 of 64 lanes; transforms wait for memory
    ("tesla_k40", "resnet_50", 16, "sm.issue_width", 1.0, 1.0, 1.5),  # 128 of 192 lanes (Lai and Seznec 2013)
    ("gtx_1080", "alexnet", 128, "sm.registers", 2.0 * 262144, 0.9, 1.01),  # room for CTAs that are not there
    ("gtx_1080", "alexnet", 128, "l2.bandwidth", 440.0, 0.99, 1.5),
])  # fmt: skip
@pytest.mark.parametrize("fidelity", [FITTED, SIMULATED])
def test_what_a_design_loses(
    hw: str, net: str, batch: int, key: str, value: float, least: float, most: float, fidelity: str
) -> None:  # fmt: skip
    of = (hw, net, batch, fidelity)
    after = run(with_spec(usual(*of), usual(*of).spec.with_values({key: value})))
    assert least <= kernel_time(after) / kernel_time(finished(*of)) <= most


@pytest.mark.parametrize(("registers", "ctas"), [(32, 8), (33, 6), (41, 5), (49, 4), (65, 3), (81, 2), (129, 1)])
def test_room_for_ctas_is_that_of_the_occupancy_calculator(registers: int, ctas: int) -> None:
    """256 threads on an SM of compute capability 6.1: 65,536 registers, given to warps in units of 256."""
    device = devices.find("gtx_1080").device
    program = Program(instructions=(), threads=256, registers=registers, shared=0.0, trips=1)
    assert room(machine_of(device, 1.6e9), program)["sm.registers"] == ctas
    kernel = SimpleNamespace(threads=256.0, registers=float(registers), shared=0.0)
    assert float(resident_ctas(kernel, device)) == ctas
