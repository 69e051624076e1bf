"""The PyTorch backend without PyTorch: a stand-in whose tensors are numpy arrays and whose GPU is a clock of ticks."""

from __future__ import annotations

import contextlib
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import Unsupported
from archsim.measure.nodes import BUILDERS
from archsim.measure.torch_session import CALLS, TorchSession, session_class
from archsim.trace.file import load, loads
from archsim.trace.trace import BoundTrace


class Tensor(np.ndarray[Any, Any]):
    """A numpy array that may be moved to a device."""

    def to(self, device: str) -> Tensor:
        return self


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
        randn=lambda shape: np.random.default_rng(0).standard_normal(shape).view(Tensor), from_numpy=lambda a: a.view(Tensor),
        inference_mode=contextlib.nullcontext, cat=lambda x, axis: np.concatenate(x, axis).view(Tensor),
        nn=SimpleNamespace(functional=SimpleNamespace(linear=linear, relu=lambda x: np.maximum(x, 0))),
        backends=SimpleNamespace(cudnn=SimpleNamespace(allow_tf32=True),
                                 cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))),
        cuda=SimpleNamespace(is_available=lambda: gpu, Event=Event),
    )  # fmt: skip
    return torch


def trace() -> BoundTrace:
    records: list[dict[str, Any]] = [
        {"schema": "archsim-trace/1", "name": "tiny", "inputs": {"x": [2, 4]}, "dtype": "fp32", "source": "test"},
        {"op": "linear", "name": "fc1", "in": ["x"], "out": [2, 8]},
        {"op": "relu", "name": "relu1", "in": ["fc1"], "out": [2, 8]},
        {"op": "linear", "name": "fc2", "in": ["relu1"], "out": [2, 3], "bias": False},
        {"op": "concat", "name": "both", "in": ["fc1", "fc2"], "out": [2, 11]},
    ]
    return loads("".join(json.dumps(record) + "\n" for record in records)).bind()


def test_a_network_runs_and_is_timed_op_by_op_on_the_processor() -> None:
    session = TorchSession(stand_in(gpu=False), trace(), 2, "cpu")
    assert (session.stack, session.host, session.threads, session.software) == ("pytorch-cpu", "cpu", 2, "torch 0.stand_in")
    assert session.outputs() == [(2, 11)]
    assert session.timed(3) > 0
    times, others = session.per_op(3)
    assert list(times) == [("fc1",), ("relu1",), ("fc2",), ("both",)]
    assert all(seconds > 0 for seconds in times.values())
    assert others == 0


def test_a_gpu_is_timed_by_its_events() -> None:
    torch = stand_in(gpu=True)
    session = TorchSession(torch, trace(), 2, "cuda")
    assert [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32] == [False, False]
    assert (session.stack, session.host, session.threads) == ("pytorch-2", "gpu", 1)
    assert session.timed(3) == pytest.approx(6e-3)  # two products in each run
    times, _ = session.per_op(1)
    assert times == {("fc1",): 1e-3, ("relu1",): 0.0, ("fc2",): 1e-3, ("both",): 0.0}


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
    session = TorchSession(torch, bound, 1, "cpu")
    assert session.outputs() == [next(op.shape for op in bound.ops if op.name == name) for name in bound.outputs]
