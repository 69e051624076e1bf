"""Published measurements as cases, and what is known of their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.evidence import network_rows, readers
from archsim.evidence import sources as described
from archsim.evidence.case import TIMERS, Case
from archsim.evidence.family import PEER_ROWS, PEERS, family_called, serving_files, shipped_files
from archsim.evidence.network_rows import network_cases, read_network
from archsim.evidence.row import row_of
from archsim.evidence.sources import (
    COLUMNS,
    ConditionRule,
    Conditions,
    Meter,
    PublishedSource,
    conditions_of,
    of_rules,
    read_sources,
    rules,
    source_of,
    sources,
)
from archsim.evidence.table import Row


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
    monkeypatch.setattr(network_rows, "shipped_files", lambda: [file])
    assert [(case.file, case.line, len(case.ops) > 1) for case in cases_of("alexnet", "gtx_1080")] == [("mine", 2, True)]


def test_a_source_has_a_citation() -> None:
    assert source_of("nvidia_tx1_wp").citation == "NVIDIA Jetson TX1 whitepaper, 2015"
    assert source_of("no such source").citation == "no such source"


def test_all_that_is_wrong_with_the_sources_is_said_at_once() -> None:
    text = """
    [a]
    citation = "A, 2020"
    wait = ["caffe"]
    [[a.rule]]
    when = { sofware = "vllm-*" }
    set = { timer = "graph", clock_mhz = -1 }
    why = "x"
    [[a.rule]]
    when = { hardware = "gtx_1O80" }
    set = { timer = "sundial", loops = 3, optimiser = "sgd_momentun", graph = "resnet_5O" }
    [b]
    rule = 3
    [[c.rule]]
    set = { input = "tape", meter = { every = 1.0 } }
    why = "x"
    """
    with pytest.raises(InputError) as caught:
        read_sources(text, "sources.toml")
    said = str(caught.value)
    for wanted in (
        "sources.toml", "a.wait: unknown key; nearest: ", "a.rule 1: when: there is no column 'sofware'; nearest: software",
        "a.rule 1: set.clock_mhz", "a.rule 2: when: there is no hardware 'gtx_1O80'; nearest: gtx_1080",
        "a.rule 2: set.timer: there is no timer 'sundial'", "a.rule 2: set.loops: unknown key; nearest: loop",
        "a.rule 2: set.optimiser: there is no optimiser 'sgd_momentun'; nearest: sgd_momentum",
        "a.rule 2: set.graph: there is no graph 'resnet_5O'", "a.rule 2: why: is missing", "b.citation: is missing",
        "b.rule: must be tables", "c.rule 1: set.input: input should be", "c.rule 1: set.meter",
    ):  # fmt: skip
        assert wanted in said
    with pytest.raises(InputError, match="a: must be a table"):
        read_sources("a = 1", "sources.toml")
    with pytest.raises(InputError, match="not valid TOML"):
        read_sources("[a", "sources.toml")


def test_the_last_rule_that_fits_decides_in_each_field() -> None:
    """A list is any of its words, `*` any text but none, an empty word a cell that is empty or not there."""
    _, found = read_sources(
        """
        [a]
        citation = "A"
        [[a.rule]]
        set = { timer = "device", loop = 3 }
        why = "all"
        [[a.rule]]
        when = { software = ["one-*", "two"], seq_len = "" }
        set = { loop = "cold" }
        why = "some"
        [[a.rule]]
        when = { op = "*" }
        set = { tokens = 7 }
        why = "what has an op"
        """, "sources.toml",
    )  # fmt: skip

    def how(**words: str) -> tuple[str, object, int]:
        of = {}
        for rule in found["a"]:
            of |= rule.set if rule.fits(words) else {}
        return of["timer"], of["loop"], of.get("tokens", 0)

    assert how() == ("device", 3, 0)
    assert how(software="one-2.0") == how(software="two") == ("device", "cold", 0)
    assert how(software="two-1", op="gemm") == ("device", 3, 7)
    assert how(software="two", seq_len="8", op="") == ("device", 3, 0)


def test_a_source_that_is_not_described_ran_what_its_rows_say() -> None:
    assert source_of("no such source") == PublishedSource(citation="no such source")
    words = {"network": "alexnet", "framework": "caffe", "task": "backward", "family": "networks"}
    assert conditions_of("no such source", words) == (Conditions(), "")


def ran(source: str, hardware: str, stack: str, network: str, task: str = "training_step", **cells: str) -> Case:
    """The case of a row of a network."""
    row = dict.fromkeys(("seq_len", "threads", "clock_mhz", "source_ref"), "") | {
        "source": source, "network": network, "hardware": hardware, "stack": stack, "task": task, "batch": "128",
        "precision": "fp32", "devices": "1", "metric": "latency_s", "value": "0.1", "split": "test"}  # fmt: skip
    return next(read_network(row_of(family_called("networks"), Row(2, row | cells), "mine")))


def test_a_case_is_fed_as_its_script_does() -> None:
    fed = {name: ran("shi2016_t7", "gtx_1080", f"{name}-cudnn5.1", "fcn_s").stack.inputs for name in ("torch7", "cntk", "caffe")}
    assert fed == {"torch7": "host", "cntk": "host", "caffe": "device"}


def test_a_script_may_compute_in_doubles_on_cpus_only() -> None:
    cpu, gpu = ("i7_3820", "torch7-cpu"), ("gtx_1080", "torch7-cudnn5.1")
    cells = [(*cpu, "alexnet_s"), (*cpu, "fcn_s"), (*gpu, "alexnet_s")]
    assert [ran("shi2016_t7", *of).precision for of in cells] == ["fp64", "fp32", "fp32"]


def test_what_a_script_does_besides_its_task() -> None:
    def work(source: str, stack: str, network: str, task: str) -> tuple[str, str, bool, str]:
        found = ran(source, "gtx_1080", stack, network, task).work
        assert found is not None
        return found.net, found.task, found.input_gradient, found.optimiser

    caffe, torch, tensorflow = (f"{name}-cudnn5.1" for name in ("caffe", "torch7", "tensorflow"))
    assert work("dlinfbench", caffe, "inception_v3", "inference")[:3] == ("inception_v3", "forward", False)
    assert work("dlinfbench", "mxnet-cudnn5.1", "inception_v3", "inference")[1] == "inference"
    assert work("jcjohnson", torch, "vgg_16", "inference")[1:3] == ("forward", True)
    assert work("convnet_benchmarks", "neon-maxas", "alexnet", "forward_backward")[1] == "training_step"
    for stack, network, down, optimiser in (
        (torch, "fcn_s", True, "sgd"), (caffe, "fcn_s", False, "sgd"), (tensorflow, "alexnet_s", True, "sgd"),
        (tensorflow, "fcn_r", False, "sgd_momentum"),
    ):  # fmt: skip
        assert work("shi2016_t7", stack, network, "training_step")[2:] == (down, optimiser)


def test_a_batch_may_count_tokens() -> None:
    tokens = ran("shi2016_t7", "gtx_1080", "cntk-cudnn5.1", "lstm_ptb")
    assert (tokens.batch, tokens.trace.symbols["N"]) == (128, 4)


def test_every_condition_is_used_and_described() -> None:
    """A field that no rule sets is none."""
    described = (Path(__file__).parents[2] / "reports" / "README.md").read_text("utf-8")
    every = [rule for source in sources() for rule in rules(source)]
    assert {name for rule in every for name in rule.set} == set(Conditions.model_fields)
    assert {name for rule in every for name in rule.when} == set(COLUMNS)
    assert {rule.set["timer"] for rule in every if "timer" in rule.set} == set(TIMERS)
    meters = [rule.set["meter"] for rule in every if "meter" in rule.set]
    assert {part for meter in meters for part in meter.model_fields_set} == set(Meter.model_fields)
    assert [name for name in (*Conditions.model_fields, *COLUMNS) if f"`{name}`" not in described] == []


UNSHIPPED = {"epyc_9655", "score"}  # hosts of AMD cards, and a misnamed board: their rows are not in the tree


@pytest.mark.slow
def test_every_rule_of_a_source_holds_for_one_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that holds for none has a misspelt word, or is of no use."""
    fit: set[int] = set()

    def watched(rules: Sequence[ConditionRule], words: Mapping[str, str]) -> tuple[Conditions, str]:
        fit.update(id(rule) for rule in rules if rule.fits(words))
        return of_rules(rules, words)

    monkeypatch.setattr(described, "of_rules", watched)
    described._conditions.cache_clear()
    files = [*shipped_files(), *serving_files(), data_folder(PEERS).joinpath(PEER_ROWS[0])]
    read = {case.source for case in readers.read_files(files)[0]}
    common = len(rules("nobody"))
    idle = [(source, rule) for source in read for rule in rules(source)[common:] if id(rule) not in fit]
    assert [(source, rule.set) for source, rule in idle if UNSHIPPED.isdisjoint(rule.set.values())] == []
