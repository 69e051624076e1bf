"""CPUs of two kinds of core, and what libraries of boards and phones do to products: few rows, bytes, words."""

from __future__ import annotations

from dataclasses import replace

import pytest

import archsim
from archsim.detect.catalog import find, names, threads_of
from archsim.estimation.request import make_request
from archsim.evidence.row import setting
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.trace.file import load

MIXED = [name for name in names() if find(name).identity.faster]


def latency(hw: str, **how: object) -> float:
    return float(archsim.estimate(net="resnet_18", hw=hw, **how).latency_s)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MIXED)
def test_the_faster_cores_are_a_cpu_of_fewer_and_faster_cores(name: str) -> None:
    slow, fast = find(name).device, find(find(name).identity.faster).device
    assert fast.core.count < slow.core.count
    assert fast.clock.boost * fast.pipe("fp32") > slow.clock.boost * slow.pipe("fp32")


def test_few_threads_run_on_the_faster_cores_and_more_at_the_pace_of_the_slower() -> None:
    alone = latency("rk3588", stack="ncnn-cpu", threads=1)
    assert alone == latency("rk3588_a76", stack="ncnn-cpu", threads=1) < latency("rk3588_a55", stack="ncnn-cpu", threads=1)
    assert latency("rk3588", stack="ncnn-cpu", threads=8) > latency("rk3588", stack="ncnn-cpu", threads=4)


def test_settings_hold_on_the_cores_that_run() -> None:
    slower = make_request("resnet_18", "rk3588", stack="ncnn-cpu", threads=1, settings={"clock.boost": "2.4 GHz"})
    assert slower.spec.identity.id == "rk3588_a76"
    changed = make_request("resnet_18", "rk3588", stack="ncnn-cpu", threads=1, settings={"memory.achievable": "0.3"})
    assert changed.spec.device.memory.achievable == 0.3


def test_arm_compute_library_takes_as_many_threads_as_there_are_cores_of_the_rarer_kind() -> None:
    s922x = find("amlogic_s922x")
    assert [threads_of(s922x, stacks.find(name)) for name in ("armnn-cpu", "tflite-ruy-cpu")] == [2, 6]
    assert threads_of(find("cortex_a72_rpi4"), stacks.find("armnn-cpu")) == 0  # one kind: as the stack takes them
    row = setting("amlogic_s922x", "armnn-cpu", "fp32")
    assert (row.spec.identity.id, row.threads) == ("amlogic_s922x_a73", 2)
    assert make_request("resnet_18", "amlogic_s922x", stack="armnn-cpu").threads == 2


def kernels_of(net: str, stack: str, precision: str, **changed: object) -> dict[str, float]:
    library = replace(stacks.find(stack), **changed)  # type: ignore[arg-type]
    found = lower(load(net).bind(N=1).ops, library, "cpu", precision, False).kernels
    words = (found.operand_a == 2) & (found.matrix > 0)
    return {"weights": float((found.a_bytes * found.repeat).sum()), "words": float(words.sum()),
            "again": float(found.rewritten.sum())}  # fmt: skip


def test_weights_of_a_full_connection_pass_by_for_each_four_rows() -> None:
    passes, once = (kernels_of("vit_base_32_384", "ncnn-cpu", "fp32", linear_rows=rows) for rows in (4, 0))
    assert 20 < passes["weights"] / once["weights"] < 40  # 145 rows, 37 blocks


def test_winograd_of_bytes_multiplies_words_where_the_library_has_it() -> None:
    assert kernels_of("vgg_16", "ncnn-cpu", "int8")["words"] > 0
    assert kernels_of("vgg_16", "tflite-cpu", "int8")["words"] == 0
    a72 = [latency("cortex_a72_rpi4", stack="ncnn-cpu", threads=1, precision=precision) for precision in ("int8", "fp32")]
    assert 0.5 < a72[0] / a72[1] < 1.2


def test_sums_of_int8_products_are_scaled_and_narrowed_again_on_a_cpu() -> None:
    assert kernels_of("vgg_16", "tflite-cpu", "int8")["again"] > 0
    assert kernels_of("vgg_16", "tflite-cpu", "fp32")["again"] == 0
