"""The largest batch under conditions, and the best stack there."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from archsim.study.comparison import ComparedDevices
from archsim.study.within import conditions_of, held, largest_within


def quiet(_: str) -> None:
    pass


def device(latency_s: Callable[[int], float], most: int = 1000) -> Callable[[int | None], Any]:
    """A device that takes this time for a batch and holds `most` samples."""

    def at(batch: int | None) -> Any:
        n = batch or 1
        time = latency_s(n)
        return SimpleNamespace(fits=n <= most, latency_s=time, throughput_per_s=n / time, energy_j=time, throughput_per_w=1.0,
                               estimate=SimpleNamespace(batch=n, memory_bytes=1.0, max_batch=most))  # fmt: skip

    return at


def line(n: int) -> float:
    return 1e-3 * (1 + n)


@pytest.mark.parametrize(("latency_s", "most", "where", "batch"), [
    (line, 1000, "latency < 10ms", 8),  # 9 takes 10 ms, which is not less
    (line, 1000, "latency <= 10ms", 9),
    (line, 100, "latency < 1s", 100),  # the memory ends it
    (lambda n: 20e-3 if n == 8 else line(n) / 4, 1000, "latency < 5ms", 18),  # not monotone: 8 is slower than 16
    (line, 1000, "throughput > 930/s and latency < 16ms", 14),  # between two powers of two only
])  # fmt: skip
def test_the_largest_batch_is_found(latency_s: Callable[[int], float], most: int, where: str, batch: int) -> None:
    point, meets = largest_within(device(latency_s, most), conditions_of(where))
    assert (meets, point.estimate.batch) == (True, batch)


@pytest.mark.parametrize(("where", "most", "batch"), [
    ("latency < 1ms", 1000, 1), ("throughput > 995/s", 100, 100), ("latency < 1s", 0, 1),
    ("throughput > 990/s and latency < 9ms", 1000, 8),
])  # fmt: skip
def test_without_one_it_is_the_batch_that_misses_least(where: str, most: int, batch: int) -> None:
    point, meets = largest_within(device(line, most), conditions_of(where))
    assert not meets
    assert abs(point.estimate.batch - batch) <= batch // 2  # of two conditions, somewhere between both


def test_one_sample_more_misses_the_condition() -> None:
    found = held(ComparedDevices(["gtx_1080"]), "alexnet", conditions_of("latency < 10ms"), False, None, quiet)
    (point,) = found.comparison.contenders
    more = ComparedDevices(["gtx_1080"]).at("alexnet", point.estimate.batch + 1, False, None, quiet).contenders[0]
    assert point.latency_s < 10e-3 <= more.latency_s


def test_the_best_stack_is_that_of_a_comparison() -> None:
    found = held(ComparedDevices(["l4"]), "resnet_50", conditions_of("latency < 10ms"), False, None, quiet)
    (best,) = found.best_stacks
    asked = {"precision": best.precision}
    there = ComparedDevices(["l4"], [best.stack], asked).at("resnet_50", best.batch, False, None, quiet).contenders[0]
    assert best.ratio == pytest.approx(found.comparison.contenders[0].latency_s / there.latency_s)
    assert best.ratio > 2
    named = held(ComparedDevices(["l4"], ["pytorch-2"]), "resnet_50", conditions_of("latency < 10ms"), False, None, quiet)
    assert named.best_stacks == ()
