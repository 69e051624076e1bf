"""A validation from rows to report: figures that can be recomputed, checks that can fail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.answers.validation import record, sections
from archsim.calibration.constants import default
from archsim.evidence.case import Anchor, Case
from archsim.evidence.columns import QUANTITY
from archsim.evidence.readers import read
from archsim.render.text import text_of
from archsim.validation.baseline import constants_of
from archsim.validation.evaluation import ValidationSettings, intervals, validate
from archsim.validation.predict import predict, prepare
from archsim.validation.verdict import UNITS, sentences

from ..measurements import HEAD, ROW

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
    assert group.score.mape_interval[1] > 0.2


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


def test_intervals_hold_times_and_rates_alike(measured: list[Case]) -> None:
    predicted = predict(measured, default())
    low, high = intervals(measured, predicted, default())
    assert (low < high).all()
    assert ((low < predicted) & (predicted < high)).any()
    pair = [replace(measured[0], metric="latency_s"), replace(measured[0], metric="throughput_per_s")]
    time = predicted[0]
    low, high = intervals(pair, np.array([time, 16 / time]), default())
    assert low[1] == pytest.approx(16 / high[0])
    assert high[1] == pytest.approx(16 / low[0])
    low, high = intervals([replace(measured[0], metric="power_w")], np.array([5.0]), default())
    spread = default().spreads["gpu power"]
    assert (low[0], high[0]) == pytest.approx((5.0 * np.exp(-spread.high), 5.0 * np.exp(-spread.low)))
    low, _ = intervals([replace(measured[0], anchor=Anchor(limit=200.0, measured=1.0))], np.array([5.0]), default())
    assert np.isnan(low).all()


def test_groups_by_any_column(measured: list[Case]) -> None:
    result = validate(measured, [], request(by=("hardware", "network"), baselines=()))
    assert len(result.groups) == 9
    assert {group.score.n for group in result.groups} == {1}
    assert result.overall[0].score.n == 9


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


def test_held_out_predictions_take_the_place_of_the_model(measured: list[Case]) -> None:
    seen: list[int] = []

    def held_out(cases: Sequence[Case]) -> Any:
        seen.append(len(cases))
        return np.array([3.0 if case.metric == "latency_s" else 16 / 3.0 for case in cases])

    result = validate(measured, [], request(held_out=held_out, fold="hardware"))
    assert seen == [9]
    assert result.predicted[0] == 3.0
    assert record(result)["cross_validated"] == "hardware"


def test_the_constants_are_found_again(measured: list[Case]) -> None:
    predicted = constants_of(measured, prepare(measured))
    exact = [replace(case, measured=float(value)) for case, value in zip(measured, predicted, strict=True)]
    again = constants_of(exact, prepare(exact))
    assert np.abs(np.log(again / predicted)).max() < 0.15
    unfitted = [replace(case, split="test") for case in measured]
    assert np.isnan(constants_of(unfitted, prepare(unfitted))).all()


def test_rows_of_split_test_do_not_move_the_baseline(measured: list[Case]) -> None:
    alone = constants_of(measured[:6], prepare(measured[:6]))
    others = [replace(case, split="test", measured=case.measured * 50) for case in measured[6:]]
    every = [*measured[:6], *others]
    assert np.array_equal(constants_of(every, prepare(every))[:6], alone)


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
    group = next(g for g in answer["groups"] if g["by"] == {"source": "me", "quantity": "time"})
    timed = [r for r in answer["rows"] if r["metric"] in ("latency_s", "throughput_per_s")]
    ratio = np.array([r["predicted"] / r["measured"] for r in timed])
    off = np.abs(np.where([r["metric"] == "latency_s" for r in timed], ratio, 1 / ratio) - 1)
    assert (len(off), off.mean(), np.median(off)) == pytest.approx((group["n"], group["mape"], group["median_ape"]))
    assert np.percentile(off, 90) == pytest.approx(group["p90_ape"])
    assert [abs(r["error"]) for r in timed] == pytest.approx(list(off))
    inside = [r["lo"] <= r["measured"] <= r["hi"] for r in timed]
    assert np.mean(inside) == pytest.approx(group["coverage"])
    assert answer["skipped"][0] | {"file": ""} == {
        "file": "", "row": 6, "reason": "hardware 'nothing' is not described", "source": "me", "hardware": "nothing",
    }  # fmt: skip


def test_rows_carry_every_column_of_their_file(write: Write, run: Run) -> None:
    path = write(f"{ROW},hello", head=f"{HEAD},remark")
    (only,) = json.loads(run("validate", "--measurements", path, "--json")[1])["rows"]
    assert only["remark"] == "hello"
    assert only["network"] == "alexnet"
    assert set(HEAD.split(",")) <= set(only)


def test_csv_has_one_line_per_row(file: str, run: Run) -> None:
    _, out, _ = run("validate", "--measurements", file, "--csv")
    listed = list(csv.DictReader(io.StringIO(out)))
    assert len(listed) == 4
    assert float(listed[0]["predicted"]) > 0
    assert float(listed[3]["lo"]) < float(listed[3]["predicted"]) < float(listed[3]["hi"])


def test_the_first_screen_says_each_row_and_what_was_skipped(file: str, run: Run) -> None:
    _, out, _ = run("validate", "--measurements", file)
    assert out.startswith("4 measured values beside their predictions · me")
    assert "1 row was skipped: hardware 'nothing' is not described (line 6)" in out
    assert out.index("\nLatency") < out.index("\nThroughput") < out.index("\nPower")
    assert "900 img/s" in out
    for word in ("MAPE", "order", "stacks", "constants"):
        assert word not in out
    _, more, _ = run("validate", "--measurements", file, "--all")
    for word in ("MAPE", "order", "stacks", "all time", "all power", "fitted to 2 rows"):
        assert word in more


def test_the_verdict_says_which_way_and_how_many_intervals_hold(measured: list[Case]) -> None:
    doctored = [replace(measured[0], measured=measured[0].measured / 2), *measured[1:]]
    first, worst = sentences(validate(doctored, [], request()))
    assert first == ("Time: predictions are as measured in the median, half are within 0.0 %, nine in ten within 20.0 %; "
                     "8 of 9 are inside their 80 % interval.")  # fmt: skip
    assert worst.startswith("Worst: alexnet on gtx_1080, batch 16, fp32, caffe-cudnn5.1: ")
    assert worst.endswith("100.0 % too slow.")
    rate = [replace(case, measured=case.measured * 2) for case in measured if case.metric != "latency_s"]
    assert "100.0 % too slow in the median" in sentences(validate(rate, [], request(baselines=())))[0]
    (alone,) = sentences(validate([replace(measured[0], measured=measured[0].measured * 4)], [], request(baselines=())))
    assert alone == "Time: the prediction is 75.0 % too fast, outside its 80 % interval."


def test_groups_of_many_rows_end_on_the_first_screen(measured: list[Case]) -> None:
    result = validate([replace(case, source=f"s{i}") for i, case in enumerate(measured * 4)], [], request())
    text = text_of(sections(result))
    assert len(text.splitlines()) < 24
    assert "21 more groups: --all" in text
    assert "s35 " in text_of(sections(result), 2)


def test_filters_and_limit(file: str, run: Run) -> None:
    def rows(*words: str) -> list[dict[str, Any]]:
        code, out, err = run("validate", "--measurements", file, "--json", "--baseline", "none", *words)
        assert code == 0, err
        return list(json.loads(out)["rows"])

    assert len(rows("--split", "test")) == 1
    assert len(rows("--hw", "gtx_1080,titan_x_maxwell", "--metric", "latency_s")) == 2
    assert [r["network"] for r in rows("--net", "vgg_a")] == ["vgg_a"]
    assert len(rows("--limit", "2")) == 2
    assert len(rows("--source", "me", "--stack", "caffe-cudnn5.1")) == 4
    assert "roofline" not in rows()[0]


def test_skips_are_filtered_with_the_rows(file: str, run: Run) -> None:
    answer = json.loads(run("validate", "--measurements", file, "--json", "--hw", "gtx_1080")[1])
    assert answer["skipped"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hw", "gtx_1081"), "unknown device 'gtx_1081'; nearest: gtx_1080"),
        (("--by", "colour"), "unknown column 'colour'"),
        (("--baseline", "magic"), "unknown baseline 'magic'"),
        (("--without", "physics"), "unknown part 'physics'"),
        (("--fidelity", "exact"), "unknown fidelity 'exact'"),
        (("--limit", "0"), "0 is not in the range"),
        (("--json", "--csv"), "choose one"),
    ],
)
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
    code, out, _ = run("validate", "--measurements", path, "--json")
    assert json.loads(out)["rows"] == []


def test_provenance_names_what_it_was_made_from(measured: list[Case]) -> None:
    result = replace(validate(measured, [], request(baselines=())), data="abc")
    provenance = record(result)["provenance"]
    assert provenance["data"] == "abc"
    assert default().digest in provenance["calibration"]
    assert "abc" in text_of(sections(result), 2)


def test_every_metric_has_a_unit() -> None:
    known = {metric: max((end for end in UNITS if metric.endswith(end)), key=len, default=None) for metric in QUANTITY}
    assert [metric for metric, end in known.items() if end is None] == []
    units = {metric: UNITS[end] for metric, end in known.items() if end}
    assert {metric: units[metric] for metric in ("system_power_w", "system_energy_j", "energy_j_per_token", "decode_s_per_token",
                                                 "tokens_per_s", "tpot_s")} == {
        "system_power_w": "W", "system_energy_j": "J", "energy_j_per_token": "J", "decode_s_per_token": "s",
        "tokens_per_s": "/s", "tpot_s": "s"}  # fmt: skip
