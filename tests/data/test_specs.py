"""What holds for every shipped device: it loads, agrees with what its maker states, says where each number is from, and assumes
six values at most.
"""

from __future__ import annotations

import re
import tomllib

import pytest

from archsim.base.errors import UnknownName
from archsim.base.files import data_folder
from archsim.device import catalog
from archsim.device.device import PARTS
from archsim.device.file import contradictions
from archsim.device.spec import TOLERANCE, keys
from tests.shipped import kind_of

from ..each import each
from .regenerate import key_tables, with_tables

ALL = catalog.names()
KINDS = ("datasheet", "measured", "derived", "sibling", "assumed")
NAMED = re.compile(r"[A-Z]\w|of [a-z0-9_]+|same (core|chip)|generation before")  # the note of a value of another chip
OF_ANOTHER = re.compile(r"(theoretical, )?of the (desktop )?[A-Z]")

# What published measurements were taken on, GPUs of the generation of 2016 to 2018 and hosts that issued kernels, and the CPUs
# that comparisons with GPUs of 2015 to 2019 name.
EXPECTED = {
    "tegra_x1", "tesla_k40", "tesla_k80", "gtx_titan_z", "gtx_980", "titan_x_maxwell", "gtx_1080", "gtx_1080_ti",
    "titan_x_pascal", "tesla_v100_sxm2", "i7_6700k", "i7_3820", "i7_5930k", "i9_10980xe", "xeon_e5_2630_v3", "xeon_e5_2630_v3_2s",
    "xeon_e5_2630_v4", "xeon_e5_2650_v2", "xeon_e5_2650_v3", "xeon_e5_2670", "xeon_e5_2680_v2", "xeon_e5_2686_v4",
    "xeon_e5_2690_v4", "xeon_e5_2698_v3", "xeon_e5_2698_v4", "xeon_gold_6148", "xeon_platinum_8175m", "epyc_7742",
    "ryzen_9_7950x", "tegra_x1_cpu", "tegra_x2_cpu",
}  # fmt: skip


def text_of(name: str) -> str:
    return data_folder(catalog.FOLDER).joinpath(name).read_text(encoding="utf-8")


def test_the_expected_devices_are_shipped() -> None:
    assert set(ALL) >= EXPECTED


@each("name", ALL)
def test_loads(name: str) -> None:
    spec = catalog.find(name)
    assert (spec.kind, spec.identity.id) == (kind_of(name), name)


@each("name", ALL)
def test_stated_figures_equal_derived_ones(name: str) -> None:
    spec = catalog.find(name)
    assert "bandwidth" in spec.stated or spec.kind != "gpu"
    assert contradictions(spec, TOLERANCE) == []


@pytest.mark.parametrize(("name", "settings", "wrong"), [
    ("i7_6700k", {"memory.bandwidth": "30 GB/s"}, {"bandwidth"}),
    ("tesla_k40", {"rate.fp32": "128 FMA/clk", "memory.bandwidth": "240 GB/s"}, {"peak_fp32", "bandwidth"}),
])  # fmt: skip
def test_a_wrong_figure_is_noticed(name: str, settings: dict[str, str], wrong: set[str]) -> None:
    found = contradictions(catalog.find(name).with_settings(settings), TOLERANCE)
    assert {said.split(":")[0].removeprefix("stated.") for said in found} == wrong


@each("name", ALL)
def test_bus_and_data_rate_are_stated(name: str) -> None:
    """That bandwidth is their product is a condition of every file."""
    if kind_of(name) != "tpu":
        memory = catalog.find(name).device.memory
        assert None not in (memory.bus, memory.data_rate)
        assert kind_of(name) != "cpu" or memory.channels is None or memory.bus == 64 * memory.channels


@each("name", ALL)
def test_every_value_has_a_source(name: str) -> None:
    spec = catalog.find(name)
    for entry in (*spec.entries.values(), *spec.stated.values()):
        assert " " in entry.source, f"{entry.key}: {entry.source!r} is a short name that [sources] does not define"
        assert entry.kind in KINDS
        said = entry.note or (spec.kind == "gpu" and entry.key.startswith("rate."))
        assert entry.kind != "derived" or said, f"{entry.key}: derived from what?"
        assert entry.source != "none published" or entry.unpublished, entry.key
        if entry.key in spec.entries:
            assert entry.kind != "sibling" or NAMED.search(entry.note), f"{entry.key}: of which chip?"
            assert entry.kind != "measured" or not OF_ANOTHER.match(entry.note), entry.key


@each("name", [name for name in ALL if kind_of(name) == "cpu"])
def test_no_source_is_defined_in_vain(name: str) -> None:
    document = tomllib.loads(text_of(f"{name}.toml"))
    sources = set(document.pop("sources"))
    assert sources == {value["source"] for table in document.values() if isinstance(table, dict) for value in table.values()}


def test_no_two_devices_have_the_same_values() -> None:
    seen: dict[tuple[tuple[str, object], ...], str] = {}
    for name in ALL:
        values = tuple((key, entry.value) for key, entry in catalog.find(name).entries.items())
        assert values not in seen, f"{name} equals {seen.get(values)}"
        seen[values] = name


MOST_ASSUMED = 6  # without those that only the cycle fidelity reads

# Known gaps, each with its count: a value that gets a source, or loses one, is noticed here.
MANY_ASSUMED = {
    # boards, phones and modules: the maker states neither the power of the cores nor the timing of caches and memory
    "agx_orin_cpu": 10, "agx_xavier_cpu": 17, "allwinner_h616": 9, "amlogic_a311d2": 9,
    "amlogic_a311d2_a73": 7, "amlogic_s922x": 8, "amlogic_s922x_a73": 7, "carmel_agx_xavier": 17,
    "cortex_a78ae_orin_nano": 11, "qrb2210": 8, "raspberry_pi_5": 7, "rdk_x3": 8, "rk3228h": 9, "rk3328": 8, "rk3399": 10,
    "rk3399_a53": 8, "rk3399_a72": 8, "rk3588": 8, "rk3588_a55": 8, "rk3588_a76": 9, "snapdragon_855": 8, "tegra_x2": 7,
    "radxa_orion_o6": 7, "snapdragon_8_gen2_big": 9, "dimensity_9300_x4": 9, "apple_m2_max": 7,
    # servers of Arm, whose owners publish no data sheet
    "azure_cobalt_100": 10, "grace": 11, "graviton1_a1_xlarge": 8, "graviton1_a1_2xlarge": 8, "graviton1_a1_4xlarge": 8,
    "graviton2": 8, "graviton2_t4g_xlarge": 8, "graviton2_t4g_2xlarge": 8, "graviton3": 11, "graviton3_m7g_2xlarge": 11,
    "kunpeng_920_3211k": 13, "kunpeng_920_7260": 10,
    # Zen 4 and Zen 5: AMD states no clock of all cores of desktops; what cores take beside the law of their node is not measured
    "ryzen_7_7700x": 9, "ryzen_9_7950x": 9, "ryzen_9_9950x": 9, "epyc_9374f": 7, "epyc_9554": 7, "epyc_9654": 7, "epyc_9655": 7,
    "epyc_9755": 7, "epyc_9965": 7, "epyc_9v45": 7,
    "b200_sxm": 8, "mi300a": 7, "mi325x": 7, "xeon_6972p": 7, "xeon_6980p": 7,
}  # fmt: skip


def assumed(name: str) -> list[str]:
    return [entry.key for entry in catalog.find(name).assumed if entry.kind == "assumed"]


@each("name", catalog.names())
def test_at_most_six_values_are_assumed(name: str) -> None:
    found = assumed(name)
    if name in MANY_ASSUMED:
        assert len(found) == MANY_ASSUMED[name], f"write {len(found)}, or take it out if that is {MOST_ASSUMED} or less: {found}"
    else:
        assert len(found) <= MOST_ASSUMED, found


def test_the_known_gaps_are_gaps_of_shipped_devices() -> None:
    assert set(MANY_ASSUMED) <= set(catalog.names())
    assert min(MANY_ASSUMED.values()) > MOST_ASSUMED


# Families that are asked for most; a name here is one that people type.
ASKED_FOR = (
    "8380", "8358", "8375C", "8480+", "8490H", "8592+", "Xeon 6980P", "Xeon 6972P",
    "i7-8700K", "i9-9900K", "i9-10900K", "i9-11900K", "i9-12900K", "i9-13900K", "i9-14900K", "core_i9_14900k",
    "1800X", "2700X", "3700X", "3950X", "5800X", "5950X", "7700X", "7950X", "9950X",
    "EPYC 7702", "EPYC 7742", "EPYC 7713", "EPYC 7763", "EPYC 9554", "EPYC 9654", "EPYC 9965",
    "M1", "M1 Pro", "M2", "M3", "M4", "graviton2", "graviton3", "graviton4", "grace", "rpi4",
    "Altra Q80-30", "M128-30", "Kunpeng 920", "Gold 6248R", "6354", "6430", "EPYC 7543", "9374F",
)  # fmt: skip


# What people type: one device, or the kind and the maker of one.
TYPED = {
    "k40": "tesla_k40", "K80": "tesla_k80", "Titan Z": "gtx_titan_z", "GTX-1080": "gtx_1080",
    "titan x maxwell": "titan_x_maxwell", "Titan X (Pascal)": "titan_x_pascal", "v100": "tesla_v100_sxm2",
    "a800": "a800_sxm4_80gb", "titan xp": "titan_xp", "GeForce GTX 1080 Ti": "gtx_1080_ti", "h100": "h100_sxm5_80gb",
    "nano": "jetson_nano", "970": "gtx_970", "GTX 1650": "gtx_1650", "GTX Titan": "gtx_titan", "6700k": "i7_6700k",
    "Core i7-6700K": "i7_6700k", "i7-3820": "i7_3820", "E5-2630 v3": "xeon_e5_2630_v3", "2x E5-2630 v3": "xeon_e5_2630_v3_2s",
    "dual Xeon E5-2650 v3": "xeon_e5_2650_v3_2s", "10980XE": "i9_10980xe", "Xeon E5-2698 v3": "xeon_e5_2698_v3",
    "TX1 CPU": "tegra_x1_cpu", "tx1": "tegra_x1", "EPYC 9654": "epyc_9654", "8480+": "xeon_platinum_8480",
    "AMD EPYC 7742": "epyc_7742",
}  # fmt: skip
OF = {
    **dict.fromkeys(ASKED_FOR, ("cpu", "")), **dict.fromkeys(("instinct_mi250x", "MI250", "7900 XTX", "gfx90a"), ("gpu", "AMD")),
    **dict.fromkeys(("M1 GPU", "m2 gpu", "Apple M3 10-core GPU", "apple m4 gpu"), ("gpu", "Apple")),
}  # fmt: skip


@each(("typed", "name"), TYPED.items())
def test_devices_go_by_the_names_that_people_type(typed: str, name: str) -> None:
    assert catalog.find(typed).identity.id == name


@each(("typed", "of"), OF.items())
def test_devices_go_by_short_names(typed: str, of: tuple[str, str]) -> None:
    found = catalog.find(typed)
    assert (found.kind, found.identity.vendor if of[1] else "") == of


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("titan x", ("titan_x_maxwell", "titan_x_pascal")),
        ("p100", ("tesla_p100_pcie_16gb", "tesla_p100_sxm2")),
        ("a100", ("a100_pcie_40gb", "a100_sxm4_80gb")),
    ],
)
def test_ambiguous_names_list_the_candidates(typed: str, candidates: tuple[str, ...]) -> None:
    with pytest.raises(UnknownName) as caught:
        catalog.find(typed)
    assert all(candidate in str(caught.value) for candidate in candidates)


def test_a_cpu_that_is_not_shipped_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        catalog.find("xeon_e5_2630_v5")
    assert "xeon_e5_2630_v4" in str(caught.value)


# Multiply-adds of short numbers that a core starts per clock, by the widest instructions that it has for them.
SHORT = (
    ("xeon_platinum_8280", "int8", 2 * 64), ("xeon_platinum_8358", "int8", 2 * 64), ("xeon_platinum_8490h", "int8", 1024),
    ("xeon_platinum_8490h", "bf16", 512), ("xeon_platinum_8592", "bf16", 512), ("xeon_6980p", "int8", 1024),
    ("i9_14900k", "int8", 2 * 32), ("epyc_9554", "int8", 64), ("epyc_9965", "bf16", 2 * 32), ("graviton2", "int8", 2 * 16),
    ("graviton3", "int8", 2 * 64), ("graviton4", "bf16", 4 * 16), ("grace", "int8", 4 * 32), ("apple_m2", "int8", 4 * 16),
)  # fmt: skip


@each(("name", "precision", "multiply_adds"), SHORT)
def test_short_numbers_have_the_rate_of_their_widest_instructions(name: str, precision: str, multiply_adds: int) -> None:
    assert catalog.find(name).device.pipe(precision) == multiply_adds


def test_a_core_without_instructions_for_bf16_widens_it() -> None:
    rome = catalog.find("ryzen_9_3950x").device
    assert rome.pipe("bf16") == rome.pipe("fp32")


# ------------------------------------------------------------------------------------------ the table in the README


def test_the_readme_names_no_key_that_is_gone() -> None:
    known = {key for kind in PARTS for key, _, _ in keys(kind)}
    parts = "|".join(sorted({key.partition(".")[0] for key in known}))
    assert set(re.findall(rf"`((?:{parts})\.[a-z0-9_]+)`", text_of("README.md"))) - known == set()


def test_the_tables_of_the_readme_are_those_of_the_code() -> None:
    assert with_tables(text_of("README.md"), key_tables()) == text_of("README.md"), "run python tests/data/regenerate.py"
