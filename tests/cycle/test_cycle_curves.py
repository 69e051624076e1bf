"""Curves of microbenchmarks on the simulated machine, beside what the literature and Little's law say of them."""

import pytest

from archsim.device.catalog import find
from archsim.simulate.curves import LAW, SimulatedCurve, core_curve, sm_curve
from archsim.simulate.sm import SimulatedSm, simulate_sm
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
        assert shares[0] > 0.7, name  # nothing else is under way
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


def run_of(words: str, **settings: str) -> SimulatedSm:
    spec = find("gtx_1080").with_settings({key.replace("_", ".", 1): value for key, value in settings.items()})
    return simulate_sm(spec, words, clock=1.6e9)


@each(("size", "settings", "hits"), [
    ("8KiB", {}, (1, 1)), ("256KiB", {}, (0, 1)), ("4MiB", {}, (0, 0)), ("256KiB", {"l2_size": "128KiB"}, (0, 0)),
    ("256KiB", {"l1_size": "256KiB"}, (1, 1)), ("3MiB", {"l2_ways": "1"}, (0, 1 / 3)),
])  # fmt: skip
def test_a_set_that_is_walked_again_is_where_it_fits(size: str, settings: dict[str, str], hits: tuple[float, float]) -> None:
    """Replacement of the line used least recently leaves nothing of a larger set (Smith 1978); of 3 lines that share one place of
    a cache of one way, none stays, and of 2 MiB in 3 MiB a third has its place alone."""
    found = run_of(f"stream set={size}", **settings)
    assert tuple(found.hits.values()) == pytest.approx(hits, abs=0.01)
    assert not found.unread


def test_a_stride_takes_more_sectors_and_turns() -> None:
    near, far = (run_of(f"stream write=0 set=1MiB stride={stride}") for stride in (1, 4))
    assert far.result.l2 == 4 * near.result.l2  # B: 16 sectors of a warp, of which a quarter is used
    conflict, padded = (run_of(f"stream write=0 loads=8 set=8KiB stride={stride}").result.clocks for stride in (32, 33))
    assert conflict > 2 * padded


def test_rows_that_stay_in_a_cache_are_read_from_it_again() -> None:
    small, large = run_of("norm row=4096 passes=3"), run_of("norm row=4096 passes=3", l1_size="1MiB")
    assert (small.hits["L1"], large.hits["L1"]) == (0, 1)
    assert large.result.l2 < small.result.l2


def test_it_says_that_nothing_reads_a_cache_where_hits_are_given() -> None:
    assert run_of("stream l1=0.5 l2=1", l2_size="128KiB", l1_ways="2").unread == ("l1.ways", "l2.size")
    assert run_of("gemm 64x64x8", l2_size="1MiB").unread == ("l2.size",)
    assert run_of("stream set=1MiB l2=1", l1_size="16KiB", l2_size="4MiB").unread == ("l2.size",)


@each("level", [1, 2, 3])
def test_chains_of_pointers_overlap(level: int) -> None:
    curve = curve_of("i7_6700k", f"chains level={level}")  # Intel's optimisation manual: 4, 12 and 42 clk
    one, two, four = curve.lines["simulated"][:3]
    assert 1 / one == pytest.approx((4, 12, 42)[level - 1])
    assert (two / one, four / one) == (pytest.approx(2, rel=0.01), pytest.approx(4, rel=0.01))
    assert max(curve.lines["simulated"]) <= 2.0  # two ports load
