"""Die area and cost: against published dies, its laws, and the file they stand on."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import data_folder
from archsim.cost.area import die_area, die_cost, die_parts, die_yield, dies_per_wafer
from archsim.device.catalog import find
from archsim.device.silicon import PLACE, loads, silicon
from archsim.study.whatif import area_and_cost, area_scale, die_checks, die_estimate

TEXT = data_folder("hwspecs").joinpath(*PLACE.split("/")).read_text("utf-8")


def test_published_dies_are_met_within_a_fifth() -> None:
    found = die_checks()
    assert len(found) >= 15
    errors = [abs(c.error) for c in found]
    assert statistics.median(errors) < 0.07, [(c.name, round(c.error, 3)) for c in found]
    assert max(errors) < 0.20


def test_a_base_has_its_published_area() -> None:
    for name in ("titan_x_maxwell", "titan_x_pascal", "a100_sxm4_40gb"):
        base = find(name)
        found = die_estimate(base)
        assert found.area == pytest.approx(base.device.chip.area)
        assert sum(found.parts.values()) == pytest.approx(found.area)


def test_without_a_published_area_the_model_stands_alone() -> None:
    base = find("tegra_x1")
    assert area_scale(base) == 1.0
    assert die_estimate(base).published is None


@pytest.mark.parametrize(("key", "value"), [("sm.count", "48"), ("l2.size", "6 MiB"), ("memory.bandwidth", "673 GB/s"),
                                            ("rate.fp64", "64 FMA/clk"), ("sm.registers", "512 KiB")])  # fmt: skip
def test_more_of_anything_takes_area(key: str, value: str) -> None:
    base = find("titan_x_maxwell")
    more = die_estimate(base.with_settings({key: value}))
    assert more.area > die_estimate(base).area
    assert more.cost > die_estimate(base).cost


def test_faster_pins_take_none() -> None:
    base = find("titan_x_maxwell")
    faster = base.with_settings({"memory.bandwidth": "673 GB/s", "memory.data_rate": "14 Gbit/s"})
    assert die_estimate(faster).area == pytest.approx(die_estimate(base).area, rel=0.01)


def test_columns_are_single_dies() -> None:
    device, base = find("gtx_1080").device, find("gtx_1080")
    counts = np.array([[10.0], [20.0], [40.0]])
    area, cost = area_and_cost(replace(device, sm=replace(device.sm, count=counts)), area_scale(base))
    single = [die_estimate(base.with_settings({"sm.count": f"{int(n)}"})) for n in counts.ravel()]
    np.testing.assert_allclose(area, [c.area for c in single], rtol=1e-12)
    np.testing.assert_allclose(cost, [c.cost for c in single], rtol=1e-12)


def test_nodes_can_vary_from_point_to_point() -> None:
    device, base = find("gtx_1080").device, find("gtx_1080")
    nodes = np.array([[16e-9], [7e-9], [28e-9], [16e-9]])
    area, cost = area_and_cost(replace(device, chip=replace(device.chip, node=nodes)), area_scale(base))
    single = [die_estimate(base.with_settings({"chip.node": f"{round(n * 1e9)} nm"})) for n in nodes.ravel()]
    np.testing.assert_allclose(area, [c.area for c in single], rtol=1e-12)
    np.testing.assert_allclose(cost, [c.cost for c in single], rtol=1e-12)
    assert area[2] > area[0] == area[3] > area[1]


@given(st.floats(20, 1600), st.floats(1.01, 3.0))
def test_a_larger_die_yields_less_and_costs_more(area: float, factor: float) -> None:
    node = silicon().nodes["16nm"]
    assert die_yield(area * factor, node, 2.0) < die_yield(area, node, 2.0) <= 1.0
    assert dies_per_wafer(area * factor, 300.0) <= dies_per_wafer(area, 300.0)
    assert die_cost(area * factor, node, silicon()) > factor * die_cost(area, node, silicon()) * 0.999


def test_a_published_example_of_dies_and_yield() -> None:
    # Hennessy and Patterson, 6th edition, section 1.6: 300 mm, 1.5 cm and 1.0 cm on a side.
    assert dies_per_wafer(225.0, 300.0) == pytest.approx(270, abs=1)
    assert dies_per_wafer(100.0, 300.0) == pytest.approx(640, abs=1)


def test_a_die_beyond_one_exposure_is_said() -> None:
    base = find("tesla_v100_sxm2")
    assert die_estimate(base).feasible
    assert not die_estimate(base.with_settings({"sm.count": "120"})).feasible
    assert silicon().field == 26 * 33


def test_cpus_and_unknown_nodes_are_refused() -> None:
    with pytest.raises(Unsupported, match="GPUs only"):
        area_scale(find("i7_6700k"))
    with pytest.raises(Unsupported, match="3nm"):
        die_area(find("gtx_1080").with_settings({"chip.node": "3 nm"}).device, silicon())


def test_an_absent_pipe_takes_no_area() -> None:
    device = find("gtx_1080").device
    without = replace(device, rate=replace(device.rate, fp64=None))
    assert die_parts(without, silicon())["SMs"] < die_parts(device, silicon())["SMs"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("value = 0.127", "value = -1", "nodes.28nm.cell_um2: must be"),
        ('kind = "derived", note = "GF100"', 'kind = "guess"', "guess"),
        ("rest_mm2 = ", "res_mm2 = ", "parts.rest_mm2: is missing"), ("[wafer]", "[wafers]", "wafer.cluster"),
        ('note = "a mature process"', 'note = ""', "needs a note"), ('value = "28nm"', 'value = "29nm"', "29nm"),
        ("schema = 1", "schema = ", "TOML"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(old: str, new: str, text: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=text):
        loads(TEXT.replace(old, new), "silicon.toml")
