"""A changed copy of a stack, a spec, a trace or a calibration is another one, without anybody saying so."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from archsim.api import estimate
from archsim.base.record import digest_of
from archsim.calibration import constants
from archsim.device import catalog as devices
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.stack import catalog as stacks
from archsim.trace.file import digest as trace_digest
from archsim.trace.file import load as network

RECORDS: dict[str, tuple[Callable[[], Any], Callable[[Any], str]]] = {
    "stack of a GPU": (lambda: stacks.find("pytorch-2"), lambda record: record.digest),
    "stack of a CPU": (lambda: stacks.find("ncnn-cpu"), lambda record: record.digest),
    "spec": (lambda: devices.find("tegra_x1"), lambda record: record.digest),
    "calibration": (constants.default, lambda record: record.digest),
    "trace": (lambda: network("bert_base"), trace_digest),
}


def changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1 if value + 1 != value else 1.0
        case str():
            return f"{value}_"
        case tuple():
            return (*value, value[0] if value else "more")
        case Mapping():
            return {f"{name}_": one for name, one in value.items()}
        case None:
            return 1.0
    raise AssertionError(f"no other value of {value!r} is known")


def variants(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Copies of a record with one field replaced, in the record itself or in the first record of any of its fields."""
    for each in fields(record):
        if each.metadata.get("label") or not each.compare:
            continue
        value, at = getattr(record, each.name), f"{path}{each.name}"
        inner = next(iter(value.items()), None) if isinstance(value, Mapping) else None
        if is_dataclass(value):
            yield from ((name, replace(record, **{each.name: one})) for name, one in variants(value, f"{at}."))
        elif inner is not None and is_dataclass(inner[1]):
            yield from ((name, replace(record, **{each.name: {**value, inner[0]: one}}))
                        for name, one in variants(inner[1], f"{at}.{inner[0]}."))  # fmt: skip
            yield at, replace(record, **{each.name: changed(value)})
        elif value != {}:  # nothing is known of what it may hold
            yield at, replace(record, **{each.name: changed(value)})


@pytest.mark.parametrize("name", RECORDS)
def test_whatever_field_is_replaced_the_digest_is_another(name: str) -> None:
    make, digest = RECORDS[name]
    record = make()
    found = {"": digest(record)}
    for path, other in variants(record):
        found[path] = digest(other)
    assert len(found) > 8
    twice = sorted(path for path, one in found.items() if list(found.values()).count(one) > 1)
    assert not twice, f"{name}: the digest does not see {', '.join(twice)}"
    assert digest(pickle.loads(pickle.dumps(record))) == found[""]


def test_a_digest_is_of_values_and_of_nothing_else() -> None:
    column = np.arange(3000.0)[:, None]
    other = column.copy()
    other[1500] += 1.0  # where the text of an array shows dots
    assert digest_of({"a": column}) != digest_of({"a": other})
    assert digest_of(np.float64(0.5)) == digest_of(0.5)
    assert digest_of(("a", "b")) != digest_of(("b", "a"))
    with pytest.raises(TypeError, match="plain data"):
        digest_of({"a": object()})


def another_bias(request: Request) -> dict[str, Any]:
    bias = "separate" if request.stack.conv.bias != "separate" else "fused"
    return {"conv": replace(request.stack.conv, bias=bias), "linear_bias": bias}


def more_passes(request: Request) -> dict[str, Any]:
    passes = {name: {phase: replace(one, inputs=one.inputs + 1, launches=one.launches + 1) for phase, one in rows.items()}
              for name, rows in request.stack.passes.items()}  # fmt: skip
    return {"passes": passes}


@pytest.mark.parametrize(("net", "hw", "change"), [
    ("alexnet", "gtx_1080", another_bias), ("resnet_50", "tesla_k40", more_passes), ("vgg_16", "i7_6700k", more_passes),
])  # fmt: skip
def test_a_stack_that_was_replaced_gives_its_own_answer_whatever_was_remembered(
    net: str, hw: str, change: Callable[[Request], dict[str, Any]]
) -> None:
    request = make_request(net=net, hw=hw, batch=16)
    before = run(request).latency_s
    other = replace(request.stack, **change(request))
    remembered = run(replace(request, stack=other)).latency_s
    fresh = run(replace(request, stack=replace(other, id=f"{other.id}-anew"))).latency_s
    assert remembered == fresh != before
    assert run(request).latency_s == before == estimate(net=net, hw=hw, batch=16).latency_s
