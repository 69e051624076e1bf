"""Arrays in, arrays out: D variants of a device in one call give what D calls give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.device import catalog as devices
from archsim.device.part import Unit
from archsim.device.spec import Spec, keys
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, make_request

FACTORS = np.array([[1.0], [0.6], [3.0]])
CELLS = [
    ("alexnet", "tegra_x1", "caffe-cudnn4", 3, "inference"),
    ("alexnet_owt", "gtx_1080", "torch7-cudnn5.1", 8, "training_step"),
    ("alexnet", "tesla_v100_sxm2", "ideal", 1, "inference"),
    ("lstm_32", "tesla_k40", "torch7-cudnn5.1", 8, "forward_backward"),
    ("alexnet", "i7_6700k", "intel-mkl", 3, "inference"),
    ("resnet_18", "i7_3820", "caffe-openblas", 4, "training_step"),
    ("lstm_32", "tegra_x1_cpu", "torch7-cpu", 2, "inference"),
]
# What names a row of the calibration, not a quantity: all variants of one call share it.
SHARED = ("chip.node",)


def numeric(kind: str) -> list[tuple[str, Unit]]:
    return [(key, unit) for key, unit, _ in keys(kind) if unit.unit != "text" and key not in SHARED]


def values(spec: Spec, key: str, unit: Unit) -> np.ndarray[Any, Any]:
    """Variants of one value of a spec, as a column."""
    column = float(spec.entries[key].value) * FACTORS
    if unit.whole:
        column = np.maximum(1.0, np.round(column))
    return np.minimum(column, unit.high)


def with_columns(spec: Spec, columns: dict[str, Any]) -> Spec:
    entries = dict(spec.entries)
    for key, column in columns.items():
        entries[key] = replace(entries[key], value=column)
    return replace(spec, entries=entries)


def with_spec(request: Request, spec: Spec, own_clock: bool) -> Request:
    return replace(request, spec=spec, clock=spec.device.default_clock if own_clock else request.clock)


def same(together: Run, apart: list[Run], rtol: float = 1e-12) -> None:
    """What no variant changes may come back once for all of them."""

    def compare(name: str, wide: Any, single: Any, scale: Any = None) -> None:
        apart_rows = np.concatenate(single)
        atol = 1e-300 if scale is None else 1e-12 * scale
        np.testing.assert_allclose(np.broadcast_to(wide, apart_rows.shape), apart_rows, rtol=rtol, atol=atol, err_msg=name)

    longest = max(float(one.latency_s[0]) for one in apart)
    for name in ("latency_s", "energy_j", "dram_bytes"):
        compare(name, getattr(together, name), [getattr(one, name) for one in apart])
    for name in ("start_s", "end_s", "wait_s"):  # sums and differences of sums: exact to the last bits of the latency
        compare(name, getattr(together.timeline, name), [getattr(one.timeline, name) for one in apart], longest)
    for name, wide in together.cost.bound_s.items():
        compare(name, wide, [one.cost.bound_s[name] for one in apart])
    for name in ("launches", "workspace", "flop", "kernel_time_s", "kernel_bound", "option"):
        compare(name, getattr(together.cost, name), [getattr(one.cost, name) for one in apart])


def check(request: Request, columns: dict[str, Any], own_clock: bool = True) -> None:
    count = len(FACTORS)
    together = run(with_spec(request, with_columns(request.spec, columns), own_clock))
    apart = []
    for i in range(count):
        single = {key: float(column[i, 0]) for key, column in columns.items()}
        apart.append(run(with_spec(request, with_columns(request.spec, single), own_clock)))
    same(together, apart)


def request_of(cell: tuple[str, str, str, int, str], fidelity: str) -> Request:
    net, hw, stack, batch, task = cell
    return make_request(net, hw, stack=stack, batch=batch, task=task, fidelity=fidelity)


@pytest.mark.parametrize("fidelity", ["analytical", "roofline"])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_one_key_as_an_array_equals_single_runs(cell: tuple[str, str, str, int, str], fidelity: str) -> None:
    request = request_of(cell, fidelity)
    for key, unit in numeric(request.spec.kind):
        if key in request.spec.entries:
            check(request, {key: values(request.spec, key, unit)})


@pytest.mark.parametrize("fidelity", ["analytical", "roofline"])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_all_keys_as_arrays_equal_single_runs(cell: tuple[str, str, str, int, str], fidelity: str) -> None:
    request = request_of(cell, fidelity)
    present = [(key, unit) for key, unit in numeric(request.spec.kind) if key in request.spec.entries]
    rolled = {key: np.roll(values(request.spec, key, unit), i, axis=0) for i, (key, unit) in enumerate(present)}
    check(request, rolled)


@given(
    cell=st.sampled_from(CELLS),
    fidelity=st.sampled_from(["analytical", "roofline"]),
    choice=st.sets(st.integers(0, 40), max_size=6),
)
def test_some_keys_as_arrays_equal_single_runs(cell: tuple[str, str, str, int, str], fidelity: str, choice: set[int]) -> None:
    request = request_of(cell, fidelity)
    present = [(key, unit) for key, unit in numeric(request.spec.kind) if key in request.spec.entries]
    check(request, {key: values(request.spec, key, unit) for i, (key, unit) in enumerate(present) if i in choice} or
          {"memory.bandwidth": values(request.spec, "memory.bandwidth", dict(present)["memory.bandwidth"])})  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_clocks_as_an_array_equal_single_runs(cell: tuple[str, str, str, int, str]) -> None:
    request = request_of(cell, "analytical")
    clocks = float(request.spec.device.default_clock) * FACTORS
    same(run(replace(request, clock=clocks)), [run(replace(request, clock=float(clock))) for clock in clocks[:, 0]])


def test_the_comparison_notices_a_difference() -> None:
    request = request_of(CELLS[0], "analytical")
    other = run(replace(request, clock=float(request.spec.device.default_clock) * (1 + 1e-9)))
    with pytest.raises(AssertionError):
        same(run(request), [other])


def test_peaks_of_an_array_device_are_arrays() -> None:
    spec = devices.find("tesla_v100_sxm2")
    column = values(spec, "rate.tensor_fp16", dict(numeric("gpu"))["rate.tensor_fp16"])
    peaks = with_columns(spec, {"rate.tensor_fp16": column}).device.peak_flops("fp16")
    assert np.shape(peaks) == (3, 1)
    single = with_columns(spec, {"rate.tensor_fp16": float(column[2, 0])}).device.peak_flops("fp16")
    assert peaks[2, 0] == single
