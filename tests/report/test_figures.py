"""The charts: what they show, how rows are put together, where words stand, and that labels are harmless."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest

from archsim.cost.bounds import BOUNDS
from archsim.device import catalog
from archsim.device.spec import Spec
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.report import figures
from archsim.report.bars import bars
from archsim.report.layer_tree import layer_tree, tree_html
from archsim.report.layers import MOST, by_kind, by_op, is_large
from archsim.report.palette import look
from archsim.report.placement import LETTER, LINE, PlotFrame, labels, peak_labels
from archsim.report.roofline import RooflineChart, roof
from archsim.report.roofline_svg import svg
from archsim.report.study_figures import PlotAxis, Series, lines

GIGA = 1e9


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from strings(child)


def frame_of(shown: RooflineChart) -> PlotFrame:
    return PlotFrame(width=960, height=480, x=shown.x, y=shown.y)


def test_every_bound_has_its_own_colour_and_symbol() -> None:
    assert set(BOUNDS) == {"compute", "dram", "l1", "l2", "link", "two_pass", "latency", "launch", "host", "input", "power",
                           "buffer", "none"}  # fmt: skip
    assert len({row.colour for row in BOUNDS.values()}) == len({row.symbol for row in BOUNDS.values()}) == len(BOUNDS)
    assert look("mystery") == BOUNDS["none"]


def test_a_small_network_is_shown_op_by_op(alexnet: Estimate) -> None:
    rows = by_op(alexnet)
    assert [row.name for row in rows] == [op.name for op in alexnet.ops if op.time_s > 0]
    assert not is_large(alexnet)


@pytest.mark.parametrize("most", [1, 5, 20])
def test_small_ops_are_put_together_and_nothing_is_lost(alexnet: Estimate, most: int) -> None:
    rows = by_op(alexnet, most)
    live = [op for op in alexnet.ops if op.time_s > 0]
    assert rows[-1].name == f"other {len(live) - most} ops"
    assert sum(row.count for row in rows) == len(live)
    assert math.isclose(sum(row.time for row in rows), alexnet.latency_s, rel_tol=1e-12)
    assert math.isclose(sum(row.energy for row in rows), alexnet.energy_j, rel_tol=1e-9)


def test_the_longest_ops_are_those_kept(training: Estimate) -> None:
    rows = by_op(training)
    times = sorted((op.time_s for op in training.ops), reverse=True)
    assert len(rows) == MOST + 1
    assert sorted((row.time for row in rows[:-1]), reverse=True) == times[:MOST]


def test_kinds_hold_all_time_the_longest_first(training: Estimate) -> None:
    rows = by_kind(training)
    assert math.isclose(sum(row.time for row in rows), training.latency_s, rel_tol=1e-12)
    assert [row.time for row in rows] == sorted((row.time for row in rows), reverse=True)
    assert {"conv2d", "conv2d, backward data", "conv2d, backward filter", "update"} <= {row.name for row in rows}


def test_bars_have_the_colours_of_their_bounds(alexnet: Estimate) -> None:
    drawn = re.findall(r"background:(#[0-9a-f]{6})", bars(by_op(alexnet), alexnet.latency_s, alexnet.energy_j))
    assert set(drawn) == {BOUNDS[op.bound].colour for op in alexnet.ops if op.time_s > 0}
    assert len(drawn) == 2 * len(by_op(alexnet))


def test_the_longest_bar_fills_the_width(alexnet: Estimate) -> None:
    widths = [float(share) for share in re.findall(r"width:([0-9.]+)%", bars(by_op(alexnet), alexnet.latency_s, 1.0))]
    assert max(widths) == 100.0


def leaves(tree: list[Any]) -> Iterator[list[Any]]:
    for node in tree:
        if len(node) == 2:
            yield from leaves(node[1])
        else:
            yield node


def test_a_tree_of_blocks_holds_each_op_once(training: Estimate) -> None:
    live = [op for op in training.ops if op.time_s > 0]
    found = list(leaves(layer_tree(training)))
    assert len(found) == len(live)
    assert math.isclose(sum(leaf[1] for leaf in found), sum(op.time_s for op in live), rel_tol=1e-3)
    assert math.isclose(sum(leaf[2] for leaf in found), sum(op.energy_j for op in live), rel_tol=1e-3)
    assert [name for name, _ in layer_tree(training)][:1] == ["forward"]


def test_many_blocks_of_one_stem_are_one_group() -> None:
    bert = estimate("bert_large", "a100_sxm4_40gb", precision="fp16", seq_len=64)
    names = [node[0] for node in layer_tree(bert)]
    assert "block1 to block24" in names
    assert "block1" not in names


def test_no_name_of_a_file_becomes_markup_in_bars_and_blocks(nasty: Estimate) -> None:
    drawn = bars(by_op(nasty), nasty.latency_s, nasty.energy_j) + bars(by_kind(nasty), nasty.latency_s, nasty.energy_j)
    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn
    assert tree_html(nasty).count("<") == len(("<div>", "<script>", "</script>", "</div>"))


def test_labels_of_charts_carry_no_tag(nasty: Estimate, nasty_spec: Spec) -> None:
    chart = lines([Series(name="<script>", x=[1.0], y=[1.0])], PlotAxis(title="<b>"), PlotAxis(title="y"))
    words = list(strings(json.loads(chart.to_json())["data"]))
    assert any("&lt;script&gt;" in text for text in words)
    assert not [text for text in words if "<" in text.replace("<br>", "")]


def test_an_embedded_chart_holds_no_markup_of_the_data() -> None:
    chart = lines([Series(name="<script>", x=[1.0], y=[1.0])], PlotAxis(title="<b>"), PlotAxis(title="y"))
    piece = figures.embed(chart, "by-layer")
    assert piece.count("<") == len(("<div>", "<div>", "</div>", "<script>", "</script>", "</div>"))


@pytest.mark.parametrize("device", ["h100_sxm5_80gb", "gtx_1080", "tegra_x1", "epyc_9655"])
def test_names_of_ceilings_cover_no_other(device: str) -> None:
    shown = roof(estimate("alexnet", device, batch=16), catalog.find(device))
    placed = peak_labels(shown, frame_of(shown))
    assert len(placed) == len(shown.ceilings)
    for (a, end_a, y_a), (b, end_b, y_b) in combinations(placed, 2):
        apart = end_a <= end_b - LETTER * len(b.name) or end_b <= end_a - LETTER * len(a.name)
        assert apart or abs(y_a - y_b) >= LINE


def test_the_roofline_holds_every_op_that_computes_and_moves(training: Estimate) -> None:
    shown = roof(training, catalog.find("gtx_1080"))
    expected = [op for op in training.ops if op.flop > 0 and op.dram_bytes > 0 and op.time_s > 0]
    assert sum(point.count for point in shown.points) == len(expected)
    assert math.isclose(sum(point.time_s for point in shown.points), sum(op.time_s for op in expected))
    for point in shown.points:
        assert shown.x[0] < point.intensity < shown.x[1]
        assert shown.y[0] < point.rate < shown.y[1]


def test_ops_in_the_shadow_of_others_stand_no_higher_in_the_roofline() -> None:
    """On several streams an op may add nothing to the latency; it runs for as long all the same."""
    one, four = (estimate("googlenet", "tesla_v100_sxm2", batch=16, stack="pytorch-2", graph=True, fidelity="event", streams=n)
                 for n in (1, 4))  # fmt: skip
    spec = catalog.find("tesla_v100_sxm2")
    highest = [max(point.rate for point in roof(e, spec).points) for e in (one, four)]
    assert highest[1] <= highest[0] * (1 + 1e-6)


def test_ops_that_stay_in_the_caches_are_named(alexnet: Estimate, tegra: Spec) -> None:
    still = replace(alexnet, ops=(replace(alexnet.ops[0], dram_bytes=0.0), *alexnet.ops[1:]))
    assert roof(still, tegra).cached == ("conv1", *roof(alexnet, tegra).cached)


def test_ceilings_are_the_peaks_of_the_device_at_the_clock_of_the_estimate(alexnet: Estimate, tegra: Spec) -> None:
    ceilings = {ceiling.name.partition(":")[0]: ceiling for ceiling in roof(alexnet, tegra).ceilings}
    assert ceilings["fp32"].rate == 2 * 2 * 128 * 690e6
    assert ceilings["fp16"].rate == 2 * ceilings["fp32"].rate
    assert [name for name, ceiling in ceilings.items() if ceiling.chosen] == ["fp32"]
    assert ceilings.keys() == {"fp64", "fp32", "fp16"}


def test_halves_that_a_chip_widens_have_no_ceiling_of_their_own() -> None:
    """A GTX 1080 multiplies 2 halves per clock and SM as such, so that programs compute them as fp32."""
    spec = catalog.find("gtx_1080")
    charts = {precision: roof(estimate("alexnet", "gtx_1080", precision=precision), spec) for precision in ("fp32", "fp16")}
    names = {precision: [one.name.partition(":")[0] for one in chart.ceilings] for precision, chart in charts.items()}
    assert names == {"fp32": ["fp64", "fp32", "int8"], "fp16": ["fp64", "fp32, fp16 computed as fp32", "int8"]}


def test_a_cpu_that_uses_half_its_cores_has_half_the_peak() -> None:
    spec = catalog.find("i7_6700k")
    whole, half = (roof(estimate("alexnet", "i7_6700k", threads=threads), spec).top for threads in (4, 2))
    assert math.isclose(half, whole / 2)


@pytest.mark.parametrize("device", ["tegra_x1", "gtx_1080"])
def test_names_in_the_roofline_do_not_overlap(device: str) -> None:
    shown = roof(estimate("alexnet", device, batch=16), catalog.find(device))
    frame = frame_of(shown)
    memory, *names = labels(shown, frame)
    assert memory.angle < 0
    assert len(names) > 1
    for a, b in combinations(names, 2):
        apart_x = LETTER * (len(a.name) + len(b.name)) / 2 <= abs(a.x - b.x)
        assert apart_x or abs(a.y - b.y) >= LINE
    assert all(0 < name.x < frame.width and 0 < name.y < frame.height for name in names)


def test_a_roofline_without_points_is_drawn(alexnet: Estimate, tegra: Spec) -> None:
    empty = replace(alexnet, ops=())
    shown = roof(empty, tegra)
    assert shown.points == ()
    assert len(labels(shown, frame_of(shown))) == 1
    assert "<svg" in svg(empty, tegra)


def test_the_picture_is_sound_xml_and_the_same_each_time(nasty: Estimate, nasty_spec: Spec) -> None:
    picture = svg(nasty, nasty_spec)
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()}
    assert tags == {"svg", "title", "rect", "text", "g", "line", "circle"}
    assert picture == svg(nasty, nasty_spec)


def test_the_picture_shows_each_point_once(alexnet: Estimate, tegra: Spec) -> None:
    shown = roof(alexnet, tegra)
    legend = len({point.bound for point in shown.points})
    assert svg(alexnet, tegra).count("<circle") == len(shown.points) + legend


def test_the_memory_ceiling_slants_as_the_axes_have_it() -> None:
    frame = PlotFrame(width=400, height=400, x=(1.0, 1e4), y=(GIGA, 1e4 * GIGA))
    assert math.isclose(frame.slope, -45)
    assert frame.place(1.0, GIGA) == (0.0, 400.0)
