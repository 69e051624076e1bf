"""The pages of a validation: every figure in them, harmless, self-contained, and the same each time."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.detect.catalog import find
from archsim.evidence.case import Case, Skip
from archsim.evidence.readers import read
from archsim.report.figures import library
from archsim.report.validation_figures import MOST_POINTS, at_limit, distribution, scatter, share, sources, thin
from archsim.report.validation_page import summary_page, validation_page
from archsim.validation.evaluation import Validation, ValidationSettings, validate
from archsim.validation.frozen import freeze

from .conftest import NASTY

HEAD = "source,network,hardware,stack,task,batch,precision,threads,devices,clock_mhz,metric,value,split"
PROVENANCE = {"version": "1.2.3", "data": "abc"}


class Words(HTMLParser):
    """What a reader sees, and the tags."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


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
    return validate(cases, skips, ValidationSettings(calibration=default()))


def many(result: Validation, sizes: dict[str, int]) -> Validation:
    """The first row so often under each source."""
    rows = tuple(replace(result.cases[0], source=name) for name, count in sizes.items() for _ in range(count))
    arrays = {name: np.repeat(getattr(result, name)[:1], len(rows)) for name in ("predicted", "error", "low", "high")}
    return replace(result, cases=rows, **arrays)


def test_every_score_is_on_the_page(result: Validation) -> None:
    text = Words(validation_page(result, PROVENANCE)).text
    for group in result.overall:
        s = group.score
        for off in (s.mape, s.median_ape, s.p90_ape, *s.mape_interval, *(b.median_ape for b in group.baselines.values())):
            assert f"{100 * off:.1f} %" in text
        assert f"{100 * s.bias:+.1f} %" in text
        assert f"{group.by['quantity'].capitalize()}: {s.n} row" in text
    assert "2 no such thing" in text
    assert "version 1.2.3" in text


def test_the_page_is_the_same_twice(result: Validation) -> None:
    assert validation_page(result, PROVENANCE) == validation_page(result, PROVENANCE)


def test_the_page_loads_nothing(result: Validation) -> None:
    for body in (validation_page(result, PROVENANCE), summary_page(freeze(result.cases, [], default(), data="d", version="v"))):
        for tag, attributes in Words(body).tags:
            assert tag not in ("link", "img", "iframe", "object", "embed")
            assert not {"src", "action"} & set(attributes)
            assert attributes.get("href", "data:text/csv").startswith("data:text/csv")


def test_words_of_a_file_stay_words(cases: list[Case]) -> None:
    nasty = [replace(case, source=NASTY, label=NASTY, hardware=NASTY, stack_id=NASTY) for case in cases]
    skips = [Skip(line=1, reason=NASTY)]
    request = ValidationSettings(calibration=default(), by=("source", "label"))
    for body in (
        validation_page(validate(nasty, skips, request), {NASTY: NASTY}),
        summary_page(freeze(nasty, skips, default(), data=NASTY, version=NASTY)),
    ):
        assert "<script>alert" not in body
        assert body.replace(library(), "").count("</title>") == 1 + body.count("<svg ")
        assert "\x07" not in body


def test_rates_are_drawn_as_times_of_a_batch(result: Validation) -> None:
    points = scatter(result, "time", ["me", "you"]).data[0]
    assert list(points.x) == [0.01, pytest.approx(16 / 900, rel=1e-3)]
    assert points.y[1] == pytest.approx(16 / result.predicted[1], rel=1e-3)


def test_the_lines_are_the_diagonal_and_25_percent_beside_it(result: Validation) -> None:
    lines = [trace for trace in scatter(result, "time", ["me"]).data if trace.mode == "lines"]
    assert sorted(round(line.y[0] / line.x[0], 2) for line in lines) == [0.75, 1.0, 1.25]


def test_boxes_hold_the_quantiles_of_the_errors(result: Validation) -> None:
    whisker, box, marks = distribution(result, "time", ["me", "you"]).data
    own = 1 + result.error[sources(result, "time")["me"]]
    low, first, median, third, high = np.percentile(own, [10, 25, 50, 75, 90])
    assert list(whisker.x) == pytest.approx([low, high], rel=1e-3)
    assert [box.base[0], box.base[0] + box.x[0]] == pytest.approx([first, third], rel=1e-3)
    assert list(marks.x) == pytest.approx([low, median, high], rel=1e-3)


def test_predictions_at_the_power_limit_are_counted_and_told(cases: list[Case]) -> None:
    power = next(case for case in cases if case.metric == "power_w")
    many_cases = [replace(power, hardware="gtx_1080") for _ in range(6)]
    v = validate(many_cases, [], ValidationSettings(calibration=default()))
    assert at_limit(v) == {}
    tdp = find("gtx_1080").device.power.tdp
    there = replace(v, predicted=np.full(6, float(tdp)))
    assert at_limit(there) == {"gtx_1080": (float(tdp), 6)}
    assert any("power limit of gtx_1080" in note.text for note in scatter(there, "power", ["you"]).layout.annotations)


def test_large_sources_are_thinned_and_small_ones_are_not(result: Validation) -> None:
    figure = scatter(many(result, {"big": 6000, "small": 100}), "time", ["big", "small"])
    assert [len(trace.x) for trace in figure.data[:2]] == [MOST_POINTS - 100, 100]


@pytest.mark.parametrize(("sizes", "most"), [([5, 50, 500], 100), ([10], 3), ([3, 3], 100), ([], 10), ([7, 7, 7], 2)])
def test_a_share_is_the_largest_that_fits(sizes: list[int], most: int) -> None:
    quota = share(sizes, most)
    assert sum(min(size, quota) for size in sizes) <= most
    assert quota == max([*sizes, 0]) or sum(min(size, quota + 1) for size in sizes) > most
    assert all(len(thin(range(size), quota)) == min(size, quota) for size in sizes)


def test_a_page_of_nothing_says_so() -> None:
    body = validation_page(validate([], [], ValidationSettings(calibration=default())), PROVENANCE)
    assert "Nothing could be predicted" in body
    assert "No row was skipped" in body


def test_the_summary_page_has_every_table(cases: list[Case]) -> None:
    s = freeze(cases, [Skip(line=1, reason="why not")], default(), data="d", version="v")
    text = Words(summary_page(s)).text
    assert "Not run for this calibration" in text
    s["cross_validation"] = {"hardware": {"gpu": {**s["networks"]["gpu"], "median": 0.4321}}}
    body = summary_page(s)
    text = Words(body).text
    assert "hardware, gpu" in text
    assert "43.2 %" in text
    for part in s["ablation"]:
        assert re.search(rf"<td>{part}</td>", body)
    for words in ("gpu inference, time", "me, time", "you, power", "gtx_980", "why not", "Provenance"):
        assert words in text


def test_the_summary_page_draws_each_class(cases: list[Case]) -> None:
    s = freeze(cases, [], default(), data="d", version="v")
    drawn = re.findall(r'text-anchor="end"[^>]*>([^<]*)<', summary_page(s))
    assert drawn == [f"{name}, {kind}" for name, kind in sorted(
        ((name, kind) for name, kinds in s["by_class"].items() for kind in kinds),
        key=lambda pair: (-s["by_class"][pair[0]][pair[1]]["n"], f"{pair[0]}, {pair[1]}"))]  # fmt: skip
