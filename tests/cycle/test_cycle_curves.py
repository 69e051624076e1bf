"""Curves of microbenchmarks on the simulated machine, beside what the literature and Little's law say of them."""

import pytest

from archsim.device.catalog import find
from archsim.simulate.curves import LAW, SimulatedCurve, core_curve, sm_curve
from tests.each import each


def curve_of(hw: str, words: str, **settings: str) -> SimulatedCurve:
    spec = find(hw).with_settings({key.replace("_", ".", 1): value for key, value in settings.items()})
    draw = core_curve if words.startswith("chains") else sm_curve
    return draw(spec, words, float(spec.device.usual_clock))


def enough(curve: SimulatedCurve, name: str) -> float:
    line = curve.lines[name]
    return next(at for at, value in zip(curve.at, line, strict=True) if value >= 0.98 * max(line))


# Jia et al. 2018 and 2019, Abdelkhalik et al. 2022: 6, 4 and 4 clk of latency; lanes as in the CUDA programming guide
@each(("hw", "alone", "both", "rate"), [("gtx_1080", 24, 12, 128), ("tesla_v100_sxm2", 8, 4, 64), ("h100_sxm5_80gb", 16, 8, 128)])
def test_warps_that_hide_the_latency_of_a_multiply_add(hw: str, alone: int, both: int, rate: int) -> None:
    curve = curve_of(hw, "warps")
    assert enough(curve, "ILP 1") == alone
    assert enough(curve, "ILP 2") == both
    assert max(curve.lines["ILP 1"]) == pytest.approx(rate, rel=0.02)


def test_twice_the_latency_takes_twice_the_warps() -> None:
    assert enough(curve_of("gtx_1080", "warps", sm_alu_latency="12clk"), "ILP 1") == 2 * 24


@each("words", ["bytes-in-flight", "bytes-in-flight bytes=16"])
def test_a_copy_is_bound_by_littles_law_and_comes_near_it(words: str) -> None:
    curve = curve_of("gtx_1080", words)
    for name, line in curve.lines.items():
        shares = [value / law for value, law in zip(line, curve.lines[LAW], strict=True) if value is not None]
        assert 0.7 < shares[0], name  # nothing else is under way
        assert max(shares) < 1.02, name
        assert 0.6 * 320e9 < [value for value in line if value is not None][-1] < 320e9  # data sheet


def test_strides_touch_sectors_and_banks_as_the_programming_guide_has_them() -> None:
    curve = curve_of("gtx_1080", "strides")
    found = {at: [curve.lines[name][i] for name in ("sectors", "bank turns")] for i, at in enumerate(curve.at)}
    assert [found[at] for at in (1, 2, 4, 8, 16, 32, 33)] == [[4, 1], [8, 2], [16, 4], [32, 8], [32, 16], [32, 32], [32, 1]]


def test_the_table_of_occupancy_names_what_limits() -> None:
    curve = curve_of("gtx_1080", "occupancy")  # compute capability 6.1: 64 K registers, 64 warps, 32 CTAs
    held = {(name, at): (curve.lines[name][i], curve.limits[name][i]) for name in curve.lines for i, at in enumerate(curve.at)}
    assert held["64 threads", 16] == (32, "sm.ctas")
    assert held["256 threads", 24] == (8, "sm.warps")
    assert held["256 threads", 40] == (6, "sm.registers")
    assert held["1024 threads", 64] == (1, "sm.registers")
    assert held["1024 threads", 128][0] == 0
    shared = curve_of("gtx_1080", "occupancy threads=256")  # 96 KiB of shared memory, of which a CTA may have 48
    assert (shared.lines["48 KiB"][0], shared.limits["48 KiB"][0]) == (2, "sm.shared_memory")


@each("level", [1, 2, 3])
def test_chains_of_pointers_overlap(level: int) -> None:
    curve = curve_of("i7_6700k", f"chains level={level}")  # Intel's optimisation manual: 4, 12 and 42 clk
    one, two, four = curve.lines["simulated"][:3]
    assert 1 / one == pytest.approx((4, 12, 42)[level - 1])
    assert (two / one, four / one) == (pytest.approx(2, rel=0.01), pytest.approx(4, rel=0.01))
    assert max(curve.lines["simulated"]) <= 2.0  # two ports load
