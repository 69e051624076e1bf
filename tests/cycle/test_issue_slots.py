"""The issue slots of a layer: which were taken, by what, in the middle of its longest kernel."""

from __future__ import annotations

import pytest

from archsim.base.errors import UnknownName, Unsupported
from archsim.estimation.request import Request, make_request
from archsim.explain.issue_slots import CORE_CLOCKS, SM_CLOCKS, IssueSlots, issue_slots
from archsim.explain.simulated import simulate_layer


def request(hw: str, **words: object) -> Request:
    return make_request("alexnet", hw, batch=4, fidelity="cycle", **words)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def of_gpu() -> IssueSlots:
    return issue_slots(request("gtx_1080"), "fc6")


def test_a_scheduler_issues_once_a_clock_and_only_within_the_window(of_gpu: IssueSlots) -> None:
    assert of_gpu.lanes == ("scheduler 0", "scheduler 1", "scheduler 2", "scheduler 3")
    assert of_gpu.end - of_gpu.begin == SM_CLOCKS
    seen = [(slot.lane, int(slot.clock)) for slot in of_gpu.slots]
    assert len(seen) == len(set(seen)) > 0
    assert all(of_gpu.begin <= slot.clock < of_gpu.end for slot in of_gpu.slots)
    assert {slot.kind for slot in of_gpu.slots} <= {"fp32", "int", "special", "tensor", "memory", "control"}


def test_shares_are_those_of_the_explained_kernel(of_gpu: IssueSlots) -> None:
    (kernel,) = [one for one in simulate_layer(request("gtx_1080"), "fc6").kernels if one.name == of_gpu.kernel]
    assert kernel.sm is not None
    assert of_gpu.use == pytest.approx(kernel.sm.issue_use)
    assert of_gpu.occupancy == pytest.approx(kernel.sm.occupancy)
    assert of_gpu.waits == pytest.approx(kernel.sm.stalls)
    assert sum(of_gpu.waits.values()) == pytest.approx(1.0)


def test_a_port_of_a_core_begins_one_micro_operation_a_clock() -> None:
    found = issue_slots(request("i7_6700k"))
    assert "P0" in found.lanes
    assert found.end - found.begin == CORE_CLOCKS
    seen = [(slot.lane, slot.clock) for slot in found.slots]
    assert len(seen) == len(set(seen)) > 0
    assert 0.0 < found.use <= 1.0
    assert found.occupancy is None
    assert found.limit


def test_without_a_name_the_slowest_simulated_layer_is_drawn() -> None:
    assert issue_slots(request("gtx_1080")).layer in ("conv2", "fc6", "conv1", "conv3")


def test_what_has_no_slots_is_refused() -> None:
    with pytest.raises(UnknownName):
        issue_slots(request("gtx_1080"), "nothing")
    with pytest.raises(Unsupported, match="issue slots"):
        issue_slots(make_request("alexnet", "tpu_v2", fidelity="cycle", precision="bf16"))
