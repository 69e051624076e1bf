"""The notebook table: short, complete, harmless."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from archsim.base.units import show
from archsim.estimation.result import Estimate
from archsim.report.notebook import notebook_table


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
    assert tags == {"table", "caption", "b", "br", "tbody", "tr", "th", "td"}
    assert "&lt;script&gt;" in body
    assert "<script" not in body


def test_it_is_short_even_for_a_large_network(training: Estimate) -> None:
    assert len(notebook_table(training)) < 4000
