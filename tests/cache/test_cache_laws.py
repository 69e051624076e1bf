"""What holds for any stream: fewer misses in larger LRU caches, sums, conserved bytes, inclusion, and equal speeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import MissingExtra
from archsim.cache import kernel
from archsim.cache.access import Accesses
from archsim.cache.compile import available, compiled
from archsim.cache.hierarchy import POLICIES, Hierarchy, Level
from archsim.cache.simulate import Simulation, simulate

from ..each import each

LINES = st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=250)


def stream(lines: list[tuple[int, bool]], size: int = 8, cores: int = 1) -> Accesses:
    number = np.array([line for line, _ in lines])
    store = np.array([int(written) for _, written in lines])
    return Accesses(address=64 * number, size=size, store=store, core=np.arange(len(lines)) % cores)


def misses(accesses: Accesses, sets: int, ways: int, policy: str = "lru") -> int:
    cache = Hierarchy(levels=(Level(name="L", size=64 * sets * ways, ways=ways, policy=policy),))
    return simulate(cache, [accesses], fast=False).counts[0].misses


@given(LINES, st.integers(1, 6), st.integers(1, 6))
def test_more_ways_never_miss_more_under_lru(lines: list[tuple[int, bool]], sets: int, ways: int) -> None:
    assert misses(stream(lines), sets, ways + 1) <= misses(stream(lines), sets, ways)


@given(LINES, st.sampled_from([1, 2, 4]), st.integers(1, 6))
def test_twice_the_sets_never_miss_more_under_lru(lines: list[tuple[int, bool]], sets: int, ways: int) -> None:
    assert misses(stream(lines), 2 * sets, ways) <= misses(stream(lines), sets, ways)


def test_beladys_anomaly_of_fifo() -> None:
    lines = [(line, False) for line in (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)]
    assert misses(stream(lines), 1, 3, "fifo") == 9
    assert misses(stream(lines), 1, 4, "fifo") == 10
    assert misses(stream(lines), 1, 4, "lru") <= misses(stream(lines), 1, 3, "lru")


def test_associativity_may_hurt_a_loop() -> None:
    lines = [(line, False) for line in range(5)] * 10
    assert (misses(stream(lines), 1, 4), misses(stream(lines), 4, 1)) == (50, 23)


def test_policies_by_hand() -> None:
    """Four ways filled with 0 to 3, then 0 used again, then a new line: which one has left shows in who misses next."""
    fill = [0, 1, 2, 3, 0, 4]
    gone = {"lru": 1, "fifo": 0, "tree-plru": 2, "bit-plru": 1, "srrip": 1}
    for policy, line in gone.items():
        base = misses(stream([(x, False) for x in fill]), 1, 4, policy)
        lost = [x for x in range(4) if misses(stream([(y, False) for y in (*fill, x)]), 1, 4, policy) > base]
        assert lost == [line], policy


def test_srrip_keeps_what_was_used_again_through_a_scan() -> None:
    lines = [0, 1, 0, 1, *range(10, 14), 0, 1]
    assert misses(stream([(x, False) for x in lines]), 1, 4, "srrip") == 6
    assert misses(stream([(x, False) for x in lines]), 1, 4, "lru") == 8


KINDS: dict[str, dict[str, Any]] = {
    "plain": {}, "write through": {"write": "through"}, "no allocation": {"allocate": False, "write": "through"},
    "no fetch": {"fetch": False}, "sectors": {"sector": 16}, "sectors without fetch": {"sector": 16, "fetch": False},
    "hashed": {"hashed": True}, "three sets": {"size": 64 * 3 * 2},
}  # fmt: skip


def two(policy: str = "lru", holds: str = "any", cores: int = 1, **options: Any) -> Hierarchy:
    first = Level(**{"name": "L1", "size": 64 * 4 * 2, "ways": 2, "policy": policy, **options})
    second = Level(name="L2", size=64 * 4 * 4, ways=4, policy=policy, holds=holds, sector=options.get("sector", 0), cores=cores)
    return Hierarchy(levels=(first, second), cores=cores)


@pytest.mark.parametrize("options", KINDS.values(), ids=list(KINDS))
@given(lines=LINES, policy=st.sampled_from(list(POLICIES)))
def test_hits_and_misses_are_all_and_bytes_are_conserved(
    options: dict[str, Any], lines: list[tuple[int, bool]], policy: str
) -> None:
    accesses = stream(lines)
    state = Simulation(two(policy, **options), fast=False, watched=True)
    asked = state.feed(accesses)
    first, second = state.counts
    sector = state.hierarchy.sector
    assert first.requests == len(lines)
    assert second.requests == asked[1].count.sum()
    for count, below in zip((first, second), asked[1:], strict=True):
        sectors = np.array([int(mask).bit_count() for mask in below.mask]) * below.count
        assert count.bytes_read == sectors[below.kind == 0].sum() * sector
        assert count.bytes_written == sectors[below.kind != 0].sum() * sector
    written = {(a // 64, a % 64 // sector) for a, s in zip(accesses.address.tolist(), accesses.store.tolist(), strict=True) if s}
    if options.get("write") != "through":  # every sector that was written is in memory or still dirty somewhere
        assert second.bytes_written + sum(state.dirty_bytes) >= len(written) * sector
        assert (second.bytes_written + sum(state.dirty_bytes) > 0) == bool(written)


@given(lines=LINES, policy=st.sampled_from(list(POLICIES)), holds=st.sampled_from(["inclusive", "exclusive"]))
def test_what_a_level_holds(lines: list[tuple[int, bool]], policy: str, holds: str) -> None:
    cores = 2 if holds == "inclusive" else 1
    state = Simulation(two(policy, holds, cores), fast=False)
    state.feed(stream(lines, cores=cores))
    above, below = (held(state, level) for level in (0, 1))
    if holds == "inclusive":
        assert above <= below
    else:
        assert not above & below
    wrote = len({line for line, written in lines if written})
    assert state.counts[1].bytes_written + sum(state.dirty_bytes) >= 64 * wrote


def held(state: Simulation, level: int) -> set[int]:
    """The lines that a level has."""
    return set(state.cells(level)[:, 0].ravel().tolist()) - {-1}


def test_an_exclusive_pair_holds_as_much_as_both() -> None:
    loop = [(line, False) for line in range(6)] * 20
    full = Level(name="L1", size=64 * 2, ways=2)
    small = Level(name="L2", size=64 * 4, ways=4, holds="exclusive")
    state = simulate(Hierarchy(levels=(full, small)), [stream(loop)], fast=False)
    assert state.counts[1].bytes_read == 6 * 64
    state = simulate(Hierarchy(levels=(full, replace(small, holds="inclusive"))), [stream(loop)], fast=False)
    assert state.counts[1].bytes_read == len(loop) * 64


def test_dirty_data_survive_a_move_up_and_an_invalidation() -> None:
    one = Level(name="L1", size=64, ways=1)
    exclusive = Hierarchy(levels=(one, Level(name="L2", size=64, ways=1, holds="exclusive")))
    state = simulate(exclusive, [stream([(1, True), (2, False), (1, False)])], fast=False)
    assert sum(state.dirty_bytes) + state.counts[1].bytes_written == 64
    inclusive = Hierarchy(levels=(Level(name="L1", size=128, ways=2), Level(name="L2", size=64, ways=1, holds="inclusive")))
    state = simulate(inclusive, [stream([(1, True), (2, False)])], fast=False)
    assert state.counts[0].invalidations == 1
    assert state.counts[1].bytes_written == 64


def test_cores_have_their_own_first_level_and_share_the_last() -> None:
    accesses = Accesses(address=np.array([0, 0, 0, 0]), core=np.array([0, 1, 0, 1]))
    state = simulate(two(cores=2), [accesses], fast=False)
    assert (state.counts[0].misses, state.counts[0].hits) == (2, 2)
    assert (state.counts[1].misses, state.counts[1].hits) == (1, 1)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="numba (extra fast) is not installed")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("holds", ["any", "inclusive", "exclusive"])
def test_both_speeds_give_equal_states(policy: str, holds: str) -> None:
    draw = np.random.RandomState(5)
    accesses = Accesses(address=draw.randint(0, 1 << 13, 600), size=draw.randint(1, 200, 600), store=draw.randint(0, 2, 600))
    for options in KINDS.values():
        if holds == "exclusive" and options.get("write") == "through":
            continue
        plain, fast = (simulate(two(policy, holds, **options), [accesses], fast=speed) for speed in (False, True))
        assert plain.counts == fast.counts
        for level in range(2):
            assert plain.cells(level).tolist() == fast.cells(level).tolist()


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 6))
def test_loops_search_and_shift_a_set_as_lists_do(lines: list[int], ways: int) -> None:
    row = [-1] * ways + [0]
    both = [row + [0] * (ways + 1) for _ in range(2)]
    for i, line in enumerate(lines):
        there = line in both[0][:ways]
        assert kernel.search_by_loop(both[1], line, 0, ways) == kernel.search(both[0], line, 0, ways)
        assert kernel.promote(both[0], line, 0, ways) == kernel.promote_by_loop(both[1], line, 0, ways) == there
        for cells in both:
            cells[ways + 1] |= 1 << i % 7
        assert both[0] == both[1] or there  # what a hit leaves in the spare cells is nobody's
        assert both[0][:ways] == both[1][:ways]
        assert both[0][ways + 1 : -1] == both[1][ways + 1 : -1]
        assert both[0][0] == line


def test_pieces_make_no_difference(fast: bool) -> None:
    draw = np.random.RandomState(6)
    accesses = Accesses(address=draw.randint(0, 1 << 13, 3000), store=draw.randint(0, 2, 3000))
    whole = simulate(two(), [accesses], fast)
    pieces = simulate(two(), [accesses.part(begin, begin + 7) for begin in range(0, 3000, 7)], fast)
    assert whole.counts == pieces.counts


def test_without_numba_the_compiled_speed_is_named_and_the_plain_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.base.machine_code.find_spec", lambda name: None)
    compiled.cache_clear()
    with pytest.raises(MissingExtra, match=r"archsim\[fast\]"):
        Simulation(two(), fast=True)
    assert not Simulation(two()).fast


@pytest.mark.slow
@each("policy", POLICIES)
@each("options", KINDS.values())
def test_repeats_taken_together_are_repeats_one_by_one(options: dict[str, Any], policy: str) -> None:
    draw = np.random.RandomState(7)
    lines = np.repeat(draw.randint(0, 40, 200), draw.randint(1, 4, 200))
    accesses = Accesses(address=64 * lines, store=np.repeat(draw.randint(0, 2, 200), 5)[: len(lines)])
    together = simulate(two(policy, **options), [accesses], fast=False)
    singly = simulate(two(policy, **options), [accesses.part(i, i + 1) for i in range(len(lines))], fast=False)
    assert together.counts == singly.counts
