"""Laws of tensor processing units: sums, bounds, and what a larger batch does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.device import catalog as devices
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request

TPUS = [name for name in devices.names() if devices.find(name).kind == "tpu"]
NETWORKS = ("alexnet", "resnet_18", "mobilenet_v2", "squeezenet_1_1", "fcn_5", "lstm_ptb", "jouppi_mlp1")
LAST_BITS = 1e-9


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Any]:
    return {"net": draw(st.sampled_from(NETWORKS)), "hw": draw(st.sampled_from(TPUS)),
            "batch": draw(st.sampled_from((1, 3, 8, 64, 200))),
            "fidelity": draw(st.sampled_from(("analytical", "cycle", "event")))}  # fmt: skip


@given(cells())
def test_sums_and_bounds(cell: dict[str, Any]) -> None:
    found, request = estimate_of(make_request(**cell), references=False), make_request(**cell)
    assert sum(found.breakdown_s.values()) == pytest.approx(found.latency_s, rel=LAST_BITS)
    assert sum(op.energy_j for op in found.ops) == pytest.approx(found.energy_j, rel=LAST_BITS)
    power = request.device.power
    assert power.idle * (1 - LAST_BITS) <= found.power_w <= power.busy * (1 + LAST_BITS)
    least = run(make_request(**cell | {"fidelity": "roofline"}))
    assert 0 < least.latency_s[0] <= found.latency_s * (1 + LAST_BITS)


@given(cells())
def test_events_one_after_the_other_are_the_serial_schedule(cell: dict[str, Any]) -> None:
    serial, events = (run(make_request(**cell | {"fidelity": name})).latency_s[0] for name in ("analytical", "event"))
    assert events == pytest.approx(serial, rel=1e-9)


@given(cells(), st.sampled_from((2, 4)))
def test_a_larger_batch_is_never_faster(cell: dict[str, Any], factor: int) -> None:
    one = make_request(**cell | {"fidelity": "analytical"})
    more = make_request(**cell | {"fidelity": "analytical", "batch": factor * cell["batch"]})
    assert run(one).latency_s[0] <= run(more).latency_s[0] * (1 + LAST_BITS)
