"""Published measurements as rows."""

from __future__ import annotations

from archsim.corpus.measurement import Protocol, citations, protocol, rows_of


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


def test_what_a_script_does_besides_its_task() -> None:
    plain = Protocol()
    assert plain.task("inference", "alexnet", "caffe") == "inference"
    assert plain.graph("alexnet", "caffe", "alexnet") == "alexnet"
    assert plain.stack("gtx_1080", "alexnet", "caffe-native") == "caffe-native"
    assert plain.samples(128, "lstm_ptb", "cntk") == 128
    script = protocol("dlinfbench")
    assert script.inputs == "host"
    assert script.task("inference", "inception_v3", "caffe") == "forward"
    assert script.task("inference", "inception_v3", "mxnet") == "inference"
    assert script.graph("alexnet", "pytorch", "alexnet") == "alexnet_owt"
    assert script.stack("gtx_1080", "vgg_16", "pytorch-cudnn5.1") == "pytorch-native"
    assert protocol("shi2016_t7").stack("gtx_980", "resnet_56", "torch7-cudnn5.1") == "torch7-cudnn5.1-frugal"
    assert protocol("shi2016_t7").samples(128, "lstm_ptb", "cntk") == 4
    assert (plain.clock("tesla_k80", None), protocol("shi2016_t7").clock("tesla_k80", None)) == (None, 562e6)
    assert protocol("shi2016_t7").clock("tesla_k80", 875e6) == 875e6
    assert protocol("jcjohnson").task("inference", "vgg_16", "torch7") == "forward"
