"""Rows of a file that are measured: networks and single kernels, with what runs replaced by what only pretends to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archsim.base.errors import InputError, Unsupported
from archsim.evidence.table import CsvTable, read_table
from archsim.measure import cases
from archsim.measure.cases import kernel_of, measured_rows
from archsim.measure.torch_kernels import KernelReading, SeenKernel, launches_of
from archsim.measure.torch_session import TorchMode

NETWORKS = "network,stack,task,batch,seq_len,precision,threads,metric,value\n"
KERNELS = "source_id,op,sub_op,m,n,k,batch,dtype,software,hardware,latency_us,kernel\n"
GEMM = "x,gemm,,64,128,256,,fp16,pytorch-2.11.0/cu130,h100_sxm5_80gb,,\n"


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], CsvTable]:
    def make(text: str) -> CsvTable:
        place = tmp_path / "rows.csv"
        place.write_text(text)
        return read_table(place)

    return make


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch, pretended: Any) -> list[tuple[str, ...]]:
    """What was opened: device, stack, precision and task of each session."""
    opened: list[tuple[str, ...]] = []

    def session_class(device: str, stack: str, precision: str, task: str) -> Any:
        opened.append((device, stack, precision, task))
        return pretended

    monkeypatch.setattr(cases, "session_class", session_class)
    return opened


def test_rows_of_one_run_share_it(table: Callable[[str], CsvTable], sessions: list[tuple[str, ...]]) -> None:
    rows = table(NETWORKS + "alexnet,pytorch-2,inference,2,,fp16,,latency_s,\n"
                 + "alexnet,pytorch-2,inference,2,,fp16,,throughput_per_s,7\n"
                 + "alexnet,pytorch-cpu,inference,2,,fp32,2,latency_s,\n")  # fmt: skip
    found = list(measured_rows(rows, rounds=3, seconds=1.0))
    assert [row.refused for row in found] == [False] * 3
    assert sessions == [("cuda", "pytorch-2", "fp16", "inference"), ("cpu", "pytorch-cpu", "fp32", "inference")]
    assert float(found[0].cells["value"]) == pytest.approx(0.05)
    assert float(found[1].cells["value"]) == pytest.approx(40.0)
    assert found[0].cells["software"] == "pretended 1"


def test_a_row_that_cannot_run_is_refused_and_the_others_go_on(table: Callable[[str], CsvTable], sessions: Any) -> None:
    runs = ("no_such_net,pytorch-2", "alexnet,no-such-stack", "alexnet,pytorch-2", "alexnet,pytorch-2")
    metrics = ("latency_s", "latency_s", "clock_hz", "latency_s")
    lines = [f"{run},inference,1,,fp32,,{metric},\n" for run, metric in zip(runs, metrics, strict=True)]
    rows = table(NETWORKS + "".join(lines))
    found = list(measured_rows(rows, rounds=3, seconds=1.0))
    assert [row.refused for row in found] == [True, True, True, False]
    assert "clock_hz is not measured" in found[2].said


def test_power_needs_a_meter(table: Callable[[str], CsvTable], sessions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "meter_for", lambda host: "no energy: no counter")
    (found,) = measured_rows(table(NETWORKS + "alexnet,pytorch-2,inference,1,,fp32,,power_w,\n"), rounds=3, seconds=1.0)
    assert found.refused
    assert "no counter" in found.said


def test_a_kernel_is_the_op_that_validation_builds_and_gets_its_launches(
    table: Callable[[str], CsvTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[TorchMode, str, tuple[int, ...]]] = []

    class Bench:
        def __init__(self, torch: Any, mode: TorchMode, precision: str) -> None:
            self.mode, self.precision = mode, precision

        def measure(self, op: Any) -> KernelReading:
            ran.append((self.mode, self.precision, op.shape))
            if op.shape[0] == 1:
                raise RuntimeError("CUDA out of memory\nmore")
            launch = SeenKernel(name="nvjet", grid=(2, 66, 1), block=(384, 1, 1), registers=168, shared_B=1000, time_s=5e-6)
            return KernelReading(time_s=6e-6, low_s=5e-6, high_s=7e-6, launches=(launch,))

    monkeypatch.setattr(cases, "KernelBench", Bench)
    monkeypatch.setattr(cases, "runtime", lambda: None)
    text = KERNELS + GEMM + GEMM.replace("64,128", "1,128") + GEMM.replace("cu130", "cu130/nhwc").replace("gemm", "no_op")
    first, second, third = measured_rows(table(text), rounds=1, seconds=1.0)
    assert ran == [(TorchMode(), "fp16", (64, 128)), (TorchMode(), "fp16", (1, 128))]
    assert float(first.cells["latency_us"]) == 6.0
    assert json.loads(first.cells["kernel"])["ran"][0] == {
        "name": "nvjet", "grid": [2, 66, 1], "block": [384, 1, 1], "registers": 168, "shared": 1000, "us": 5.0}  # fmt: skip
    assert (second.refused, third.refused) == (True, True)
    assert second.said.endswith("CUDA out of memory")
    assert "no_op" in third.said


def test_channels_last_is_another_stack() -> None:
    sizes = {"cin": 8, "hin": 9, "win": 9, "cout": 4, "kh": 3, "kw": 3, "stride": 1, "pad": 1}
    cells = {"op": "conv", "sub_op": "", "dtype": "fp16", "batch": "2", "hardware": "h100_sxm5_80gb", "kernel": json.dumps(sizes)}
    assert kernel_of({**cells, "software": "pytorch-2.11.0/cu130"})[1] == "pytorch-2-cuda12"
    op, stack = kernel_of({**cells, "software": "pytorch-2.11.0/cu130/nhwc"})
    assert (op.shape, stack) == ((2, 4, 9, 9), "pytorch-2-cuda12-channels-last")


def test_launches_come_in_the_order_of_their_start() -> None:
    args = {"grid": [1, 2, 3], "block": [32, 1, 1], "registers per thread": 40, "shared memory": 64}
    events = [{"cat": "kernel", "ts": 9.0, "dur": 2.0, "name": "second", "args": args},
              {"cat": "cpu_op", "ts": 1.0, "name": "aten"},
              {"cat": "kernel", "ts": 3.0, "dur": 1.5, "name": "first", "args": args}]  # fmt: skip
    found = launches_of(events)
    assert [one.name for one in found] == ["first", "second"]
    assert found[0] == SeenKernel(name="first", grid=(1, 2, 3), block=(32, 1, 1), registers=40, shared_B=64, time_s=1.5e-6)


def test_a_file_of_another_form_is_refused(table: Callable[[str], CsvTable]) -> None:
    with pytest.raises(InputError, match="neither a file of networks"):
        measured_rows(table("a,b\n1,2\n"), rounds=1, seconds=1.0)


def test_other_words_need_torch() -> None:
    from archsim.measure.run import opener

    with pytest.raises(Unsupported, match="--backend torch"):
        opener("onnxruntime", "cpu", precision="fp16")
