"""Kernels' display names are for people: whatever they are, every number stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from archsim.calibration.constants import default
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import make_request
from archsim.evidence.case import Case, Skip
from archsim.explain.caches import of_layer
from archsim.explain.layer import explain
from archsim.lower import lower as lowering
from archsim.lower.kernel import Kernel
from archsim.validation.predict import predict

NAMES = ("gemm", "gemv", "gemm_recurrent", "implicit_gemm", "direct", "winograd_2x2", "im2col", "col2im", "swap_axes", "update",
         "softmax", "relu", "max_pool", "attention", "bias", "")  # fmt: skip
SEED = 7

Renamed = Callable[[], None]


@pytest.fixture
def shuffle_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Renamed]:
    """From the call on, every kernel that is made has a random name, most of them those of other kernels."""
    made, draw = Kernel.__init__, random.Random(SEED).choice

    def forget() -> None:
        lowering._plan.cache_clear()
        lowering._lowered.cache_clear()

    def init(self: Kernel, **words: Any) -> None:
        made(self, **words | {"name": draw(NAMES)})

    def begin() -> None:
        forget()
        monkeypatch.setattr(Kernel, "__init__", init)

    yield begin
    monkeypatch.undo()
    forget()


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a record, with the path to it."""
    if isinstance(value, bool | int | float):
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for i, each in enumerate(value):
            yield from numbers(each, f"{path}[{i}]")
    elif is_dataclass(value):
        for field in fields(value):
            yield from numbers(getattr(value, field.name), f"{path}.{field.name}")


@pytest.mark.parametrize(
    ("net", "hw", "stack", "task"),
    [
        ("alexnet", "i7_6700k", "caffe-openblas", "training_step"),
        ("alexnet_r", "xeon_e5_2630_v3_2s", "torch7-cpu", "training_step"),
        ("lstm_32", "i7_6700k", "cntk-cpu", "training_step"),
        ("bert_base", "i7_6700k", "caffe-openblas", "inference"),
        ("alexnet", "gtx_1080", "caffe-native", "training_step"),
        ("resnet_18", "gtx_1080", "torch7-cudnn5.1", "training_step"),
        ("lstm_32", "tesla_k80", "torch7-cudnn5.1", "training_step"),
        ("gpt2_small", "h100_sxm5_80gb", "pytorch-2", "inference"),
    ],
)
def test_names_of_kernels_change_no_number_of_an_estimate(
    net: str, hw: str, stack: str, task: str, shuffle_names: Renamed
) -> None:
    def found() -> dict[str, float]:
        return dict(numbers(estimate_of(make_request(net, hw, stack=stack, batch=2, task=task), references=False)))

    before = found()
    assert len(before) > 100
    shuffle_names()
    assert found() == before


@pytest.mark.parametrize(
    ("net", "hw", "stack", "layer"),
    [("alexnet", "i7_6700k", "caffe-openblas", "conv2"), ("alexnet", "gtx_1080", "torch7-cudnn5.1", "conv3"),
     ("alexnet", "i7_6700k", "torch7-cpu", "pool1"), ("alexnet", "gtx_1080", "caffe-native", "conv2")],
)  # fmt: skip
def test_names_of_kernels_change_no_number_of_an_explanation(
    net: str, hw: str, stack: str, layer: str, shuffle_names: Renamed
) -> None:
    def found() -> dict[str, float]:
        return dict(numbers(explain(make_request(net, hw, stack=stack, batch=2), layer)))

    before = found()
    assert len(before) > 30
    shuffle_names()
    assert found() == before


@pytest.mark.parametrize(
    ("hw", "stack"),
    [("gtx_1080", "torch7-cudnn5.1"), ("gtx_1080", "torch7-cudnn3"), ("gtx_1080", "caffe-native"),
     ("i7_6700k", "caffe-openblas")],
)  # fmt: skip
def test_names_of_kernels_change_no_count_of_the_caches(hw: str, stack: str, shuffle_names: Renamed) -> None:
    def found() -> dict[str, float]:
        return dict(numbers(of_layer(make_request("resnet_56", hw, stack=stack), "layer3.8.conv2", curve=False)))

    before = found()
    shuffle_names()
    assert found() == before


def test_names_of_kernels_change_no_prediction_of_a_published_row(
    corpus: tuple[list[Case], list[Skip]], shuffle_names: Renamed
) -> None:
    cases = [case for case in corpus[0] if not case.simulated][::200]
    before = predict(cases, default()).tolist()
    shuffle_names()
    assert predict(cases, default()).tolist() == before
