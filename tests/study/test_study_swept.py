"""What a reader of a sweep wants: best points, fronts, what is impossible; and the blocks that say it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from archsim import sweep
from archsim.answers.sweep import DRAWN, sections
from archsim.api.sweep import Sweep
from archsim.render.blocks import Block, Chart, Table, Verdict
from archsim.study.swept import KEPT, SweepCollector, SweptPoints, collected


@pytest.fixture(scope="module")
def small() -> Sweep:
    return sweep("alexnet", "gtx_1080", vary={"sm.count": [10, 20, 40], "memory.bandwidth": ["160GB/s", "320.32GB/s"]})


def swept(s: Sweep) -> SweptPoints:
    return collected(s.space, s.requests, zip(*s.columns.values(), strict=True))


def charts(blocks: Sequence[Block]) -> list[Chart]:
    return [block for block in blocks if isinstance(block, Chart)]


def test_the_front_is_what_nothing_beats_in_time_and_energy(small: Sweep) -> None:
    listed = {row["point"] for row in swept(small).fronts["alexnet"]}
    points = list(zip(small["latency_s"], small["energy_j"], strict=True))
    beaten = {i for i, (t, e) in enumerate(points) for u, f in points if u <= t and f <= e and (u, f) != (t, e)}
    assert listed == set(range(6)) - beaten
    assert 0 < len(listed) < 6
    assert swept(small).best["alexnet"]["fastest"]["point"] == small["latency_s"].index(min(small["latency_s"]))


def test_points_that_come_in_parts_give_the_same(small: Sweep) -> None:
    collector = SweepCollector(space=small.space, requests=small.requests)
    for row in zip(*small.columns.values(), strict=True):
        collector.add([row])
    assert collector.done() == swept(small)


def test_two_numbers_are_a_map_and_one_is_a_line_for_each_device(small: Sweep) -> None:
    shaded = [block for block in sections(small) if isinstance(block, Table) and block.rows[0][1].shade is not None]
    assert [len(table.rows) for table in shaded] == [3, 3]  # time and energy
    slowest = max(cell.shade or 0.0 for row in shaded[0].rows for cell in row)
    assert shaded[0].rows[0][1].shade == slowest  # fewest SMs, least bandwidth
    lines = charts(sections(sweep("alexnet", "gtx_1080,tesla_k40", vary={"sm.count": [10, 20]})))[0]
    assert [series.name for series in lines.series] == ["gtx_1080", "tesla_k40"]


def test_a_large_sweep_is_a_small_page_and_says_what_is_left_out() -> None:
    many = sweep("alexnet", "gtx_1080", vary={"sm.count": "8:40:1", "memory.bandwidth": "100GB/s:900GB/s:200log"})
    chart = charts(sections(many))[-1]
    assert many.points > KEPT
    assert len(many.to_page()) < 500_000
    assert f"of {many.points:,} points are drawn" in chart.notes[0]
    assert sum(len(series.x) for series in chart.series if series.mark) < DRAWN + 100
    assert {series.name for series in chart.series if series.name} == {"other points", "Pareto front", "as it is"}


def test_what_does_not_fit_is_a_ring_and_on_no_front() -> None:
    found = sweep("vgg_16", "gtx_1080", vary={"batch": [1, 8, 4096]})
    assert 2 not in {row["point"] for row in swept(found).fronts["vgg_16"]}
    assert swept(found).beyond == 1
    page = found.to_page()
    assert "1 need more memory than their device has" in page
    assert "per sample" in page
    assert charts(sections(found))[0].series[0].hollow == [False, False, True]


def test_impossible_points_are_counted_with_their_reason() -> None:
    found = swept(sweep("alexnet", "gtx_1080", vary={"power.idle": ["5W", "500W"]}))
    assert (found.count, found.impossible) == (2, 1)
    assert found.problems == (("power.idle: 500 W is more than power.tdp (180 W)", 1),)


def test_what_all_points_share_is_said_once() -> None:
    found = sections(sweep("alexnet", "gtx_1080", set={"sm.count": "40", "memory.type": "HBM2"}, vary={"batch": [1, 2]}))
    verdict, *rest = found
    assert isinstance(verdict, Verdict)
    assert "sm.count = 40" in verdict.title
    cells = [cell.text for block in rest if isinstance(block, Table) for row in block.rows for cell in row]
    assert not any("sm.count" in text for text in cells)
