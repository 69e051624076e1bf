"""GPUs of AMD and of Apple: units that multiply matrices of fp32, wavefronts of 64, and the software that runs on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import archsim
from archsim.base.errors import Unsupported
from archsim.device.catalog import find
from archsim.evidence.readers import read_files
from archsim.stack import catalog as stacks
from tests.shipped import gpu

from ..each import each

CDNA = ("mi100", "mi210", "mi250_gcd", "mi250x_gcd", "mi300x")
CHIPS = ("apple_m1_gpu", "apple_m2_gpu", "apple_m3_gpu", "apple_m4_gpu")
STACKS = ("pytorch-2-mps", "mlx", "llama.cpp-metal")
COLUMNS = ("source_id,op,sub_op,m,n,k,batch,heads,kv_heads,head_dim,seq_q,seq_kv,elements,bytes_msg,n_devices,dtype,software,"
           "latency_us,power_w,notes,hardware,kernel,split")  # fmt: skip
ROWS = (
    "neusight,gemm,linear_bias,4096,1024,1024,,,,,,,,,,fp32,pytorch-2.4.1/rocm,332.6,,,mi100,,calibrate",
    "neusight,bmm,,196,64,196,12,,,,,,,,,fp32,pytorch-2.4.1/rocm,40.0,,,mi210,,test",
    "neusight,elementwise,add,1130,1004,,,,,,,,,,,fp32,pytorch-2.4.1/rocm,28.2,,,mi100,,calibrate",
)


@each("name", CDNA)
def test_products_of_fp32_run_on_matrix_cores_and_the_rest_on_lanes(name: str) -> None:
    device = gpu(name)
    assert device.has_tensor("fp32")
    assert device.pipe("fp32") == device.rate.tensor_fp32
    assert device.sm.warp == 64


def test_measured_kernels_find_their_device_and_stack(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    place.write_text("\n".join([COLUMNS, *ROWS]) + "\n", "utf-8")
    cases, skipped, *_ = read_files([place])
    assert not skipped
    named = [(case.hardware, case.stack_id) for case in cases]
    assert named == [
        ("mi100", "pytorch-2-rocm"), ("mi210", "pytorch-2-rocm"), ("mi100", "pytorch-2-rocm")]  # fmt: skip


def test_every_tile_of_rocblas_fits_a_compute_unit() -> None:
    sm = gpu("mi100").sm
    menus = stacks.find("pytorch-2-rocm").menus
    for name in ("gemm", "gemm_batched", "gemm_tensor", "gemm_batched_tensor"):
        for tile in menus[name].tiles:
            assert tile.shared <= sm.shared_memory_cta
            assert tile.registers * tile.threads * 4 <= sm.registers


@pytest.mark.slow
def test_networks_run_in_every_fidelity() -> None:
    for fidelity in ("roofline", "analytical", "event", "cycle"):
        for name in (*CDNA, "rx_7900_xtx"):
            for precision in ("fp32", "fp16"):
                found = archsim.estimate(net="alexnet", hw=name, batch=8, precision=precision, fidelity=fidelity)
                assert found.latency_s > 0


@each("name", CHIPS)
def test_the_gpu_and_the_cores_of_a_chip_are_two_devices_of_one_memory(name: str) -> None:
    found, cores = find(name), find(name.removesuffix("_gpu"))
    assert found.device.memory.bandwidth == cores.device.memory.bandwidth
    assert gpu(name).launch.host_cpu == cores.identity.id


@each("stack", ("pytorch-2", "tensorrt-10", "caffe-native", "llama.cpp-cuda", "pytorch-2-rocm"))
def test_libraries_of_other_makers_are_refused(stack: str) -> None:
    with pytest.raises(Unsupported, match=r"not of Apple; --stack pytorch-2-mps"):
        archsim.estimate(net="alexnet", hw="apple_m2_gpu", stack=stack)


@each("stack", STACKS)
def test_kernels_of_apple_run_on_no_other_card(stack: str) -> None:
    with pytest.raises(Unsupported, match="is for cards of Apple"):
        archsim.estimate(net="alexnet", hw="rtx_4090", stack=stack)


@each("stack", STACKS)
def test_every_tile_fits_a_core_of_apple(stack: str) -> None:
    sm = gpu("apple_m1_gpu").sm
    assert sm.thread_registers is not None
    for name, menu in stacks.find(stack).menus.items():
        if stack == "pytorch-2-mps" and name.startswith("attention"):
            continue  # of other makers' cards: attention is two products here
        for tile in menu.tiles:
            if name.partition(".")[0] in ("gemm", "gemm_tensor", "conv_forward_tensor", "attention", "attention_cached"):
                assert tile.shared <= sm.shared_memory_cta
                assert tile.registers <= sm.thread_registers


@each(("name", "tera"), (("apple_m2_gpu", 2.24), ("apple_m3_gpu", 2.47), ("apple_m4_gpu", 2.9)))
def test_large_products_run_as_measured(name: str, tera: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Huebner et al. 2025 (arXiv:2502.05317): fp32 products of Apple's library (2.9 in the abstract, others recalled)."""
    side, place = 4096, tmp_path_factory.mktemp("apple") / "product.jsonl"
    head = (f'{{"schema": "archsim-trace/1", "name": "product", "inputs": {{"data": ["N", {side}]}}, '
            '"dtype": "fp32", "source": "test"}')  # fmt: skip
    op = f'{{"op": "linear", "name": "fc", "in": ["data"], "out": ["N", {side}], "bias": false}}'
    place.write_text(f"{head}\n{op}\n", "utf-8")
    found = archsim.estimate(net=str(place), hw=name, batch=side, precision="fp32")
    assert 2.0 * side**3 / found.latency_s / 1e12 == pytest.approx(tera, rel=0.25)
