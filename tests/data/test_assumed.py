"""What is known of the shipped devices: six assumed values at most; processors that are asked for; rates of short numbers."""

from __future__ import annotations

from archsim.device import catalog

from ..each import each

MOST_ASSUMED = 6  # without those that only the cycle fidelity reads

# Known gaps, each with its count: a value that gets a source, or loses one, is noticed here.
MANY_ASSUMED = {
    # boards, phones and modules: the maker states neither the power of the cores nor the timing of caches and memory
    "agx_orin_cpu": 10, "agx_xavier_cpu": 17, "allwinner_h616": 9, "amlogic_a311d2": 9,
    "amlogic_a311d2_a73": 7, "amlogic_s922x": 8, "amlogic_s922x_a73": 7, "carmel_agx_xavier": 17,
    "cortex_a78ae_orin_nano": 11, "qrb2210": 8, "raspberry_pi_5": 7, "rdk_x3": 8, "rk3228h": 9, "rk3328": 8, "rk3399": 10,
    "rk3399_a53": 8, "rk3399_a72": 8, "rk3588": 8, "rk3588_a55": 8, "rk3588_a76": 9, "snapdragon_855": 8, "tegra_x2": 7,
    # servers of Arm, whose owners publish no data sheet
    "grace": 11, "graviton1_a1_2xlarge": 8, "graviton2": 8, "graviton3": 11, "graviton3_m7g_2xlarge": 11,
    "kunpeng_920_3211k": 13, "kunpeng_920_7260": 10,
    # Zen 4 and Zen 5: AMD states no clock of all cores of desktops; what cores take beside the law of their node is not measured
    "ryzen_7_7700x": 9, "ryzen_9_7950x": 9, "ryzen_9_9950x": 9, "epyc_9374f": 7, "epyc_9554": 7, "epyc_9654": 7, "epyc_9655": 7,
    "epyc_9755": 7, "epyc_9965": 7,
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


@each("typed", ASKED_FOR)
def test_the_processors_that_are_asked_for_go_by_the_names_that_people_type(typed: str) -> None:
    assert catalog.find(typed).kind == "cpu"


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
