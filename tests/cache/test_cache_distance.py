"""Stack distances: against counting by hand, against simulation, and the correction for sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr

from archsim.cache import distance
from archsim.cache.access import Accesses
from archsim.cache.distance import StackDistances, hit_chance
from archsim.cache.hierarchy import Hierarchy, Level
from archsim.cache.simulate import simulate

LINES = st.lists(st.integers(0, 40), min_size=1, max_size=300)


def by_hand(lines: list[int]) -> list[int]:
    stack: list[int] = []
    found = []
    for line in lines:
        found.append(stack.index(line) if line in stack else -1)
        if line in stack:
            stack.remove(line)
        stack.insert(0, line)
    return found


@given(LINES)
def test_distances_are_positions_in_the_stack(lines: list[int]) -> None:
    assert StackDistances(fast=False).feed(np.array(lines)).tolist() == by_hand(lines)


def test_in_pieces_and_at_both_speeds(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distance, "FIRST_ROOM", 8)  # so that the times are numbered anew many times
    lines = np.random.RandomState(3).randint(0, 300, 5000) * 1_000_003
    state = StackDistances(fast=fast)
    pieces = [state.feed(lines[begin : begin + 77]) for begin in range(0, len(lines), 77)]
    assert np.concatenate(pieces).tolist() == by_hand(lines.tolist())
    assert state.curve.uses == len(lines)
    assert state.curve.cold == len(np.unique(lines))


@given(LINES, st.integers(1, 48))
def test_the_curve_is_the_simulation_of_every_fully_associative_cache(lines: list[int], ways: int) -> None:
    state = StackDistances(fast=False)
    state.feed(np.array(lines))
    cache = Hierarchy(levels=(Level(name="L", size=64 * ways, ways=ways),))
    misses = simulate(cache, [Accesses(address=64 * np.array(lines))], fast=False).counts[0].misses
    assert state.curve.misses(ways) == misses


def test_repeats_count_as_hits_of_the_smallest_cache() -> None:
    state = StackDistances(fast=False)
    state.feed(np.array([1, 2, 1]), np.array([3, 1, 2]))
    assert state.curve.uses == 6
    assert [state.curve.misses(n) for n in (1, 2)] == [3, 2]


def test_points_fall_to_the_cold_misses() -> None:
    state = StackDistances(fast=False)
    state.feed(np.tile(np.arange(100), 3))
    points = state.curve.points()
    assert points[0] == (1, 300)
    assert points[-1] == (100, 100)
    assert [misses for _, misses in points] == sorted((misses for _, misses in points), reverse=True)


def test_the_chance_is_the_tail_of_a_binomial_distribution() -> None:
    distances = np.array([0, 1, 3, 8, 100, 5000, 200_000])
    for sets, ways in ((1, 4), (2, 1), (64, 8), (1024, 16)):
        tail = bdtr(np.minimum(ways - 1, distances), distances, 1 / sets)
        np.testing.assert_allclose(hit_chance(distances, sets, ways), tail, atol=1e-12)


def test_the_correction_predicts_random_lines() -> None:
    lines = np.random.RandomState(1).randint(0, 1 << 40, 900)[np.random.RandomState(2).randint(0, 900, 40_000)]
    state = StackDistances(fast=False)
    state.feed(lines)
    cache = Hierarchy(levels=(Level(name="L", size=64 * 512, ways=4),))
    misses = simulate(cache, [Accesses(address=64 * lines)], fast=False).counts[0].misses
    assert state.curve.misses_in_sets(128, 4) == pytest.approx(misses, rel=0.02)
    assert abs(state.curve.misses(512) - misses) > 0.02 * misses or state.curve.misses(512) != misses


def test_too_many_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distance, "MOST_LINES", 100)
    monkeypatch.setattr(distance, "FIRST_ROOM", 8)
    state = StackDistances(fast=False)
    state.feed(np.arange(100))
    state.feed(np.arange(100, 200))
    with pytest.raises(ValueError, match="distinct lines"):
        state.feed(np.arange(100))
