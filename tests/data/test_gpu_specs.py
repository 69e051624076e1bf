"""The shipped GPU specs: every file loads, agrees with the vendor's stated peaks and says where each number is from."""

from __future__ import annotations

import re

import pytest

from archsim.base.errors import UnknownName
from archsim.base.files import data_folder
from archsim.device import catalog
from archsim.device.file import contradictions
from archsim.device.spec import TOLERANCE
from tests.shipped import gpu, kind_of

from ..each import each

NAMED = re.compile(r"[A-Z]\w|of [a-z0-9_]+|same (core|chip)|generation before")  # the note of a value of another chip
OF_ANOTHER = re.compile(r"(theoretical, )?of the (desktop )?[A-Z]")

# The GPUs that published measurements of the 2016 to 2018 generation were taken on.
EXPECTED = (
    "tegra_x1", "tesla_k40", "tesla_k80", "gtx_titan_z", "gtx_980", "titan_x_maxwell", "gtx_1080", "gtx_1080_ti",
    "titan_x_pascal", "tesla_v100_sxm2",
)  # fmt: skip


GPUS = tuple(name for name in catalog.names() if kind_of(name) == "gpu")


def test_the_expected_gpus_are_shipped() -> None:
    assert set(EXPECTED) <= set(GPUS)


@each("name", GPUS)
def test_loads(name: str) -> None:
    spec = catalog.find(name)
    assert spec.kind == "gpu"
    assert spec.identity.id == name


@each("name", GPUS)
def test_stated_peaks_equal_derived_peaks(name: str) -> None:
    spec = catalog.find(name)
    assert "bandwidth" in spec.stated
    assert contradictions(spec, TOLERANCE) == []


def test_a_wrong_rate_is_noticed() -> None:
    wrong = catalog.find("tesla_k40").with_settings({"rate.fp32": "128 FMA/clk", "memory.bandwidth": "240 GB/s"})
    assert {said.split(':')[0].removeprefix('stated.') for said in contradictions(wrong, TOLERANCE)} == {"peak_fp32", "bandwidth"}


@each("name", GPUS)
def test_bus_and_data_rate_are_stated(name: str) -> None:
    """That bandwidth is their product is a condition of every file."""
    memory = gpu(name).memory
    assert None not in (memory.bus, memory.data_rate)


@each("name", GPUS)
def test_every_value_has_a_source(name: str) -> None:
    spec = catalog.find(name)
    for entry in (*spec.entries.values(), *spec.stated.values()):
        assert " " in entry.source, f"{entry.key}: {entry.source!r} is a short name that [sources] does not define"
        assert entry.kind in ("datasheet", "measured", "derived", "sibling", "assumed")
        if entry.kind == "derived":
            assert entry.note or entry.key.startswith("rate."), f"{entry.key}: derived from what?"


@each("name", GPUS)
def test_what_nobody_published_of_it_is_assumed_or_of_a_sibling(name: str) -> None:
    for entry in catalog.find(name).entries.values():
        assert (entry.source != "none published") or entry.unpublished, entry.key


@each("name", catalog.names())
def test_a_value_of_another_chip_is_of_kind_sibling_and_names_it(name: str) -> None:
    for entry in catalog.find(name).entries.values():
        if entry.kind == "sibling":
            assert NAMED.search(entry.note), f"{entry.key}: of which chip?"
        assert entry.kind != "measured" or not OF_ANOTHER.match(entry.note), entry.key


@each("name", GPUS)
def test_sustained_clock_is_near_the_rated_ones(name: str) -> None:
    clock = gpu(name).clock
    assert clock.base <= clock.sustained <= 1.15 * clock.boost


def test_no_two_gpus_have_the_same_values() -> None:
    seen: dict[tuple[tuple[str, object], ...], str] = {}
    for name in GPUS:
        values = tuple((key, entry.value) for key, entry in catalog.find(name).entries.items())
        assert values not in seen, f"{name} equals {seen.get(values)}"
        seen[values] = name


def test_no_two_files_have_the_same_text() -> None:
    folder = data_folder(catalog.FOLDER)
    texts = [folder.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in GPUS]
    assert len(set(texts)) == len(texts)


# Figures that the vendor prints as one number, against the product of ours.
FACTS = (
    ("tesla_k40", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 2880),
    ("gtx_titan_z", "fp32 cores of one GPU", lambda d: d.sm.count * d.rate.fp32, 5760 / 2),
    ("titan_x_maxwell", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 3072),
    ("gtx_1080", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 2560),
    ("titan_x_pascal", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 3584),
    ("tesla_k80", "register file of one GPU, KiB", lambda d: d.sm.count * d.sm.registers / 1024, 13 * 512),
    ("tesla_p100_sxm2", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 2),
    ("gtx_980", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 32),
    ("tesla_v100_sxm2", "tensor cores times 64", lambda d: d.sm.count * d.rate.tensor_fp16, 640 * 64),
    ("a100_sxm4_40gb", "fp16 tensor to fp32 ratio", lambda d: d.rate.tensor_fp16 / d.rate.fp32, 16),
    ("h100_sxm5_80gb", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 16896),
    ("tegra_x1", "half-precision lanes to cores", lambda d: d.rate.fp16 / d.rate.fp32, 2),
    ("rtx_4090", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 16384),
    ("tesla_t4", "board power, W", lambda d: d.power.tdp, 70),
    ("gtx_1080", "L2, KiB", lambda d: d.l2.size / 1024, 2048),
    ("a10", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 9216),
    ("a30", "half of the tensor cores of an A100 times 256", lambda d: d.sm.count * d.rate.tensor_fp16, 224 * 256),
    ("a2", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 1280),
    ("l40", "fp8 tensor rate of half an L40S", lambda d: d.rate.tensor_fp8, 512),
    ("jetson_agx_orin", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 2048),
    ("jetson_xavier_nx", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 384),
    ("jetson_agx_thor", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 2560),
    ("h20_96gb", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 9984),
    ("h800_sxm5_80gb", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 64),
    ("gh200_96gb", "memory bus, bit", lambda d: d.memory.bus, 6144),
    ("rtx_pro_6000", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 24064),
    ("rtx_4060", "L2, MiB", lambda d: d.l2.size / 2**20, 24),
    ("rtx_3080", "memory bus, bit", lambda d: d.memory.bus, 320),
    ("rtx_2070", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 2304),
    ("rtx_2080_super", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 3072),
    ("rtx_3080_ti", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 10240),
    ("rtx_4070_ti_super", "memory bus, bit", lambda d: d.memory.bus, 256),
    ("rtx_4080_super", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 10240),
    ("rtx_5070_ti", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 8960),
    ("a5000", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 8192),
    ("tesla_p40", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 3840),
    ("jetson_nano", "half-precision lanes, half of those of the Tegra X1", lambda d: d.sm.count * d.rate.fp16, 256),
    ("gtx_970", "L2, KiB", lambda d: d.l2.size / 1024, 1792),
    ("gtx_1650", "fp32 cores", lambda d: d.sm.count * d.rate.fp32, 896),
    ("gtx_1660_ti", "half-precision lanes to cores", lambda d: d.rate.fp16 / d.rate.fp32, 2),
    ("rtx_3050", "lanes of its link, in GB/s", lambda d: d.link.bandwidth / 1e9, 15.75),
    ("quadro_rtx_4000", "tensor cores times 64", lambda d: d.sm.count * d.rate.tensor_fp16, 288 * 64),
    ("gtx_750_ti", "shared memory, KiB", lambda d: d.sm.shared_memory / 1024, 64),
    ("gtx_780", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 24),
    ("a16", "a quarter of the power of its board, W", lambda d: d.power.tdp, 250 / 4),
    ("rx_6900_xt", "stream processors", lambda d: d.sm.count * d.rate.fp32, 5120),
)  # fmt: skip


@each(("name", "what", "ours", "printed"), FACTS)
def test_well_known_facts(name: str, what: str, ours, printed: float) -> None:
    assert ours(gpu(name)) == pytest.approx(printed), what


@each(
    ("typed", "name"),
    [
        ("k40", "tesla_k40"), ("K80", "tesla_k80"), ("Titan Z", "gtx_titan_z"), ("GTX-1080", "gtx_1080"),
        ("titan x maxwell", "titan_x_maxwell"), ("Titan X (Pascal)", "titan_x_pascal"), ("v100", "tesla_v100_sxm2"),
        ("a800", "a800_sxm4_80gb"), ("titan xp", "titan_xp"), ("GeForce GTX 1080 Ti", "gtx_1080_ti"), ("h100", "h100_sxm5_80gb"),
        ("nano", "jetson_nano"), ("970", "gtx_970"), ("GTX 1650", "gtx_1650"), ("GTX Titan", "gtx_titan"),
    ],
)  # fmt: skip
def test_names_people_type(typed: str, name: str) -> None:
    assert catalog.find(typed).identity.id == name


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


# Pipes that a generation does not have must not appear: an invented int8 or half rate would be believed.
@each(
    ("name", "absent"),
    [
        ("tesla_k40", ("fp16", "int8", "tensor_fp16")), ("gtx_980", ("fp16", "int8", "tensor_fp16")),
        ("tesla_p100_sxm2", ("int8", "tensor_fp16")), ("tegra_x2", ("int8", "tensor_fp16")),
        ("gtx_1080", ("tensor_fp16",)), ("tesla_v100_sxm2", ("tensor_int8", "tensor_bf16", "tensor_tf32")),
        ("tesla_t4", ("tensor_bf16", "tensor_tf32", "tensor_fp8")), ("a100_sxm4_40gb", ("tensor_fp8",)),
        ("rtx_3090", ("tensor_fp8",)), ("gtx_1660_ti", ("tensor_fp16", "tensor_int8")),
        ("gtx_1660_super", ("tensor_fp16", "tensor_int8")), ("gtx_1650", ("tensor_fp16", "tensor_int8")),
        ("jetson_nano", ("int8", "tensor_fp16")), ("gtx_970", ("fp16", "int8", "tensor_fp16")),
    ],
)  # fmt: skip
def test_pipes_that_do_not_exist_are_absent(name: str, absent: tuple[str, ...]) -> None:
    rate = gpu(name).rate
    assert [pipe for pipe in absent if getattr(rate, pipe) is not None] == []


@each("name", GPUS)
def test_the_host_cpu_of_a_gpu_is_a_shipped_cpu_of_about_its_year(name: str) -> None:
    spec = catalog.find(name)
    entry = spec.entries["launch.host_cpu"]
    host = catalog.find(str(entry.value))
    assert host.identity.id == entry.value
    assert host.kind == "cpu"
    assert abs(host.identity.year - spec.identity.year) <= 3


def test_a_module_dispatches_from_its_own_cores() -> None:
    modules = {"tegra_x1": "tegra_x1_cpu", "tegra_x2": "tegra_x2_cpu", "jetson_agx_xavier": "agx_xavier_cpu",
               "jetson_agx_orin": "agx_orin_cpu", "jetson_nano": "cortex_a57_jetson_nano"}  # fmt: skip
    assert {name: catalog.find(name).entries["launch.host_cpu"].value for name in modules} == modules
