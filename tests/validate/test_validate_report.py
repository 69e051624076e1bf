"""A validation from rows to report: figures that can be recomputed, checks that can fail."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.answers.validation import DRAWN, scale, scatter, sections, spread, value_tables
from archsim.calibration.constants import default
from archsim.evidence.case import QUANTITY, Anchor, Case
from archsim.evidence.readers import read
from archsim.render.text import text_of
from archsim.validation.baseline import constants_of
from archsim.validation.evaluation import Validation, ValidationSettings, validate
from archsim.validation.interval import intervals, question_of
from archsim.validation.predict import floors, predict, prepare
from archsim.validation.verdict import UNITS, sentences

from ..measurements import HEAD

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]

NETWORKS = ("alexnet", "vgg_a", "googlenet")
DEVICES = ("gtx_1080", "titan_x_maxwell", "gtx_980")


def row(network: str, hardware: str, metric: str, value: float, split: str = "calibrate") -> str:
    return f"me,{network},{hardware},caffe-cudnn5.1,inference,16,fp32,,1,,{metric},{value!r},{split}"


@pytest.fixture
def measured(write: Write) -> list[Case]:
    """Nine cells measured exactly as predicted, three as rates."""
    cells = [(n, h, "throughput_per_s" if h == "gtx_980" else "latency_s") for n in NETWORKS for h in DEVICES]
    cases, skips = read(write(*[row(*cell, 1.0) for cell in cells]))
    assert skips == []
    return [replace(case, measured=float(value)) for case, value in zip(cases, predict(cases, default()), strict=True)]


def request(**more: Any) -> ValidationSettings:
    return ValidationSettings(calibration=default(), **more)


def test_a_perfect_model_has_no_error(measured: list[Case]) -> None:
    result = validate(measured, [], request())
    (group,) = result.groups
    assert group.by == {"source": "me", "quantity": "time"}
    assert (group.score.n, group.score.mape, group.score.bias) == (9, 0.0, 0.0)
    assert group.score.coverage == 1.0
    assert group.order is not None
    assert (group.order.groups, group.order.mean, group.order.least) == (3, 1.0, 1.0)
    assert group.baselines["roofline"].median_ape > 0.1
    assert group.baselines["constants"].mape < group.baselines["roofline"].mape


def test_one_row_that_is_100_percent_off_changes_the_report_as_it_must(measured: list[Case]) -> None:
    doctored = [replace(measured[0], measured=measured[0].measured / 2), *measured[1:]]
    (group,) = validate(doctored, [], request()).groups
    assert group.score.mape == pytest.approx(1 / 9)
    assert group.score.median_ape == pytest.approx(0.0)
    assert group.score.p90_ape == pytest.approx(0.2)  # position 7.2 of eight zeros and a one


def test_intervals_hold_times_and_rates_alike(measured: list[Case]) -> None:
    predicted = predict(measured, default())
    low, high = intervals(measured, predicted, floors(prepare(measured)), default())
    assert (low < high).all()
    assert ((low < predicted) & (predicted < high)).any()
    pair = [replace(measured[0], metric="latency_s"), replace(measured[0], metric="throughput_per_s")]
    time = predicted[0]
    low, high = intervals(pair, np.array([time, 16 / time]), np.array([time, time]) / 2, default())
    assert low[1] == pytest.approx(16 / high[0])
    assert high[1] == pytest.approx(16 / low[0])
    power = replace(measured[0], metric="power_w")
    low, high = intervals([power], np.array([5.0]), np.array([np.nan]), default())
    _, spread = default().spread_of("gpu", "power", question_of(power, 5.0, math.nan), without=power.source)
    assert (low[0], high[0]) == pytest.approx((5.0 * np.exp(-spread.high), 5.0 * np.exp(-spread.low)))
    low, _ = intervals([replace(measured[0], anchor=Anchor(limit=200.0, measured=1.0))], np.array([5.0]), np.ones(1), default())
    assert np.isnan(low).all()


def test_a_part_that_cannot_be_predicted_does_not_take_the_others_along(
    measured: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    from archsim.base.errors import Unsupported
    from archsim.validation import evaluation

    whole = evaluation.prepare

    def failing(cases: Sequence[Case], without: frozenset[str] = frozenset()) -> Any:
        if any(case.label == "vgg_a" for case in cases):
            raise Unsupported("no rule for it\nmore")
        return whole(cases, without)

    monkeypatch.setattr(evaluation, "prepare", failing)
    result = validate(measured, [], request())
    assert [case.label for case in result.cases] == ["alexnet"] * 3 + ["googlenet"] * 3
    assert {skip.reason for skip in result.skips} == {"no rule for it"}
    assert np.abs(result.error).max() < 1e-12


def test_the_constants_of_the_baseline_are_found_again_from_all_but_the_test_split(measured: list[Case]) -> None:
    predicted = constants_of(measured, prepare(measured))
    exact = [replace(case, measured=float(value)) for case, value in zip(measured, predicted, strict=True)]
    assert np.abs(np.log(constants_of(exact, prepare(exact)) / predicted)).max() < 0.15
    every = [*measured[:6], *(replace(case, split="watched", measured=case.measured * 50) for case in measured[6:])]
    assert np.array_equal(constants_of(every, prepare(every))[:6], constants_of(measured[:6], prepare(measured[:6])))
    assert np.isnan(constants_of(every[6:], prepare(every[6:]))).all()


# the answer


def test_the_verdict_says_which_way_and_how_many_intervals_hold(measured: list[Case]) -> None:
    doctored = [replace(measured[0], measured=measured[0].measured / 2), *measured[1:]]
    first, worst = sentences(validate(doctored, [], request()))
    assert first == ("Time: predictions are as measured in the median, half are within 0.0 %, nine in ten within 20.0 %; "
                     "8 of 9 are inside their 80 % interval.")  # fmt: skip
    assert worst.startswith("Worst: alexnet on gtx_1080, batch 16, fp32, caffe-cudnn5.1: ")
    assert worst.endswith("100.0 % too slow.")
    (alone,) = sentences(validate([replace(measured[0], measured=measured[0].measured * 4)], [], request(baselines=())))
    assert alone == "Time: the prediction is 75.0 % too fast, outside its 80 % interval."


def test_groups_of_many_rows_end_on_the_first_screen(measured: list[Case]) -> None:
    result = validate([replace(case, source=f"s{i}") for i, case in enumerate(measured * 4)], [], request())
    assert len(result.groups) == 36
    text = text_of(sections(result))
    assert len(text.splitlines()) < 24
    assert "26 more: --all" in text
    assert "s35 " in text_of(sections(result), 2)


def many(result: Validation, sizes: dict[str, int]) -> Validation:
    """The last row, a rate, so often under each source."""
    rows = tuple(replace(result.cases[-1], source=name) for name, count in sizes.items() for _ in range(count))
    arrays = {name: np.repeat(getattr(result, name)[-1:], len(rows)) for name in ("predicted", "error", "low", "high")}
    return replace(result, cases=rows, reasons=("",) * len(rows), **arrays)


def test_a_chart_draws_rates_as_times_thins_large_sources_and_joins_small_ones(measured: list[Case]) -> None:
    result = validate(measured, [], request())
    chart = scatter(many(result, {"big": 10 * DRAWN, **{f"s{i}": 20 - i for i in range(12)}}), "time")
    assert sorted(round(line.y[0] / line.x[0], 2) for line in chart.series[:3]) == [0.75, 1.0, 1.25]
    assert [len(one.x) for one in chart.series[3:]] == [DRAWN, *range(20, 14, -1), sum(range(9, 15))]
    assert chart.series[-1].name == "other sources (69)"
    assert (chart.series[3].x[0], chart.series[3].y[0]) == pytest.approx((16 / measured[-1].measured,) * 2, rel=1e-3)


def test_bars_hold_intervals_and_quantiles(measured: list[Case]) -> None:
    result = validate(measured, [], request())
    interval, predicted, ring = value_tables(result)[0].rows[0][3].bar  # type: ignore[union-attr]
    assert (interval.sign, predicted.sign, ring.sign) == ("", "|", "o")
    assert interval.start < predicted.end == ring.end < interval.end
    ratios, place = (0.5, 0.8, 1.0, 1.25, 2.0), scale([0.5, 2.0])
    whole, middle, median, one = spread(ratios, place).bar
    assert (whole.start, middle.start, one.end, middle.end, whole.end) == pytest.approx([*map(place, ratios)])
    assert median.end == pytest.approx(0.5)


# the command


@pytest.fixture
def file(write: Write) -> str:
    return write(
        row("alexnet", "gtx_1080", "latency_s", 0.02), row("vgg_a", "gtx_1080", "latency_s", 0.05),
        row("alexnet", "titan_x_maxwell", "throughput_per_s", 900.0, "test"), row("alexnet", "gtx_1080", "power_w", 150.0),
        row("alexnet", "nothing", "latency_s", 1.0),
    )  # fmt: skip


def test_json_is_recomputed_by_three_lines_of_numpy(file: str, run: Run) -> None:
    code, out, err = run("validate", "--measurements", file, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["schema"] == "archsim-validation/1"
    assert default().digest in answer["provenance"]["calibration"]
    group = next(g for g in answer["groups"] if g["by"] == {"source": "me", "quantity": "time"})
    timed = [r for r in answer["rows"] if r["metric"] in ("latency_s", "throughput_per_s")]
    ratio = np.array([r["predicted"] / r["measured"] for r in timed])
    off = np.abs(np.where([r["metric"] == "latency_s" for r in timed], ratio, 1 / ratio) - 1)
    assert (len(off), off.mean(), np.median(off)) == pytest.approx((group["n"], group["mape"], group["median_ape"]))
    assert np.percentile(off, 90) == pytest.approx(group["p90_ape"])
    assert [abs(r["error"]) for r in timed] == pytest.approx(list(off))
    assert np.mean([r["lo"] <= r["measured"] <= r["hi"] for r in timed]) == pytest.approx(group["coverage"])
    assert answer["skipped"][0] | {"file": ""} == {
        "file": "", "row": 6, "reason": "hardware 'nothing' is not described", "source": "me", "hardware": "nothing",
    }  # fmt: skip
    assert set(HEAD.split(",")) <= set(answer["rows"][0])
    listed = list(csv.DictReader(io.StringIO(run("validate", "--measurements", file, "--csv")[1])))
    assert [float(one["predicted"]) for one in listed] == [one["predicted"] for one in answer["rows"]]


def test_the_first_screen_says_each_row_and_what_was_skipped(file: str, run: Run) -> None:
    _, out, _ = run("validate", "--measurements", file)
    assert out.startswith("4 measured values beside their predictions · me")
    assert "hardware 'nothing' is not described (line 6)" in out
    assert out.index("\nLatency") < out.index("\nThroughput") < out.index("\nPower ")
    assert "900 img/s" in out
    _, more, _ = run("validate", "--measurements", file, "--all")
    for word in ("MAPE", "order", "all time", "all power"):
        assert (word in more, word in out) == (True, False)


@pytest.mark.parametrize(("words", "left"), [
    (("--split", "test"), 1), (("--split", "watched"), 1),
    (("--hw", "gtx_1080,titan_x_maxwell", "--metric", "latency_s"), 2), (("--net", "vgg_a"), 1),
    (("--limit", "2"), 2), (("--source", "me", "--stack", "caffe-cudnn5.1"), 4),
])  # fmt: skip
def test_filters_and_limit(words: tuple[str, ...], left: int, file: str, run: Run) -> None:
    answer = json.loads(run("validate", "--measurements", file, "--json", "--baseline", "none", *words)[1])
    assert len(answer["rows"]) == left
    assert "roofline" not in answer["rows"][0]
    assert len(answer["skipped"]) == (words[0] in ("--limit", "--source"))


@pytest.mark.parametrize(("words", "said"), [
    (("--hw", "gtx_1081"), "unknown device 'gtx_1081'; nearest: gtx_1080"), (("--by", "colour"), "unknown column 'colour'"),
    (("--baseline", "magic"), "unknown baseline 'magic'"), (("--without", "physics"), "unknown part 'physics'"),
])  # fmt: skip
def test_wrong_arguments(words: tuple[str, ...], said: str, file: str, run: Run) -> None:
    code, out, err = run("validate", "--measurements", file, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_fidelity_and_ablation_change_the_predictions(file: str, run: Run) -> None:
    def predicted(*words: str) -> list[float]:
        answer = json.loads(run("validate", "--measurements", file, "--json", "--metric", "latency_s", *words)[1])
        return [r["predicted"] for r in answer["rows"]]

    model, bound = predicted(), predicted("--fidelity", "roofline")
    assert all(low < full for low, full in zip(bound, model, strict=True))
    assert predicted("--without", "waves,launch") != model


def test_no_row_left(write: Write, run: Run) -> None:
    path = write(row("alexnet", "nothing", "latency_s", 1.0))
    code, out, _ = run("validate", "--measurements", path)
    assert code == 1
    assert "Nothing could be predicted" in out
    assert json.loads(run("validate", "--measurements", path, "--json")[1])["rows"] == []


def test_every_metric_has_a_unit() -> None:
    known = {metric: max((end for end in UNITS if metric.endswith(end)), key=len, default="") for metric in QUANTITY}
    assert [metric for metric, end in known.items() if not end] == []
    for metric, unit in {"system_power_w": "W", "energy_j_per_token": "J", "decode_s_per_token": "s"}.items():
        assert UNITS[known[metric]] == unit


def test_a_rate_half_as_high_is_100_percent_off_too(measured: list[Case]) -> None:
    doctored = [replace(case, measured=case.measured * 2) if case.metric != "latency_s" else case for case in measured]
    result = validate(doctored, [], request(baselines=()))
    assert sorted(result.error.round(9)) == [0.0] * 6 + [1.0] * 3


def test_a_wrong_order_of_devices_shows(measured: list[Case]) -> None:
    turned = {"gtx_1080": 20.0, "titan_x_maxwell": 10.0, "gtx_980": 16 / 1.0}  # s, s, 1/s
    doctored = [replace(case, measured=turned[case.hardware]) for case in measured]
    (group,) = validate(doctored, [], request(baselines=())).groups
    assert group.order is not None
    assert (group.order.mean, group.order.least) == (-1.0, -1.0)
