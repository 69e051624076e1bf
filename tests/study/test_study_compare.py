"""Rankings, curves over batches, crossings, and which ops pay on another device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archsim.estimation.request import make_request
from archsim.study.batches import BadRange, batch_curve, batches_of, crossings, payoffs
from archsim.study.contender import Contender, contender, result_time
from archsim.study.ranking import CRITERIA, SAME_STACK, TWO_STACKS, matrix, rank
from tests.bench.correlation import correlations

SPEED, WATT, DOLLAR, _ = CRITERIA


def on(hw: str, batch: int = 1, copies: bool = False, **choices: Any) -> Contender:
    return contender(make_request("alexnet", hw, batch=batch, **choices), copies, references=False)


def timed(c: Contender, batch: int, latency: float) -> Contender:
    return replace(c, estimate=replace(c.estimate, batch=batch, latency_s=latency))


def test_places_follow_the_scores() -> None:
    field = [on(hw) for hw in ("tegra_x1", "gtx_1080", "tesla_v100_sxm2")]
    by_speed, by_watt, by_dollar = (rank(field, criterion) for criterion in (SPEED, WATT, DOLLAR))
    assert [c.name for c in by_speed.order] == ["tesla_v100_sxm2", "gtx_1080", "tegra_x1"]
    assert by_watt.scores == pytest.approx(sorted((c.estimate.throughput_per_w for c in field), reverse=True))
    assert by_dollar.unranked == ("tesla_v100_sxm2",)
    assert by_dollar.scores[0] == pytest.approx(by_dollar.order[0].throughput_per_s / by_dollar.order[0].price_usd)


def test_a_whole_order_is_no_surer_than_its_weakest_link() -> None:
    ranking = rank([on(hw) for hw in ("gtx_1080", "titan_x_pascal", "gtx_1080_ti", "gtx_980")], SPEED)
    assert len(ranking.ahead) == 3
    assert ranking.whole <= min(ranking.ahead)
    assert sum(ranking.best) == pytest.approx(1.0)


def test_errors_are_correlated_as_measured_unless_the_user_says_otherwise() -> None:
    field = [on("gtx_1080"), on("titan_x_pascal"), on("gtx_980"), on("tesla_v100_sxm2")]
    assert [c.estimate.stack == field[0].estimate.stack for c in field] == [True, True, True, False]
    assert matrix(field)[0].tolist() == [1.0, SAME_STACK, SAME_STACK, TWO_STACKS]
    assert matrix(field, 0.3)[0].tolist() == [1.0, 0.3, 0.3, 0.3]
    measured, apart = rank(field[:2], SPEED), rank(field[:2], SPEED, 0.0)
    assert measured.ahead[0] > apart.ahead[0]
    assert measured.best[0] > apart.best[0] + 0.05
    assert (measured.correlation, apart.correlation) == (None, 0.0)


def unfit(c: Contender) -> Contender:
    return replace(c, estimate=replace(c.estimate, memory=replace(c.estimate.memory, activations=1e13)))


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda criterion: criterion.name)
def test_what_does_not_fit_is_not_ranked(criterion: Any) -> None:
    fast, slow = unfit(on("gtx_1080")), on("gtx_980")
    found = rank([fast, slow], criterion)
    assert [c.name for c in found.order] == ["gtx_980"]
    assert found.best == (1.0,)
    nothing = rank([fast], criterion)
    assert (nothing.order, nothing.best) == ((), ())


def test_copies_cost_a_gpu_time_and_a_cpu_nothing() -> None:
    assert on("gtx_1080", 16, True).latency_s > on("gtx_1080", 16).latency_s
    assert on("i7_6700k", 16, True).latency_s == on("i7_6700k", 16).latency_s
    moved, placed = on("gtx_1080", 16, True), make_request("alexnet", "gtx_1080", batch=16)
    assert placed.stack.inputs == "device"
    crossing = 16 * 3 * 227 * 227 * 4 / (placed.spec.device.link.bandwidth * placed.spec.device.link.achievable)
    assert moved.estimate.latency_s > on("gtx_1080", 16).latency_s + 0.5 * crossing
    assert moved.energy_j > moved.estimate.energy_j
    assert moved.throughput_per_s == 16 / moved.latency_s


def test_only_the_results_of_an_inference_go_back() -> None:
    request = make_request("alexnet", "gtx_1080", batch=2)
    link = request.spec.device.link
    assert result_time(request) == pytest.approx(2 * 1000 * 4 / (link.bandwidth * link.achievable))
    assert result_time(make_request("alexnet", "gtx_1080", batch=2, task="forward_backward")) == 0.0
    assert result_time(make_request("alexnet", "tegra_x1", batch=2)) == 0.0  # no link: one memory


def test_batches() -> None:
    for text, batches in (("4,1", [1, 4]), ("1:8:x2", [1, 2, 4, 8]), ("8:30:8", [8, 16, 24]), ("1:4:1,64", [1, 2, 3, 4, 64])):
        assert batches_of(text) == batches
    for text in ("", "x", "1:8", "8:1:x2", "1:8:x1", "1:8:0", "1:8:x", "-1", "1.5", "1:1048576:1", "0:8:x2", "²"):
        with pytest.raises(BadRange):
            batches_of(text)


def test_curvature_is_named() -> None:
    base = on("gtx_1080")
    # 1 ms a sample to 4, then 0.5 ms, then 2 ms
    points = [timed(base, b, t) for b, t in ((1, 1e-3), (2, 2e-3), (4, 4e-3), (8, 6e-3), (16, 22e-3))]
    found = batch_curve(points)
    assert found.runs == (("straight", 1, 4), ("falling", 4, 8), ("rising", 8, 16))
    assert max(found.efficiency) == 1.0


def test_what_does_not_fit_sets_no_standard() -> None:
    base = on("gtx_1080")
    points = [timed(base, 1, 1e-3), timed(base, 2, 1.5e-3)]
    large = replace(points[1].estimate.memory, activations=1e12)
    points[1] = replace(points[1], estimate=replace(points[1].estimate, memory=large))
    assert not points[1].estimate.fits
    assert batch_curve(points).efficiency == pytest.approx((1.0, 4 / 3))


def test_a_crossing_is_found_between_the_batches() -> None:
    slow, fast = on("i7_6700k"), on("gtx_1080")
    times = {"i7_6700k": lambda b: 1e-3 * b, "gtx_1080": lambda b: 20.5e-3 + 0.1e-3 * b}
    curves = [batch_curve([timed(c, b, times[c.name](b)) for b in (1, 16, 64)]) for c in (slow, fast)]
    start, found = crossings(*curves, lambda name, batch: times[name](batch))
    assert (start.winner, start.batch, start.start) == ("i7_6700k", 1, True)
    assert (found.winner, found.loser, found.batch, found.start) == ("gtx_1080", "i7_6700k", 23, False)  # 20.5 / 0.9 = 22.8
    full = batch_curve([p if p.estimate.batch == 1 else unfit(p) for p in curves[1].points])  # nobody overtakes where it is full
    assert [c.winner for c in crossings(curves[0], full, lambda name, batch: times[name](batch))] == ["i7_6700k"]


def test_ops_that_pay() -> None:
    batches = (1, 64)
    requests = {hw: [make_request("alexnet", hw, batch=b) for b in batches] for hw in ("i7_6700k", "gtx_1080")}
    from archsim.estimation.estimate import estimate_of

    home, guest = ([estimate_of(q, references=False) for q in row] for row in requests.values())
    device = requests["gtx_1080"][0].spec.device
    rows = payoffs(home, guest, [q.trace.ops for q in requests["gtx_1080"]], device)
    by_name = {row.op: row for row in rows}
    assert by_name["conv2"].alone is not None
    assert by_name["relu1"].resident is not None
    assert by_name["relu1"].alone is None  # 1.2 MB in and out for one comparison a value
    slower = [replace(e, ops=tuple(replace(op, time_s=1e3) for op in e.ops)) for e in guest]
    assert all(row.resident is None for row in payoffs(home, slower, [q.trace.ops for q in requests["gtx_1080"]], device))


@pytest.mark.slow
def test_the_correlations_are_those_of_the_measured_rows() -> None:
    found = correlations()
    assert found["two GPUs, one source and stack"][0] == pytest.approx(SAME_STACK, abs=0.1)
    apart = [found[name] for name in ("two GPUs, two stacks", "one GPU, two stacks", "a CPU and a GPU")]
    assert sum(row[0] * row[1] for row in apart) / sum(row[1] for row in apart) == pytest.approx(TWO_STACKS, abs=0.05)
    assert all(row[0] == pytest.approx(TWO_STACKS, abs=0.2) for row in apart)
    assert found["two CPUs"][2] <= 3  # once more pairs of CPUs are measured, they get a figure of their own


def test_power_makes_an_order_by_watt_less_sure() -> None:
    field = [on("gtx_1080"), on("titan_x_maxwell")]
    field[1] = replace(field[1], estimate=replace(field[0].estimate, energy_j=2 * field[0].estimate.energy_j,
                       energy_interval_j=tuple(2 * v for v in field[0].estimate.energy_interval_j),
                       latency_s=2 * field[0].estimate.latency_s,
                       latency_interval_s=tuple(2 * v for v in field[0].estimate.latency_interval_s)))  # fmt: skip
    assert rank(field, WATT).ahead[0] < rank(field, SPEED).ahead[0]


def test_nobody_overtakes_where_it_does_not_fit() -> None:
    slow, fast = on("i7_6700k"), on("gtx_1080")
    times = {"i7_6700k": lambda b: 1e-3 * b, "gtx_1080": lambda b: 20.5e-3 + 0.1e-3 * b}
    cpu, gpu = ([timed(c, b, times[c.name](b)) for b in (1, 16, 64)] for c in (slow, fast))
    gpu[2] = unfit(gpu[2])
    found = crossings(batch_curve(cpu), batch_curve(gpu), lambda name, batch: times[name](batch))
    assert [(c.winner, c.batch) for c in found] == [("i7_6700k", 1)]


def test_a_device_without_a_link_copies_nothing() -> None:
    request = make_request("alexnet", "tegra_x1")
    from archsim.estimation.estimate import estimate_of

    e = estimate_of(request, references=False)
    slower = replace(e, ops=tuple(replace(op, time_s=2 * op.time_s) for op in e.ops))
    rows = payoffs([slower], [e], [request.trace.ops], request.spec.device)
    assert all(row.alone == row.resident == 1 for row in rows)
