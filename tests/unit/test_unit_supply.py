"""Losses of a power supply at the loads of its class, and bytes that a simulation counted in place of the closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from archsim.cost.moved import MovedBytes, MovedCpuTerms, MovedGpuTerms
from archsim.cost.power import LOADS, supply_loss

GOLD = (0.83, 0.87, 0.9, 0.87)


def test_a_supply_loses_at_the_loads_of_its_class_what_the_class_says() -> None:
    assert LOADS == (0.1, 0.2, 0.5, 1.0)
    for load, efficiency in zip((0.1, 0.2, 0.5, 1.0), GOLD, strict=True):
        assert supply_loss(1000.0 * load, 1000.0, GOLD) == pytest.approx(1000.0 * load * (1 / efficiency - 1))


def test_a_supply_with_nothing_to_feed_loses_what_it_does_at_a_tenth() -> None:
    assert supply_loss(0.0, 1000.0, GOLD) == pytest.approx(100.0 * (1 / 0.83 - 1))


@pytest.mark.parametrize("terms", [MovedGpuTerms, MovedCpuTerms])
def test_memory_traffic_is_what_was_read_and_written(terms: type[MovedGpuTerms] | type[MovedCpuTerms]) -> None:
    moved = MovedBytes(dram_read=np.array([5.0]), dram_written=np.array([3.0]), shared=np.array([7.0]), core=np.array([11.0]))
    one = object.__new__(terms)
    object.__setattr__(one, "moved", moved)
    assert one.dram_bytes.tolist() == [8.0]
