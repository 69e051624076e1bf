"""Before and after: ops matched, limits that move, and a knob that does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import make_request
from archsim.estimation.result import Estimate
from archsim.study.whatif import change


def of(net: str = "alexnet", hw: str = "tegra_x1", **choices: Any) -> Estimate:
    return estimate_of(make_request(net, hw, **choices), references=False)


def test_twice_the_bandwidth_frees_the_fully_connected_layers() -> None:
    found = change(of(), of(settings={"memory.bandwidth": "51.2 GB/s"}), ("memory.bandwidth = 51.2 GB/s",))
    ratios = {op.name: op.ratio for op in found.ops}
    assert ratios["fc6"] < 0.75 < 0.9 < ratios["conv2"]
    moved = [op.name for ops in found.moves.values() for op in ops]
    assert "fc6" in moved
    assert "conv2" not in moved
    assert found.ratios["latency_s"] == pytest.approx(found.after.latency_s / found.before.latency_s)
    assert not found.idle


def test_fewer_SMs_move_ops_to_the_arithmetic() -> None:
    found = change(of("vgg_16", "gtx_1080"), of("vgg_16", "gtx_1080", settings={"sm.count": "4"}), ())
    assert ("memory-bound", "compute-bound") in found.moves


@pytest.mark.parametrize(("key", "value", "idle"), [("market.price", "1 USD", True), ("memory.capacity", "8 GiB", False)])
def test_what_only_informs_changes_nothing_and_memory_that_only_holds_more_does(key: str, value: str, idle: bool) -> None:
    assert change(of(), of(settings={key: value}), ()).idle == idle


def test_ops_of_one_side_are_kept() -> None:
    found = change(of("alexnet_owt"), of("alexnet"), ())
    sides = {(op.before is None, op.after is None) for op in found.ops}
    assert (False, True) in sides or (True, False) in sides
    assert (False, False) in sides
    assert all(op.ratio is None and not op.moved for op in found.ops if op.before is None or op.after is None)
