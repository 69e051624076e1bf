"""GPUs of Apple: SIMD-groups of 32, matrix instructions on the fp32 lanes, and the software that runs on them."""

from __future__ import annotations

import pytest

import archsim
from archsim.base.errors import Unsupported
from archsim.device.catalog import find
from archsim.stack import catalog as stacks
from tests.shipped import gpu

from ..each import each

CHIPS = ("apple_m1_gpu", "apple_m2_gpu", "apple_m3_gpu", "apple_m4_gpu")
STACKS = ("pytorch-2-mps", "mlx", "llama.cpp-metal")


@each("name", CHIPS)
def test_the_gpu_and_the_cores_of_a_chip_are_two_devices_of_one_memory(name: str) -> None:
    found, cores = find(name), find(name.removesuffix("_gpu"))
    assert found.device.memory.bandwidth == cores.device.memory.bandwidth
    assert gpu(name).launch.host_cpu == cores.identity.id


@each("typed", ("M1 GPU", "m2 gpu", "Apple M3 10-core GPU", "apple m4 gpu"))
def test_they_go_by_the_names_that_people_type(typed: str) -> None:
    assert find(typed).device.identity.vendor == "Apple"
    assert find(typed).kind == "gpu"


@each("stack", ("pytorch-2", "tensorrt-10", "caffe-native", "llama.cpp-cuda", "pytorch-2-rocm"))
def test_libraries_of_other_makers_are_refused(stack: str) -> None:
    with pytest.raises(Unsupported, match=r"not of Apple; --stack pytorch-2-mps"):
        archsim.estimate(net="alexnet", hw="apple_m2_gpu", stack=stack)


@each("stack", STACKS)
def test_kernels_of_apple_run_on_no_other_card(stack: str) -> None:
    with pytest.raises(Unsupported, match="is for cards of Apple"):
        archsim.estimate(net="alexnet", hw="rtx_4090", stack=stack)


@each("stack", STACKS)
def test_every_tile_fits_a_core(stack: str) -> None:
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
