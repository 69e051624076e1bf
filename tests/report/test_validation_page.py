"""The pages of a validation: every figure in them, what their bars and charts draw, harmless, and the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archsim.answers.cells import cell_tables, ratio_scale, scale, spread
from archsim.answers.corpus import sections as summary
from archsim.answers.validation import DRAWN, fair_share, scatter, sections, thin
from archsim.calibration.constants import default
from archsim.evidence.case import Case, Skip
from archsim.evidence.readers import read
from archsim.render.blocks import Table
from archsim.render.html import page
from archsim.validation.evaluation import Validation, ValidationSettings, validate
from archsim.validation.frozen import freeze

NASTY = '<script>alert("1")</script> & </title>\x07'
HEAD = "source,network,hardware,stack,task,batch,precision,threads,devices,clock_mhz,metric,value,split"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    place: Path = tmp_path_factory.mktemp("page") / "mine.csv"
    cells = [
        ("me", "gtx_1080", "latency_s", 0.01),
        ("me", "gtx_980", "throughput_per_s", 900.0),
        ("you", "gtx_1080", "power_w", 150.0),
    ]
    lines = [f"{s},alexnet,{h},caffe-cudnn5.1,inference,16,fp32,,1,,{m},{v},calibrate" for s, h, m, v in cells]
    place.write_text("\n".join([HEAD, *lines]) + "\n", "utf-8")
    found, skips = read(place)
    assert skips == []
    return found


@pytest.fixture(scope="module")
def result(cases: list[Case]) -> Validation:
    skips = [Skip(line=9, reason="no such thing"), Skip(line=10, reason="no such thing")]
    return replace(validate(cases, skips, ValidationSettings(calibration=default())), data="abc")


def many(result: Validation, sizes: dict[str, int]) -> Validation:
    """The first row so often under each source."""
    rows = tuple(replace(result.cases[0], source=name) for name, count in sizes.items() for _ in range(count))
    arrays = {name: np.repeat(getattr(result, name)[:1], len(rows)) for name in ("predicted", "error", "low", "high")}
    return replace(result, cases=rows, **arrays)


def test_every_score_is_on_the_page(result: Validation) -> None:
    text = page(sections(result))
    for group in result.overall:
        s = group.score
        for off in (s.mape, s.median_ape, s.p90_ape, *(b.median_ape for b in group.baselines.values())):
            assert f"{100 * off:.1f} %" in text
        assert f"{100 * s.bias:+.1f} %" in text
    assert "no such thing" in text
    assert "abc" in text
    assert text == page(sections(result))


def test_words_of_a_file_stay_words(cases: list[Case]) -> None:
    nasty = [replace(case, source=NASTY, label=NASTY, hardware=NASTY, stack_id=NASTY) for case in cases]
    skips = [Skip(line=1, reason=NASTY)]
    request = ValidationSettings(calibration=default(), by=("source", "label"))
    frozen = freeze(nasty, skips, default(), data=NASTY, version=NASTY)
    for body in (page(sections(validate(nasty, skips, request))), page(summary(frozen))):
        assert "<script>alert" not in body
        assert "\x07" not in body
        assert "src=" not in body


def test_rates_are_drawn_as_times_of_a_batch(result: Validation) -> None:
    points = scatter(result, "time").series[-1]
    assert list(points.x) == [0.01, pytest.approx(16 / 900, rel=1e-3)]
    assert points.y[1] == pytest.approx(16 / result.predicted[1], rel=1e-3)


def test_the_lines_are_the_diagonal_and_25_percent_beside_it(result: Validation) -> None:
    lines = [line for line in scatter(result, "time").series if not line.mark]
    assert sorted(round(line.y[0] / line.x[0], 2) for line in lines) == [0.75, 1.0, 1.25]


def test_a_dumbbell_has_interval_prediction_and_measurement_on_one_scale(result: Validation) -> None:
    latency = next(block for block in cell_tables(result) if isinstance(block, Table) and block.title == "Latency")
    interval, predicted, measured = latency.rows[0][3].bar
    assert (interval.sign, predicted.sign, measured.sign) == ("", "|", "o")
    assert interval.start < predicted.end < interval.end
    place = scale([0.01, result.predicted[0], result.low[0], result.high[0]])
    assert (measured.end, predicted.end) == pytest.approx((place(0.01), place(result.predicted[0])))


def test_bars_of_groups_hold_the_quantiles_of_the_errors() -> None:
    ratios = (0.5, 0.8, 1.0, 1.25, 2.0)
    place = ratio_scale([ratios])
    whole, middle, median, one = spread(ratios, place).bar
    assert (whole.start, middle.start, one.end, middle.end, whole.end) == pytest.approx([*map(place, ratios)])
    assert median.end == pytest.approx(0.5)
    assert spread((0.001, 0.1, 1.0, 10.0, 1000.0), ratio_scale([(0.001, 0.1, 1.0, 10.0, 1000.0)])).bar[0].end == 1.0


def test_large_sources_are_thinned_small_ones_are_not_and_the_chart_says_so(result: Validation) -> None:
    chart = scatter(many(result, {"big": 6000, "small": 100}), "time")
    assert [len(one.x) for one in chart.series[3:]] == [DRAWN - 100, 100]
    assert chart.zooms
    assert f"At most {DRAWN:,} of 6,100 rows are drawn" in chart.notes[0]


def test_many_sources_share_a_colour(result: Validation) -> None:
    chart = scatter(many(result, {f"s{i}": 20 - i for i in range(12)}), "time")
    assert chart.series[3].name.startswith("5 other sources (")
    assert sum(len(one.x) for one in chart.series[3:]) == sum(range(9, 21))


@pytest.mark.parametrize(("sizes", "most"), [([5, 50, 500], 100), ([10], 3), ([3, 3], 100), ([], 10), ([7, 7, 7], 2)])
def test_a_share_is_the_largest_that_fits(sizes: list[int], most: int) -> None:
    quota = fair_share(sizes, most)
    assert sum(min(size, quota) for size in sizes) <= most
    assert quota == max([*sizes, 0]) or sum(min(size, quota + 1) for size in sizes) > most
    assert all(len(thin(range(size), quota)) == min(size, quota) for size in sizes)


def test_the_summary_has_every_table_and_a_bar_for_each_class(cases: list[Case]) -> None:
    s = freeze(cases, [Skip(line=1, reason="why not")], default(), data="d", version="v")
    assert "not run for this calibration" in page(summary(s))
    s["cross_validation"] = {"hardware": {"gpu": {**s["networks"]["gpu"], "median": 0.4321}}}
    body = page(summary(s))
    for words in ("hardware, gpu", "43.2 %", *s["ablation"], "gpu inference, time", "me, time", "you, power", "gtx_980",
                  "why not", "Provenance"):  # fmt: skip
        assert words in body
    names = [(-own["n"], f"{name}, {kind}") for name, kinds in s["by_class"].items() for kind, own in kinds.items()]
    table = summary(s)[1]
    assert isinstance(table, Table)
    assert [row[0].text for row in table.rows] == [name for _, name in sorted(names)]
    assert all(row[4].bar for row in table.rows)
