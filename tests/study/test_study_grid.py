"""Points in columns give what single estimates give; what is no machine is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.base.errors import ArchsimError, InputError, UnknownName
from archsim.base.units import COUNT, TEXT
from archsim.device.part import Unit
from archsim.device.spec import keys
from archsim.estimation.estimate import estimate
from archsim.estimation.request import make_request
from archsim.estimation.result import Estimate
from archsim.study.grid import OUTPUTS, evaluate, groups, outcomes
from archsim.study.knob import known, outside

CELLS: list[dict[str, Any]] = [
    {"net": "alexnet", "hw": "gtx_1080", "stack": "torch7-cudnn5.1"},
    {"net": "resnet_18", "hw": "titan_x_maxwell", "task": "training_step"},
    {"net": "alexnet", "hw": "tesla_v100_sxm2", "precision": "fp16", "stack": "caffe-cudnn7.1"},
    {"net": "alexnet", "hw": "tegra_x2", "precision": "fp16"},
    {"net": "resnet_18", "hw": "gtx_1080", "power_limit": 120.0},
    {"net": "alexnet", "hw": "i7_6700k"},
    {"net": "resnet_18", "hw": "xeon_e5_2630_v3_2s", "stack": "caffe-openblas"},
    {"net": "alexnet", "hw": "i7_6700k", "fidelity": "roofline"},
    {"net": "bert_base", "hw": "a100_sxm4_40gb", "seq_len": 128},
]
POINTS = 12
ENOUGH = 48  # points of a cell
THOROUGH = {120.0: 12}  # of the one whose clocks are searched for under a limit, which takes longer
SEED = 20240607


def random_columns(cell: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A handful of knobs, each with random values that make machines."""
    request = make_request(**cell)
    spec = request.spec
    numeric = [(key, unit) for key, unit, _ in keys(spec.kind) if unit.unit != TEXT and key in spec.entries]
    columns: dict[str, Any] = {}
    for i in rng.permutation(len(numeric))[:6].tolist():
        key, unit = numeric[i]
        value = float(spec.entries[key].number) * rng.uniform(0.5, 2.0, POINTS)
        columns[key] = np.clip(np.ceil(value) if unit.whole else value, None, unit.high)
    columns["batch"] = rng.choice([1, 2, 16], POINTS)
    if "clock.sustained" not in columns and rng.random() < 0.5:
        columns["clock"] = float(np.ravel(request.clock)[0]) * rng.uniform(0.5, 1.5, POINTS)
    return columns


def single(cell: dict[str, Any], columns: dict[str, Any], i: int) -> Estimate:
    """The estimate of one point, asked as a user would: written values."""
    kind = make_request(**cell).spec.kind
    units = {key: unit for key, unit, _ in keys(kind)}
    settings = {key: written(float(column[i]), units[key]) for key, column in columns.items() if key in units}
    own = {key: column[i] for key, column in columns.items() if key not in units}
    return estimate(**cell, **{key: int(v) if key == "batch" else float(v) for key, v in own.items()}, settings=settings)


def written(value: float, unit: Unit) -> str:
    return repr(value) if unit.unit == COUNT else f"{value!r} {unit.unit}"


def compared(cell: dict[str, Any], rng: np.random.Generator) -> int:
    """How many of `POINTS` random points were sound: each equals the single estimate; what is refused is refused alone too."""
    columns = random_columns(cell, rng)
    found = outcomes(make_request(**cell), columns)
    for i in range(POINTS):
        if found.problems[i]:
            with pytest.raises(ArchsimError):
                single(cell, columns, i)
            continue
        alone = single(cell, columns, i)
        for name in OUTPUTS:
            np.testing.assert_allclose(found.values[name][i], float(getattr(alone, name)), rtol=1e-12, err_msg=name)
    return found.problems.count("")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell['net']}-{cell['hw']}-{cell.get('precision', 'fp32')}")
def test_points_equal_single_estimates(cell: dict[str, Any]) -> None:
    """Over all cells four hundred points, with another half a dozen knobs for every twelve of them."""
    rng = np.random.default_rng(SEED)
    wanted = THOROUGH.get(cell.get("power_limit", 0.0), ENOUGH)
    done = 0
    while done < wanted:
        done += compared(cell, rng)


def test_columns_and_chunks_do_not_depend_on_each_other() -> None:
    """A point alone, among others, and after another choice of chunks: the same to the last bits."""
    request = make_request("alexnet", "gtx_1080")
    rng = np.random.default_rng(SEED)
    columns = {"memory.bandwidth": rng.uniform(1e11, 1e12, 700), "sm.count": rng.integers(8, 160, 700).astype(float)}
    together = evaluate(request, columns)
    few = evaluate(request, {key: column[650:660] for key, column in columns.items()})
    for name in OUTPUTS:
        np.testing.assert_allclose(few[name], together[name][650:660], rtol=1e-13, err_msg=name)


def test_no_columns_are_the_base_itself() -> None:
    request = make_request("alexnet", "i7_6700k")
    assert evaluate(request, {})["latency_s"][0] == pytest.approx(estimate("alexnet", "i7_6700k").latency_s, rel=1e-13)


def test_words_and_sizes_make_groups_in_the_order_of_their_points() -> None:
    columns = {"batch": np.array([4, 1, 4, 1]), "hw": ["b", "a", "b", "b"]}
    found = [(choices, rows.tolist()) for choices, rows in groups(columns, 4)]
    assert found == [({"hw": "b", "batch": 4}, [0, 2]), ({"hw": "a", "batch": 1}, [1]), ({"hw": "b", "batch": 1}, [3])]


def test_networks_and_devices_are_columns_too() -> None:
    columns = {"net": ["alexnet", "resnet_18", "alexnet"], "hw": ["gtx_1080", "tesla_k40", "i7_6700k"], "batch": [1, 2, 4]}
    found = evaluate(make_request("alexnet", "gtx_1080"), columns)
    for i in range(3):
        alone = estimate(columns["net"][i], columns["hw"][i], batch=columns["batch"][i])
        assert found["latency_s"][i] == pytest.approx(alone.latency_s, rel=1e-12)


def test_what_is_no_machine_is_refused_by_point() -> None:
    request = make_request("alexnet", "gtx_1080")
    columns = {"sm.count": [20, 20.5, 0, 20], "power.idle": [5.0, 5.0, 5.0, 1000.0]}
    found = outcomes(request, columns)
    assert [bool(problem) for problem in found.problems] == [False, True, True, True]
    assert "whole number" in found.problems[1]
    assert "outside the range 1 to 1000000" in found.problems[2]
    assert "power.idle: 1 kW is more than power.tdp (180 W)" in found.problems[3]
    assert np.isnan(found.values["latency_s"]).tolist() == [False, True, True, True]
    with pytest.raises(InputError, match=r"point 1: sm\.count"):
        evaluate(request, columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [({"batch": [0]}, "batch"), ({"batch": [2**30]}, "batch"), ({"clock": [1.0]}, "clock"), ({"threads": [4]}, "only a CPU"),
     ({"precision": ["tf32"]}, "tf32"), ({"power_limit": [1.0]}, "power.idle"), ({"memory.bandwidth": [float("nan")]}, "finite"),
     ({"memory.bandwidth": [1e30]}, "outside the range 1 MB/s to 10 PB/s"), ({"hw": ["gtx_9999"]}, "unknown device")],
)  # fmt: skip
def test_refused_points_say_why(columns: dict[str, Any], said: str) -> None:
    assert said in outcomes(make_request("alexnet", "gtx_1080", stack="caffe-cudnn5.1"), columns).problems[0]


def test_an_unknown_knob_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match=r"memory\.bandwidth"):
        evaluate(make_request("alexnet", "gtx_1080"), {"memory.bandwith": [1e11]})


def test_the_ranges_are_those_of_the_spec() -> None:
    values = np.array([-1.0, 0.0, 1e-13, 0.3, 1.0, 1.5, 2.0, 1e19, np.inf])
    for kind in ("gpu", "cpu"):
        for _, unit, _ in keys(kind):
            if unit.unit != TEXT:
                assert outside(unit, values).tolist() == [bool(unit.problem(v)) if np.isfinite(v) else True for v in values]


def test_a_thread_count_that_nobody_named_follows_the_cores() -> None:
    request = make_request("resnet_18", "i7_6700k", stack="caffe-openblas")
    found = evaluate(request, {"core.count": [2.0, 4.0], "core.threads": [4.0, 8.0]})
    half = estimate("resnet_18", "i7_6700k", stack="caffe-openblas", settings={"core.count": "2", "core.threads": "4"})
    assert found["latency_s"][0] == pytest.approx(half.latency_s, rel=1e-12)
    assert found["latency_s"][0] > found["latency_s"][1]


def test_all_knobs_of_a_kind_are_known() -> None:
    assert {"clock", "threads", "batch", "memory.bandwidth", "core.count"} < set(known("cpu"))
    assert "memory.type" not in known("gpu")
