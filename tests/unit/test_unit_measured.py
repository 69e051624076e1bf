"""From a published row to its request: every condition of a measurement arrives, and moves what is predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache

import pytest

from archsim.calibration.constants import default
from archsim.cost.team import dispatch_clock
from archsim.detect import catalog as devices
from archsim.estimation.fidelity import FIDELITIES
from archsim.estimation.measured import predicted, request_of, value_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request
from archsim.evidence.case import TIMERS, Anchor, Case, DeviceGroup, replays
from archsim.evidence.network_rows import network_cases
from archsim.evidence.row import network
from archsim.lower.context import Stored
from archsim.node.spec import find as find_node
from archsim.node.system import asked
from archsim.stack import catalog as stacks
from archsim.trace.task import Work
from archsim.trace.trace import BoundTrace
from archsim.validation.predict import predict


def case_of(net: str, hw: str, stack: str, **columns: str) -> Case:
    wanted = {"stack": stack, **columns}
    return next(network_cases(net, hw, lambda cells: all(cells[name] == value for name, value in wanted.items())))


@cache
def gpu() -> Case:
    return case_of("alexnet_s", "gtx_980", "torch7-cudnn5.1", batch="16")


@cache
def cpu() -> Case:
    return case_of("alexnet_s", "xeon_e5_2630_v3_2s", "caffe-openblas", threads="8")


def linear() -> Case:
    """AlexNet as inference: most of its bytes are weights of linear layers."""
    return replace(single(), stack=stacks.find("pytorch-2"))


def in_graphs() -> Case:
    return replace(single(), timer=TIMERS["graphs"])


def at_the_wall() -> Case:
    return replace(gpu(), metric="system_power_w", system=asked("desktop"))


def trace_of(task: str, batch: int) -> BoundTrace:
    return network(Work("alexnet_s", task, gpu().stack.optimiser, False, True), batch)


def single() -> Case:
    return replace(gpu(), trace=trace_of("inference", 1), task="inference", batch=1)


def of(case: Case) -> Request:
    return request_of(case, default())


def test_a_row_without_conditions_takes_the_defaults() -> None:
    plain = of(replace(gpu(), clock=None))
    assert plain.clock == plain.spec.device.usual_clock
    assert (plain.threads, plain.graph, plain.streams, plain.dispatch, plain.group) == (None, False, 1, 1.0, None)
    cores = cpu().spec.device.core  # type: ignore[union-attr]
    assert of(replace(cpu(), threads=None)).threads == cpu().stack.usual_threads(int(cores.count), int(cores.threads))


CHANGES: dict[str, tuple[Callable[[], Case], Callable[[Case], Case]]] = {
    "clock": (gpu, lambda case: replace(case, clock=5e8)),
    "limit": (gpu, lambda case: replace(case, limit=60.0)),
    "threads": (cpu, lambda case: replace(case, threads=2)),
    "trace": (gpu, lambda case: replace(case, trace=trace_of("training_step", 8))),
    "task": (gpu, lambda case: replace(case, trace=trace_of("inference", 16), task="inference")),
    "stack": (gpu, lambda case: replace(case, stack=stacks.find("caffe-native"))),
    "stack.inputs": (gpu, lambda case: replace(case, stack=replace(case.stack, inputs="host"))),
    "stack.waits": (gpu, lambda case: replace(case, stack=replace(case.stack, waits=True))),
    "host_cpu": (gpu, lambda case: replace(case, host_cpu=devices.find("tegra_x1_cpu"))),
    "precision": (gpu, lambda case: replace(case, precision="fp16")),
    "stored": (linear, lambda case: replace(case, stored=Stored(weight_bytes=0.5))),
    "timer": (gpu, lambda case: replace(case, timer=TIMERS["device"])),
    "timer.host_async": (gpu, lambda case: replace(case, timer=TIMERS["host_async"])),
    "timer.graph": (single, lambda case: replace(case, timer=TIMERS["graph"])),
    "timer.graphs": (single, lambda case: replace(case, timer=TIMERS["graphs"])),
    "timer.events": (single, lambda case: replace(case, timer=TIMERS["events"])),
    "calls": (in_graphs, lambda case: replace(case, calls=6)),
    "group": (gpu, lambda case: replace(case, group=DeviceGroup(node=find_node("devbox_4gpu").node, devices=4, overlaps=False))),
    "metric": (gpu, lambda case: replace(case, metric="power_w")),
    "system": (at_the_wall, lambda case: replace(case, system=asked("desktop:4"))),
    "spec": (gpu, lambda case: replace(case, spec=case.spec.with_settings({"sm.count": "4"}))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_condition_moves_the_prediction_alone_and_among_others(name: str) -> None:
    """One by one as an estimate's reference, and together with the unchanged row as validation."""
    case, change = CHANGES[name]
    before, after = case(), change(case())
    alone = [predicted(case, of(case))[0] for case in (before, after)]
    assert abs(alone[1] / alone[0] - 1) > 1e-4
    assert predict([before, after], default()) == pytest.approx(alone, rel=1e-12)


def test_no_condition_of_a_case_is_left_without_a_test() -> None:
    """What else a case has says where it stands, or is the measured value itself."""
    place = {"line", "fields", "source", "label", "hardware", "stack_id", "split", "file", "measured", "batch", "work", "anchor",
             "pattern"}  # fmt: skip
    assert {field.name for field in fields(Case)} == place | {name.partition(".")[0] for name in CHANGES}


def test_the_batch_of_a_rate_is_that_of_the_source() -> None:
    """CNTK's counts tokens, of which its samples have 32."""
    case = replace(gpu(), metric="throughput_per_s", batch=64 * 32)
    result = run(of(case))
    assert value_of(case, of(case), result) == pytest.approx(64 * 32 / float(result.latency_s[0]))


@pytest.mark.parametrize(("dispatch", "slower"), [(500.0, "host"), (1e-3, "device")])
def test_a_call_issued_ahead_takes_what_the_slower_of_host_and_device_needs(dispatch: float, slower: str) -> None:
    case = replace(gpu(), timer=TIMERS["host_async"])
    request = replace(of(case), dispatch=dispatch)
    result = run(request)
    device_s = float(result.latency_s[0] - result.timeline.wait_s.sum())
    host_s = float(result.host_s.sum())
    assert value_of(case, request, result) == pytest.approx({"host": host_s, "device": device_s}[slower])
    assert (host_s > device_s) == (slower == "host")
    assert value_of(gpu(), request, result) == pytest.approx(float(result.latency_s[0]))


def test_a_graph_that_is_replayed_waits_for_the_host_where_its_calls_are_short() -> None:
    """The host launches the next graph while one runs: the more calls are in one, the shorter they may be."""
    case = replace(gpu(), timer=TIMERS["graphs"], calls=4)
    request = of(case)
    alone_s, gap_s = float(run(request).latency_s[0]), float(request.calibration["graph.gap_s"])
    assert value_of(case, request, run(request)) == pytest.approx(alone_s + gap_s / 4)
    assert [replays(1e-7, calls, gap_s, 6e-6) for calls in (1, 2, 4)] == [6e-6, 3e-6, 1.5e-6]
    clk = 1e5 * request.calibration["graph.launch_clk"]
    slow = replace(request, calibration=request.calibration.with_values({"graph.launch_clk": clk}))
    assert value_of(case, slow, run(slow)) == pytest.approx(clk / float(dispatch_clock(request.host)) / 4)


def test_a_ratio_to_another_run_is_predicted_as_such() -> None:
    free, bound = replace(gpu(), limit=1000.0), replace(gpu(), limit=60.0)
    ratio = predicted(bound, of(bound))[0] / predicted(free, of(free))[0]
    anchored = replace(bound, anchor=Anchor(limit=1000.0, measured=10.0))
    assert ratio > 1.1
    assert predicted(anchored, of(anchored))[0] == pytest.approx(10.0 * ratio)
    assert predict([free, anchored], default())[1] == pytest.approx(10.0 * ratio)


def test_parts_that_are_left_out_reach_the_pipeline() -> None:
    for part in ("host", "launch", "clock", "passes"):
        request = request_of(gpu(), default(), without=frozenset([part]))
        other = float(run(request).latency_s[0])
        assert other != pytest.approx(float(run(of(gpu())).latency_s[0]), rel=1e-6), part
        assert predict([gpu()], default(), without=frozenset([part])) == pytest.approx([other])


def test_the_copy_of_an_input_counts_where_the_host_cpu_does() -> None:
    """Neither for a kernel timed alone nor in a fidelity without overheads."""
    for change in ({"dispatch": 0.0}, {"fidelity": FIDELITIES["roofline"]}):
        device, host = (replace(of(gpu()), stack=replace(gpu().stack, inputs=inputs), **change) for inputs in ("device", "host"))
        assert run(host).latency_s[0] == run(device).latency_s[0]
