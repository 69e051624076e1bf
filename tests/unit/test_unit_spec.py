"""Spec files: hostile ones, and what-ifs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from archsim.answers.device import counted
from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.base.units import TEXT
from archsim.device import catalog
from archsim.device.part import LARGEST, Unit, declared
from archsim.device.spec import Spec, keys, unit_of
from archsim.device.write import to_toml
from archsim.node.node import TABLES, LinkKind
from archsim.study.axis import BadAxis, axis_of
from archsim.study.knob import point_problems

from ..each import each

BASE = data_folder("hwspecs").joinpath("tegra_x1.toml").read_text("utf-8")
BANDWIDTH = 'bandwidth = { value = "25.6 GB/s", source = "module", kind = "datasheet" }'
COUNT = 'count = { value = 2, source = "whitepaper", kind = "datasheet" }'
assert BASE.count(BANDWIDTH) == 1
assert BASE.count(COUNT) == 1


def entry(value: str) -> str:
    return f'{{ value = {value}, source = "module", kind = "datasheet" }}'


def read(folder: Path, content: str | bytes) -> Spec:
    path = folder / "mine.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return catalog.find(str(path))


def problems(folder: Path, content: str | bytes) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(folder, content)
    assert caught.value.path == str(folder / "mine.toml")
    return caught.value.problems


def test_the_base_of_these_tests_is_good(tmp_path: Path) -> None:
    assert read(tmp_path, BASE).device == catalog.find("tegra_x1").device


ONE_PROBLEM = {
    "unknown key": (BANDWIDTH, f"{BANDWIDTH}\nbandwith = {entry('1')}", "memory.bandwith: unknown key; nearest: bandwidth"),
    "unknown table": ("[market]", "[memmory]\n[market]", "[memmory]: no such table in a gpu spec; nearest: memory"),
    "table of the other kind": ("[market]", "[core]\n[market]", "[core]: no such table in a gpu spec"),
    "unknown header key": ("year = 2015", "year = 2015\nyeer = 2015", "yeer: unknown key; nearest: year"),
    "unknown key of an entry": (
        BANDWIDTH, BANDWIDTH.replace("kind", 'nte = "x", kind'), "memory.bandwidth.nte: unknown key; nearest: note",
    ),
    "bare value": (BANDWIDTH, "bandwidth = 25.6e9", "memory.bandwidth: is a bare value; write {"),
    "bare number": (
        BANDWIDTH, f"bandwidth = {entry('25.6e9')}",
        'memory.bandwidth: the bare number 25600000000.0 lacks its unit; write it like "25.6 GB/s"',
    ),
    "bare number as text": (BANDWIDTH, BANDWIDTH.replace(" GB/s", ""), "memory.bandwidth: '25.6' lacks its unit"),
    "bare whole number of 400 digits": (BANDWIDTH, f"bandwidth = {entry('1' + '0' * 400)}",
        "memory.bandwidth: the bare number 1000"),
    "NaN": (BANDWIDTH, f"bandwidth = {entry('nan')}", "memory.bandwidth.value: must be a finite number"),
    "infinity": (BANDWIDTH, f"bandwidth = {entry('-inf')}", "memory.bandwidth.value: must be a finite number"),
    "NaN as text": (BANDWIDTH, BANDWIDTH.replace("25.6", "nan"), "memory.bandwidth: 'nan GB/s' is not a number"),
    "1e400": (BANDWIDTH, BANDWIDTH.replace("25.6", "1e400"), "memory.bandwidth: '1e400 GB/s' is not finite"),
    "overflow by prefix": (BANDWIDTH, BANDWIDTH.replace("25.6 GB", "1e300 PB"), "memory.bandwidth: '1e300 PB/s' is not finite"),
    "beyond any device": (COUNT, f"count = {entry('1e300')}", "sm.count: 1e+300 is outside the range 1 to 1000000"),
    "below any device": (BANDWIDTH, BANDWIDTH.replace("25.6 GB", "1e-300 B"),
        "memory.bandwidth: 1e-300 B/s is outside the range 1 MB/s to 10 PB/s"),
    "negative": (BANDWIDTH, BANDWIDTH.replace("25.6", "-25.6"), "memory.bandwidth: -25.6 GB/s is outside the range 1 MB/s to"),
    "zero": (BANDWIDTH, BANDWIDTH.replace("25.6", "0"), "memory.bandwidth: 0 GB/s is outside the range 1 MB/s to 10 PB/s"),
    "share above one": ("value = 0.78", "value = 1.78", "memory.achievable: 1.78 is outside the range > 0 to 1"),
    "part of a multiprocessor": (COUNT, f"count = {entry('1.5')}", "sm.count: 1.5 must be a whole number"),
    "a truth value": (COUNT, f"count = {entry('true')}", "sm.count.value: "),
    "a list": (COUNT, f"count = {entry('[2]')}", "sm.count.value: "),
    "a date": (COUNT, f"count = {entry('2015-11-01')}", "sm.count.value: "),
    "missing value": (BANDWIDTH, 'bandwidth = { source = "module", kind = "datasheet" }', "memory.bandwidth.value: is missing"),
    "missing source": (
        BANDWIDTH, 'bandwidth = { value = "25.6 GB/s", kind = "datasheet" }', "memory.bandwidth.source: is missing",
    ),
    "empty source": (BANDWIDTH, BANDWIDTH.replace('"module"', '""'), "memory.bandwidth.source: "),
    "missing kind": (BANDWIDTH, 'bandwidth = { value = "25.6 GB/s", source = "module" }', "memory.bandwidth.kind: is missing"),
    "misspelt kind": (
        BANDWIDTH, BANDWIDTH.replace('"datasheet"', '"datsheet"'),
        "memory.bandwidth.kind: input should be 'datasheet', 'measured', 'derived', 'sibling' or 'assumed', is 'datsheet'",
    ),
    "assumed without note": (
        BANDWIDTH, BANDWIDTH.replace("datasheet", "assumed"), "memory.bandwidth: an assumed value needs a note that says why",
    ),
    "sibling without note": (
        BANDWIDTH, BANDWIDTH.replace("datasheet", "sibling"),
        "memory.bandwidth: a value of a sibling needs a note that names the chip",
    ),
    "missing key": (BANDWIDTH, "", "memory.bandwidth: is missing (peak bandwidth of all channels)"),
    "wrong unit": (BANDWIDTH, BANDWIDTH.replace("GB/s", "GHz"), "memory.bandwidth: '25.6 GHz' is not in B/s"),
    "base above boost": ('"76.8 MHz"', '"2 GHz"', "clock.base: 2 GHz is more than clock.boost (998.4 MHz)"),
    "misspelt device kind": ('kind = "gpu"', 'kind = "gpuu"', "kind: must be gpu, cpu, tpu, is 'gpuu'"),
    "a stated peak that is absent": ('value = "1.024 TFLOP/s"', 'value = "absent"', "stated.peak_fp16: 'absent' is not a number"),
    "no device kind": ('kind = "gpu"', "", "kind: is missing"),
    "other schema": ("schema = 1", "schema = 2", "schema: must be 1, is 2"),
    "year": ("year = 2015", "year = 1066", "year: must be a whole number, 1990 to 2100, is '1066'"),
    "no architecture": ('architecture = "maxwell"', "", "architecture: is missing"),
    "an alias that is no text": ("aliases = [", "aliases = [1, ", "aliases: must be a list of texts"),
    "id with spaces": ('id = "tegra_x1"', 'id = "Tegra X1"', "id: "),
    "unknown stated peak": ("peak_fp16 =", "peak_fp17 =", "stated.peak_fp17: unknown key; nearest: peak_fp16"),
    "unknown stated clock": ('clock = "boost"', 'clock = "boots"', "stated.peak_fp16.clock: input should be 'base'"),
    "bare stated peak": ("peak_fp16 = {", "peak_fp16 = 1.024e12 #{", "stated.peak_fp16: is a bare value"),
    "stated peak beside the derived one": (
        'peak_fp16 = { value = "1.024 TFLOP/s"', 'peak_fp16 = { value = "2 TFLOP/s"',
        "stated.peak_fp16: 2 TFLOP/s is 95.6% more than 1.022 TFLOP/s, which follows from sm.count, rate.fp16, clock.boost; "
        "rounding explains 1.5% at most",
    ),
    "stated bandwidth beside the derived one": (
        BANDWIDTH, BANDWIDTH.replace("25.6", "51.2"),
        "memory.bandwidth: 51.2 GB/s is not 25.6 GB/s, what memory.bus (64 bit) moves at memory.data_rate (3.2 Gbit/s)",
    ),
    "stated peak of a pipe that is not there": (
        "peak_fp16 =", "peak_int8 =", "stated.peak_int8: 1.024 TFLOP/s is stated, but the spec has no rate.int8",
    ),
    "a key absent that every device has": (
        BANDWIDTH, BANDWIDTH.replace("25.6 GB/s", "absent"), "memory.bandwidth: cannot be absent, every gpu has one",
    ),
    "source that is no text": ('module = "NVIDIA', 'module = 5 #"NVIDIA', "sources.module: must be text"),
    "not TOML": ("[sm]", "[sm", "is not valid TOML: "),
    "a key twice": (BANDWIDTH, f"{BANDWIDTH}\n{BANDWIDTH}", "is not valid TOML: "),
    "number of 5000 digits": (COUNT, f"count = {entry('1' + '0' * 5000)}", "is not valid TOML: "),
    "unknown parent": ("year = 2015", 'year = 2015\ninherits = "nope"', "inherits: unknown device 'nope'"),
    "missing parent": ("year = 2015", 'year = 2015\ninherits = "/no/such.toml"', "inherits: /no/such.toml: no such file"),
    "parent of the other kind": ("year = 2015", 'year = 2015\ninherits = "i7_6700k"',
        "inherits: i7_6700k is a cpu, this is a gpu"),
}  # fmt: skip


@each(("old", "new", "expected"), ONE_PROBLEM.values())
def test_one_mistake_is_one_problem(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert BASE.count(old) >= 1
    found = problems(tmp_path, BASE.replace(old, new, 1))
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    content = BASE.replace(BANDWIDTH, f"bandwith = {entry('1')}").replace(COUNT, f"count = {entry('-1')}")
    content = content.replace("[launch]", "[lunch]").replace('"76.8 MHz"', "76.8")
    assert sorted(line.split(": ")[0] for line in problems(tmp_path, content)) == [
        "[launch]", "[lunch]", "clock.base", "memory.bandwidth", "memory.bandwith", "sm.count",
    ]  # fmt: skip


FILES = {
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)), "is not UTF-8 text"),
    "in Latin-1": (BASE.replace("NVIDIA", "NVIDIÄ").encode("latin-1"), "is not UTF-8 text"),
    "40 kB of dots": (b"schema = 1\n" + b"a." * 20_000 + b"a = 1\n", "line 2: a key with more than 16 dots"),
    "dots in an inline table": (b"schema = 1\nx = {" + b"a." * 100_000 + b"a = 1}\n", "line 2: a key with more than 16 dots"),
    "deep lists": (b"schema = 1\nx = " + b"[" * 100_000 + b"]" * 100_000, "is nested deeper than 8 levels"),
    "one long word": (b"schema = 1\n" + b"a" * 200_000, "is not valid TOML"),
}


@each(("content", "expected"), FILES.values())
def test_a_file_that_is_no_spec(tmp_path: Path, content: bytes, expected: str) -> None:
    found = problems(tmp_path, content)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_a_spec_that_inherits_from_itself(tmp_path: Path) -> None:
    found = problems(tmp_path, BASE.replace("year = 2015", f'year = 2015\ninherits = "{tmp_path}/mine.toml"'))
    assert found == (f"inherits: {tmp_path}/mine.toml: inherits: leads back to the file itself",)


def test_specs_that_inherit_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(BASE.replace("year = 2015", f'year = 2015\ninherits = "{tmp_path}/mine.toml"'))
    (tmp_path / "mine.toml").write_text(BASE.replace("year = 2015", f'year = 2015\ninherits = "{tmp_path}/other.toml"'))
    with pytest.raises(InputError, match="leads back to the file itself"):
        catalog.find(str(tmp_path / "mine.toml"))


ABSENT = entry('"absent"')


def child(words: str = "", parent: str = "tesla_t4", own: str = "") -> str:
    """A file that inherits, with all that a child has to say itself besides `words`."""
    own = own or "[clock]\nsustained = {}\n[power]\nidle = {}\n".format(entry('"1.7 GHz"'), entry('"20 W"'))
    return f'schema = 1\nid = "mine"\nname = "Mine"\nyear = 2019\ninherits = "{parent}"\n{own}{words}'


def test_an_heir_has_what_its_parent_has_but_for_what_belongs_to_that_board(tmp_path: Path) -> None:
    mine, parent = read(tmp_path, child()), catalog.find("tesla_t4")
    assert (mine.identity.id, mine.identity.architecture, mine.identity.default_stack) == ("mine", "turing", "pytorch-cudnn7.5")
    assert mine.device.sm == parent.device.sm
    assert mine.digest != parent.digest
    gone = {key for key in parent.entries if key not in mine.entries}
    assert gone == {"market.price", "market.launch"}
    assert (mine.device.usual_clock, mine.device.power.idle) == (1.7e9, 20.0)
    assert mine.stated == {}


def test_what_was_measured_on_the_parent_is_a_sibling_s_value_of_its_heir(tmp_path: Path) -> None:
    mine, parent = read(tmp_path, child()), catalog.find("tesla_t4")
    measured = {key for key, value in parent.entries.items() if value.kind == "measured" and key in mine.entries}
    assert "l2.latency" in measured
    of_all = {key for key, value in parent.entries.items() if value.file == "architectures/turing"}
    for key in measured - {"clock.sustained", "power.idle"} - of_all:
        assert mine.entries[key].kind == "sibling"
        assert mine.entries[key].note.startswith("of tesla_t4")
        assert mine.entries[key].value == parent.entries[key].value
    assert mine.entries["rate.fp32"].kind == parent.entries["rate.fp32"].kind == "datasheet"


def test_a_sibling_s_value_counts_as_one_that_nobody_published_of_the_device() -> None:
    spec = catalog.find("gtx_1080")
    assert spec.entries["sm.issue_share"].kind == "sibling"
    assert "GM204" in spec.entries["sm.issue_share"].note
    kinds = {entry.key: entry.kind for entry in spec.assumed}
    assert kinds["sm.issue_share"] == "sibling"
    assert kinds["launch.latency"] == "assumed"
    of_sibling = sum(kind == "sibling" for kind in kinds.values())
    assert f"{len(kinds) - of_sibling} are assumed, {of_sibling} are of a sibling chip" in counted(spec)


def test_every_value_says_which_file_has_it(tmp_path: Path) -> None:
    mine = read(tmp_path, child())
    assert {mine.entries[key].file for key in ("clock.sustained", "power.idle")} == {"mine"}
    assert {value.file for key, value in mine.entries.items() if key not in ("clock.sustained", "power.idle")} == {
        "tesla_t4", "architectures/turing"}
    grandchild = catalog.find("a100_pcie_80gb")
    assert {value.file for value in grandchild.entries.values()} == {
        "a100_pcie_80gb", "a100_sxm4_80gb", "a100_sxm4_40gb", "architectures/ampere"}


def test_an_heir_without_what_it_must_say_itself_is_told_key_and_way_out(tmp_path: Path) -> None:
    clock, idle, year = problems(tmp_path, child(own="[memory]\n").replace("year = 2019\n", ""))
    assert clock.startswith("clock.sustained: is missing (clock seen under sustained load; the default of an estimate); that of "
                            "tesla_t4 (1590 MHz) belongs to that device alone and is not inherited: write this one's, kind = ")
    assert idle.startswith("power.idle: is missing")
    assert year == "year: is missing (year of launch); it is not inherited"


def test_an_optional_value_of_the_parent_can_be_absent(tmp_path: Path) -> None:
    assert "rate.tensor_int8" in catalog.find("tesla_t4").entries
    mine = read(tmp_path, child(f"[rate]\ntensor_int8 = {ABSENT}\n"))
    assert "rate.tensor_int8" not in mine.entries
    assert mine.device.rate.tensor_int8 is None
    link = "".join(f"{key} = {ABSENT}\n" for key in ("type", "bandwidth", "achievable"))
    assert read(tmp_path, child(f"[link]\n{link}")).device.link is None


def test_a_table_cannot_lose_half_of_what_it_needs(tmp_path: Path) -> None:
    found = problems(tmp_path, child(f"[link]\nachievable = {ABSENT}\n"))
    assert found == ("link.achievable: is missing (share of the peak that a pinned copy reaches)",)


def test_a_stated_peak_within_rounding_is_taken(tmp_path: Path) -> None:
    mine = read(tmp_path, BASE.replace('peak_fp16 = { value = "1.024', 'peak_fp16 = { value = "1.03'))
    assert mine.stated["peak_fp16"].value == 1.03e12


def stated(peak: str, clock: str) -> str:
    """The Core i7-6700K (4 cores, 2 x 256-bit multiply-adds, 4.0 GHz of all cores), whose maker states a peak."""
    return to_toml(catalog.find("i7_6700k"), "a copy") + f'{peak}, source = "a slide", kind = "datasheet", clock = "{clock}" }}\n'


def test_the_stated_peak_of_a_cpu_is_compared_too(tmp_path: Path) -> None:
    peak = 'peak_fp32 = { value = "512 GFLOP/s"'
    assert read(tmp_path, stated(peak, "simd")).stated["peak_fp32"].value == 512e9
    (said,) = problems(tmp_path, stated(peak.replace("512", "256"), "simd"))
    assert said.startswith("stated.peak_fp32: 256 GFLOP/s is 50.0% less than 512 GFLOP/s, which follows from core.count, ")
    (said,) = problems(tmp_path, stated(peak, "simd512"))
    assert said == "stated.peak_fp32: 512 GFLOP/s is stated, but the spec has no clock.simd512"


def test_a_source_may_be_an_abbreviation(tmp_path: Path) -> None:
    assert read(tmp_path, BASE).entries["memory.bandwidth"].source.startswith("NVIDIA Jetson TX1 System-on-Module")


def test_the_digest_ignores_words_and_sees_values(tmp_path: Path) -> None:
    digest = read(tmp_path, BASE).digest
    assert read(tmp_path, BASE.replace("Tegra X1 whitepaper", "another paper")).digest == digest
    assert read(tmp_path, BASE.replace("25.6 GB/s", "25.7 GB/s")).digest != digest


# ---------------------------------------------------------------------------------------------- what-ifs


def test_a_setting_replaces_one_value_and_leaves_the_spec_alone() -> None:
    spec = catalog.find("tegra_x1")
    changed = spec.with_settings({"memory.bandwidth": "51.2GB/s", "sm.count": "4"})
    assert (changed.device.memory.bandwidth, changed.device.sm.count) == (51.2e9, 4)
    assert changed.entries["sm.count"].kind == "set"
    assert spec.device.sm.count == 2
    assert changed.digest != spec.digest


def test_an_optional_value_can_be_added() -> None:
    assert catalog.find("tegra_x1").with_settings({"rate.int8": "512 FMA/clk"}).device.pipe("int8") == 512


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("memory.bandwith", "1 GB/s", "unknown gpu key 'memory.bandwith'; nearest: memory.bandwidth"),
     ("core.count", "2", "unknown gpu key 'core.count'"), ("x", "1", "unknown gpu key 'x'"), ("", "1", "unknown gpu key ''")],
)  # fmt: skip
def test_a_setting_of_no_key(key: str, value: str, expected: str) -> None:
    with pytest.raises(UnknownName) as caught:
        catalog.find("tegra_x1").with_settings({key: value})
    assert str(caught.value).startswith(expected)


@each(
    ("key", "value", "expected"),
    [("memory.bandwidth", "51.2", "'51.2' lacks its unit"), ("memory.bandwidth", "-1 GB/s", "outside the range 1 MB/s to"),
     ("memory.bandwidth", "nan GB/s", "is not a number"), ("memory.bandwidth", "1e-300 B/s", "outside the range"),
     ("sm.count", "2.5", "must be a whole number"), ("sm.count", "many", "is not a number"),
     ("clock.base", "2 GHz", "is more than"),
     ("memory.type", " ", "must be text"), ("link.bandwidth", "12 GB/s", "link.type: is missing")],
)  # fmt: skip
def test_a_setting_that_does_not_fit(key: str, value: str, expected: str) -> None:
    spec = catalog.find("tegra_x1")
    with pytest.raises(InputError, match=r"^--set: ") as caught:
        spec.with_settings({key: value})
    assert expected in str(caught.value)


def test_all_settings_that_do_not_fit_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        catalog.find("tegra_x1").with_settings({"sm.count": "x", "memory.bandwidth": "y"})
    assert len(caught.value.problems) == 2


# ---------------------------------------------------------------------------------------------- keys and names


def test_every_key_has_a_meaning_and_a_known_unit() -> None:
    for kind in ("gpu", "cpu"):
        for key, unit, _ in keys(kind):
            assert unit.doc, key
            assert unit_of(kind, key) is unit


BELOW_ZERO = ("power.idle", "power.temperature", "power.air", "sm.int_lanes")  # may be 0, or degrees below it


def test_every_number_has_a_physical_range() -> None:
    for kind in ("gpu", "cpu"):
        for key, unit, _ in keys(kind):
            if unit.unit != TEXT:
                assert unit.high < LARGEST, key
                assert unit.low > 0 or unit.high == 1 or key in BELOW_ZERO, key
    for table in (*TABLES.values(), LinkKind):
        for key, (unit, _) in declared(table).items():
            assert unit.unit == TEXT or unit.high < LARGEST, key


def test_a_value_outside_its_range_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    said = "memory.latency: .* is outside the range 1 ns to 100 us"
    spec = catalog.find("gtx_1080")
    with pytest.raises(InputError, match=said):
        spec.with_settings({"memory.latency": "1e9s"})
    with pytest.raises(InputError, match=said):
        spec.with_settings({}, {"memory.latency": 1e9})
    with pytest.raises(InputError, match=said):
        read(tmp_path, BASE.replace('"500 ns"', '"500 ms"'))
    with pytest.raises(BadAxis, match=said):
        axis_of("memory.latency=1us:1s:x10", "gpu")
    assert re.search(said, point_problems(spec, {"memory.latency": np.array([1.0])})[0])


def test_the_range_of_a_field() -> None:
    share = Unit(unit="1", doc="", high=1.0)
    assert [share.problem(value) for value in (0.5, 1.0)] == [None, None]
    assert share.problem(0.0) == "is outside the range > 0 to 1"
    assert share.problem(1.1) == "is outside the range > 0 to 1"
    assert Unit(unit="W", doc="", low=0, above=False).problem(0.0) is None
