"""The notebook table: short, complete, harmless."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import archsim
from archsim.base.units import show
from archsim.estimation.result import Estimate
from archsim.report.notebook import LONGEST, STRIPE, notebook_table


def test_the_totals_are_there(alexnet: Estimate) -> None:
    body = notebook_table(alexnet)
    for words in (
        "alexnet on tegra_x1", show(alexnet.latency_s, "s"), show(alexnet.throughput_per_s, "img/s"),
        show(alexnet.power_w, "W", 3), show(alexnet.energy_j, "J", 3), show(alexnet.memory_bytes, "B", 3),
    ):  # fmt: skip
        assert words in body


def test_references_stand_beside_their_predictions(alexnet: Estimate) -> None:
    body = notebook_table(alexnet)
    assert body.count(">measured<") == len(alexnet.references) > 0
    assert all(f"{100 * reference.error:+.1f} %" in body for reference in alexnet.references)


def test_what_was_measured_otherwise_is_said(alexnet: Estimate) -> None:
    other = replace(alexnet.references[0], conditions=("core clock 690 MHz, not 998 MHz",))
    assert "measured with core clock 690 MHz, not 998 MHz" in notebook_table(replace(alexnet, references=(other,)))
    assert "measured with" not in notebook_table(alexnet)


def test_an_estimate_shows_itself(alexnet: Estimate) -> None:
    assert alexnet._repr_html_() == notebook_table(alexnet)


def test_nothing_from_a_file_becomes_a_tag(nasty: Estimate) -> None:
    body = notebook_table(nasty)
    tags = {element.tag for element in ElementTree.fromstring(body.replace("<br>", "<br/>")).iter()}
    assert tags == {"table", "caption", "b", "br", "tbody", "tr", "th", "td", "span"}
    assert "&lt;script&gt;" in body
    assert "<script" not in body


def test_it_is_short_even_for_a_large_network(training: Estimate) -> None:
    assert len(notebook_table(training)) < 4000


def test_the_stripe_has_the_shares_of_the_bounds(alexnet: Estimate) -> None:
    widths = [float(width) for width in re.findall(r"width:([0-9.]+)px;background", notebook_table(alexnet))]
    assert sum(widths) == pytest.approx(STRIPE, rel=0.02)
    largest = max(alexnet.breakdown_s.values()) / sum(alexnet.breakdown_s.values())
    assert max(widths) == pytest.approx(STRIPE * largest, abs=0.1)


def test_a_sweep_shows_its_front_and_a_comparison_its_bars() -> None:
    points = archsim.sweep("alexnet", "gtx_1080", vary={"sm.count": [10, 20, 40]})._repr_html_()
    svg = ElementTree.fromstring(points[points.index("<svg") : points.index("</svg>") + 6])
    assert len(svg.findall("circle")) >= 3 + 1
    assert "<svg" not in archsim.sweep("alexnet", "gtx_1080")._repr_html_()  # one point is no picture
    compared = archsim.compare("alexnet", "gtx_1080,tegra_x1")._repr_html_()
    widths = [float(width) for width in re.findall(r"width:([0-9.]+)px;margin", compared)]
    assert max(widths) == LONGEST
    assert len(widths) == 2
