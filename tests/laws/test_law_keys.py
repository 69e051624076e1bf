"""No knob that changes nothing: every number of a spec moves an answer somewhere, or is marked as shown only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import archsim
from archsim.base.errors import ArchsimError
from archsim.cache.hierarchy import Level, hierarchy_of
from archsim.device import catalog as devices
from archsim.device.entry import Entry
from archsim.device.spec import Spec, keys, read_by
from archsim.estimation.estimate import without_effect
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request, with_spec

Cell = tuple[str, str, str, int, str]
CELLS: dict[str, list[Cell]] = {
    "gpu": [
        ("alexnet", "tesla_v100_sxm2", "caffe-cudnn4", 1, "fp32"), ("alexnet", "tesla_v100_sxm2", "torch7-cudnn5.1", 64, "fp16"),
        ("alexnet", "gtx_1080_ti", "torch7-cudnn5.1", 8, "fp16"), ("alexnet", "tegra_x1", "caffe-cudnn4", 16, "fp16"),
        ("vgg_16", "gtx_1080_ti", "torch7-cudnn5.1", 16, "fp32"),
        ("alexnet", "mi100", "pytorch-2-rocm", 4, "fp32"),
        ("alexnet", "a100_sxm4_40gb", "ideal", 8, "bf16"), ("alexnet", "a100_sxm4_40gb", "ideal", 8, "tf32"),
        ("alexnet", "a100_sxm4_40gb", "ideal", 8, "int8"), ("alexnet", "tesla_p4", "ideal", 8, "int8"),
        ("alexnet", "tesla_t4", "ideal", 8, "int8"),
        ("alexnet", "h100_sxm5_80gb", "ideal", 8, "fp8"), ("alexnet", "tesla_k40", "ideal", 8, "fp64"),
        ("alexnet", "tesla_k40", "tensorflow-cudnn5.1-feed", 4, "fp32"), ("alexnet", "grid_k520", "torch7-native", 4, "fp32"),
        ("gpt2_small", "a100_sxm4_40gb", "pytorch-2", 1, "fp16"), ("gpt2_small", "rtx_4090", "pytorch-2", 1, "fp16"),
        ("vgg_16", "tesla_p100_pcie_16gb", "pytorch-2", 64, "fp32"),
        ("alexnet", "h100_sxm5_80gb", "pytorch-2-cuda12-channels-last", 16, "fp16"),
    ],
    "cpu": [
        ("alexnet", "i7_6700k", "intel-mkl", 16, "fp32"), ("alexnet", "xeon_platinum_8480", "caffe-openblas", 4, "fp32"),
        ("alexnet", "raspberry_pi_5", "pytorch-cpu", 1, "fp32"),
        ("alexnet", "i7_6700k", "caffe-openblas", 1, "fp32"), ("alexnet", "xeon_platinum_8124m", "mxnet-mkldnn", 16, "fp32"),
        ("alexnet", "tegra_x1_cpu", "caffe-openblas", 1, "fp32"), ("alexnet", "xeon_platinum_8480", "ideal", 4, "int8"),
        ("alexnet", "xeon_platinum_8480", "ideal", 4, "bf16"), ("alexnet", "xeon_platinum_8480", "ideal", 4, "fp16"),
        ("alexnet", "xeon_platinum_8480", "onnxruntime-cpu", 1, "int8"), ("alexnet", "epyc_9654", "ideal", 4, "bf16"),
        ("alexnet", "i9_10980xe", "ideal", 4, "int8"), ("alexnet", "i7_6700k", "ideal", 4, "int8"),
        ("alexnet", "i7_6700k", "tflite-cpu", 1, "int8"), ("alexnet", "cortex_a72_rpi4", "ncnn-cpu", 1, "int8"),
        ("alexnet", "graviton3", "ideal", 4, "int8"), ("alexnet", "graviton3", "ideal", 4, "bf16"),
        ("fcn_s", "i7_3820", "tensorflow-eigen", 4, "fp32"),
    ],
}  # fmt: skip
# Whole numbers and shares that scale by these stay what they are.
FACTORS = (0.5, 2.0, 0.9, 4.0, 0.01)
LEVELS = ("l1", "l2", "l3")
COOLER = {"power.throttle": 85.0, "power.air": 35.0, "power.thermal_resistance": 0.5}  # read together
# Keys that no shipped device has, with values from which to go.
NOWHERE = {"power.temperature": {"power.temperature": 50.0}, **dict.fromkeys(COOLER, COOLER)}
INSTEAD = {"core.miss_buffers": "l2.miss_buffers"}  # keys that are read where nobody has told another one


def outcome(cell: Cell, spec: Spec) -> tuple[float, ...]:
    net, hw, stack, batch, precision = cell
    task = "inference" if net == "gpt2_small" else "training_step"
    request = make_request(net, hw, stack=stack, batch=batch, precision=precision, task=task)
    result = run(with_spec(request, spec))
    return (float(result.latency_s[0]), float(result.energy_j.sum()))


def moves_a_run(kind: str, key: str) -> bool:
    """Whether some change of the value changes time or energy of some cell."""
    for cell in CELLS[kind]:
        spec = devices.find(cell[1])
        if key in NOWHERE:
            spec = spec.with_values(NOWHERE[key])
        if key not in spec.entries:
            continue
        if key in INSTEAD:
            spec = replace(spec, entries={name: entry for name, entry in spec.entries.items() if name != INSTEAD[key]})
        before = outcome(cell, spec)
        value = float(spec.entries[key].number)
        for factor in FACTORS:
            changed = max(1.0, round(value * factor)) if key.endswith(("count", "warps", "ctas")) else value * factor
            try:
                if outcome(cell, spec.with_values({key: changed})) != before:
                    return True
            except ArchsimError:
                return True  # the calibration has no row for it: it is read
    return False


def moves_a_cache(kind: str, key: str) -> bool:
    """Whether it changes the caches that are simulated: alone, or with the same key of the levels below; or what they say."""
    level, _, name = key.partition(".")
    if level not in LEVELS:
        return False
    spec = devices.find(CELLS[kind][0][1])
    below = [f"{other}.{name}" for other in LEVELS if other >= level and f"{other}.size" in spec.entries]
    declared = {key for key, _, _ in keys(kind)}
    every = [f"{other}.{name}" for other in LEVELS if f"{other}.size" in spec.entries and f"{other}.{name}" in declared]
    for together in ([key], [other for other in below if other in declared], every):
        changed = spec.with_values({k: 2.0 * float(spec.entries[k].number) if k in spec.entries else 4.0 for k in together})
        found = caches(changed)
        if found is not None and found != caches(without(key, changed, spec)):
            return True
    return kind == "cpu" and moves_traffic(key)


def moves_traffic(key: str) -> bool:
    """Whether it changes the time of a network whose traffic is that of simulated caches."""
    spec = devices.find("i7_6700k")
    request = make_request("alexnet", "i7_6700k", traffic="simulated")
    before, after = (float(run(with_spec(request, one)).latency_s[0])
                     for one in (spec, spec.with_values({key: 2.0 * float(spec.entries[key].number)})))  # fmt: skip
    return before != after


def without(key: str, changed: Spec, spec: Spec) -> Spec:
    """The changed spec with this one key as it was."""
    entries: dict[str, Entry] = dict(changed.entries)
    if key in spec.entries:
        entries[key] = spec.entries[key]
    else:
        entries.pop(key)
    return replace(changed, entries=entries)


def caches(spec: Spec) -> tuple[Level, ...] | None:
    try:
        return hierarchy_of(spec.device).levels
    except ArchsimError:
        return None


def numeric(kind: str) -> dict[str, bool]:
    """The numeric keys, and whether each is marked as shown only."""
    return {key: unit.informational for key, unit, _ in keys(kind)
            if not unit.cycle and unit.unit != "text" and key != "memory.capacity" and not key.startswith("mode.")}  # fmt: skip


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_every_number_of_a_spec_moves_an_answer(kind: str) -> None:
    marked = numeric(kind)
    idle = {key for key in marked if not moves_a_run(kind, key)}
    still = {key for key in idle if not moves_a_cache(kind, key)}
    cache_only = {key for key, unit, _ in keys(kind) if unit.cache and not unit.cycle and key in marked}
    assert idle - still == cache_only, "only archsim cache reads them: mark them so, or take the mark off"
    shown_only = {key for key, mark in marked.items() if mark}
    assert still - shown_only == set(), "change nothing: let a model read them, or mark them informational"
    assert shown_only - still == set(), "are read: take the mark off"


def test_what_only_the_cycle_model_reads_moves_no_closed_form() -> None:
    """Keys of the caches and of what a core executes; tables of the pipeline have no other reader."""
    marked = {key for key, unit, _ in keys("cpu") if unit.cycle and key.partition(".")[0] in ("core", *LEVELS)}
    assert {"l1.latency", "l2.prefetched"} <= marked
    assert {key for key in marked if moves_a_run("cpu", key)} == set(), "other fidelities read them: take the mark off"


def test_only_names_dates_prices_and_origins_of_a_cpu_move_nothing() -> None:
    """And the clock that no code of a network runs at."""
    nothing = {key for key, unit, _ in keys("cpu") if not read_by(unit)}
    assert nothing == {
        "clock.base", "memory.channels",
        "chip.area", "chip.transistors", "market.price", "market.launch",
    }  # fmt: skip


def test_the_cpu_that_a_spec_names_dispatches() -> None:
    """A word, which is none of the numbers above."""
    for task in ("inference", "training_step"):
        usual, other = (archsim.estimate("alexnet", "tesla_k40", stack="torch7-cudnn5.1", task=task, set=settings)
                        for settings in ({}, {"launch.host_cpu": "tegra_x1_cpu"}))  # fmt: skip
        assert other.latency_s > usual.latency_s


def test_a_power_mode_decides_the_clock() -> None:
    for mode in ("maxn", "Max-P", "max_q"):
        key = "mode." + mode.lower().replace("-", "").replace("_", "")
        assert make_request("alexnet", "tegra_x2", power_mode=mode).clock == devices.find("tegra_x2").entries[key].value


def test_capacity_decides_whether_a_network_fits() -> None:
    small = archsim.estimate(net="vgg_16", hw="gtx_1080", batch=16, set={"memory.capacity": "1 GB"})
    assert not small.fits
    assert archsim.estimate(net="vgg_16", hw="gtx_1080", batch=16).fits


def test_a_setting_that_changes_nothing_is_named() -> None:
    settings = {"sm.alu_latency": "8 clk", "sm.count": "40"}
    found = make_request("alexnet", "gtx_1080", settings=settings, scales={"market.price": 2.0})
    assert without_effect(found) == {"sm.alu_latency": "", "market.price": ""}
    warnings = archsim.estimate("alexnet", "gtx_1080", scale={"sm.alu_latency": 2.0}).warnings
    assert "sm.alu_latency changes no output of this estimate; --fidelity cycle reads it" in warnings


def test_a_value_that_is_there_already_is_said_to_be() -> None:
    warnings = archsim.estimate("alexnet", "gtx_1080", set={"sm.count": "20", "l2.size": "1 MiB"}).warnings
    assert warnings == ("sm.count changes no output of this estimate: it is 20 already",)


def test_factors_are_those_of_the_value_in_the_spec() -> None:
    scaled = archsim.estimate("alexnet", "gtx_1080", scale={"sm.count": 1.5, "memory.bandwidth": 0.5})
    written = archsim.estimate("alexnet", "gtx_1080", set={"sm.count": "30", "memory.bandwidth": "160 GB/s"})
    assert scaled.latency_s == written.latency_s
    assert np.isclose(scaled.energy_j, written.energy_j, rtol=1e-14)
