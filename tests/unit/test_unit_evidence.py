"""Published measurements as rows."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

from archsim.evidence.measurement import Protocol, citations, protocol, rows_of
from archsim.stack import catalog as stacks
from archsim.trace import names as networks


def test_rows_of_the_whitepaper() -> None:
    rows = [row for row in rows_of("alexnet", "tegra_x1") if row.source == "nvidia_tx1_wp"]
    cells = {(row.precision, row.batch, row.metric): row for row in rows}
    assert cells["fp32", 1, "throughput_per_s"].value == 47.0
    assert cells["fp16", 128, "power_w"].value == 5.7
    row = cells["fp16", 1, "throughput_per_s"]
    assert (row.task, row.stack, row.threads, row.devices, row.clock_hz) == ("inference", "caffe-cudnn4", None, 1, 690e6)


def test_rows_are_of_exactly_this_network_and_device() -> None:
    for network, hardware in (("alexnet", "tegra_x1"), ("vgg_16", "titan_x_maxwell"), ("alexnet", "i7_6700k")):
        rows = list(rows_of(network, hardware))
        assert rows
        assert {(row.network, row.hardware) for row in rows} == {(network, hardware)}
    assert list(rows_of("alexnet", "tegra_x")) == []
    assert list(rows_of("alex", "tegra_x1")) == []


def test_values_are_positive_and_of_known_metrics() -> None:
    for row in rows_of("alexnet", "titan_x_maxwell"):
        assert row.value > 0
        assert row.metric in ("latency_s", "throughput_per_s", "power_w", "energy_j")
        assert row.task in ("inference", "backward", "forward_backward", "training_step")


def test_every_source_has_a_citation() -> None:
    known = citations()
    for network, hardware in (("alexnet", "tegra_x1"), ("vgg_16", "titan_x_maxwell"), ("resnet_50", "gtx_1080")):
        assert {row.source for row in rows_of(network, hardware)} <= set(known)


def test_a_source_that_is_not_described_ran_what_its_rows_say() -> None:
    plain = protocol("no such source")
    assert plain == Protocol()
    assert plain.task("backward", "alexnet", "neon") == "backward"
    assert plain.graph("alexnet", "caffe", "alexnet") == "alexnet"
    assert plain.stack("gtx_1080", "alexnet", "caffe-native", "table 7") == "caffe-native"
    assert plain.samples(128, "lstm_ptb", "cntk") == 128
    assert not plain.of_inputs("alexnet", "caffe")
    assert not plain.waits_for("caffe")


def test_what_a_script_does_besides_its_task() -> None:
    script = protocol("dlinfbench")
    assert script.inputs == "host"
    assert script.task("inference", "inception_v3", "caffe") == "forward"
    assert script.task("inference", "inception_v3", "mxnet") == "inference"
    assert script.graph("alexnet", "pytorch", "alexnet") == "alexnet_owt"
    assert script.stack("gtx_1080", "vgg_16", "pytorch-cudnn5.1", "") == "pytorch-native"
    of_network = protocol("shi2016_t7")
    assert of_network.stack("gtx_980", "resnet_56", "torch7-cudnn5.1", "") == "torch7-cudnn5.1-frugal"
    assert of_network.samples(128, "lstm_ptb", "cntk") == 4
    assert protocol("jcjohnson").task("inference", "vgg_16", "torch7") == "forward"
    assert protocol("jcjohnson").of_inputs("vgg_16", "torch7")


def test_what_convnet_benchmarks_does_besides_its_task() -> None:
    """Neon updates in its backward loop, Caffe's timer waits for each layer, and GoogLeNet is the same graph for all."""
    script = protocol("convnet_benchmarks")
    assert script.task("backward", "alexnet", "neon") == "backward_update"
    assert script.task("forward_backward", "alexnet", "neon") == "training_step"
    assert script.task("backward", "alexnet", "torch7") == "backward"
    assert (script.waits_for("caffe"), script.waits_for("torch7")) == (True, False)
    assert script.graph("googlenet", "tensorflow", "googlenet") == "googlenet@convnet"
    assert (script.of_inputs("alexnet", "caffe"), script.of_inputs("alexnet", "torch7")) == (True, False)


def test_the_version_of_a_library_is_told_by_the_place_of_a_row() -> None:
    script = Protocol(versions={"commit a": "torch7-cudnn3", "commit a, row b": "torch7-cudnn4"}, stacks={"x y": "torch7-cudnn1"})
    assert script.stack("gpu", "net", "y", "commit a, row c") == "torch7-cudnn3"
    assert script.stack("gpu", "net", "y", "commit a, row b, column d") == "torch7-cudnn4"  # the longest beginning
    assert script.stack("x", "net", "y", "see commit a") == "torch7-cudnn1"


def test_every_stack_and_graph_that_a_protocol_names_is_shipped() -> None:
    for source in citations():
        script = protocol(source)
        assert {*script.stacks.values(), *script.versions.values()} <= set(stacks.names())
        assert set(script.graphs.values()) <= set(networks())


def test_every_key_of_a_source_is_one_that_is_read_and_described() -> None:
    """A misspelt key would do nothing."""
    folder = Path(__file__).parents[2] / "reports"
    described = folder.joinpath("README.md").read_text("utf-8")
    sources = tomllib.loads(folder.joinpath("published", "sources.toml").read_text("utf-8"))
    used = {key for entry in sources.values() for key in entry}
    read = {field.name for field in fields(Protocol)}
    assert used == read | {"citation", "title", "measured", "doubts"}
    assert [key for key in sorted(read) if f"`{key}`" not in described] == []
