"""The input stage: samples that the host decodes before or beside a step, in estimates and in the event model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.answers import sections_of
from archsim.answers.estimate import sections
from archsim.base.errors import ArgumentError
from archsim.calibration.constants import default
from archsim.cost.dispatch import InputStage, SampleBatch, core_rate, host_transfer_time, input_stage, link_rate, worker_rate
from archsim.cost.team import dispatch_clock
from archsim.estimation.estimate import estimate, estimate_of
from archsim.estimation.measured import differences, request_of
from archsim.estimation.pipeline import input_bytes, run, samples_of
from archsim.estimation.request import Request, make_request
from archsim.evidence.network_rows import network_cases
from archsim.explain.layer import explain
from archsim.node.spec import find as find_node
from archsim.node.spec import host_cpu
from archsim.render.html import page
from archsim.render.text import text_of
from archsim.schedule.training import DeviceStep, Pipeline, train
from archsim.simulate.train import Input, input_pipeline
from archsim.stack.parts import SampleReader
from tests import shipped
from tests.each import each

CIFAR = SampleBatch(count=1024, values=3072.0, pixels=1024.0)
STEP = {"net": "alexnet_r", "hw": "gtx_1080", "stack": "mxnet-cudnn5.1", "task": "training_step", "batch": 256}


def asked(**how: Any) -> Request:
    return make_request(**STEP | how)


def latency(request: Request) -> float:
    return float(run(request).latency_s[0])


def test_a_batch_is_late_by_what_the_slowest_resource_takes_beyond_the_step() -> None:
    network = np.array([10.0])

    def late(ahead: bool = True, factor: float = 1.0, **parts: float) -> float:
        return float(InputStage(**{"decode_s": 0.0, "copy_s": 0.0} | parts, ahead=ahead).late(network, factor)[0])

    assert late(decode_s=9.0, copy_s=3.0) == 0.0
    assert late(decode_s=12.0) == 2.0
    assert late(copy_s=11.5) == 1.5
    assert late(decode_s=12.0, factor=0.5) == 0.0
    assert late(ahead=False, decode_s=9.0) == 9.0


def test_a_core_decodes_pixels_and_goes_over_values() -> None:
    host, steps = shipped.cpu("i7_3820"), default()["loop.steps_clk"]
    pixel = default()["input.jpeg_clk"]
    clock = float(dispatch_clock(host))
    bytes_only = core_rate(SampleReader(stored="array"), CIFAR, host, default())
    assert clock / bytes_only == pytest.approx(3072 * steps)
    jpeg = core_rate(SampleReader(), CIFAR, host, default())
    assert clock / jpeg == pytest.approx(1024 * pixel + 3072 * steps)
    photo = core_rate(SampleReader(pixels=140_000), CIFAR, host, default())
    assert clock / photo == pytest.approx(140_000 * pixel + 3072 * steps)
    assert worker_rate(2, 4, 10.0) == 20.0
    assert worker_rate(16, 4, 10.0) == 40.0


def test_a_copy_counts_where_it_is_made_ahead() -> None:
    host, reader = shipped.cpu("i7_3820"), SampleReader(stored="array", workers=4)
    for when, expected in {"samples": (0.0, True), "batch": (7.0, True), "nothing": (0.0, False)}.items():
        found = input_stage(CIFAR, replace(reader, ahead=when), host, 4.0, default(), 7.0)
        assert (found.copy_s, found.ahead) == expected


def test_decoding_beside_the_step_counts_where_it_is_slower() -> None:
    """A copy of the batch stays in the step, as of an array; decoding hides behind it until the images are large."""
    copied = latency(asked(inputs="host"))
    assert latency(asked(inputs="decoded")) == pytest.approx(copied, rel=1e-12)
    large = asked(inputs="decoded,pixels=1000000")
    decode = 256 / float(worker_rate(4, 4, core_rate(large.stack.reader, samples_of(large), large.host, large.calibration)))
    assert decode > copied
    assert latency(large) == pytest.approx(decode, rel=1e-9)
    before = asked(inputs="decoded,pixels=1000000,ahead=nothing")
    assert latency(before) == pytest.approx(copied + decode, rel=1e-9)
    assert latency(asked(inputs="decoded,ahead=batch")) == pytest.approx(latency(asked(inputs="device")), rel=1e-12)
    assert latency(asked(inputs="decoded,pixels=1000000,workers=1")) > 3.9 * decode


def test_the_wait_is_a_part_of_the_breakdown_and_limits() -> None:
    e = estimate_of(asked(inputs="decoded,pixels=1000000"))
    assert e.limited_by == "input"
    assert sum(e.breakdown_s.values()) == pytest.approx(e.latency_s, rel=1e-9)
    assert sum(op.time_s for op in e.ops) == pytest.approx(e.latency_s, rel=1e-9)
    assert e.ops[0].bound == "input"
    assert e.saved_s["input"] == pytest.approx(e.latency_s * (1 - 1 / 1.2), rel=1e-3)
    hidden = estimate_of(asked(inputs="decoded"))
    assert hidden.breakdown_s["input"] == 0.0
    assert hidden.limited_by != "input"
    assert "input" not in estimate_of(asked()).breakdown_s
    assert "input" not in estimate_of(asked(inputs="decoded", fidelity="roofline")).breakdown_s


def test_the_wait_is_told_in_words_pages_and_explanations() -> None:
    late, ready = asked(inputs="decoded,pixels=1000000"), asked(inputs="decoded")
    shown = estimate_of(late)
    assert "Input decides: " in text_of(sections(shown))
    assert "Input decides: " not in text_of(sections(estimate_of(ready)))
    for said in (text_of(sections(shown), 2), page(sections(shown))):
        assert "reading and decoding the samples of a batch" in said
    first, second = (text_of(sections_of(explain(late, layer, "forward"))) for layer in ("conv1", "conv2"))
    assert "for its batch, which takes: decoding" in first
    assert "for its batch" not in second


@each("how", ["decoded,pixels=1000000", "decoded", "decoded,pixels=1000000,ahead=nothing"])
def test_every_fidelity_with_events_waits_as_long(how: str) -> None:
    closed, events = (estimate_of(asked(inputs=how, fidelity=name)) for name in ("analytical", "event"))
    assert events.latency_s == pytest.approx(closed.latency_s, rel=1e-6)
    assert events.limited_by == closed.limited_by
    assert events.breakdown_s["input"] == pytest.approx(closed.breakdown_s["input"], rel=1e-6, abs=1e-9)


@each("decode", [0.5, 2.0])
def test_the_event_model_of_training_comes_to_the_same_pace(decode: float) -> None:
    """One device, a stage that is half as long as its step or twice: the slower of the two sets the pace."""
    node, compute = find_node("desktop_2gpu").node, 0.1
    samples = 64
    rate = samples / (decode * compute)
    step = DeviceStep(compute_s=compute, update_s=0.0, buckets=(), server_passes=4.0)
    found = train(node, 1, step, Pipeline(samples=samples, decode_rate=rate), steps=200)
    stage = InputStage(decode_s=samples / rate, copy_s=0.0, ahead=True)
    late = float(stage.late(np.array([compute]))[0])
    assert found.step_s == pytest.approx(compute + late, rel=0.02)


def test_a_node_decodes_at_the_rate_of_its_own_cpu_unless_its_file_states_one() -> None:
    """Two sockets of eight cores, of which more workers share all; a measured rate stands as it is."""
    spec, request = find_node("devbox_4gpu"), asked(task="training_step")
    node = spec.node
    photo = SampleReader(pixels=140_000)
    core = float(core_rate(photo, samples_of(request), host_cpu(node.host_cpu.id), request.calibration))

    def rate(node: Any, workers: int) -> float | None:
        return input_pipeline(request, replace(spec, node=node), Input(decode=workers)).decode_rate

    assert (rate(node, 2), rate(node, 1000)) == (pytest.approx(2 * core), pytest.approx(node.cores * core))
    stated = replace(node, input=replace(node.input, decode=100.0))
    assert (rate(stated, 2), rate(stated, 1000)) == (200.0, 100.0 * node.cores)
    small = replace(node, input=replace(node.input, pixels=None))
    assert rate(small, 1) == pytest.approx(
        float(core_rate(SampleReader(), samples_of(request), host_cpu(node.host_cpu.id), request.calibration)))  # fmt: skip


def test_a_batch_is_copied_at_the_rate_of_the_link() -> None:
    gpu = shipped.gpu("gtx_1080")
    assert float(link_rate(gpu)) == pytest.approx(15.75e9 * 0.76)
    module = shipped.gpu("tegra_x1")
    assert link_rate(module) == float("inf")
    request = asked(inputs="decoded")
    assert host_transfer_time(input_bytes(request.trace), request.stack, gpu, request.host) > 0


REFUSED = [
    ("disk", "inputs 'disk' is not one of device, host, decoded"),
    ("host,workers=3", "host takes no keys; those of a reader follow decoded"),
    ("decoded,worker=8", "worker: unknown key; nearest: workers"),
    ("decoded,workers", "'workers' is not KEY=VALUE; keys: stored, pixels, workers"),
    ("decoded,workers=2,workers=3", "'workers=3' is given twice"),
    ("decoded,workers=0", "workers: must be at least 1, is 0"),
    ("decoded,workers=many", "workers: must be a whole number, is 'many'"),
    ("decoded,workers=nan", "workers: must be a whole number, is 'nan'"),
    ("decoded,stored=png", "stored: must be jpeg or array, is 'png'"),
]


@each(("inputs", "sentence"), REFUSED)
def test_what_a_reader_cannot_be_is_refused(inputs: str, sentence: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        asked(inputs=inputs)
    assert sentence in str(caught.value)


def test_images_are_decoded_for_networks_that_take_them() -> None:
    with pytest.raises(ArgumentError, match=r"network lstm_ptb reads no images, as the reader of mxnet-cudnn5\.1 prepares"):
        estimate("lstm_ptb", "gtx_1080", stack="mxnet-cudnn5.1", inputs="decoded")
    assert estimate("lstm_ptb", "gtx_1080", stack="mxnet-cudnn5.1", inputs="decoded,stored=array").latency_s > 0
    with pytest.raises(ArgumentError, match="inputs belong to a GPU; the CPU i7_6700k reads them where they are"):
        make_request("alexnet", "i7_6700k", inputs="decoded")


def test_equal_stacks_have_equal_digests() -> None:
    assert asked(inputs="decoded,workers=8").stack.digest != asked(inputs="decoded,workers=4").stack.digest
    assert asked(inputs="device").stack == asked().stack
    assert "decoded by 8 threads" in next(note for note in asked(inputs="decoded,workers=8").notes if note.startswith("input "))


def case_of(hardware: str, stack: str, network: str = "alexnet_r") -> Request:
    found = network_cases(network, hardware, lambda cells: cells["source"] == "shi2016_t7" and cells["stack"] == stack)
    return request_of(next(iter(found)), default(), "analytical")


def test_scripts_of_the_sources_decode_as_they_were_read() -> None:
    mxnet, caffe, torch = (case_of("gtx_1080", f"{name}-cudnn5.1") for name in ("mxnet", "caffe", "torch7"))
    assert (mxnet.stack.reader.workers, mxnet.stack.inputs, caffe.stack.reader.ahead) == (4, "decoded", "batch")
    assert torch.stack.inputs == "host"
    plain = make_request("alexnet_r", "gtx_1080", batch=1024, task="training_step", stack="mxnet-cudnn5.1", inputs="device")
    assert any(line.startswith("input JPEG images, decoded by 4 threads") for line in differences(mxnet, plain))


def test_a_cpu_runs_as_if_its_samples_were_ready() -> None:
    cpu = case_of("i7_3820", "tensorflow-eigen")
    ready = replace(cpu, stack=replace(cpu.stack, inputs="device"))
    assert latency(cpu) == latency(ready)
