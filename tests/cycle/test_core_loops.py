"""Loops over streams by name: what they load, store and compute, and their measured clocks on a Zen 5 core."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from archsim.base.errors import ArgumentError
from archsim.cycle.core.loops import STREAMED, chase, dot_product, exponential, max_pool, row_sum, streamed
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.run import run_loop
from tests.core_loops import zen5
from tests.each import each

MEASURED: list[tuple[CoreLoop, float, float]] = [  # measured clocks, and by how much the simulation may differ
    (streamed("copy", 256, unroll=1), 0.9453, 0.06), (streamed("set", 256), 1.9983, 0.01), (streamed("relu", 512), 3.9988, 0.01),
    (streamed("add", 256), 4.0462, 0.02), (max_pool(256), 2.0951, 0.05), (streamed("divide", 256, unroll=2), 4.9958, 0.01),
    (streamed("root", 256, unroll=2), 8.9917, 0.01), (dot_product(256, accumulators=2), 3.9964, 0.01),
    (dot_product(256, 64, 4), 4.0183, 0.01), (dot_product(512, accumulators=10), 10.298, 0.04),
    (streamed("read", 256, level=2), 2.4492, 0.06), (streamed("triad", 256, level=2), 7.9933, 0.05),
    (streamed("copy", 256, level=3), 8.4536, 0.02), (chase(1), 7.8372, 0.03), (chase(2, footprint=1 << 18), 27.8142, 0.02),
    (exponential(512), 4.4913, 0.10), (exponential(256, unroll=2), 9.0549, 0.10),
]  # fmt: skip


@each(("loop", "clocks", "within"), MEASURED)
def test_a_loop_takes_about_the_clocks_that_were_measured(loop: CoreLoop, clocks: float, within: float) -> None:
    assert run_loop(zen5(), loop).cycles == pytest.approx(clocks, rel=within)


@each("name", sorted(STREAMED))
def test_a_streamed_function_loads_and_stores_what_it_says(name: str) -> None:
    reads, kind, flop = STREAMED[name]
    loop = streamed(name, 256, unroll=3)
    assert loop.bytes_loaded == 3 * 32 * reads
    assert loop.bytes_stored == (0 if name == "read" else 3 * 32)
    assert loop.flop == 3 * 8 * flop
    assert Counter(one.kind for one in loop.operations)[kind] == (3 if kind else 0)
    assert len(loop.streams) == reads + (name != "read")


def test_without_multiply_adds_a_loop_multiplies_and_adds() -> None:
    for loop in (streamed("triad", 256, fused=False), dot_product(256, fused=False), exponential(256, fused=False)):
        kinds = Counter(one.kind for one in loop.operations)
        assert not kinds["fma"]
        assert kinds["mul"] >= kinds["add"] > 0


def test_a_miss_of_the_tlb_takes_the_latency_of_the_cache_that_holds_the_page_tables() -> None:
    """8 B for each page of 4 KiB; 64 MiB have 128 KiB of them, in the L2. What the spec states, or a probe, comes before."""
    core, far = zen5(), chase(4, footprint=64 << 20)
    assert [core.translation_clocks(size << 20) for size in (16, 64, 4096)] == [4.0, 14.0, 50.0]
    assert core.translation_clocks(1 << 38) == core.near[-1][1]
    stated = replace(core, tlb=(*core.tlb[:2], 75.0))
    assert stated.translation_clocks(64 << 20) == 75.0
    loads = run_loop(core, chase(1)).cycles / core.load
    assert run_loop(stated, far).cycles - run_loop(core, far).cycles == pytest.approx((75.0 - 14.0) * round(loads), rel=0.01)


def test_more_accumulators_shorten_the_chain() -> None:
    clocks = [run_loop(zen5(), dot_product(256, accumulators=count)).cycles / count for count in (1, 2, 4)]
    assert clocks == pytest.approx([4.0, 2.0, 1.0], rel=0.02)


def test_a_sum_of_a_row_halves_it_until_one_value_is_left() -> None:
    loop = row_sum(512)
    kinds = Counter(one.kind for one in loop.operations)
    assert kinds["add"] == 4
    assert (kinds["cross"], kinds["shuffle"]) == (2, 2)
    assert loop.bytes_stored == 4


def test_another_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not one of copy, set"):
        streamed("move", 256)
