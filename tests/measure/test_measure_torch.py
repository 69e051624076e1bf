"""The PyTorch backend without PyTorch: a stand-in whose tensors are numpy arrays and whose GPU is a clock of ticks."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import UnknownName, Unsupported
from archsim.measure.nodes import BUILDERS
from archsim.measure.torch_calls import CALLS, attention_by_products, constants_of, shapes_of
from archsim.measure.torch_session import MODES, TASKS, TorchMode, TorchSession, default_stack, mode_of, session_class
from archsim.stack import catalog as stacks
from archsim.trace.file import load
from archsim.trace.trace import BoundTrace
from tests.shipped import line, network


class Tensor(np.ndarray[Any, Any]):
    """A numpy array that may be moved to a device, or narrowed."""

    def to(self, place: Any) -> Tensor:
        return self if isinstance(place, str) else self.astype(place).view(Tensor)

    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    def requires_grad_(self, wanted: bool) -> None:
        assert wanted


class Event:
    """A mark on the stand-in's clock, which ticks once for each product."""

    ticks = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at, self.waited = -1, False

    def record(self) -> None:
        self.at = Event.ticks

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, later: Event) -> float:
        assert self.at >= 0
        return float(later.at - self.at)  # milliseconds


def linear(x: Any, w: Any, b: Any = None) -> Any:
    Event.ticks += 1
    return x @ w.T + (0 if b is None else b)


def stand_in(gpu: bool) -> Any:
    torch = ModuleType("torch")
    torch.__dict__.update(
        __version__="0.stand_in", set_num_threads=lambda n: None, manual_seed=lambda n: None,
        float32=np.float32, float16=np.float16, version=SimpleNamespace(cuda="13.0" if gpu else None),
        randn=lambda shape, device: np.random.default_rng(0).standard_normal(shape).view(Tensor),
        from_numpy=lambda a: a.view(Tensor),
        inference_mode=contextlib.nullcontext, cat=lambda x, axis: np.concatenate(x, axis).view(Tensor),
        nn=SimpleNamespace(functional=SimpleNamespace(linear=linear, relu=lambda x: np.maximum(x, 0))),
        backends=SimpleNamespace(cudnn=SimpleNamespace(allow_tf32=True),
                                 cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))),
        cuda=SimpleNamespace(is_available=lambda: gpu, Event=Event),
    )  # fmt: skip
    return torch


def trace() -> BoundTrace:
    return network(
        line("linear", "fc1", "x", [2, 8]), line("relu", "relu1", "fc1", [2, 8]),
        line("linear", "fc2", "relu1", [2, 3], bias=False), line("concat", "both", "fc1 fc2", [2, 11]), x=[2, 4],
    )  # fmt: skip


def test_a_network_runs_and_is_timed_op_by_op_on_the_processor() -> None:
    session = TorchSession(stand_in(gpu=False), trace(), 2, TorchMode(device="cpu"), stack="pytorch-cpu")
    assert (session.stack, session.host, session.threads, session.software) == ("pytorch-cpu", "cpu", 2, "torch 0.stand_in")
    assert session.outputs() == [(2, 11)]
    assert session.timed(3) > 0
    times, others = session.per_op(3)
    assert list(times) == [("fc1",), ("relu1",), ("fc2",), ("both",)]
    assert all(seconds > 0 for seconds in times.values())
    assert others == 0


def test_a_gpu_is_timed_by_its_events() -> None:
    torch = stand_in(gpu=True)
    session = TorchSession(torch, trace(), 2, TorchMode(), stack="pytorch-2")
    assert [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32] == [False, False]
    assert (session.stack, session.host, session.threads) == ("pytorch-2", "gpu", 1)
    assert session.timed(3) == pytest.approx(6e-3)  # two products in each run
    times, _ = session.per_op(1)
    assert times == {("fc1",): 1e-3, ("relu1",): 0.0, ("fc2",): 1e-3, ("both",): 0.0}


def test_values_are_stored_in_the_precision_that_was_asked_for() -> None:
    torch = stand_in(gpu=True)
    session = TorchSession(torch, trace(), 1, TorchMode(), stack="pytorch-2-cuda12", precision="fp16")
    assert session._forward()["fc1"].dtype == np.float16
    assert (session.precision, session.task) == ("fp16", "inference")
    tf32 = TorchSession(torch, trace(), 1, TorchMode(), stack="pytorch-2-cuda12", precision="tf32")
    assert tf32._forward()["fc1"].dtype == np.float64
    assert [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32] == [True, True]


def test_a_stack_says_how_torch_runs_and_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in(gpu=True))
    assert default_stack("cpu") == "pytorch-cpu"
    assert default_stack("cuda") == "pytorch-2-cuda12"
    assert mode_of("pytorch-2-compile-graphs", "cuda").compiled == "reduce-overhead"
    with pytest.raises(UnknownName, match="caffe-native"):
        mode_of("caffe-native", "cuda")
    with pytest.raises(UnknownName, match="pytorch-cpu"):
        mode_of("pytorch-2", "cpu")
    with pytest.raises(Unsupported, match="tf32"):
        session_class("cpu", precision="tf32")
    with pytest.raises(Unsupported, match="forward_backward"):
        TorchSession(stand_in(gpu=True), trace(), 1, TorchMode(), stack="pytorch-2", task="training_step")
    assert set(MODES) <= set(stacks.names()), "each mode belongs to a stack that models it"
    assert TASKS == ("inference", "forward_backward")


def test_ops_are_timed_apart_only_where_they_run_apart() -> None:
    session = TorchSession(stand_in(gpu=True), trace(), 1, TorchMode(), stack="pytorch-2")
    session._mode = TorchMode(compiled="default")
    with pytest.raises(Unsupported, match="op by op"):
        session.per_op(1)


def test_without_a_gpu_or_without_torch_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in(gpu=False))
    assert session_class("cpu")(trace(), 1).threads == 1
    with pytest.raises(Unsupported, match="sees no GPU"):
        session_class("cuda")


def test_both_backends_build_the_same_kinds() -> None:
    assert set(CALLS) == set(BUILDERS)


@pytest.mark.parametrize("net", ["alexnet", "googlenet", "resnet_50", "mobilenet_v2", "lstm_ptb", "squeezenet_1_0"])
def test_real_pytorch_gives_every_network_its_shapes(net: str) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    found = load(net)
    bound = found.bind(**({"N": 1} if found.free_symbols else {}))
    session = TorchSession(torch, bound, 1, TorchMode(device="cpu"), stack="pytorch-cpu")
    assert session.outputs() == [next(op.shape for op in bound.ops if op.name == name) for name in bound.outputs]


@pytest.mark.parametrize("net", ["bert_base", "gpt2_small", "resnet_18"])
def test_real_pytorch_computes_gradients_and_attention_both_ways(net: str) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    found = load(net)
    bound = found.bind(**{symbol: 2 if symbol == "N" else 8 for symbol in found.free_symbols})
    runs = [TorchSession(torch, bound, 1, TorchMode(device="cpu", by_products=by), stack="pytorch-cpu") for by in (False, True)]
    with torch.inference_mode():
        fused, apart = (run._outputs()[0] for run in runs)
    assert torch.allclose(fused, apart, rtol=1e-3, atol=1e-3)
    trained = TorchSession(torch, bound, 1, TorchMode(device="cpu"), stack="pytorch-cpu", task="forward_backward")
    assert trained.timed(1) > 0


def test_what_a_call_takes_beside_its_inputs() -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    found = load("gpt2_small")
    bound = found.bind(**{symbol: 1 if symbol == "N" else 6 for symbol in found.free_symbols})
    attention = next(op for op in bound.ops if op.kind.op == "attention")
    (seen,) = constants_of(torch, attention)
    assert seen.tolist() == [[key <= query for key in range(6)] for query in range(6)]
    assert shapes_of(attention) == []
    assert attention_by_products is not CALLS["attention"]


def test_gradients_are_of_the_statistics_of_the_batch() -> None:
    """With stored ones no training runs, and PyTorch takes other kernels."""
    told: list[bool] = []

    def batch_norm(*operands: Any, training: bool = False) -> Any:
        told.append(training)
        return operands[0]

    torch = stand_in(gpu=False)
    torch.nn.functional.batch_norm = batch_norm
    for task in TASKS:
        session = TorchSession(torch, trace(), 1, TorchMode(device="cpu"), stack="pytorch-cpu", task=task)
        session._calls["batch_norm"](torch, None, [1.0], [1.0] * 4)
    assert told == [False, True]
