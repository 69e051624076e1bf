"""Who is the best, in words: names, odds and leads, at one batch and over several."""

from __future__ import annotations

from functools import cache

import pytest

from archsim.study.comparison import ComparedDevices, Comparison, CurveComparison
from archsim.study.crossover import Crossing, crossing_lines
from archsim.study.price import Price
from archsim.study.standing import best_line, best_over, certainty, titles, toss_ups


def quiet(_: str) -> None:
    pass


@cache
def compared(by: str = "speed", hw: tuple[str, ...] = ("gtx_1080", "tesla_k40", "i7_6700k"), batch: int = 16) -> Comparison:
    prices = {"tesla_k40": Price(usd=None, usd_per_h=1.0, kind="given", source="test")}
    return ComparedDevices(hw, prices=prices, by=by).at("alexnet", batch, False, None, quiet)


@cache
def over(hw: tuple[str, ...], batches: tuple[int, ...], net: str = "alexnet") -> CurveComparison:
    return ComparedDevices(hw).over(net, batches, False, None, quiet, ops=False)


@pytest.mark.parametrize(("by", "best", "lead"), [
    ("speed", "is fastest", "times as fast as"), ("watt", "is most efficient", "times as much as"),
    ("dollar", "is best per dollar", "times as much as"), ("cost", "is cheapest", "times as much"),
])  # fmt: skip
def test_the_first_place_has_its_odds_and_its_lead(by: str, best: str, lead: str) -> None:
    c = compared(by)
    called = titles(c.all)
    first = c.rankings[0]
    line = best_line(first, called)
    assert line is not None
    who, sure, told = line
    assert who == f"{called[first.order[0].name]} {best}"
    assert sure.endswith("sure")
    assert lead in told
    assert called[first.order[1].name] in told
    ratio = max(first.scores[0] / first.scores[1], first.scores[1] / first.scores[0])
    assert f"{ratio:.3g} times" in told


def test_one_that_alone_has_a_price_is_said_to_be_the_only_one() -> None:
    c = compared(hw=("gtx_1080", "tesla_v100_sxm2"))
    dollar = next(r for r in c.rankings if r.criterion.name == "dollar")
    line = best_line(dollar, titles(c.all))
    assert line is not None
    assert line[1] == "the only one with a price"
    lone = compared(hw=("tesla_v100_sxm2",))
    assert best_line(next(r for r in lone.rankings if r.criterion.name == "dollar"), titles(lone.all)) is None


def test_neighbours_that_nobody_can_rely_on_are_toss_ups() -> None:
    c = ComparedDevices(["gtx_1080", "gtx_1080_ti", "titan_xp"]).at("alexnet", 16, False, None, quiet)
    called, first = titles(c.all), c.rankings[0]
    close = [i for i, ahead in enumerate(first.ahead) if ahead < 0.75]
    said = toss_ups(first, called)
    assert said.count(" before ") == len(close)
    assert all(f"{called[first.order[i].name]} before {called[first.order[i + 1].name]}" in said for i in close)
    assert toss_ups(compared().rankings[0], titles(compared().all)) == ""


def test_names_are_those_of_the_maker_and_tell_all_apart() -> None:
    c = compared()
    assert [titles(c.all)[name] for name in ("gtx_1080", "tesla_k40", "i7_6700k")] == ["GTX 1080", "Tesla K40", "Core i7-6700K"]
    stacks = ["caffe-cudnn5.1", "tensorflow-cudnn5.1"]
    one = ComparedDevices(["gtx_1080"], stacks).at("alexnet", 16, False, None, quiet)
    assert {titles(one.all)[x.name] for x in one.all} == set(stacks)
    two = ComparedDevices(["gtx_1080", "tesla_k40"], stacks).at("alexnet", 16, False, None, quiet)
    assert {titles(two.all)[x.name] for x in two.all} == {f"{hw} {stack}" for hw in ("GTX 1080", "Tesla K40") for stack in stacks}
    changed = ComparedDevices(["gtx_1080"], arguments={"settings": {"sm.count": "40"}}).at("alexnet", 1, False, None, quiet)
    assert titles(changed.all)[changed.all[0].name] == "GTX 1080 with sm.count = 40"


def test_the_whole_order_and_what_is_assumed_of_errors_is_told_of_several() -> None:
    assert certainty(compared().rankings)[0].startswith("Whole order right: by speed ")
    assert certainty(compared(hw=("gtx_1080",)).rankings) == []


def test_over_batches_the_best_has_its_stretch() -> None:
    ahead = over(("gtx_1080", "i7_6700k"), (1, 4))
    called = titles([curve.points[0] for curve in ahead.curves])
    speed = ahead.best[0].rankings[0].criterion
    line = best_over(ahead, speed, called)
    assert line is not None
    assert line[0] == "GTX 1080 is fastest at every batch"
    full = over(("gtx_480", "gtx_1080"), (1, 64, 512), "vgg_16")
    called = titles([curve.points[0] for curve in full.curves])
    said = best_over(full, speed, called)
    assert said is not None
    assert said[0] == "Fastest: GTX 1080"
    assert said[2].startswith("GTX 1080 at batch 1 to 64, none at batch 512; ")


def test_who_overtakes_whom_is_a_sentence() -> None:
    found = over(("tegra_x1", "tegra_x1_cpu", "i7_6700k"), (1, 4))
    called = titles([curve.points[0] for curve in found.curves])
    slow, fast = "tegra_x1", "i7_6700k"
    met = [Crossing(winner=fast, loser=slow, batch=1, start=True, sure=1),
           Crossing(winner=slow, loser=fast, batch=3, start=False, sure=None)]  # fmt: skip
    every, only = (crossing_lines(met, found.curves, called, overtaken=only) for only in (False, True))
    assert every == ["Core i7-6700K is faster than Tegra X1 from the first batch, 1 (90 % sure from batch 1).", *only]
    assert only == ["Tegra X1 overtakes Core i7-6700K at batch 3 (not 90 % sure up to batch 4)."]
    ahead = [Crossing(winner=fast, loser=other, batch=1, start=True, sure=1) for other in (slow, "tegra_x1_cpu")]
    assert crossing_lines(ahead, found.curves, called) == [
        f"Core i7-6700K is faster than Tegra X1, {called['tegra_x1_cpu']} from the first batch."]
