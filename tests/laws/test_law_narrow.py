"""Products of narrow operands on CPUs: the peak that follows from a spec, that of its blocks, and what the makers state."""

from __future__ import annotations

import numpy as np
import pytest

from archsim.base.errors import ArchsimError, Unsupported
from archsim.cost.cores import core_clocks
from archsim.cycle.core.bounds import bounds
from archsim.device.catalog import find, names
from archsim.device.cpu_core import FORMS
from archsim.device.device import Cpu
from archsim.device.pipeline import FALLBACK
from archsim.estimation.pipeline import lowered_of, run
from archsim.estimation.request import make_request, with_spec
from archsim.evidence.row import Refused, setting
from archsim.lower.kernel import CpuKernels
from archsim.simulate.core import X86, SimulatedCore, kernel_loop, simulate_core
from archsim.stack import catalog as stacks
from archsim.stack.stack import NARROW
from tests.each import each
from tests.shipped import cpu

CLOCK = 3e9  # Hz
BLOCKS = {"tile": "32x32", "matrix": "16x4", "dot": "14x32", "pairs": "14x32", "mlal": "14x32", "sdot": "14x32",
          "lanes": "14x64"}  # fmt: skip
SMALLER = {"dot": "6x16", "pairs": "6x16", "mlal": "6x16"}  # of sixteen registers
STATED = {  # multiply-adds of a core in a clock by what its maker or published tables state
    ("xeon_platinum_8480", "int8_tile"): 1024, ("xeon_platinum_8480", "bf16_tile"): 512,  # AMX: 2048 and 1024 operations
    ("xeon_platinum_8480", "int8_dot"): 128, ("xeon_platinum_8280", "int8_dot"): 128,  # AVX-512 VNNI: 256 operations
    ("i9_11900k", "int8_dot"): 64, ("i9_12900k", "int8_dot"): 64, ("epyc_9654", "int8_dot"): 64, ("epyc_9655", "int8_dot"): 128,
    ("i7_6700k", "int8_pairs"): 32, ("i7_5930k", "int8_pairs"): 16, ("graviton2", "int8_sdot"): 32,
    ("graviton3", "int8_matrix"): 128, ("graviton3", "bf16_matrix"): 64, ("grace", "int8_matrix"): 128,
    ("grace", "bf16_matrix"): 64, ("grace", "fp16_lanes"): 32, ("raspberry_pi_5", "int8_sdot"): 32, ("apple_m1", "int8_sdot"): 64,
}  # fmt: skip


def simulated(name: str, form: str) -> SimulatedCore:
    """A block of a form with its panels in the L1."""
    spec, kind = find(name), form.rpartition("_")[2]
    few = float(spec.device.core.registers) <= 16
    block = SMALLER.get(kind, BLOCKS[kind]) if few else BLOCKS[kind]
    if spec.device.identity.vendor not in X86 and kind in ("dot", "sdot", "lanes"):
        block = f"8x{int(float(spec.device.core.simd)) // (8 if kind == 'lanes' else 16)}"
    unroll = "" if kind == "tile" else " unroll=4"
    loop = kernel_loop(spec, f"gemm {block} {FORMS[form].precision} form={form} a=1{unroll}")
    return simulate_core(spec, loop, clock=CLOCK)


ONE_OF = ("xeon_platinum_8480", "xeon_platinum_8280", "i9_12900k", "epyc_9654", "epyc_9655", "i7_6700k", "i7_5930k", "epyc_7742",
          "epyc_7763", "graviton2", "graviton3", "grace", "apple_m1")  # fmt: skip


PROGRAMMED = [form for form in FORMS if form != "int8_words"]  # a closed form only: no loop of the core is written in it


@each(("name", "form"), [(name, form) for name in ONE_OF for form in PROGRAMMED if cpu(name).dot_shape(form) is not None])
def test_a_block_whose_panels_are_in_the_l1_reaches_the_peak_of_its_form(name: str, form: str) -> None:
    found = simulated(name, form)
    assert found.peak == 2.0 * float(cpu(name).pipe(form))
    assert 0.88 <= found.flop_per_clock / found.peak <= 1.002
    assert found.result.cycles >= max(bounds(found.machine, found.loop).values()) * (1 - 1e-9)


@each(("of", "rate"), list(STATED.items()))
def test_the_peak_of_a_core_is_the_published_one(of: tuple[str, str], rate: float) -> None:
    assert float(cpu(of[0]).pipe(of[1])) == pytest.approx(rate, rel=1e-3)


def test_sixteen_bit_without_a_form_is_widened() -> None:
    assert cpu("i7_6700k").pipe("bf16") == cpu("i7_6700k").pipe("fp32") == cpu("i7_6700k").pipe("widened")


def test_every_cpu_with_a_form_has_a_port_for_it_and_every_stack_names_known_forms() -> None:
    assert set(NARROW) == set(FORMS)
    assert FALLBACK["bfdot"] == "dot"
    for name in names():
        device = find(name).device
        if isinstance(device, Cpu):
            for form in FORMS:
                assert device.dot_shape(form) is None or float(device.pipe(form)) > 0, (name, form)


@pytest.mark.parametrize("fidelity", ["analytical", "cycle"])
def test_a_core_with_dot_products_is_never_slower_than_the_same_without(fidelity: str) -> None:
    spec = find("xeon_platinum_8280")
    for network, batch in (("alexnet", 1), ("mobilenet_v2", 2)):
        request = make_request(network, "xeon_platinum_8280", stack="onnxruntime-cpu", batch=batch, precision="int8",
                               fidelity=fidelity)  # fmt: skip
        few = with_spec(request, spec.with_settings({"dot.int8_dot": "0.1"}))
        assert float(run(request).latency_s[0]) <= float(run(few).latency_s[0])


def test_narrow_operands_move_fewer_bytes_and_take_less_time() -> None:
    found = {p: run(make_request("resnet_50", "xeon_platinum_8480", stack="pytorch-cpu", batch=4, precision=p))
             for p in ("fp32", "bf16", "int8")}  # fmt: skip
    times = [float(found[p].latency_s[0]) for p in ("fp32", "bf16", "int8")]
    weights = [sum(k.a_bytes for k in found[p].lowered.kernels.kernels) for p in ("fp32", "bf16", "int8")]
    assert times == sorted(times, reverse=True)
    assert weights[0] == pytest.approx(2 * weights[1]) == pytest.approx(4 * weights[2])


def test_depthwise_convolutions_sum_nothing_and_are_widened() -> None:
    request = make_request("mobilenet_v2", "xeon_platinum_8280", stack="onnxruntime-cpu", precision="int8")
    lowered = lowered_of(request).kernels
    assert isinstance(lowered, CpuKernels)
    assert lowered.depthwise.sum() > 0
    device, apart = cpu("xeon_platinum_8280"), np.asarray(lowered.depthwise) > 0
    narrow, wide = (core_clocks(lowered, device, name, 1.0, request.calibration)[..., apart] for name in ("int8_dot", "fp32"))
    np.testing.assert_allclose(narrow, wide)


@each(("hw", "stack", "precision", "problem"), [
    ("i7_3820", "onnxruntime-cpu", "int8", "i7_3820 has none of these instructions"),
    ("xeon_platinum_8480", "caffe-openblas", "int8", "caffe-openblas has no kernels of int8"),
    ("xeon_platinum_8480", "onnxruntime-cpu", "fp8", "no modelled unit for fp8"),
])  # fmt: skip
def test_what_has_no_instructions_or_no_kernels_is_refused(hw: str, stack: str, precision: str, problem: str) -> None:
    with pytest.raises(Unsupported, match=problem):
        run(make_request("alexnet", hw, stack=stack, precision=precision))


@pytest.mark.parametrize(("net", "hw", "stack", "precision", "apart"), [
    ("alexnet", "i7_6700k", "onnxruntime-cpu", "bf16", 0.2),  # has no form of it and widens
    ("vit_base_16", "graviton3", "pytorch-cpu", "fp32", 0.3), ("vit_base_16", "graviton3", "pytorch-cpu", "bf16", 0.3),
])  # fmt: skip
def test_each_precision_has_programs_that_take_about_as_long(net: str, hw: str, stack: str, precision: str, apart: float) -> None:
    closed, cycle = (run(make_request(net, hw, stack=stack, precision=precision, fidelity=fidelity)).latency_s[0]
                     for fidelity in ("analytical", "cycle"))  # fmt: skip
    assert cycle == pytest.approx(closed, rel=apart)


@each(("kernel", "problem"), [
    ("gemm 6x16 avx2 bf16", "no avx2 of bf16"), ("gemm 6x16 amx int8", "no amx of int8"), ("triad int8", "is of a gemm"),
    ("gemm 6x16 form=int8_dot", "multiplies int8, not fp32"), ("gemm 6x16 int8 form=int9", "is not one of"),
])  # fmt: skip
def test_words_of_a_kernel_that_the_core_cannot_run_are_refused(kernel: str, problem: str) -> None:
    with pytest.raises(ArchsimError, match=problem):
        kernel_loop(find("i7_6700k"), kernel)


def test_stacks_that_have_narrow_kernels_are_named_by_the_error() -> None:
    with pytest.raises(Unsupported) as error:
        make_request("alexnet", "i7_6700k", stack="caffe-openblas", precision="int8")
    for name in ("onnxruntime-cpu", "pytorch-cpu"):
        assert name in str(error.value)
        assert stacks.find(name).narrow_kernels


def test_compiled_and_plain_agree_on_narrow_blocks() -> None:
    spec = find("xeon_platinum_8480")
    for kernel in ("gemm 14x32 avx512 int8", "gemm 32x32 amx bf16", "gemm 6x16 avx2 int8 form=int8_pairs"):
        loop = kernel_loop(spec, kernel)
        plain, compiled = (simulate_core(spec, loop, clock=CLOCK, trips=40, fast=fast) for fast in (False, None))
        assert plain.result.cycles == compiled.result.cycles


def test_a_measured_row_of_int8_without_kernels_is_skipped_with_the_reason() -> None:
    assert setting("xeon_platinum_8280", "onnxruntime-cpu", "int8").precision == "int8"
    for hardware, stack, reason in (("xeon_platinum_8280", "caffe-openblas", "has no kernels of int8"),
                                    ("i7_3820", "onnxruntime-cpu", "has no unit for int8")):  # fmt: skip
        with pytest.raises(Refused, match=reason):
            setting(hardware, stack, "int8")
