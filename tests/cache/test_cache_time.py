"""The time of a traced program: bounds that hold, an overlap that the core's own simulation has, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.base.errors import ArgumentError
from archsim.cache.access import Accesses
from archsim.cache.hierarchy import Hierarchy, Level
from archsim.cache.simulate import Simulation
from archsim.cycle.core.loops import streamed
from archsim.cycle.core.misses import AccessCounts, MissWindow, ProgramTime, program_time
from archsim.cycle.core.run import run_loop
from archsim.device.spec import Spec
from archsim.estimation.hardware import find_device
from archsim.explain.caches import of_trace
from archsim.explain.simulated import levels_of
from tests.core_loops import zen5

PROGRAM = Path(__file__).parent / "valgrind" / "program.lackey.gz"


@pytest.fixture
def timed(tmp_path: Path) -> Callable[..., ProgramTime]:
    """The time of the lines of a trace."""

    def run(lines: Sequence[str], hw: str | Spec = "i7_6700k", name: str = "a.lackey") -> ProgramTime:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", "utf-8")
        spec = find_device(hw, None, None) if isinstance(hw, str) else hw
        found = of_trace(spec, path, curve=False, timed=True, fast=False).timing
        assert found is not None
        return found

    return run


def far(count: int, steps: int = 1, kind: str = "L", apart: int = 1 << 20) -> list[str]:
    """Accesses to lines that no cache has, with some instructions before each."""
    return [line for i in range(count) for line in (*["I  00400000,4"] * steps, f" {kind} {0x10000000 + i * apart:x},8")]


def test_instructions_and_levels_are_counted(timed: Callable[..., ProgramTime]) -> None:
    near = [line for _ in range(100) for line in ("I  00400000,4", " L 10000000,8")]
    found = timed([*near, " S 10000040,8", " M 10000080,8"])
    assert (found.instructions, found.counted) == (100, True)
    assert found.hits == {"L1": 100, "L2": 0, "L3": 0, "memory": 3}  # a modification is a load and a store


def test_the_levels_are_those_that_the_caches_count() -> None:
    spec = find_device("i7_6700k", None, None)
    found = of_trace(spec, PROGRAM, curve=False, timed=True)
    assert found.timing is not None
    first = found.levels[0].count
    assert found.timing.hits["L1"] == first.hits
    assert sum(found.timing.hits.values()) == first.requests
    assert found.timing.hits["memory"] == found.levels[-1].count.read_misses
    both = of_trace(spec, PROGRAM, curve=False, timed=True, instructions=True).timing
    assert both is not None
    assert (both.instructions, both.hits["L1"]) == (found.timing.instructions, found.timing.hits["L1"])


def test_misses_within_the_window_overlap_and_others_do_not(timed: Callable[..., ProgramTime]) -> None:
    together, apart = timed(far(64, steps=2)), timed(far(64, steps=600))
    latency = 64 * find_device("i7_6700k", None, None).device.memory.latency
    assert together.time_s < 0.2 * together.upper_s
    assert apart.time_s > 0.9 * latency


def test_no_more_misses_overlap_than_there_are_fill_buffers(timed: Callable[..., ProgramTime]) -> None:
    """Little's law: loads that nobody foresees keep a buffer of the L1 until their lines are there."""
    for buffers in (2, 4, 8):
        spec = find_device("i7_6700k", {"core.miss_buffers": str(buffers)}, None)
        assert timed(far(160), spec).time_s == pytest.approx(160 / buffers * spec.device.memory.latency, rel=0.05)


def test_lines_that_stores_have_written_cross_the_bus_again(timed: Callable[..., ProgramTime]) -> None:
    """A stream that does not fit is read and goes back: twice the lines of one that is read alone, once the caches are full."""
    small = find_device("i7_6700k", {"l3.size": "64 KiB", "l2.size": "64 KiB"}, None)
    read, written = (timed(far(8192, kind=kind, apart=64), small).bounds_s["memory"] for kind in "LS")
    assert written == pytest.approx(2.0 * read, rel=0.15)


def test_a_larger_window_overlaps_more(timed: Callable[..., ProgramTime]) -> None:
    small, large = (timed(far(64, steps=60), find_device("i7_6700k", {"pipeline.window": entries}, None)).time_s
                    for entries in ("64", "512"))  # fmt: skip
    assert large < 0.7 * small


def test_stores_do_not_hold_back_what_follows(timed: Callable[..., ProgramTime]) -> None:
    loads, stores = (timed(far(40, steps=300, kind=kind)).time_s for kind in "LS")
    assert stores < 0.5 * loads


def test_a_stream_is_prefetched_and_a_random_chain_is_not(timed: Callable[..., ProgramTime]) -> None:
    stream, random = (timed(far(512, steps=400, apart=apart)) for apart in (64, 1 << 20))
    assert stream.hits["memory"] == random.hits["memory"] == 512
    assert stream.time_s < 0.5 * random.time_s
    assert stream.upper_s == pytest.approx(random.upper_s)


def test_a_stream_takes_what_the_simulation_of_the_core_says(timed: Callable[..., ProgramTime]) -> None:
    loop, trips = streamed("triad", 256, level=4), 1500
    lines, bases = [], {"x": 1 << 28, "y": 2 << 28, "z": 3 << 28}
    for trip in range(trips):
        for one in loop.operations:
            if not one.folded:
                lines.append("I  00400000,4")
            if one.memory is not None:
                at = bases[one.memory.stream] + trip * 128 + one.memory.offset
                lines.append(f" {'S' if one.kind == 'store' else 'L'} {at:x},{one.memory.size}")
    found = timed(lines, "epyc_9655")
    assert found.time_s * found.clock_hz / trips == pytest.approx(run_loop(zen5(), loop).cycles, rel=0.35)


def test_a_trace_without_instructions_counts_one_for_each_access(timed: Callable[..., ProgramTime]) -> None:
    found = timed(["0 10000000", "1 10000008"], name="a.din")
    assert (found.instructions, found.counted) == (2, False)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(1, 3), st.integers(0, 400)), max_size=60))
def test_the_three_times_are_in_order(misses: list[tuple[int, bool, int, int]]) -> None:
    machine = zen5()
    window, counts = MissWindow(machine), AccessCounts(hits=[0, 0, 0, 0])
    at = stores = 0
    for after, store, level, line in misses:
        at, stores = at + after, stores + store
        counts.hits[level] += 1
        window.miss(at, stores, store, level, line)
    counts.instructions = at
    before = window.clocks(at)
    found = program_time(machine, counts, window, 1.0, counted=True)
    assert found.lower_s <= found.time_s <= found.upper_s
    assert found.upper_s >= before - 1e-6 * before


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 80), min_size=1, max_size=200))
def test_each_request_is_given_the_level_that_has_its_line(lines: list[int]) -> None:
    hierarchy = Hierarchy(levels=(Level(name="L1", size=256, ways=2), Level(name="L2", size=1024, ways=4)))
    state = Simulation(hierarchy, fast=False, watched=True)
    steps = state.feed(Accesses(address=np.array(lines) * 64, store=np.array([line % 2 for line in lines])))
    level, written = levels_of(steps)
    first, second = state.counts
    assert np.count_nonzero(level) == first.misses
    assert np.count_nonzero(level == 2) == second.read_misses
    assert written.sum(axis=1).tolist() == [first.dirty_evictions, second.dirty_evictions]


def test_a_gpu_is_refused() -> None:
    with pytest.raises(ArgumentError, match="--time is of a program on a CPU"):
        of_trace(find_device("gtx_1080", None, None), PROGRAM, timed=True)
