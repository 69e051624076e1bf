"""No knob that changes nothing: every number of a spec moves an answer somewhere, or is marked as informing only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

import archsim
from archsim.device import catalog as devices
from archsim.device.spec import Entry, Spec, keys
from archsim.errors import ArchsimError
from archsim.query import ask
from archsim.run import run

# Keys that the models do not read yet. One that begins to count must leave this list, and none may join it unnoticed.
UNREAD = {
    "gpu": frozenset({
        "sm.schedulers", "sm.shared_memory_cta", "sm.shared_bandwidth", "sm.alu_latency", "rate.special", "clock.base",
        "l1.size", "l1.line", "l1.sector", "l1.bandwidth", "l1.latency", "l2.line", "l2.sector", "l2.latency",
        "link.bandwidth", "link.achievable",
    }),
    "cpu": frozenset({
        "core.threads", "core.registers", "clock.base", "clock.all_core", "l1.latency", "l1.bandwidth", "l1.shared_by",
        "l2.line", "l2.latency", "l2.shared_by", "l3.line", "l3.latency",
    }),
}  # fmt: skip
CELLS = {
    "gpu": [
        ("alexnet", "tesla_v100_sxm2", "caffe-cudnn4", 1, "fp32"), ("alexnet", "tesla_v100_sxm2", "torch7-cudnn5.1", 64, "fp16"),
        ("alexnet", "gtx_1080_ti", "torch7-cudnn5.1", 64, "fp16"), ("alexnet", "tegra_x1", "caffe-cudnn4", 16, "fp16"),
        ("alexnet", "a100_sxm4_40gb", "ideal", 8, "bf16"), ("alexnet", "a100_sxm4_40gb", "ideal", 8, "tf32"),
        ("alexnet", "a100_sxm4_40gb", "ideal", 8, "int8"), ("alexnet", "tesla_p4", "ideal", 8, "int8"),
        ("alexnet", "h100_sxm5_80gb", "ideal", 8, "fp8"), ("alexnet", "tesla_k40", "ideal", 8, "fp64"),
    ],
    "cpu": [
        ("alexnet", "i7_6700k", "intel-mkl", 16, "fp32"), ("alexnet", "xeon_platinum_8480", "caffe-openblas", 4, "fp32"),
        ("alexnet", "i7_6700k", "caffe-openblas", 1, "fp32"), ("alexnet", "xeon_platinum_8124m", "mxnet-mkldnn", 16, "fp32"),
    ],
}  # fmt: skip
# Whole numbers and shares that scale by these stay what they are.
FACTORS = (0.5, 2.0, 0.9, 4.0, 0.01)


def outcome(cell: tuple[str, str, str, int, str], spec: Spec) -> tuple[float, ...]:
    net, hw, stack, batch, precision = cell
    query = ask(net, hw, stack=stack, batch=batch, precision=precision, task="training_step")
    result = run(replace(query, spec=spec, clock=spec.device.default_clock))
    return (float(result.latency_s[0]), float(result.energy_j.sum()))


def moves(kind: str, key: str) -> bool:
    """Whether some change of the value changes time or energy of some cell."""
    for cell in CELLS[kind]:
        spec = devices.find(cell[1])
        if key not in spec.entries:
            continue
        before = outcome(cell, spec)
        value = float(spec.entries[key].value)
        for factor in FACTORS:
            changed = max(1.0, round(value * factor)) if key.endswith(("count", "warps", "ctas")) else value * factor
            try:
                if outcome(cell, with_value(spec, key, changed)) != before:
                    return True
            except ArchsimError:
                return True  # the calibration has no row for it: it is read
    return False


def with_value(spec: Spec, key: str, value: float) -> Spec:
    entries: Mapping[str, Entry] = {**spec.entries, key: replace(spec.entries[key], value=value)}
    return replace(spec, entries=entries)


def numeric(kind: str) -> list[str]:
    return [key for key, unit, _ in keys(kind) if unit.unit != "text" and not unit.informational
            and key != "memory.capacity" and not key.startswith("mode.")]  # fmt: skip


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_every_number_of_a_spec_moves_an_answer(kind: str) -> None:
    still = {key for key in numeric(kind) if not moves(kind, key)}
    assert still - UNREAD[kind] == set(), "change nothing: let a model read them, or mark them informational"
    assert UNREAD[kind] - still == set(), "are read now: take them off the list"


def test_a_power_mode_decides_the_clock() -> None:
    for mode in ("maxn", "Max-P", "max_q"):
        key = "mode." + mode.lower().replace("-", "").replace("_", "")
        assert ask("alexnet", "tegra_x2", power_mode=mode).clock == devices.find("tegra_x2").entries[key].value


def test_capacity_decides_whether_a_network_fits() -> None:
    small = archsim.estimate(net="vgg_16", hw="gtx_1080", batch=16, settings={"memory.capacity": "1 GB"})
    assert not small.fits
    assert archsim.estimate(net="vgg_16", hw="gtx_1080", batch=16).fits
