"""The shipped GPUs: clocks, pipes and hosts that they have, and figures that their makers print."""

from __future__ import annotations

import pytest

from archsim.device import catalog
from tests.shipped import gpu, kind_of

from ..each import each

GPUS = tuple(name for name in catalog.names() if kind_of(name) == "gpu")


@each("name", GPUS)
def test_sustained_clock_is_near_the_rated_ones(name: str) -> None:
    clock = gpu(name).clock
    assert clock.base <= clock.sustained <= 1.15 * clock.boost


# Figures that the vendor prints as one number, against the product of ours.
CORES = {  # lanes for fp32 of all SMs
    "tesla_k40": 2880, "titan_x_maxwell": 3072, "gtx_1080": 2560, "titan_x_pascal": 3584, "h100_sxm5_80gb": 16896,
    "rtx_4090": 16384, "a10": 9216, "a2": 1280, "jetson_agx_orin": 2048, "jetson_xavier_nx": 384, "jetson_agx_thor": 2560,
    "h20_96gb": 9984, "rtx_pro_6000": 24064, "rtx_2070": 2304, "rtx_2080_super": 3072, "rtx_3080_ti": 10240,
    "rtx_4080_super": 10240, "rtx_5070_ti": 8960, "a5000": 8192, "tesla_p40": 3840, "gtx_1650": 896, "rx_6900_xt": 5120,
}  # fmt: skip
FACTS = (
    *((name, "fp32 cores", lambda d: d.sm.count * d.rate.fp32, cores) for name, cores in CORES.items()),
    ("gtx_titan_z", "fp32 cores of one GPU", lambda d: d.sm.count * d.rate.fp32, 5760 / 2),
    ("tesla_k80", "register file of one GPU, KiB", lambda d: d.sm.count * d.sm.registers / 1024, 13 * 512),
    ("tesla_p100_sxm2", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 2),
    ("gtx_980", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 32),
    ("tesla_v100_sxm2", "tensor cores times 64", lambda d: d.sm.count * d.rate.tensor_fp16, 640 * 64),
    ("a100_sxm4_40gb", "fp16 tensor to fp32 ratio", lambda d: d.rate.tensor_fp16 / d.rate.fp32, 16),
    ("tegra_x1", "half-precision lanes to cores", lambda d: d.rate.fp16 / d.rate.fp32, 2),
    ("tesla_t4", "board power, W", lambda d: d.power.tdp, 70),
    ("gtx_1080", "L2, KiB", lambda d: d.l2.size / 1024, 2048),
    ("a30", "half of the tensor cores of an A100 times 256", lambda d: d.sm.count * d.rate.tensor_fp16, 224 * 256),
    ("l40", "fp8 tensor rate of half an L40S", lambda d: d.rate.tensor_fp8, 512),
    ("h800_sxm5_80gb", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 64),
    ("gh200_96gb", "memory bus, bit", lambda d: d.memory.bus, 6144),
    ("rtx_4060", "L2, MiB", lambda d: d.l2.size / 2**20, 24),
    ("rtx_3080", "memory bus, bit", lambda d: d.memory.bus, 320),
    ("rtx_4070_ti_super", "memory bus, bit", lambda d: d.memory.bus, 256),
    ("jetson_nano", "half-precision lanes, half of those of the Tegra X1", lambda d: d.sm.count * d.rate.fp16, 256),
    ("gtx_970", "L2, KiB", lambda d: d.l2.size / 1024, 1792),
    ("gtx_1660_ti", "half-precision lanes to cores", lambda d: d.rate.fp16 / d.rate.fp32, 2),
    ("rtx_3050", "lanes of its link, in GB/s", lambda d: d.link.bandwidth / 1e9, 15.75),
    ("quadro_rtx_4000", "tensor cores times 64", lambda d: d.sm.count * d.rate.tensor_fp16, 288 * 64),
    ("gtx_750_ti", "shared memory, KiB", lambda d: d.sm.shared_memory / 1024, 64),
    ("gtx_780", "fp64 to fp32 ratio", lambda d: d.rate.fp64 / d.rate.fp32, 1 / 24),
    ("a16", "a quarter of the power of its board, W", lambda d: d.power.tdp, 250 / 4),
)  # fmt: skip


@each(("name", "what", "ours", "printed"), FACTS)
def test_well_known_facts(name: str, what: str, ours, printed: float) -> None:
    assert ours(gpu(name)) == pytest.approx(printed), what


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
