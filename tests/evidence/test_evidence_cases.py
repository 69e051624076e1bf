"""Published measurements as cases, and what is known of their sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from archsim.base.errors import InputError
from archsim.evidence import lookup
from archsim.evidence.case import Case
from archsim.evidence.lookup import network_cases
from archsim.evidence.resolve import as_timed, setting
from archsim.evidence.sources import Protocol, citation, protocol, read_sources, sources
from archsim.trace import names as networks


def cases_of(network: str, hardware: str) -> list[Case]:
    return list(network_cases(network, hardware, lambda cells: True))


def test_rows_of_the_whitepaper() -> None:
    cases = [case for case in cases_of("alexnet", "tegra_x1") if case.source == "nvidia_tx1_wp"]
    cells = {(case.precision, case.batch, case.metric): case for case in cases}
    assert cells["fp32", 1, "throughput_per_s"].measured == 47.0
    assert cells["fp16", 128, "power_w"].measured == 5.7
    case = cells["fp16", 1, "throughput_per_s"]
    assert (case.task, case.stack_id, case.threads, case.group, case.clock) == ("inference", "caffe-cudnn4", None, None, 690e6)


def test_rows_are_of_exactly_this_network_and_device() -> None:
    for network, hardware in (("alexnet", "tegra_x1"), ("vgg_16", "titan_x_maxwell"), ("alexnet", "i7_6700k")):
        cases = cases_of(network, hardware)
        assert cases
        assert {(case.label, case.hardware) for case in cases} == {(network, hardware)}
    assert cases_of("alexnet", "tegra_x") == []
    assert cases_of("alex", "tegra_x1") == []


def test_rows_stand_where_they_say() -> None:
    folder = Path(__file__).parents[2] / "reports" / "published"
    for case in cases_of("alexnet", "tegra_x1"):
        line = folder.joinpath(f"{case.file}.csv").read_text("utf-8").splitlines()[case.line - 1]
        assert line.startswith(f"{case.source},alexnet,tegra_x1,{case.fields['stack']},")


def test_only_wanted_rows_are_read() -> None:
    def wanted(cells: Mapping[str, str]) -> bool:
        return cells["batch"] == "128"

    assert {case.batch for case in network_cases("alexnet", "tegra_x1", wanted)} == {128}


def test_rows_of_single_ops_and_rows_that_are_not_predicted_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "source,network,hardware,stack,task,batch,precision,metric,value,op,unpredicted"
    row = "me,alexnet,gtx_1080,caffe-cudnn5.1,inference,1,fp32,latency_s,0.001,"
    file = tmp_path / "mine.csv"
    file.write_text("\n".join([head, row + ",", row + "conv1,", row + ",why"]), "utf-8")
    monkeypatch.setattr(lookup, "_network_files", lookup._network_files.__wrapped__)
    monkeypatch.setattr(lookup, "shipped_files", lambda: [file])
    assert [(case.file, case.line, len(case.ops) > 1) for case in cases_of("alexnet", "gtx_1080")] == [("mine", 2, True)]


def test_a_source_has_a_citation() -> None:
    assert citation("nvidia_tx1_wp") == "NVIDIA Jetson TX1 whitepaper, 2015"
    assert citation("no such source") == "no such source"


def test_all_that_is_wrong_with_the_sources_is_said_at_once() -> None:
    text = """
    [a]
    citation = "A, 2020"
    wait = ["caffe"]
    forward = "always"
    [b]
    tokens = { "cntk lstm" = 0 }
    meter = { every_s = 0.1 }
    """
    with pytest.raises(InputError) as caught:
        read_sources(text, "sources.toml")
    said = str(caught.value)
    for wanted in ("sources.toml", "a.wait: unknown key; nearest: waits", "a.forward", "b.citation: is missing", "b.tokens",
                   "b.meter"):  # fmt: skip
        assert wanted in said
    with pytest.raises(InputError, match="a: must be a table"):
        read_sources("a = 1", "sources.toml")
    with pytest.raises(InputError, match="not valid TOML"):
        read_sources("[a", "sources.toml")


def test_a_source_that_is_not_described_ran_what_its_rows_say() -> None:
    plain = protocol("no such source")
    assert plain == Protocol(citation="no such source")
    assert plain.task("backward", "alexnet", "neon") == "backward"
    assert plain.graph("alexnet", "caffe", "inference", "alexnet") == "alexnet"
    assert plain.samples(128, "lstm_ptb", "cntk") == 128
    assert not plain.of_inputs("alexnet", "caffe")
    assert not plain.waits_for("caffe")


def test_a_case_is_fed_as_its_script_does() -> None:
    def fed(framework: str, network: str) -> tuple[str, str, int]:
        stack = as_timed(setting("gtx_1080", f"{framework}-cudnn5.1", "fp32"), protocol("shi2016_t7"), network).stack
        return stack.inputs, stack.labels, stack.input_value_bytes

    assert fed("torch7", "fcn_s") == ("host", "indices", 4)
    assert fed("cntk", "fcn_s") == ("host", "dense", 4)
    assert fed("tensorflow", "fcn_s") == ("device", "indices", 8)  # labels are of its graph; the stack has `inputs` itself
    assert fed("caffe", "fcn_s") == ("device", "indices", 4)


def test_queries_one_after_the_other_wait_for_their_inputs_except_on_boards_that_hold_them() -> None:
    def fed(hardware: str, scenario: str) -> tuple[str, int, int, int]:
        place = f"inference_results_v2.1: closed/NVIDIA/results/x/resnet50/{scenario}"
        stack = as_timed(setting(hardware, "tensorrt-8", "int8"), protocol("mlperf"), "resnet_50", place).stack
        return stack.inputs, stack.input_copies, stack.input_value_bytes, stack.input_crossing_bytes

    assert fed("a100_pcie_80gb", "SingleStream") == fed("a30", "MultiStream") == ("host", 0, 1, 1)
    assert fed("a100_sxm4_80gb", "SingleStream")[0] == fed("a100_pcie_80gb", "Offline")[0] == "device"


def test_a_script_may_train_with_another_optimiser_and_copy_a_batch_more_often() -> None:
    script = protocol("shi2016_t7")
    assert script.optimiser("fcn_r", "tensorflow", "sgd") == "sgd_momentum"
    assert script.optimiser("fcn_s", "tensorflow", "sgd") == "sgd"
    assert Protocol(citation="x", accumulates=True).optimiser("fcn_r", "tensorflow", "sgd") == "accumulate"
    found = setting("gtx_1080", "tensorflow-cudnn5.1-feed", "fp32")
    assert [as_timed(found, script, name).stack.input_copies for name in ("fcn_s", "fcn_r")] == [2, 3]


def test_a_script_may_compute_in_doubles_on_cpus_only() -> None:
    script = protocol("shi2016_t7")
    cpu, gpu = ("i7_3820", "torch7-cpu"), ("gtx_1080", "torch7-cudnn5.1")
    cells = [(*cpu, "alexnet_s"), (*cpu, "fcn_s"), (*gpu, "alexnet_s")]
    ran = [as_timed(setting(hardware, stack, "fp32"), script, network).precision for hardware, stack, network in cells]
    assert ran == ["fp64", "fp32", "fp32"]


def test_what_a_script_does_besides_its_task() -> None:
    script = protocol("dlinfbench")
    assert script.inputs == "host"
    assert script.task("inference", "inception_v3", "caffe") == "forward"
    assert script.task("inference", "inception_v3", "mxnet") == "inference"
    assert script.graph("alexnet", "pytorch", "inference", "alexnet") == "alexnet_owt"
    assert script.graph("alexnet", "mxnet", "inference", "alexnet@mxnet") == "alexnet"
    of_network = protocol("shi2016_t7")
    assert of_network.samples(128, "lstm_ptb", "cntk") == 4
    assert (of_network.of_inputs("fcn_s", "torch7"), of_network.of_inputs("fcn_s", "caffe")) == (True, False)
    assert (of_network.of_inputs("alexnet_s", "tensorflow"), of_network.of_inputs("fcn_s", "tensorflow")) == (True, False)
    assert (of_network.inputs_of("fcn_s", "torch7"), of_network.inputs_of("alexnet_s", "torch7")) == ("host", "")
    assert (script.inputs_of("alexnet", "caffe"), protocol("no such source").inputs_of("alexnet", "caffe")) == ("host", "")
    assert protocol("jcjohnson").task("inference", "vgg_16", "torch7") == "forward"
    assert protocol("jcjohnson").of_inputs("vgg_16", "torch7")


def test_what_convnet_benchmarks_does_besides_its_task() -> None:
    """Neon updates in its backward loop, Caffe's timer waits for each layer, and GoogLeNet is the same graph for all."""
    script = protocol("convnet_benchmarks")
    assert script.task("backward", "alexnet", "neon") == "backward_update"
    assert script.task("forward_backward", "alexnet", "neon") == "training_step"
    assert script.task("backward", "alexnet", "torch7") == "backward"
    assert (script.waits_for("caffe"), script.waits_for("torch7")) == (True, False)
    assert script.graph("googlenet", "tensorflow", "inference", "googlenet") == "googlenet@convnet"
    assert (script.of_inputs("alexnet", "caffe"), script.of_inputs("alexnet", "torch7")) == (True, False)


def test_every_graph_that_a_protocol_names_is_shipped() -> None:
    for source in sources():
        assert set(protocol(source).graphs.values()) <= set(networks())


@pytest.mark.parametrize("fill", [0.3, 1.0, 2.5, 40.0])
def test_a_loop_has_no_more_sets_than_fill_the_l2_where_its_script_says_so(fill: float) -> None:
    script = protocol("aiconfigurator")
    assert script.sets_of("trtllm-1.3.0rc20", "gemm", "bf16", fill) == {0.3: 1, 1.0: 1, 2.5: 3, 40.0: 5}[fill]
    assert script.sets_of("trtllm-1.0.0", "gemm", "bf16", fill) == 5
    assert script.sets_of("vllm-0.24.0", "gemm", "bf16", fill) == 6


def test_every_key_of_a_source_is_used_and_described() -> None:
    folder = Path(__file__).parents[2] / "reports"
    described = folder.joinpath("README.md").read_text("utf-8")
    entries = tomllib.loads(folder.joinpath("published", "sources.toml").read_text("utf-8"))
    used = {key for entry in entries.values() for key in entry}
    read = set(Protocol.model_fields)
    assert used == read
    assert [key for key in sorted(read) if f"`{key}`" not in described] == []
