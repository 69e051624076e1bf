"""What renderers share: numbers that stay numbers, Markdown, charts in files."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest

import archsim
from archsim.render.blocks import Axis, Chart, Facts, Note, Series, Table, Verdict, columns, stacked, words
from archsim.render.charts import drawn
from archsim.render.html import page
from archsim.render.markdown import WIDTH, markdown, pictures
from archsim.render.text import csv_lines

from ..chromium import CHROMIUM, Browser

LINES = Chart(title="Time of a|b", name="time of a/b", x=Axis(title="batch"), y=Axis(title="time", unit="s"),
              series=[Series(name=name, x=[1, 2, 400], y=[1e-3, 2e-3, y]) for name, y in (("first", 3e-3), ("<second>", 4e-3))])


def test_csv_escapes_formulas_and_no_numbers() -> None:
    assert csv_lines([["-0.5", "-1e-05", "+3", "-1+1", "=1", "@a", "-inf", -2.0]]) == "-0.5,-1e-05,+3,'-1+1,'=1,'@a,'-inf,-2.0\n"


def test_markdown_has_headings_lists_and_tables_that_a_name_cannot_break() -> None:
    table = Table(title="T", columns=columns("name", "", "time", numbers=[2], bars=[1]), notes=["a note"], first=[0],
                  rows=[[words(name), stacked({"dram": 1.0}, 1.0), words("1 ms")] for name in ("a|b", "c")])
    blocks = [Verdict(title="<b>", asked=["x", "y < 2"], lines=[("1 ms", "80 %", "")], sentences=["So."]), table,
              Facts(title="F", rows=[("one", ["a", "b"]), ("none", "")]), Note(text="careful", tone="warning"),
              Note(text="deep", level=1)]  # fmt: skip
    assert markdown(blocks, 2) == (
        "## &lt;b>\n\nx · y < 2\n\n- **1 ms**; 80 %\n\nSo.\n\n"
        "**T**\n\n| name | time |\n| --- | ---: |\n| a\\|b | 1 ms |\n\n1 more\n\na note\n\n"
        "**F**\n\n- one: a; b\n\n**Warning:** careful\n\n"
    )


def test_a_chart_in_markdown_is_a_picture_beside_it() -> None:
    found = pictures([LINES, Chart(title="empty")])
    assert [*found] == ["time_of_a_b.svg"]
    assert "![Time of a|b](time_of_a_b.svg)" in markdown([LINES])
    assert "![" not in markdown([Chart(title="empty", notes=["nothing"])])
    root = ElementTree.fromstring(found["time_of_a_b.svg"])
    assert root.get("width") == str(WIDTH)
    said = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said.count("first") == said.count("<second>") == 1  # beside its line, so that no legend repeats it


def spans(picture: str, height: float) -> list[tuple[float, float]]:
    """Where the numbers below the axis stand, from left to right [px]."""
    inner = ElementTree.fromstring(picture).find("{http://www.w3.org/2000/svg}svg")
    assert inner is not None
    width = float(str(inner.get("width")))
    found = []
    for text in inner.findall("{http://www.w3.org/2000/svg}text"):
        if float(str(text.get("y"))) == height + 17:
            middle, half = width * float(str(text.get("x")).rstrip("%")) / 100, 3.0 * len(str(text.text))
            found.append((middle - half, middle + half))
    return sorted(found)


def test_numbers_of_an_axis_do_not_overlap() -> None:
    chart = Chart(title="t", x=Axis(title="bandwidth", unit="B/s", log=True),
                  series=[Series(name="s", x=[8.1e10, 1.42e12], y=[1.0, 2.0])])  # fmt: skip
    placed = spans(drawn(chart, 800), chart.height)
    assert len(placed) > 4
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(placed))


def test_a_legend_takes_the_lines_that_it_needs() -> None:
    many = Chart(title="t", series=[Series(name=f"a rather long name {i}", x=[1, 2], y=[1, i]) for i in range(12)])
    root = ElementTree.fromstring(drawn(many, 600))
    keys = [(float(str(text.get("x"))), float(str(text.get("y")))) for text in root.findall("{http://www.w3.org/2000/svg}text")]
    assert len(keys) == 12
    assert len({y for _, y in keys}) > 2
    assert max(x for x, _ in keys) < 600 - 100


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
def test_a_chart_of_many_points_comes_closer_and_keeps_its_names_in_sight(browser: Browser, tmp_path: Path) -> None:
    bars = Series(name="", x=[0.0, 0.5], ends=[0.1, 0.6], y=[0, 0])
    chart = Chart(title="t", zooms=True, x=Axis(title="time", unit="s"), y=Axis(title="", names=["row"]), series=[bars])
    (tmp_path / "page.html").write_text(page([chart]), "utf-8")
    browser.open((tmp_path / "page.html").as_uri())
    width, place = (f"document.querySelector('{one}').getBoundingClientRect()" for one in (".drawing > svg", ".side text"))
    before, left = browser.run(f"{width}.width"), browser.run(f"{place}.left")
    assert browser.run("getComputedStyle(document.querySelector('.fine')).display") == "none"
    browser.run("for (var i = 0; i < 3; i += 1) { document.querySelector('.choice button').click(); }")
    assert browser.run(f"{width}.width") == pytest.approx(8 * before, rel=0.01)
    assert browser.run("getComputedStyle(document.querySelector('.fine')).display") != "none"
    browser.wait(f"document.querySelector('.zooms').scrollLeft > 100 && Math.abs({place}.left - {left}) < 1")


def test_a_chart_is_a_figure_of_plotly_with_its_values_and_colours() -> None:
    estimate = archsim.estimate("alexnet", "tegra_x1")
    found = estimate.to_figures()
    assert {"Roofline", "Power over time"} <= {*found}
    (curve,) = found["Power over time"].data
    assert (list(curve.y)[:-1], curve.line.shape) == (list(estimate.power_over_time.power_w), "hv")
    roof = found["Roofline"]
    assert (roof.layout.xaxis.type, roof.layout.yaxis.type) == ("log", "log")
    assert {"memory", "arithmetic"} <= {trace.name for trace in roof.data}
