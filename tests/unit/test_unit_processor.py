"""What a CPU's software adds to kernels: panels, threads, loops, images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.evidence.op_rows import forward
from archsim.lower.kernel import Kernel
from archsim.lower.lower import lower
from archsim.lower.processor import runtime_of
from archsim.stack import catalog as stacks
from archsim.stack.loop import LOOP, ScalarLoop
from archsim.stack.parts import UpdatePasses
from archsim.stack.stack import Stack
from archsim.trace import BoundTrace, load, task_trace
from archsim.trace.op import Matmul

BATCH = 16


def stack(name: str, **words: Any) -> Stack:
    found = stacks.find(name)
    return replace(found, **words)


def trace(net: str, task: str = "training_step") -> BoundTrace:
    return task_trace(load(net), task).bind(N=BATCH)


def kernels(chosen: Stack, op: str, phase: str = "forward", net: str = "alexnet_r") -> list[Kernel]:
    """The kernels of the first option of one op in one phase of a training step."""
    ops = trace(net).ops
    lowered = lower(ops, chosen, "cpu", "fp32", True)
    position = next(i for i, o in enumerate(ops) if o.phase == phase and (o.parent or o.name) == op)
    columns, plan = lowered.kernels, int(lowered.plan_of[position])
    return list(columns.options[int(columns.plan_start[plan])].kernels)


def named(found: list[Kernel], name: str) -> Kernel:
    return next(kernel for kernel in found if kernel.name == name)


def counts(kernel: Kernel) -> dict[str, float]:
    """What the scalar loop of a kernel does, and how often."""
    return {name: count * kernel.cpu.values for name in LOOP if (count := getattr(kernel.loop, name))}


def test_blas_packs_both_operands_and_a_direct_loop_none() -> None:
    gemm = named(kernels(stack("caffe-openblas"), "conv2"), "gemm")
    assert (gemm.cpu.packed, gemm.cpu.copied) == (1, (32 + 15 * 15) * 32 * 25)
    assert named(kernels(stack("mxnet-mkldnn"), "conv2"), "direct").cpu.packed == 0


@pytest.mark.parametrize(("packing", "copied", "scalar"), [("scalar", True, 1), ("simd", True, 0), ("ahead", False, 0)])
def test_blas_copies_its_panels_value_by_value_or_by_simd_instructions_or_ahead(packing: str, copied: bool, scalar: int) -> None:
    chosen = stack("caffe-openblas", packing=packing)
    assert runtime_of(chosen).scalar_copies == scalar
    for cpu in (named(kernels(chosen, "conv2"), "gemm").cpu, named(kernels(chosen, "fc4"), "gemm").cpu):
        assert cpu.packed > 0
        assert (cpu.copied > 0) == copied
    direct = named(kernels(stack("mxnet-mkldnn", packing=packing), "conv2"), "direct").cpu
    assert direct.copied == 0


def test_blas_cuts_the_features_of_a_fully_connected_layer() -> None:
    caffe = stack("caffe-openblas")
    assert [(k.m, k.n) for k in (named(kernels(caffe, "fc4"), "gemm"), named(kernels(caffe, "conv2"), "gemm"))] == [
        (BATCH, 10), (32, 15 * 15),
    ]  # fmt: skip


def first_layers(chosen: Stack, batch: int) -> list[str]:
    """The first kernels of the fully connected layers of AlexNet."""
    lowered = lower(task_trace(load("alexnet"), "inference").bind(N=batch).ops, chosen, "cpu", "fp32", False)
    plans = [int(p) for op, p in zip(lowered.ops, lowered.plan_of, strict=True) if op.kind.op == "linear"]
    return [lowered.kernels.options[int(lowered.kernels.plan_start[plan])].kernels[0].name for plan in plans]


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("caffe-openblas", "gemm"), ("intel-mkl", "gemm"), ("mxnet-openblas", "gemm"), ("mxnet-mkl2017", "gemv"),
     ("numpy-openblas", "gemv")],
)  # fmt: skip
def test_a_blas_copies_the_weights_for_a_single_image_too_unless_gemv_is_called(name: str, kernel: str) -> None:
    assert first_layers(stacks.find(name), 1) == [kernel] * 3
    assert first_layers(stacks.find(name), 2) == ["gemm"] * 3
    assert first_layers(stack(name, vector_products="gemv"), 1) == ["gemv"] * 3


def test_only_a_product_of_two_results_is_fed_by_the_ops_before() -> None:
    ops = (forward(Matmul(), (1, 8, 8), (1, 8, 8), (1, 8, 8)), forward(Matmul(), (1, 1, 8), (1, 1, 8), (1, 8, 8)))
    found = lower(ops, stacks.find("numpy-openblas"), "cpu", "fp32", False).kernels.kernels
    both = [k.cpu.both_activations for k in found if k.cpu]
    assert both == [1.0, 1.0]
    assert named(kernels(stack("caffe-openblas"), "fc4"), "gemm").cpu.both_activations == 0.0


def test_a_small_product_stays_on_one_thread() -> None:
    gemm = named(kernels(stack("caffe-openblas"), "fc4"), "gemm")
    size = gemm.m * gemm.n * gemm.k
    assert gemm.cpu.threaded == 0
    for limit, threaded in ((size, 0), (size - 1, 1)):
        assert named(kernels(stack("caffe-openblas", max_serial_product=limit), "fc4"), "gemm").cpu.threaded == threaded
    assert named(kernels(stack("caffe-openblas"), "conv2"), "gemm").cpu.threaded == 1


def test_caffe_adds_a_bias_by_a_product_with_a_vector_of_ones() -> None:
    """Of each image, k = 1; the gradient is a matrix times that vector. In a fully connected layer once for the batch."""
    caffe = stack("caffe-openblas")
    bias = named(kernels(caffe, "conv2"), "bias")
    assert (bias.m, bias.n, bias.k, bias.repeat, bias.flop) == (32, 15 * 15, 1, BATCH, 2 * 32 * 15 * 15)
    assert (bias.a_bytes, bias.b_bytes, bias.c_bytes) == (4 * 32, 4 * 15 * 15, 4 * 32 * 15 * 15)
    gradient = named(kernels(caffe, "conv2", "backward_filter"), "bias_gradient")
    assert (gradient.dense, gradient.cpu.threaded, gradient.repeat, gradient.b_bytes) == (1, 1, BATCH, bias.c_bytes)
    assert "bias" not in {kernel.name for kernel in kernels(caffe, "conv2", "backward_data")}
    whole = named(kernels(caffe, "fc4"), "bias")
    assert (whole.m, whole.n, whole.k, whole.repeat) == (BATCH, 10, 1, 1)  # its features are the side that the BLAS cuts


def test_instructions_of_the_binary_limit_its_products() -> None:
    """AVX multiplies and adds apart, AVX2 at once; a binary of which nothing is said has the widest of its core."""
    def of(name: str, **keys: str) -> tuple[float, float]:
        found = runtime_of(stack(name, **keys))
        return found.simd, found.fused

    assert of("tensorflow-eigen") == (256, 0)
    assert of("tensorflow-eigen", instructions="avx2") == (256, 1)
    assert of("tensorflow-eigen", instructions="sse") == (128, 0)
    assert of("mxnet-mkldnn") == (float("inf"), 1)


def test_a_library_may_have_winograd_transforms() -> None:
    library = stack("onnxruntime-cpu")
    both = {"direct": "cpu.mkldnn", "winograd_nonfused": "cpu.mkldnn"}
    conv = replace(library.conv, algorithms={**library.conv.algorithms, "forward": both})
    quick = replace(library, conv=conv)
    request = make_request("vgg_16", "i7_6700k", stack="onnxruntime-cpu", batch=16)
    direct, transformed = (float(run(replace(request, stack=chosen)).latency_s[0]) for chosen in (library, quick))
    assert transformed < 0.8 * direct


def test_convolutions_in_channel_blocks_copy_every_operand() -> None:
    names = [kernel.name for kernel in kernels(stack("pytorch-cpu"), "conv2", "backward_data")]
    assert sorted(names) == ["direct", *["transpose"] * 3]
    assert [kernel.name for kernel in kernels(stack("onnxruntime-cpu"), "conv2")] == ["direct"]


def test_operands_that_are_fetched_by_index_are_gathered_value_by_value() -> None:
    plain, fetched = (named(kernels(stack("tensorflow-eigen", gathers=each), "conv2"), "direct") for each in (False, True))
    assert (counts(plain), counts(fetched)) == ({}, {"gathers": (plain.m + plain.n) * plain.k * plain.count})


@pytest.mark.parametrize(
    ("op", "values"),
    [("relu1", BATCH * 32 * 15 * 15), ("pool1", BATCH * 32 * 15 * 15 * 9)],
)
def test_a_loop_does_its_steps_for_each_value_or_window_element(op: str, values: int) -> None:
    row = ScalarLoop(steps=3, exps=0.5)
    (kernel,) = kernels(stack("caffe-openblas", loop_rows={"relu": row, "max_pool": row}), op)
    assert counts(kernel) == {"steps": 3 * values, "exps": values / 2}


def test_a_loop_that_the_stack_does_not_name_does_nothing_value_by_value() -> None:
    assert counts(kernels(stack("caffe-openblas", loop_rows={"max_pool": ScalarLoop(steps=3)}), "relu1")[0]) == {}


def test_a_phase_of_its_own_beats_the_plain_row() -> None:
    """As a whole: what the plain row says and that of the phase does not, the loop of the phase does not do."""
    rows = {"relu": ScalarLoop(steps=3, exps=1), "relu.backward": ScalarLoop(steps=5), "relu.training": ScalarLoop(pows=4)}
    values = BATCH * 32 * 15 * 15
    forward, backward = (kernels(stack("caffe-openblas", loop_rows=rows), "relu1", phase)[0] for phase in ("forward", "backward"))
    assert (counts(forward), counts(backward)) == ({"pows": 4 * values}, {"steps": 5 * values})


def test_a_loop_in_place_fetches_no_line_to_be_written() -> None:
    apart, within = (kernels(stack("caffe-openblas", in_place=ops), "relu1")[0] for ops in ((), ("relu",)))
    assert (apart.b_bytes, within.b_bytes) == (apart.c_bytes, 0)


def test_pages_and_waiting_are_those_of_the_stack() -> None:
    one, all_ = runtime_of(stack("caffe-openblas", idle_threads="sleep")), runtime_of(stack("mxnet-mkldnn"))
    assert (one.local, all_.local, one.spin) == (0, 1, 0)


def test_threads_that_nobody_sets() -> None:
    assert stack("caffe-openblas").usual_threads(4, 8) == 8
    assert stack("pytorch-cpu").usual_threads(4, 8) == 4


def test_an_update_writes_where_it_has_read() -> None:
    rows, count = UpdatePasses(inputs=3, outputs=2, launches=4), 32 * 32 * 25 + 32
    caffe = stack("caffe-openblas", optimiser_passes={"default": rows})
    (kernel,) = kernels(caffe, "conv2", "update")
    assert kernel.values == count / rows.launches
    assert kernel.c_bytes == rows.outputs * 4 * count / rows.launches
    assert kernel.b_bytes == pytest.approx((rows.inputs - rows.outputs) * 4 * count / rows.launches)
