"""Search: the best of a grid, conditions, the front, trials, and what a target would take."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.answers.search import sections
from archsim.base.errors import MissingExtra, UnknownName, Unsupported
from archsim.estimation.estimate import estimate_of
from archsim.estimation.measured import class_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.render.text import text_of
from archsim.study.axis import axis_of
from archsim.study.objective import BadCondition, BadGoal, Condition, conditions, limit_of, objectives, output_of, target_of
from archsim.study.search import Collector, Evaluator, SearchGoal, SearchResult, search, with_default_front
from archsim.study.space import Space
from archsim.study.target import changes_for_target
from archsim.study.whatif import die_estimate

VARY = ("memory.bandwidth=100GB/s:500GB/s:5lin", "sm.count=8:40:8")


def asked(**choices: Any) -> tuple[Request, Space]:
    vary = choices.pop("vary", VARY)
    base = {"net": "alexnet", "hw": "gtx_1080"} | choices
    request = make_request(**base)
    return request, Space(bases=(base,), axes=tuple(axis_of(text, request.spec.kind) for text in vary))


def found(minimise: str = "energy", where: str = "", **choices: Any) -> tuple[Request, SearchResult]:
    request, space = asked(**choices)
    limits = tuple(conditions(where, {"batch": "1"})) if where else ()
    goal = SearchGoal(objectives=tuple(objectives([minimise], [])), conditions=limits)
    return request, search(request, space, with_default_front(goal, space.knobs, True), top=3)


def test_the_best_is_the_best_of_single_estimates() -> None:
    _, f = found("latency", "area_mm2 < 350")
    rows = []
    for bandwidth in np.linspace(100, 500, 5):
        for count in range(8, 41, 8):
            settings = {"memory.bandwidth": f"{bandwidth:.17g} GB/s", "sm.count": str(count)}
            q = make_request("alexnet", "gtx_1080", settings=settings)
            area = die_estimate(q.spec).area
            rows.append((estimate_of(q, references=False).latency_s, bandwidth * 1e9, float(count), area))
    best = min(row for row in rows if row[3] < 350)
    assert (f.best[0]["memory.bandwidth"], f.best[0]["sm.count"]) == (pytest.approx(best[1]), best[2])
    assert f.best[0]["latency_s"] == pytest.approx(best[0], rel=1e-12)
    assert f.best[0]["area_mm2"] == pytest.approx(best[3], rel=1e-12)
    assert (f.points, f.feasible) == (25, sum(row[3] < 350 for row in rows))


def test_the_best_and_the_front_are_repeated_by_the_cycle_model() -> None:
    request, space = asked(vary=("sm.count=10,20,40",), batch=8)
    goal = with_default_front(SearchGoal(objectives=tuple(objectives(["latency"], []))), space.knobs, True)
    f = search(request, space, goal, top=3, repeated=True)
    _, spread = class_of(request, run(request))
    for row in (*f.best, *f.front):
        one = make_request("alexnet", "gtx_1080", batch=8, fidelity="cycle", settings={"sm.count": f"{row['sm.count']:g}"})
        assert row["simulated_s"] == pytest.approx(estimate_of(one, references=False).latency_s, rel=1e-9)
        low, high = spread.around(row["latency_s"])
        assert row["held"] == (low <= row["simulated_s"] <= high)
    assert "by cycle" in text_of(sections(f))
    for held, said in ((1.0, False), (0.0, True)):
        told = text_of(sections(replace(f, best=({**f.best[0], "held": held},), front=())))
        assert ("trust them less" in told) == (", apart" in told) == said
    assert "simulated_s" not in search(request, space, goal, top=3).best[0]


def test_the_front_ends_at_the_best() -> None:
    _, f = found("latency")
    assert [o.output for o in f.goal.front] == ["latency_s", "area_mm2"]
    assert f.front[0]["latency_s"] == f.best[0]["latency_s"]
    latencies, areas = [r["latency_s"] for r in f.front], [r["area_mm2"] for r in f.front]
    assert latencies == sorted(latencies)
    assert areas == sorted(areas, reverse=True)


def test_points_that_come_in_parts_give_the_same_front_and_best() -> None:
    request, space = asked()
    goal = with_default_front(SearchGoal(objectives=tuple(objectives(["latency"], []))), space.knobs, True)
    columns = space.columns(space.part(0), request)
    values, problems = Evaluator(request)(columns)
    collector = Collector(goal=goal, knobs=space.knobs, top=3, best=[], rows=[])
    for part in (slice(13, None), slice(0, 5), slice(5, 13)):
        collector.add({k: v[part] for k, v in columns.items()}, {k: v[part] for k, v in values.items()}, problems[part])
    whole = search(request, space, goal, top=3)
    assert collector.rows == list(whole.front)
    assert [row for _, _, row in collector.best] == list(whole.best)


def test_conditions_hold_and_may_leave_nothing() -> None:
    _, f = found("energy", "latency < 1.8ms and power < 150W")
    assert all(r["latency_s"] < 1.8e-3 and r["power_w"] < 150 for r in (*f.best, *f.front, *f.cloud))
    assert 0 < f.feasible < f.points
    _, none = found("energy", "latency < 1us")
    assert (none.best, none.front, none.feasible) == ((), (), 0)


def test_the_base_is_the_estimate() -> None:
    request, f = found()
    e = estimate_of(request, references=False)
    assert f.base["latency_s"] == pytest.approx(e.latency_s, rel=1e-12)
    assert f.base["area_mm2"] == pytest.approx(314.0)


def test_a_batch_can_vary_and_be_bounded() -> None:
    _, f = found("energy", "batch <= 4", vary=("batch=1:64:x2",))
    assert max(r["batch"] for r in f.best) <= 4
    assert [o.output for o in f.goal.front] == ["energy_j", "latency_s"]  # no knob of the machine: area says nothing


def test_what_does_not_fit_is_left_out_unless_asked_for() -> None:
    request, space = asked(net="vgg_16", vary=("batch=64,128,256",))
    goal = with_default_front(SearchGoal(objectives=tuple(objectives([], ["throughput"]))), space.knobs, True)
    assert max(r["batch"] for r in search(request, space, goal).best) == 64
    import dataclasses

    assert max(r["batch"] for r in search(request, space, dataclasses.replace(goal, any_memory=True)).best) == 256


def test_points_that_are_no_machine_are_counted() -> None:
    _, f = found("energy", vary=("l1.line=32B,128B,65536B",))
    assert f.broken == 1
    assert "l1.line" in f.why


def test_a_cpu_has_no_die_here() -> None:
    request, space = asked(hw="i7_6700k", vary=("memory.bandwidth=20GB/s:40GB/s:3lin",))
    f = search(request, space, with_default_front(SearchGoal(objectives=tuple(objectives(["latency"], []))), space.knobs, False))
    assert "area_mm2" not in f.base
    with pytest.raises(Unsupported, match="area_mm2"):
        search(request, space, SearchGoal(objectives=tuple(objectives(["area"], []))))


def test_an_endless_grid_is_refused() -> None:
    vary = ("memory.bandwidth=100GB/s:500GB/s:3000lin", "clock=1GHz:2GHz:3000lin")
    with pytest.raises(Unsupported, match="9,000,000 points"):
        found(vary=vary)


def test_trials_come_near_the_best_and_repeat(capsys: Any) -> None:
    pytest.importorskip("optuna")
    request, space = asked()
    goal = with_default_front(SearchGoal(objectives=tuple(objectives(["latency"], []))), space.knobs, True)
    whole = search(request, space, goal)
    a, b = (search(request, space, goal, trials=64, seed=3) for _ in range(2))
    assert a.best == b.best
    assert a.points == 64
    assert a.best[0]["latency_s"] <= 1.05 * whole.best[0]["latency_s"]


def test_trials_without_optuna_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    request, space = asked()
    with pytest.raises(MissingExtra, match=r"archsim\[dse\]"):
        search(request, space, SearchGoal(objectives=tuple(objectives(["latency"], []))), trials=4)


# ------------------------------------------------------------------------------------------------ targets


def test_a_way_meets_the_target_and_less_does_not() -> None:
    request, goal = make_request("alexnet", "gtx_1080", batch=16), target_of("throughput=3000/s")
    evaluator = Evaluator(request)
    reached = 0
    for way in changes_for_target(request, goal).ways:
        if way.factor is None:
            assert way.reached < goal.limit
            continue
        reached += 1
        assert way.values["throughput_per_s"] >= goal.limit
        if len(way.knobs) == 1 and way.knobs[0] == "memory.bandwidth":
            less = evaluator.one(**{k: 0.97 * v for k, v in way.settings.items()})
            assert less["throughput_per_s"] < goal.limit
    assert reached


def test_where_nothing_alone_is_enough_the_machine_and_the_batch_are_tried_together() -> None:
    found = changes_for_target(make_request("resnet_50", "gtx_1080"), target_of("throughput=1000/s")).ways
    *alone, machine, both = found
    assert all(way.factor is None for way in (*alone, machine))
    assert both.knobs == (*machine.knobs, "batch")
    assert both.values["throughput_per_s"] >= 1000
    assert next(iter(machine.limits)) == "host"
    assert machine.limits["host"] == max(machine.limits.values()) == pytest.approx(1 - 1 / 1.2, rel=0.01)
    last = changes_for_target(make_request("alexnet", "gtx_1080"), target_of("latency=1us")).ways[-1]
    assert "batch" not in last.knobs  # which makes a batch slower


def test_what_is_already_there_takes_nothing() -> None:
    found = changes_for_target(make_request("alexnet", "gtx_1080"), target_of("latency=1s")).ways
    assert all(way.factor == 1.0 for way in found)


def test_knobs_can_be_named() -> None:
    found = changes_for_target(make_request("alexnet", "gtx_1080", batch=16), target_of("latency=5ms"), ["memory.bandwidth"]).ways
    assert [way.knobs for way in found] == [("memory.bandwidth",)]
    with pytest.raises(UnknownName):
        changes_for_target(make_request("alexnet", "gtx_1080"), target_of("latency=1s"), ["memory.bandwith"])


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("text", "name", "sign", "limit"),
    [
        ("latency_s < 0.05", "latency_s", "<", 0.05), ("latency<50ms", "latency_s", "<", 0.05),
        ("power <= 150 W", "power_w", "<=", 150.0), ("throughput > 1000 img/s", "throughput_per_s", ">", 1000.0),
        ("batch >= 4", "batch", ">=", 4.0), ("area < 500mm2", "area_mm2", "<", 500.0),
    ],
)  # fmt: skip
def test_conditions_are_read(text: str, name: str, sign: str, limit: float) -> None:
    (c,) = conditions(text, {"batch": "1"})
    assert (c.name, c.sign, c.limit) == (name, sign, pytest.approx(limit))


@pytest.mark.parametrize("text", ["", "latency", "latency < ", "latency < fast", "latency == 3", "latency < 5 W", "latency < nan",
                                  "latency_s < nan", "power_w < inf",
                                  "latency < 0.05", "power < 5ms", "latency_s < 5W", "sm.count < 3 W",
                                  "latency < 1 and", "1 < latency"])  # fmt: skip
def test_conditions_that_make_no_sense(text: str) -> None:
    with pytest.raises((BadCondition, UnknownName)):
        conditions(text, {})


def test_names_and_targets() -> None:
    assert target_of("latency=5ms").sign == "<="
    assert target_of("throughput=1000/s").sign == ">="
    with pytest.raises(UnknownName, match="energy"):
        output_of("enrgy")
    with pytest.raises(BadGoal, match="twice"):
        objectives(["energy", "energy_j"], [])
    for text in ("throughput", "throughput=", "latency=-1ms", "latency=0s"):
        with pytest.raises(BadGoal):
            target_of(text)
    assert limit_of("3 GB", "B") == 3e9


def test_excess_is_zero_where_a_condition_holds() -> None:
    c = Condition(name="x", sign="<", limit=2.0, written="")
    assert c.excess({"x": np.array([1.0, 2.0 * np.e])}).tolist() == pytest.approx([0.0, 1.0])
