"""The table of bounds: a row says all that any part of the program needs, and nothing else has to be told."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from archsim.answers import estimate as said
from archsim.answers import sections_of
from archsim.cost.bounds import BOUNDS, CPU, DRAM, GPU, ROOFLINE, TPU, Bound
from archsim.cost.cost import Array, Cost
from archsim.cost.power import power_at
from archsim.cost.switched import memory_energy, voltage
from archsim.device import catalog
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.explain.layer import explain
from archsim.render.html import page
from archsim.render.palette import colour, order
from archsim.render.text import text_of
from archsim.schedule.waves import capacity, phases_of
from archsim.study.whatif import change

SHARED_RATE = 4.0  # B/clk


def shared_bound(t: Any) -> Array:
    """Bytes through the shared memory of all SMs over its bandwidth [s].

    loads: bytes that all CTAs load [B]
    """
    loads = t.ctas * t.kernels.tile_k * t.kernels.operand_a * 1e6
    return np.asarray(loads / (t.device.sm.count * SHARED_RATE * t.clock))


WORDS: dict[str, Any] = {
    "name": "shared", "time": {GPU: shared_bound}, "overhead": False, "side": "shared-memory-bound", "clocked": True,
    "resource": "shared memory", "colour": "#123456", "word": "shared memory", "more": "more shared bandwidth",
    "meaning": "shared memory is used up",
}  # fmt: skip


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Bound:
    """A new bound, registered from outside by one row."""
    row = Bound(**WORDS)
    monkeypatch.setitem(BOUNDS, row.name, row)
    return row


def request_of(hw: str = "gtx_1080", **choices: Any) -> Any:
    return make_request("alexnet", hw, batch=16, **choices)


@pytest.mark.parametrize("name", [field.name for field in fields(Bound)])
def test_a_row_that_lacks_a_field_cannot_be_made(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        Bound(**{word: value for word, value in WORDS.items() if word != name})


def test_every_row_can_be_told_from_the_others() -> None:
    assert len({row.colour for row in BOUNDS.values()}) == len({row.word for row in BOUNDS.values()}) == len(BOUNDS)
    for name, row in BOUNDS.items():
        assert name == row.name
        assert name.isidentifier()
        assert re.fullmatch(r"#[0-9a-f]{6}", row.colour)
        assert set(row.time) <= {GPU, CPU, TPU, ROOFLINE}
        assert row.meaning
        assert row.side


def test_a_new_row_is_in_times_json_and_breakdown(shared: Bound) -> None:
    estimate = estimate_of(request_of(), references=False)
    found = said.record(estimate)
    assert found["breakdown_s"]["shared"] > 0
    assert "shared" in {op["bound"] for op in found["ops"]}
    assert "shared" in {kernel["bound"] for op in found["ops"] for kernel in op["kernels"]}
    assert sum(found["breakdown_s"].values()) == pytest.approx(estimate.latency_s)


def test_a_new_row_is_explained_from_its_function(shared: Bound) -> None:
    found = explain(request_of(), "conv2")
    story = next(story for story in found.kernels if story.bound == "shared")
    steps = {step.name: step for step in story.steps}
    assert steps["loads"].unit == "B"
    assert steps["loads"].meaning == "bytes that all CTAs load"
    assert steps["shared"].text == "loads / (sm.count * SHARED_RATE * clock)"
    assert steps["shared"].right == pytest.approx(steps["shared"].value, rel=1e-12)
    assert "shared ** smooth" in steps["busy"].text
    assert steps["busy"].right == pytest.approx(steps["busy"].value, rel=1e-9)
    assert "shared = loads / (sm.count x" in " ".join(text_of(sections_of(found), level=2).split())


def test_a_new_row_gives_an_op_its_side_in_what_ifs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = estimate_of(request_of(), references=False)
    monkeypatch.setitem(BOUNDS, "shared", Bound(**WORDS))
    moved = change(before, estimate_of(request_of(), references=False), ("a new bound",)).moves
    assert {after for _, after in moved} == {"shared-memory-bound"}


def test_a_new_row_has_its_colour_and_words_on_pages(shared: Bound) -> None:
    text = page(said.sections(estimate_of(request_of(), references=False)))
    assert (colour("shared"), order({"shared", "dram"})) == ("#123456", ["dram", "shared"])
    assert "#123456" in text
    assert "shared memory" in text


@pytest.mark.parametrize(("clocked", "share"), [(True, 2.0), (False, 1.0)])
def test_a_new_row_says_whether_a_power_limit_slows_it(monkeypatch: pytest.MonkeyPatch, clocked: bool, share: float) -> None:
    """At half the clock a clocked bound takes twice as long: the energy of the same bytes is drawn over twice the time."""
    monkeypatch.setitem(BOUNDS, "shared", Bound(**{**WORDS, "clocked": clocked}))
    device, constants, one = catalog.find("gtx_1080").device, request_of().calibration, np.ones((1, 1))

    def power(moved: float) -> float:
        cost = Cost(bounds={"shared": one}, busy_s=one, overhead_s=0 * one, dram_bytes=moved * one, cache_bytes=0 * one,
                    work={"macs": 0 * one, "issues": 0 * one, "units": one})  # fmt: skip
        return power_at(0.5 * one, cost, device, "fp32", 1.6e9, constants).item()

    byte = memory_energy(device, voltage(0.8e9, device, constants), constants).item()
    assert power(3e11) - power(2e11) == pytest.approx(1e11 * byte / share)


def test_a_new_row_contends_for_its_resource(shared: Bound) -> None:
    request = request_of(fidelity="event")
    assert capacity()["shared memory"] == 1.0
    result = run(request)
    plans = phases_of(result.lowered.kernels, result.cost, request.spec.device)
    drawn = {resource for phases in plans for phase in phases for resource, _ in phase.demand}
    assert {"shared memory", DRAM} <= drawn
    assert result.latency_s[0] > 0


def test_what_has_no_row_is_drawn_like_no_bound() -> None:
    assert colour("mystery") == BOUNDS["none"].colour
