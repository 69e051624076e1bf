"""The page of a sweep: the front is the front, each point has its machine, and large sweeps stay small pages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from archsim import sweep
from archsim.report.sweep_page import MOST_POINTS

if TYPE_CHECKING:
    from archsim.api.sweep import Sweep


@pytest.fixture(scope="module")
def small() -> Sweep:
    return sweep("alexnet", "gtx_1080", vary={"sm.count": [10, 20, 40], "memory.bandwidth": ["160GB/s", "320.32GB/s"]})


def machines(page: str) -> dict[str, Any]:
    (told,) = re.findall(r'class="machine".*?<script type="application/json">(.*?)</script>', page, re.DOTALL)
    found: dict[str, Any] = json.loads(told)
    return found


def test_each_point_opens_its_machine_beside_the_base(small: Sweep) -> None:
    told = machines(small.to_page())
    assert len(told["rows"]) == 6
    assert told["names"][:2] == ["sm.count", "memory.bandwidth"]
    assert told["bases"]["gtx_1080"][0] == "20"
    row = next(row for row in told["rows"] if row[3][:2] == ["40", "160 GB/s"])
    assert row[4][0] == "x 2"
    assert row[4][told["names"].index("latency")].startswith("x ")


def test_the_front_is_what_nothing_beats_in_time_and_energy(small: Sweep) -> None:
    page = small.to_page()
    listed = {int(name) for name in re.findall(r">open (\d+)</button>", page)}
    points = list(zip(small["latency_s"], small["energy_j"], strict=True))
    beaten = {i for i, (t, e) in enumerate(points) for u, f in points if u <= t and f <= e and (u, f) != (t, e)}
    assert listed == set(range(6)) - beaten
    assert 0 < len(listed) < 6


def test_a_large_sweep_is_a_small_page_and_says_what_is_left_out() -> None:
    many = sweep("alexnet", "gtx_1080", vary={"sm.count": "8:40:1", "memory.bandwidth": "100GB/s:900GB/s:60log"})
    page = many.to_page()
    assert len(page) < 1_000_000
    assert f"of {many.points:,} points are drawn" in page
    assert MOST_POINTS <= len(machines(page)["rows"]) < many.points


def test_what_does_not_fit_is_a_ring_and_on_no_front() -> None:
    page = sweep("vgg_16", "gtx_1080", vary={"batch": [1, 8, 4096]}).to_page()
    assert "1 points need more memory" in page or "1 point needs more memory" in page
    assert ">open 2</button>" not in page
    assert "time per sample" in page


def test_equal_sweeps_are_equal_pages(small: Sweep) -> None:
    again = sweep("alexnet", "gtx_1080", vary={"sm.count": [10, 20, 40], "memory.bandwidth": ["160GB/s", "320.32GB/s"]})
    assert again.to_page() == small.to_page()


def test_words_of_a_file_cannot_become_tags(small: Sweep) -> None:
    assert "</script><script>" not in small.to_page().replace("</script>\n<script>", "")
