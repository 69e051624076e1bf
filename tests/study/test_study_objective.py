"""The Pareto filter against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archsim.study.objective import pareto_front

ROWS = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 6).map(float), min_size=k, max_size=k), min_size=1, max_size=40)
)


def dominates(a: list[float], b: list[float]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@given(ROWS)
def test_the_front_is_what_nothing_dominates(rows: list[list[float]]) -> None:
    kept = pareto_front(np.array(rows)).tolist()
    expected = {tuple(row) for row in rows if not any(dominates(other, row) for other in rows)}
    assert {tuple(rows[i]) for i in kept} == expected
    assert len(kept) == len(expected)


@given(ROWS)
def test_it_does_not_depend_on_the_order(rows: list[list[float]]) -> None:
    kept = [rows[i] for i in pareto_front(np.array(rows))]
    turned = rows[::-1]
    assert [turned[i] for i in pareto_front(np.array(turned))] == kept


def test_nothing_and_what_is_no_number() -> None:
    assert pareto_front(np.empty((0, 2))).size == 0
    assert pareto_front(np.array([[np.nan, 0.0], [1.0, 1.0]])).tolist() == [1]
