"""Who is the best, in words: names, odds and leads, at one batch and over several."""

from __future__ import annotations

from functools import cache

import pytest

from archsim.study.batches import Crossing, overtakings
from archsim.study.comparison import ComparedDevices, Comparison, CurveComparison
from archsim.study.price import Price
from archsim.study.standing import best_line, best_over, titles, toss_ups


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
    who, sure, told = best_line(first, called) or ("", "", "")
    assert (who, sure[-4:]) == (f"{called[first.order[0].name]} {best}", "sure")
    ratio = max(first.scores[0] / first.scores[1], first.scores[1] / first.scores[0])
    assert all(text in told for text in (lead, called[first.order[1].name], f"{ratio:.3g} times"))


def test_of_one_alone_with_a_price_or_of_none_nothing_is_weighed() -> None:
    for hw, said in ((("gtx_1080", "tesla_v100_sxm2"), "the only one with a price"), (("tesla_v100_sxm2",), None)):
        c = compared(hw=hw)
        line = best_line(next(r for r in c.rankings if r.criterion.name == "dollar"), titles(c.all))
        assert said == (line and line[1])


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
    met = [Crossing(winner=a, loser=b, batch=3, start=start, sure=sure) for a, b, start, sure in (
        ("i7", "tx1", True, 1), ("tx1", "i7", False, None), ("i7", "tx1", False, 4))]  # fmt: skip
    assert overtakings(met, {"i7": "Core i7", "tx1": "Tegra X1"}) == [
        "Tegra X1 overtakes Core i7 at batch 3 (90 % sure at no batch).",
        "Core i7 overtakes Tegra X1 at batch 3 (90 % sure from batch 4)."]  # fmt: skip
