"""Laws of comparison: a higher clock is not slower, nor another core; a bigger batch does not take less time.

The time of the kernels obeys them exactly, op by op, in the bounds that a change touches. Three effects are deliberate and
have a tolerance where they enter:

- A library takes the algorithm that is fastest on the device, as cuDNN's own search does. A faster one can make it choose
  one of more launches; the host then needs longer, by the time of these launches and no more: `extra_launches`.
- One more core makes the tree of a barrier deeper: `BARRIER`.
- A product of a few rows is a matrix-vector kernel, one of more rows a tiled one, which may be faster: `BATCH`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from archsim.calibration.constants import default
from archsim.cost.team import dispatch_clock
from archsim.device import catalog as devices
from archsim.device.device import Gpu
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, make_request

from .test_law_bounds import cells

BARRIER = 1.12
BATCH = 1.20  # a library chooses by the time of the device; for a small batch that may be more kernels for the host to launch
EXACT = 1 + 1e-9


def usual(kind: str = "") -> st.SearchStrategy[dict[str, Any]]:
    """Cells in the closed form, without a power limit of their own."""
    others = ("fidelity", "power_limit")
    return cells(kind).map(lambda cell: {name: value for name, value in cell.items() if name not in others})


FACTORS = st.sampled_from((1.05, 1.5, 2.0, 4.0))


def kernel_time(result: Run) -> np.ndarray[Any, Any]:
    """Time of each op's kernels, without waiting for the host."""
    plans = result.lowered.plan_of
    return np.where(plans >= 0, result.cost.time_s[0][np.maximum(plans, 0)], 0.0)


def extra_launches(cell: dict[str, Any], before: Run, after: Run) -> float:
    """Host time of the launches that the second run has and the first has not [s]; a CPU launches none."""
    request = make_request(**cell)
    if not request.stack.host or request.spec.kind == "cpu":
        return 0.0

    def launches(result: Run) -> np.ndarray[Any, Any]:
        plans = result.lowered.plan_of
        return np.where(plans >= 0, result.cost.launches[0][np.maximum(plans, 0)], 0.0)

    each = default()["dispatch.launch"] / float(dispatch_clock(request.host))
    return float(np.maximum(0.0, launches(after) - launches(before)).sum()) * each


@given(cell=usual(), factor=FACTORS)
def test_a_higher_clock_is_not_slower(cell: dict[str, Any], factor: float) -> None:
    """Of two clocks that are named, with power for both; a CPU without a named one has the turbo of idle cores on top."""
    usual = float(np.ravel(make_request(**cell).clock)[0])
    before, after = (run(make_request(**cell, clock=usual * share, power_limit=1e5)) for share in (1.0 / factor, 1.0))
    assert np.all(kernel_time(after) <= kernel_time(before) * EXACT)
    assert after.latency_s[0] <= before.latency_s[0] * EXACT + extra_launches(cell, before, after)


@given(cell=usual("cpu"))
def test_another_core_is_not_slower(cell: dict[str, Any]) -> None:
    """A library with a grain gives a narrow product to one thread where there are more of them, and a pool is woken thread by
    thread: there they stay as they are."""
    request = make_request(**cell)
    device = request.spec.device
    core, last = device.core, "l2" if device.l3 is None else "l3"
    more = {"core.count": str(int(core.count) + 1), "core.threads": str(int(core.threads) + int(core.threads) // int(core.count))}
    if getattr(device, last).shared_by == core.count:  # one that joins a cache of all, not the first of another
        more[f"{last}.shared_by"] = more["core.count"]
    threads = request.threads if request.stack.min_rows_per_thread or request.stack.fork_lines else None
    assert run(make_request(**cell, settings=more, threads=threads)).latency_s[0] <= run(request).latency_s[0] * BARRIER


@given(cell=usual())
def test_twice_the_batch_does_not_take_less_time(cell: dict[str, Any]) -> None:
    """A library with a grain multiplies few rows on one thread, and twice as many on all: there one thread has to do.

    Halves on a pipe that is slower than the one for fp32 (GP104: a 64th) run in tiles that nobody has tuned for it.
    """
    device = devices.find(cell["hw"]).device
    if cell["precision"] == "fp16" and isinstance(device, Gpu):
        assume(device.rate.fp16 is None or device.rate.fp16 >= device.rate.fp32)
    threads = 1 if make_request(**cell).stack.min_rows_per_thread else None
    single, double = (run(make_request(**cell | {"batch": n * cell["batch"]}, threads=threads)) for n in (1, 2))
    assert double.latency_s[0] >= single.latency_s[0] / BATCH


@given(cell=usual())
def test_twice_the_batch_is_twice_the_useful_arithmetic(cell: dict[str, Any]) -> None:
    def macs(request: Request) -> int:
        return sum(op.macs for op in request.trace.ops if op.phase != "update")

    assert macs(make_request(**cell | {"batch": 2 * cell["batch"]})) == 2 * macs(make_request(**cell))


@given(cell=usual("gpu"))
def test_a_device_twice_as_fast_in_everything_takes_half_the_kernel_time(cell: dict[str, Any]) -> None:
    """All rates times two and all latencies over two: time scales exactly, where no power limit lowers the clock."""
    cell = cell | {"power_limit": 99e3}
    request = make_request(**{"clock": float(np.ravel(devices.find(cell["hw"]).device.default_clock)[0]), **cell})
    assume(not request.graph)  # whose gap between kernels is a constant of all devices
    twice = {}
    clocks = dict.fromkeys(("clock.base", "clock.boost", "clock.sustained"), 2)
    for key, factor in {"memory.bandwidth": 2, "memory.latency": 0.5, "launch.latency": 0.5, **clocks}.items():
        number, _, unit = request.spec.entries[key].written.strip().partition(" ")
        twice[key] = f"{float(number) * factor!r} {unit}"
    fast = make_request(**cell, settings=twice, clock=2 * float(np.ravel(request.clock)[0]))
    np.testing.assert_allclose(2 * kernel_time(run(fast)), kernel_time(run(request)), rtol=1e-9)
