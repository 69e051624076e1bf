"""Laws of replayed graphs: never slower, the same work, one wait for the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import archsim
from archsim.base.errors import ArgumentError, Unsupported
from archsim.cost.team import dispatch_clock
from archsim.device import catalog as devices
from archsim.estimation.pipeline import device_of, run
from archsim.estimation.request import Request, make_request
from archsim.stack import catalog as stacks

GPUS = ["gtx_1080", "tesla_v100_sxm2", "a100_sxm4_80gb", "h100_sxm5_80gb", "tegra_x1"]
TASKS = [
    ("alexnet", "inference", 1), ("resnet_50", "training_step", 8), ("lstm_ptb", "inference", 16), ("vgg_16", "inference", 64),
]  # fmt: skip


def cell(net: str, hw: str, task: str, batch: int, graph: bool) -> Request:
    return make_request(net, hw, task=task, batch=batch, stack="pytorch-2", graph=graph)


@pytest.mark.parametrize("hw", GPUS)
@pytest.mark.parametrize(("net", "task", "batch"), TASKS)
def test_a_graph_is_never_slower(net: str, hw: str, task: str, batch: int) -> None:
    replayed, issued = (run(cell(net, hw, task, batch, graph)) for graph in (True, False))
    assert float(replayed.latency_s[0]) <= float(issued.latency_s[0]) * (1 + 1e-12)
    assert (replayed.timeline.end_s <= issued.timeline.end_s * (1 + 1e-12)).all()


def test_a_graph_helps_most_where_the_host_is_the_limit() -> None:
    def gain(batch: int) -> float:
        requests = [cell("resnet_50", "tesla_v100_sxm2", "inference", batch, graph) for graph in (False, True)]
        issued, replayed = (float(run(request).latency_s[0]) for request in requests)
        return issued / replayed

    assert gain(1) > 1.2
    assert 1 <= gain(64) < gain(1)


def test_a_graph_waits_for_the_host_once() -> None:
    request = cell("resnet_50", "tesla_v100_sxm2", "inference", 1, True)
    result = run(request)
    assert result.timeline.wait_s.sum() == pytest.approx(
        request.calibration["graph.launch_clk"] / np.ravel(dispatch_clock(request.host)).item(), rel=1e-6)
    assert result.host_s.sum() == 0


def test_a_graph_never_widens_a_gap_that_is_short_already() -> None:
    request = cell("alexnet", "tesla_v100_sxm2", "inference", 1, True)
    short = request.spec.with_settings({"launch.latency": "1 us"})
    assert device_of(replace(request, spec=short)).launch.latency == 1e-6
    assert device_of(request).launch.latency == request.calibration["graph.gap_s"]
    assert device_of(replace(request, graph=False)) is request.spec.device


def test_the_work_stays_and_the_interval_widens() -> None:
    choices = {"net": "alexnet", "hw": "tesla_v100_sxm2", "stack": "pytorch-2", "batch": 4}
    issued, replayed = archsim.estimate(**choices), archsim.estimate(**choices, graph=True)
    assert (issued.graph, replayed.graph) == (False, True)
    assert (replayed.flop, replayed.memory.activations) == (issued.flop, issued.memory.activations)
    assert replayed.interval_class.endswith("extrapolated")
    assert any(note.startswith("graph") for note in replayed.assumptions)


def test_only_what_can_replay_a_graph_does() -> None:
    assert [name for name in stacks.names() if stacks.find(name).records]
    with pytest.raises(Unsupported, match="does not replay CUDA graphs"):
        make_request("alexnet", "gtx_1080", graph=True)
    cpu = next(name for name in devices.names() if devices.find(name).kind == "cpu")
    with pytest.raises(ArgumentError, match="CPU has none"):
        make_request("alexnet", cpu, graph=True)
    with pytest.raises(ArgumentError, match="no launches"):
        make_request("alexnet", "gtx_1080", stack="pytorch-2", graph=True, fidelity="roofline")
