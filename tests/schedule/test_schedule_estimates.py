"""`--fidelity event` on shipped networks: the serial schedule on one stream, real overlap on several, and no free lunch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

import archsim
from archsim.base.errors import ArchsimError
from archsim.device.device import Gpu
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import make_request
from archsim.schedule.observer import Recording
from archsim.schedule.streams import dependencies
from archsim.schedule.waves import capacity, phases_of
from archsim.study.grid import evaluate

CELLS: list[tuple[str, str, dict[str, Any]]] = [
    ("alexnet", "tegra_x1", {}),
    ("googlenet", "gtx_1080", {"batch": 16, "task": "training_step"}),
    ("resnet_152", "titan_x_pascal", {"batch": 4, "stack": "pytorch-cudnn7.0", "task": "training_step"}),
    ("alexnet_s", "tesla_k80", {"batch": 16, "task": "training_step", "stack": "mxnet-cudnn5.1"}),
    ("resnet_50", "tesla_v100_sxm2", {"stack": "pytorch-2", "graph": True}),
    ("lstm_32", "tesla_k80", {"batch": 64, "task": "training_step", "stack": "torch7-cudnn5.1"}),
    ("bert_base", "a100_sxm4_40gb", {"precision": "fp16", "batch": 8}),
    ("alexnet", "i7_6700k", {"batch": 4}),
]
BRANCHES: dict[str, Any] = {"net": "googlenet", "hw": "tesla_v100_sxm2", "stack": "pytorch-2", "graph": True, "fidelity": "event"}


def events(net: str, hw: str, streams: int = 1, **choices: Any) -> Run:
    return run(make_request(net, hw, fidelity="event", streams=streams, **choices))


@pytest.mark.parametrize(("net", "hw", "choices"), CELLS, ids=[f"{net} on {hw}" for net, hw, _ in CELLS])
def test_one_stream_is_the_serial_schedule(net: str, hw: str, choices: dict[str, Any]) -> None:
    serial, played = run(make_request(net, hw, **choices)), events(net, hw, **choices)
    scale = serial.latency_s[0]
    for name in ("start_s", "end_s", "wait_s"):
        apart = np.abs(getattr(serial.timeline, name) - getattr(played.timeline, name)) / scale
        assert apart.max() < 1e-9, name
    for name, part in serial.energy.items():
        assert played.energy[name].sum() == pytest.approx(part.sum(), rel=1e-9), name


def test_the_numbers_of_the_answer_are_those_of_the_analytical_model() -> None:
    serial, played = (archsim.estimate("googlenet", "gtx_1080", fidelity=name) for name in ("analytical", "event"))
    assert played.latency_interval_s == pytest.approx(serial.latency_interval_s, rel=1e-9)
    assert played.breakdown_s == pytest.approx(serial.breakdown_s, rel=1e-9)
    assert played.energy_breakdown_j == pytest.approx(serial.energy_breakdown_j, rel=1e-9)
    assert played.interval_class == serial.interval_class


def bounds(result: Run) -> list[float]:
    """Times that no schedule on one device can beat [s]: the critical path, and the work of each shared resource."""
    live = np.maximum(result.lowered.plan_of, 0)
    own = np.where(result.lowered.plan_of >= 0, result.cost.time_s[0, live], 0.0)
    graph = nx.DiGraph()
    for i, before in enumerate(dependencies(result.lowered.ops)):
        graph.add_edge(("start", i), ("end", i), weight=own[i])
        graph.add_edges_from((("end", j), ("start", i), {"weight": 0.0}) for j in before)
    device = make_request("googlenet", "tesla_v100_sxm2").spec.device
    plans = phases_of(result.lowered.kernels, result.cost, device)
    phases = [phase for plan in result.lowered.plan_of if plan >= 0 for phase in plans[plan]]
    work = {name: sum(p.work * weight for p in phases for resource, weight in p.demand if resource == name)
            for name in capacity()}  # fmt: skip
    slots = sum(phase.work * phase.slots for phase in phases)
    return [float(nx.dag_longest_path_length(graph)), slots, *work.values()]


@pytest.mark.parametrize("batch", [1, 16])
def test_branches_overlap_and_nothing_is_faster_than_any_bound(batch: int) -> None:
    choices = {key: value for key, value in BRANCHES.items() if key not in ("net", "hw", "fidelity")}
    one, four, many = (events("googlenet", "tesla_v100_sxm2", n, batch=batch, **choices) for n in (1, 4, 64))
    assert four.latency_s[0] < 0.97 * one.latency_s[0]
    for result in (one, four, many):
        assert result.latency_s[0] * (1 + 1e-9) >= max(bounds(result))


def test_what_flows_while_time_passes_is_counted_once() -> None:
    one, four = (archsim.estimate(**BRANCHES, streams=n) for n in (1, 4))
    assert four.energy_breakdown_j["dram"] == pytest.approx(one.energy_breakdown_j["dram"], rel=1e-12)
    assert four.energy_breakdown_j["idle_board"] < one.energy_breakdown_j["idle_board"]
    assert sum(four.breakdown_s.values()) == pytest.approx(four.latency_s, rel=1e-9)
    assert sum(op.time_s for op in four.ops) == pytest.approx(four.latency_s, rel=1e-9)
    assert min(op.time_s for op in four.ops) >= 0


def test_small_batches_bound_by_launches_gain_nothing_from_streams() -> None:
    one, four = (archsim.estimate("googlenet", "gtx_1080", stack="pytorch-cudnn7.0", fidelity="event", streams=n) for n in (1, 4))
    assert one.breakdown_s["host"] > 0.4 * one.latency_s
    assert four.latency_s == pytest.approx(one.latency_s, rel=0.02)


def test_a_recording_says_the_same_times_and_changes_none() -> None:
    seen = Recording()
    watched = archsim.estimate(**BRANCHES, streams=4, observers=[seen])
    alone = archsim.estimate(**BRANCHES, streams=4)
    assert replace(watched, provenance={}) == replace(alone, provenance={})
    assert max(piece.end_s for piece in seen.slices) == pytest.approx(alone.latency_s, rel=1e-12)
    streams = {track for track in seen.tracks if track.startswith("stream")}
    assert streams == {"stream 0", "stream 1", "stream 2", "stream 3"}


def test_phases_of_a_kernel_add_up_to_its_time_and_bytes() -> None:
    request = make_request("resnet_50", "gtx_1080", batch=16, task="training_step")
    result, device = run(request), request.spec.device
    assert isinstance(device, Gpu)
    reach = float(device.memory.bandwidth * device.memory.achievable)
    for plan, phases in enumerate(phases_of(result.lowered.kernels, result.cost, device)):
        assert sum(phase.work for phase in phases) == pytest.approx(result.cost.time_s[0, plan], rel=1e-12)
        moved = sum(phase.work * weight * reach for phase in phases for resource, weight in phase.demand if resource == "DRAM")
        assert moved >= result.cost.dram_bytes[0, plan] * (1 - 1e-9)  # streams that reach a share of the bandwidth hold more
        assert all(0 <= phase.slots <= 1 and phase.work > 0 for phase in phases)
        assert all(0 <= weight <= 1 for phase in phases for _, weight in phase.demand)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"streams": 4}, "--fidelity event"),
        ({"streams": 0, "fidelity": "event"}, "streams 0"),
        ({"streams": 129, "fidelity": "event"}, "between 1 and 128"),
        ({"streams": 2, "fidelity": "event", "hw": "i7_6700k"}, "belong to a GPU"),
        ({"fidelity": "events"}, "nearest: event"),
    ],
)
def test_refusals(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(ArchsimError, match=words):
        archsim.estimate(**({"net": "alexnet", "hw": "gtx_1080"} | choices))


def test_many_machines_at_once_are_as_they_are_alone() -> None:
    """A sweep asks for columns of machines; each is simulated on its own."""
    written = ["100GB/s", "320GB/s", "900GB/s"]
    choices: dict[str, Any] = {"batch": 16, "fidelity": "event", "streams": 4}
    together = evaluate(make_request("googlenet", "gtx_1080", **choices), {"memory.bandwidth": np.array([100e9, 320e9, 900e9])})
    for row, bandwidth in enumerate(written):
        alone = archsim.estimate("googlenet", "gtx_1080", set={"memory.bandwidth": bandwidth}, **choices)
        assert together["latency_s"][row] == pytest.approx(alone.latency_s, rel=1e-9)
        assert together["energy_j"][row] == pytest.approx(alone.energy_j, rel=1e-9)
    assert len(set(together["latency_s"].tolist())) == 3
