"""The picture of error against time: names cover neither each other nor a mark, and nothing leaves the plot."""

import re
from itertools import combinations

import pytest

from archsim.report.lines_svg import HEIGHT, WIDTH

from ..readme.ladder_svg import LadderStep, ladder_svg

TEXT = re.compile(r'<text x="([\d.-]+)" y="([\d.-]+)" font-size="13" [^>]*font-weight="600">([^<]+)<')


def drawn(*figures: tuple[str, float, float]) -> str:
    return ladder_svg([LadderStep(name=name, median=error, p90=2 * error, seconds=s) for name, error, s in figures], "rows")


@pytest.mark.parametrize("steps", [
    [("roofline", 0.7, 0.011), ("analytical", 0.1, 0.011), ("event", 0.1, 0.015), ("cycle", 0.1, 0.4)],
    [("one", 0.1, 0.01), ("two", 0.1, 0.01), ("three", 0.1, 0.01), ("four", 0.1, 0.01)],
    [("one", 0.0001, 1e-6), ("two", 9.0, 1e3)],
])  # fmt: skip
def test_names_lie_inside_and_apart(steps: list[tuple[str, float, float]]) -> None:
    names = [(float(x), float(y), name) for x, y, name in TEXT.findall(drawn(*steps))]
    assert {name for _, _, name in names} == {name for name, _, _ in steps}
    assert all(0 <= x <= WIDTH - 40 and 0 <= y <= HEIGHT for x, y, _ in names)
    assert all(abs(a[0] - b[0]) > 30 or abs(a[1] - b[1]) > 30 for a, b in combinations(names, 2))


def test_equal_figures_give_equal_bytes_and_others_do_not() -> None:
    one = drawn(("roofline", 0.7, 0.01), ("cycle", 0.1, 0.4))
    assert drawn(("roofline", 0.7, 0.01), ("cycle", 0.1, 0.4)) == one
    assert drawn(("roofline", 0.7, 0.01), ("cycle", 0.2, 0.4)) != one
    assert "rows; disc: median error" in one
