"""Power of a GPU from shares of its units: what comes out, what is assumed and warned of, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.answers.power import sections
from archsim.base.errors import ArchsimError, ArgumentError, InputError, MissingFile, UnknownName, Unsupported
from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.cli.estimate import UNITS as NAMED
from archsim.device.units import AWAKE, UNITS
from archsim.estimation.power import CONSTANTS, power_by_unit, powers_of_file
from archsim.render.text import text_of
from tests.each import each

BUSY = {"fp32": 0.8, "dram": 0.3}


def test_clocks_and_limit_are_those_of_the_spec_unless_given() -> None:
    found = power_by_unit("titan_xp", BUSY)
    assert (found.clock_hz, found.memory_clock_hz, found.power_limit_w, found.power_boundary) == (1.68e9, 5.7e9, 250.0, "board")
    assert found.counted_clock_hz == found.clock_hz
    other = power_by_unit("titan_xp", BUSY, clock=1e9, memory_clock=4e9, power_limit=200.0)
    assert (other.clock_hz, other.memory_clock_hz, other.power_limit_w) == (1e9, pytest.approx(4e9), 200.0)
    assert other.voltage < found.voltage


def test_shares_counted_elsewhere_are_moved_to_the_clocks() -> None:
    found = power_by_unit("titan_xp", BUSY, clock=0.7e9, counted_at=(1.4e9, None))
    assert found.counted_clock_hz == 1.4e9
    assert found.shares["fp32"] == pytest.approx(0.8, abs=0.02)
    assert found.shares["dram"] == pytest.approx(0.15, abs=0.01)
    same = power_by_unit("titan_xp", BUSY, clock=1.4e9, counted_at=(1.4e9, found.memory_clock_hz))
    assert same.shares == {AWAKE: 1.0, **dict.fromkeys(UNITS, 0.0), **BUSY}


def test_without_a_counted_memory_clock_it_is_that_of_the_answer() -> None:
    found = power_by_unit("titan_xp", {"dram": 0.5}, clock=1e9, memory_clock=2.85e9, counted_at=(1e9, None))
    assert found.counted_memory_clock_hz == found.memory_clock_hz
    assert found.shares["dram"] == 0.5


def test_the_interval_is_that_of_powers_of_gpus() -> None:
    found, spread = power_by_unit("titan_xp", {"fp32": 1.0}, clock=1.4e9), default().spreads["gpu units"]
    assert found.interval_class.startswith("gpu units")
    assert found.interval_level == default().level
    assert found.held_out.rows == spread.rows
    assert found.power_interval_w[1] > found.power_w > found.power_interval_w[0] >= found.idle_w


def test_above_the_limit_the_clock_that_keeps_it_is_told() -> None:
    found = power_by_unit("titan_xp", {"fp32": 1.0}, power_limit=120.0)
    assert found.above_limit
    assert found.clock_within_limit_hz is not None
    assert found.clock_within_limit_hz < found.clock_hz
    assert any("above the power limit, 120 W" in line and "up to 1." in line for line in found.warnings)
    there = power_by_unit("titan_xp", {"fp32": 1.0}, clock=found.clock_within_limit_hz, counted_at=(found.clock_hz, None))
    assert there.power_w == pytest.approx(120.0)
    calm = power_by_unit("titan_xp", {"fp32": 1.0}, power_limit=300.0)
    assert (calm.above_limit, calm.clock_within_limit_hz, calm.warnings) == (False, calm.clock_hz, ())


def test_where_no_clock_keeps_the_limit_that_is_told() -> None:
    found = power_by_unit("titan_xp", {"dram": 1.0}, memory_clock=50e9, power_limit=100.0)
    assert found.above_limit
    assert found.clock_within_limit_hz is None
    assert any("at no clock" in line for line in found.warnings)


@each(("hw", "asked", "line"), [
    ("titan_xp", {}, "clock 1.68 GHz: the sustained clock"), ("titan_xp", {}, "shares are taken as counted at these clocks"),
    ("titan_xp", {}, "sm 1: every SM"), ("titan_xp", {}, "idle: int, fp64, special, shared, l2"),
    ("titan_xp", {}, "power limit 250 W: the TDP"), ("gtx_titan_black", {}, "idle power 60 W: assumed"),
    ("tesla_v100_sxm2", {}, "voltage: the line of all GPUs"),
    ("tesla_v100_sxm2", {}, "idle: int, fp64, special, tensor, shared, l2"),
])  # fmt: skip
def test_what_nobody_said_is_assumed_aloud(hw: str, asked: dict[str, float], line: str) -> None:
    assert any(line in said for said in power_by_unit(hw, BUSY, **asked).assumptions)  # type: ignore[arg-type]


def test_what_somebody_said_is_not_assumed() -> None:
    every = {**dict.fromkeys([unit for unit in UNITS if unit != "tensor"], 0.1), AWAKE: 0.9}
    found = power_by_unit("titan_xp", every, clock=1e9, counted_at=(1e9, None), power_limit=250.0)
    assert [line.partition(" (")[0] for line in found.assumptions] == ["energy of dram: not fitted to measured powers"]


def test_energies_that_no_row_told_are_assumed_aloud() -> None:
    said = power_by_unit("titan_xp", BUSY, calibration=default().before_energy_fit()).assumptions
    assert any("energy of fp32, dram: not fitted" in line for line in said)
    assert not any("energy of fp32" in line for line in power_by_unit("titan_xp", BUSY).assumptions)


def test_an_idle_power_that_somebody_sets_is_no_assumption() -> None:
    said = power_by_unit("gtx_titan_black", BUSY, settings={"power.idle": "40W"}).assumptions
    assert not any("idle power" in line for line in said)
    assert "power.idle" in power_by_unit("gtx_titan_black", BUSY).assumed_values


@each(("hw", "shares", "asked", "line"), [
    ("titan_xp", BUSY, {"clock": 2.5e9}, "above the chip's highest, 1.911 GHz"),
    ("titan_xp", BUSY, {"memory_clock": 6.5e9}, "memory clock: 1.14 times the usual"),
    ("titan_xp", {"fp32": 0.8, "sm": 0.5}, {}, "share of fp32, 0.8, is above that of sm, 0.5"),
    ("titan_xp", BUSY, {"settings": {"l2.ways": "4"}}, "l2.ways changes no watt"),
    ("titan_xp", BUSY, {"scales": {"l2.bandwidth": 2.0}}, "l2.bandwidth changes no watt"),
])  # fmt: skip
def test_what_is_odd_is_warned_of(hw: str, shares: dict[str, object], asked: dict[str, float], line: str) -> None:
    assert any(line in said for said in power_by_unit(hw, shares, **asked).warnings)  # type: ignore[arg-type]


@each(("shares", "asked"), [
    (BUSY, {}), (BUSY, {"memory_clock": 5.705e9}), ({"fp32": 0.8, "sm": 0.79}, {}), ({"dram": 0.8, "sm": 0.1}, {}),
    (BUSY, {"settings": {"sm.count": "20"}}), (BUSY, {"settings": {"power.tdp": "200W"}}),
    (BUSY, {"scales": {"power.idle": 0.5}}),
])  # fmt: skip
def test_what_is_usual_is_not_warned_of(shares: dict[str, object], asked: dict[str, float]) -> None:
    assert power_by_unit("titan_xp", shares, **asked).warnings == ()  # type: ignore[arg-type]


@each(("hw", "shares", "asked", "error", "said"), [
    ("tpu_v1", BUSY, {}, Unsupported, "tpu_v1 is a TPU: power by unit is modelled for GPUs and CPUs"),
    ("i7_6700k", {"sm": 1.0}, {}, UnknownName, "the units of a CPU are core, simd, llc, dram"),
    ("i7_6700k", {"simd": 1.0}, {"memory_clock": 1e9}, Unsupported, "memory clock: i7_6700k is a CPU"),
    ("i7_6700k", {"simd": 1.0}, {"counted_at": (1e9, None)}, Unsupported, "counted-at: i7_6700k is a CPU"),
    ("i7_6700k", {"simd": 1.0}, {"clock": 1e12}, ArgumentError, "clock"),
    ("i7_6700k", {"simd": 1.0}, {"power_limit": -1.0}, ArgumentError, "power limit"),
    ("titan_xp", {"tensor": 0.1}, {}, Unsupported, "share of tensor: titan_xp has no tensor cores"),
    ("titan_xp", {"fp23": 0.1}, {}, UnknownName, "unknown unit 'fp23'; nearest: fp32"),
    ("titan_xp", {"fp32": 1.2}, {}, ArgumentError, "share of fp32: 1.2"),
    ("titan_xp", {"fp32": float("nan")}, {}, ArgumentError, "share of fp32: nan"),
    ("titan_xp", BUSY, {"clock": 0.0}, ArgumentError, "clock 0 Hz is not between"),
    ("titan_xp", BUSY, {"clock": float("nan")}, ArgumentError, "clock nan Hz is not between"),
    ("titan_xp", BUSY, {"memory_clock": 0.0}, ArgumentError, "memory clock 0 Hz"),
    ("titan_xp", BUSY, {"counted_at": (1e15, None)}, ArgumentError, "clock 1e.15 Hz"),
    ("titan_xp", BUSY, {"counted_at": (1e9, 1.0)}, ArgumentError, "memory clock 1 Hz"),
    ("titan_xp", BUSY, {"power_limit": 10.0}, ArgumentError, "power limit 10 W is not between the idle power"),
    ("titan_xp", BUSY, {"power_limit": float("nan")}, ArgumentError, "power limit nan W"),
    ("titan_xq", BUSY, {}, UnknownName, "titan_xp"),
])  # fmt: skip
def test_what_cannot_be_is_refused(hw: str, shares: dict[str, object], asked: dict[str, float], error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        power_by_unit(hw, shares, **asked)  # type: ignore[arg-type]


def test_a_unit_that_a_chip_has_not_may_be_counted_as_idle() -> None:
    assert power_by_unit("titan_xp", {"tensor": 0.0, "fp32": 0.5}).shares["tensor"] == 0.0


def test_a_memory_clock_beside_an_unknown_data_rate_is_refused(tmp_path: Path) -> None:
    text = data_folder("hwspecs").joinpath("gtx_1080.toml").read_text("utf-8")
    mine = tmp_path / "mine.toml"
    lines = [line for line in text.splitlines() if not line.startswith("data_rate")]
    mine.write_text("\n".join(lines).replace('id = "gtx_1080"', 'id = "mine"') + "\n", "utf-8")
    assert power_by_unit(str(mine), BUSY).memory_clock_hz is None
    with pytest.raises(Unsupported, match=r"--set memory.data_rate=8Gbit/s"):
        power_by_unit(str(mine), BUSY, memory_clock=5e9)
    with pytest.raises(Unsupported, match="data rate"):
        power_by_unit(str(mine), BUSY, counted_at=(1e9, 5e9))
    stated = power_by_unit(str(mine), BUSY, memory_clock=5e9, settings={"memory.data_rate": "10Gbit/s"})
    assert (stated.memory_clock_hz, stated.warnings) == (5e9, ())


def test_names_of_units_are_those_of_the_model() -> None:
    assert (AWAKE, *UNITS) == NAMED
    assert set(CONSTANTS) == set(UNITS) - {"dram"}
    assert set(CONSTANTS.values()) < set(default().constants)


# rows of a file


def rows(folder: Path, text: str) -> Path:
    file = folder / "rows.csv"
    file.write_text(text, "utf-8")
    return file


def test_each_row_has_its_own_shares_and_clocks(tmp_path: Path) -> None:
    file = rows(tmp_path, "name,clock,memory_clock,fp32,dram_active,sm\na,1404MHz,,0.8,30%,\n# a remark\n,,4GHz,,0.5,0.9\n")
    first, second = powers_of_file(file, "titan_xp", clock=1e9)
    assert (first.name, first.clock_hz, first.memory_clock_hz) == ("a", 1.404e9, 5.7e9)
    assert (second.name, second.clock_hz, second.memory_clock_hz) == ("", 1e9, pytest.approx(4e9))
    assert first.power_w == power_by_unit("titan_xp", BUSY, clock=1.404e9).power_w
    assert (second.shares["fp32"], second.shares[AWAKE]) == (0.0, 0.9)
    assert any("not counted and taken to be idle: fp32" in line for line in second.assumptions)


@each(("text", "problems"), [
    ("fp32\n0.5\n1.5\nx\n", ["line 3: share of fp32: 1.5", "line 4: share of fp32: 'x'"]),
    ("fp32,clock\n0.5,5W\n0.5,0MHz\n", ["line 2: clock: '5W'", "line 3: clock 0 Hz"]),
    ("fp32,drum\n0.5,1\n", ["line 1: column 'drum': unknown unit 'drum'; nearest: dram"]),
    ("name,clock\na,1GHz\n", ["line 1: no column for a unit"]),
    ("tensor\n0.5\n", ["line 2: share of tensor: titan_xp has no tensor cores"]),
    ("fp32,fp32_active\n0.5,0.5\n", ["line 2: share of fp32_active: fp32 is given twice"]),
    ("fp32\n", ["a header and no rows"]),
])  # fmt: skip
def test_every_problem_of_a_file_is_told_with_its_line(tmp_path: Path, text: str, problems: list[str]) -> None:
    file = rows(tmp_path, text)
    with pytest.raises(InputError) as refused:
        powers_of_file(file, "titan_xp")
    assert refused.value.path == str(file)
    assert len(refused.value.problems) == len(problems)
    assert all(said in found for said, found in zip(problems, refused.value.problems, strict=True))


def test_what_is_wrong_with_the_question_is_no_problem_of_a_line(tmp_path: Path) -> None:
    file = rows(tmp_path, "fp32\n0.5\n")
    with pytest.raises(Unsupported, match="tpu_v1 is a TPU"):
        powers_of_file(file, "tpu_v1")
    with pytest.raises(ArchsimError, match="power limit"):
        powers_of_file(file, "titan_xp", power_limit=1.0)
    with pytest.raises(MissingFile):
        powers_of_file(tmp_path / "no.csv", "titan_xp")


# ----------------------------------------------------------------------------------------------------------------- CPUs

TWO = "xeon_e5_2630_v3_2s"  # of eight cores each


def test_parts_of_packages_add_up_and_have_an_interval() -> None:
    found = power_by_unit("i7_6700k", {"core": 1.0, "simd": 0.8, "dram": 0.3})
    assert sum(found.parts_w.values()) == pytest.approx(found.power_w)
    assert list(found.parts_w) == ["standing", "uncore", "leakage", "active_units", "simd", "llc", "dram"]
    assert found.power_interval_w[0] < found.power_w < found.power_interval_w[1]
    assert (found.idle_w, found.power_boundary, found.power_limit_w) == (8.0, "package", 91.0)


def test_packages_without_an_awake_core_draw_their_idle_power() -> None:
    assert power_by_unit(TWO, {}).power_w == power_by_unit(TWO, {"core": 0.0}).power_w == power_by_unit(TWO, {}).idle_w


def test_half_the_cores_wake_one_uncore_of_two() -> None:
    one, both = (power_by_unit(TWO, {"core": share}).parts_w for share in (0.5, 1.0))
    assert both["uncore"] == pytest.approx(2 * one["uncore"])
    assert both["active_units"] == pytest.approx(2 * one["active_units"])


def test_power_of_packages_grows_with_clock_width_and_bytes() -> None:
    slow, fast = (power_by_unit("i7_6700k", {"simd": 0.5}, clock=clock).power_w for clock in (2e9, 4e9))
    assert fast > slow
    for unit in ("simd", "llc", "dram"):
        less, more = (power_by_unit("i7_6700k", {"core": 1.0, unit: share}).power_w for share in (0.2, 0.4))
        assert more > less


def test_the_clock_within_a_limit_is_the_highest_at_which_packages_stay_within_it() -> None:
    found = power_by_unit("i7_6700k", {"simd": 1.0}, power_limit=60.0)
    assert found.above_limit
    assert found.clock_within_limit_hz is not None
    assert power_by_unit("i7_6700k", {"simd": 1.0}, clock=found.clock_within_limit_hz).power_w == pytest.approx(60.0, rel=1e-6)
    assert any("the device would lower its clock; the same work stays within it up to" in line for line in found.warnings)
    none = power_by_unit("i7_6700k", {"simd": 1.0}, power_limit=8.5)
    assert none.clock_within_limit_hz is None


@pytest.mark.parametrize(("shares", "asked", "line"), [
    ({"core": 0.1, "simd": 0.9}, {}, "share of simd, 0.9, is above that of core, 0.1"),
    ({"simd": 0.9}, {"clock": 6e9}, "is above the chip's highest, 4.2 GHz"),
    ({"simd": 0.9}, {"scales": {"l1.size": 2.0}}, "l1.size changes no watt of this"),
])  # fmt: skip
def test_what_is_odd_of_packages_is_said(shares: dict[str, float], asked: dict[str, object], line: str) -> None:
    assert any(line in said for said in power_by_unit("i7_6700k", shares, **asked).warnings)  # type: ignore[arg-type]


def test_what_was_taken_of_packages_is_said() -> None:
    said = power_by_unit("i7_6700k", {"simd": 0.9}).assumptions
    for line in ("clock 4 GHz: that of dense SIMD code on all cores", "core 1: every core is taken to be awake all the time",
                 "not counted and taken to be idle: llc, dram", "power limit 91 W: the TDP of the spec"):
        assert any(line in one for one in said)


def test_a_row_may_say_what_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("name,core,simd,power\nidle,0,0,10 W\nall,1,0.8,\n")
    idle, busy = powers_of_file(file, "i7_6700k")
    assert (idle.measured_w, busy.measured_w, busy.error) == (10.0, None, None)
    assert idle.error == pytest.approx(-0.2)
    text = text_of(sections([idle, busy]))
    assert "10 W  -20.0 %" in text
    assert "within 20.0 % of what was measured" in text
    file.write_text("core,power\n1,0 W\n")
    with pytest.raises(InputError, match="line 2: power: must be more than 0 W"):
        powers_of_file(file, "i7_6700k")
    file.write_text("sm,power\n1,10 W\n")
    with pytest.raises(InputError, match="the units of a CPU are core"):
        powers_of_file(file, "i7_6700k")
