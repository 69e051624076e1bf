"""What users write as values of a knob, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import ArchsimError, UnknownName
from archsim.estimation.request import make_request
from archsim.study.axis import BadAxis, axis_of, coupling_of
from archsim.study.space import hypercube_positions, permuted

from ..each import each


@each(
    ("text", "values"),
    [
        ("memory.bandwidth=100GB/s:400GB/s:3log", (100e9, 200e9, 400e9)),
        ("memory.bandwidth=100GB/s:1TB/s:3lin", (100e9, 550e9, 1e12)),
        ("memory.bandwidth=100GB/s:250GB/s:100GB/s", (100e9, 200e9)),
        ("sm.count=8:32:8", (8, 16, 24, 32)),
        ("sm.count=1:8:9log", (1, 2, 3, 4, 5, 6, 8)),  # whole numbers, each once
        ("batch=1:256:x4", (1, 4, 16, 64, 256)),
        ("batch=1,4,5", (1, 4, 5)),
        ("precision=fp32,fp16", ("fp32", "fp16")),
        ("clock=1 GHz : 1 GHz : 5lin", (1e9,)),
    ],
)
def test_values_of_an_axis(text: str, values: tuple[float | str, ...]) -> None:
    found = axis_of(text, "gpu").values
    assert found == values if isinstance(values[0], str) else found == pytest.approx(values, rel=1e-12)


@each(
    ("text", "said"),
    [
        ("memory.bandwidth", "is not KEY=VALUES"), ("memory.bandwidth=", "is not KEY=VALUES"),
        ("memory.bandwidth=1TB/s:100GB/s:5log", "runs backwards"), ("memory.bandwidth=1:2:3", "lacks its unit"),
        ("memory.bandwidth=1GB/s:2GB/s:0log", "empty"), ("memory.bandwidth=1GB/s,,2GB/s", "empty place"),
        ("memory.bandwidth=1GB/s:2GB/s:5", "a factor like x2"), ("sm.count=8:16:0", "more than 0"),
        ("sm.count=8:16:x1", "more than x1"), ("sm.count=8.5,9", "whole number"),
        ("sm.count=0:8:1", "0 is outside the range 1 to 1000000"),
        ("sm.count=8,8", "twice"), ("sm.count=1:2:3:4", "more than FROM:TO:STEP"), ("batch=0,1", "outside the range 1 to"),
        ("power.idle=0W:1W:3log", "above 0"), ("memory.bandwidth=1MB/s:1TB/s:1kB/s", "at most 10,000,000"),
    ],
)  # fmt: skip
def test_what_is_no_axis_says_why(text: str, said: str) -> None:
    with pytest.raises(BadAxis, match=said):
        axis_of(text, "gpu")


@pytest.mark.parametrize("text", ["memory.bandwith=1GB/s", "core.count=1,2", "memory.type=HBM2", "frequency=1"])
def test_an_unknown_knob_names_others(text: str) -> None:
    with pytest.raises(UnknownName):
        axis_of(text, "gpu")


@given(count=st.integers(1, 3000), seed=st.integers(0, 2**40))
def test_a_sample_has_one_point_in_each_part_of_an_axis(count: int, seed: int) -> None:
    found = hypercube_positions(0, count, count, seed, "memory.bandwidth")
    assert sorted(np.floor(found * count).astype(int).tolist()) == list(range(count))
    middle = count // 2
    assert np.array_equal(hypercube_positions(middle, count, count, seed, "memory.bandwidth"), found[middle:])


def test_samples_of_axes_and_seeds_differ_and_do_not_follow_each_other() -> None:
    count = 20_000
    one, other, again = (hypercube_positions(0, count, count, seed, axis) for seed, axis in ((1, "a"), (1, "b"), (2, "a")))
    for second in (other, again):
        assert abs(np.corrcoef(one, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.03


def test_a_permutation_reaches_far_numbers() -> None:
    positions = np.array([0, 1, 2**40 - 1], dtype=np.uint64)
    found = permuted(positions, 2**40, 7)
    assert len(set(found.tolist())) == 3
    assert (found < 2**40).all()


def test_drawn_values_stay_in_their_range_and_reach_its_ends() -> None:
    share = np.linspace(0, 1, 1001)[:-1]
    whole = axis_of("sm.count=8:16", "gpu").drawn(share)
    assert set(whole.tolist()) == set(range(8, 17))
    ratio = axis_of("memory.bandwidth=1GB/s:1TB/s:log", "gpu").drawn(share)
    assert ratio[0] == 1e9
    assert ratio[500] == pytest.approx(1e9 * 1000**0.5)
    assert set(axis_of("precision=fp32,fp16", "gpu").drawn(share).tolist()) == {"fp32", "fp16"}


def test_a_link_keeps_ratios_and_powers() -> None:
    request = make_request("alexnet", "gtx_1080")
    clock = float(request.spec.device.clock.sustained)
    double = np.array([clock, 2 * clock])
    assert coupling_of("power.tdp=clock^3", ("clock",)).values(request, double) == pytest.approx([180.0, 1440.0])
    counts = coupling_of("sm.count=clock", ("clock",)).values(request, 1.02 * double)
    assert counts.tolist() == [20.0, 41.0]


@pytest.mark.parametrize("text", ["power.tdp", "power.tdp=sm.count", "power.tdp=clock^x", "batch=clock", "power.tdp=clock^1.2.3"])
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(ArchsimError):
        coupling_of(text, ("clock",))


def test_a_link_needs_a_value_to_start_from() -> None:
    with pytest.raises(BadAxis, match=r"has no rate\.tensor_fp16"):
        coupling_of("rate.tensor_fp16=clock", ("clock",)).check(make_request("alexnet", "gtx_1080"))
