"""GPUs of AMD: wavefronts of 64, matrix cores that take fp32, and the software that runs on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import archsim
from archsim.device.catalog import find
from archsim.evidence.readers import read_files
from archsim.stack import catalog as stacks
from tests.shipped import gpu

from ..each import each

CDNA = ("mi100", "mi210", "mi250_gcd", "mi250x_gcd", "mi300x")
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


@each("name", ("instinct_mi250x", "MI250", "7900 XTX", "gfx90a"))
def test_they_go_by_the_names_that_people_type(name: str) -> None:
    assert find(name).device.identity.vendor == "AMD"


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
