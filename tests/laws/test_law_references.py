"""One path from a published row to a prediction: an estimate's references are validation's predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import default
from archsim.estimation.measured import CONDITIONS, OF_REQUEST, cases_of_cell, differences, references_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.evidence.case import Case
from archsim.evidence.family import shipped_files
from archsim.evidence.readers import cases_of, family_of
from archsim.evidence.sources import Conditions, source_of
from archsim.evidence.table import CsvTable, read_table
from archsim.validation.predict import predict

EXACT = 1e-12
QUICK = 60  # each so many-th row; the slow test takes all

Cell = tuple[str, str, str, int, str, int | None]  # network, hardware, task, batch, precision, threads
Row = tuple[str, str, str, float]  # source, stack, metric, measured
Predicted = dict[Cell, dict[Row, list[float]]]


@cache
def table() -> CsvTable:
    (file,) = (file for file in shipped_files() if file.name == "networks.csv")
    return read_table(file)


def row_of(case: Case) -> Row:
    return source_of(case.source).citation, case.fields["stack"], case.metric, case.measured


@cache
def published(step: int) -> Predicted:
    """What validation predicts for each `step`-th row of one device, by the cell that the row says it is."""
    chosen = [row for row in table().rows if row.cells["devices"] in ("", "1")][::step]
    cases, skips = cases_of(replace(table(), rows=tuple(chosen)), family_of(table()))
    assert skips == []
    found: Predicted = defaultdict(lambda: defaultdict(list))
    for case, value in zip(cases, predict(cases, default()).tolist(), strict=True):
        cell = (case.label, case.hardware, case.fields["task"], case.batch, case.precision, case.threads)
        found[cell][row_of(case)].append(value)
    return found


def disagreements(expected: Predicted) -> list[str]:
    """Rows that an estimate of their cell leaves out, or predicts otherwise than validation."""
    found = []
    for cell, rows in expected.items():
        net, hw, task, batch, precision, threads = cell
        shown: dict[Row, list[float]] = defaultdict(list)
        for r in references_of(make_request(net, hw, task=task, batch=batch, precision=precision, threads=threads)):
            shown[r.source, r.stack, r.metric, r.measured].append(r.predicted)
        for row, values in rows.items():
            if not all(any(abs(other / value - 1) < EXACT for other in shown[row]) for value in values):
                found.append(f"{cell} {row}: validate {values}, estimate {shown[row]}")
    return found


def test_references_of_an_estimate_are_the_predictions_of_validation() -> None:
    assert disagreements(published(QUICK)) == []


@pytest.mark.slow
def test_references_of_every_cell_are_the_predictions_of_validation() -> None:
    assert sum(len(values) for rows in published(1).values() for values in rows.values()) > 2000
    assert disagreements(published(1)) == []


def test_a_difference_would_be_noticed() -> None:
    """Without the clock of a row, its prediction is another one."""
    request = make_request("fcn_s", "tesla_k80", task="training_step", batch=64)
    [case] = [case for case in cases_of_cell(request) if case.fields["stack"] == "caffe-cudnn5.1"]
    cell = ("fcn_s", "tesla_k80", "training_step", 64, "fp32", None)
    told, otherwise = (predict([each], default())[0] for each in (case, replace(case, clock=None)))
    assert disagreements({cell: {row_of(case): [told]}}) == []
    [said] = disagreements({cell: {row_of(case): [otherwise]}})
    assert "caffe-cudnn5.1" in said


def own_cells(expected: Predicted) -> Iterator[tuple[float, float]]:
    """The time of each reference whose conditions are those of the estimate, by the stack of its row, and the estimate's own."""
    for (net, hw, task, batch, precision, threads), rows in expected.items():
        for stack in {stack for _, stack, metric, _ in rows if metric in ("latency_s", "throughput_per_s")}:
            try:
                request = make_request(net, hw, stack=stack, task=task, batch=batch, precision=precision, threads=threads)
                own = float(run(request).latency_s[0])
            except ArchsimError:  # a stack that only its source's row runs here
                continue
            for r in references_of(request):
                if not r.conditions and r.metric in ("latency_s", "throughput_per_s"):
                    yield own, r.predicted if r.metric == "latency_s" else batch / r.predicted


def test_a_reference_without_conditions_predicts_what_the_estimate_does() -> None:
    """So whatever moves a prediction is said beside it."""
    pairs = list(own_cells(published(QUICK)))
    assert len(pairs) >= 10
    assert [time for own, time in pairs] == pytest.approx([own for own, time in pairs], rel=EXACT)


def test_conditions_are_said_in_words() -> None:
    request = make_request("fcn_s", "tesla_k80", task="training_step", batch=64, stack="tensorflow-cudnn5.1")
    [own, *_] = references_of(request)
    assert own.conditions == (
        "stack tensorflow-cudnn5.1-feed, not tensorflow-cudnn5.1",
        "core clock 562 MHz, not 820 MHz",
        "host CPU xeon_e5_2630_v4, not xeon_e5_2686_v4",
        "input copied from host memory within the timed loop, after 2 copies there, not on the device",
    )
    same = {"net": "fcn_s", "hw": "tesla_k80", "task": "training_step", "batch": 64, "host_cpu": "xeon_e5_2630_v4"}
    assert [said for r in references_of(make_request(**same)) for said in r.conditions if "host CPU" in said] == []


def test_every_condition_has_a_value_where_it_applies() -> None:
    """What a field of the conditions that is not among them moves is in the trace of the case, or in its value alone."""
    of = CONDITIONS | OF_REQUEST
    assert len(of) == len(CONDITIONS) + len(OF_REQUEST)
    silent = {"precision", "tokens", "per_sample", "calls", "operands", "meter", "use"}
    assert set(CONDITIONS) == set(Conditions.model_fields) - silent
    gpu, cpu = (make_request("alexnet", hw, task="training_step") for hw in ("gtx_1080", "i7_6700k"))
    assert {name for name, value in of.items() if value(gpu) or value(cpu)} == set(of) - {"node", "gradients exchanged"}
    waits = replace(gpu, stack=replace(gpu.stack, waits=True))
    assert differences(waits, gpu) == ("timed with a wait after each layer, not with a wait at the end of the run",)
    assert differences(gpu, gpu) == ()


def test_a_changed_device_has_no_references() -> None:
    assert references_of(make_request("alexnet", "tegra_x1"))
    assert references_of(make_request("alexnet", "tegra_x1", scales={"memory.bandwidth": 2.0})) == ()


def test_references_are_of_the_threads_that_are_asked() -> None:
    for threads in (2, 8):
        request = make_request("alexnet_s", "xeon_e5_2630_v3_2s", task="training_step", batch=16, threads=threads)
        assert {case.threads for case in cases_of_cell(request)} == {threads}
        assert references_of(request)


def test_references_of_the_own_stack_come_first() -> None:
    for stack in ("caffe-cudnn5.1", "mxnet-cudnn5.1"):
        found = references_of(make_request("fcn_s", "tesla_k80", task="training_step", batch=64, stack=stack))
        assert [r.stack == stack for r in found] == [True, *[False] * (len(found) - 1)]


def test_references_are_predicted_by_the_fidelity_that_is_asked() -> None:
    played, closed = (references_of(make_request("alexnet", "tegra_x1", fidelity=name)) for name in ("event", "roofline"))
    assert all(b.predicted > 1.1 * a.predicted for a, b in zip(played, closed, strict=True) if a.metric == "throughput_per_s")


def test_steps_of_several_devices_are_no_references_of_one() -> None:
    request = make_request("fcn_5", "tesla_k40", task="training_step", batch=8192)
    assert [case.group for case in cases_of_cell(request)] == [None] * 6
    assert any(row.cells["devices"] == "2" and row.cells["batch"] == "8192" for row in table().rows)


def test_what_a_script_does_besides_its_task_is_said() -> None:
    """Caffe's backward pass goes down to the images, and its timer waits for each layer."""
    request = make_request("vgg_a", "titan_x_maxwell", task="forward_backward", batch=64, stack="caffe-native")
    found = {r.source: r.conditions for r in references_of(request) if r.stack == "caffe-native"}
    assert found == {
        "convnet-benchmarks, 2014-2017": (
            "gradient of the network's input computed, not left out",
            "timed with a wait after each layer, not with a wait at the end of the run",
        ),
    }  # fmt: skip
