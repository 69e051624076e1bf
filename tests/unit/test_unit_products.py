"""In which precision products run where nobody asks: as the stack's own users get them."""

from statistics import median

import pytest

import archsim
from archsim.estimation.request import make_request
from archsim.stack import catalog as stacks


def test_who_does_not_ask_gets_what_the_framework_does() -> None:
    usual = archsim.estimate(net="resnet_50", hw="a100_sxm4_40gb", batch=64)
    wide = archsim.estimate(net="resnet_50", hw="a100_sxm4_40gb", batch=64, precision="fp32")
    assert (usual.precision, wide.precision) == ("tf32", "fp32")
    assert usual.latency_s < wide.latency_s
    assert "precision tf32 in conv2d, fp32 in other products: what pytorch-2 does unless told otherwise" in str(usual.assumptions)
    assert "precision fp32: unless its users turn that off, pytorch-2 computes conv2d in tf32" in str(wide.assumptions)


def test_only_the_kinds_of_ops_that_a_framework_narrows_are_narrowed() -> None:
    """A vision transformer has one convolution; PyTorch leaves its products in fp32."""
    usual, wide, all_ = (
        {op.name: op for op in archsim.estimate(net="vit_base_16", hw="a100_sxm4_40gb", batch=16, precision=precision).ops}
        for precision in (None, "fp32", "tf32")
    )
    linear = [name for name, op in usual.items() if op.kind == "linear"]
    assert all(usual[name].kernels == wide[name].kernels for name in linear)
    assert sum(all_[name].time_s for name in linear) < 0.3 * sum(usual[name].time_s for name in linear)
    (conv,) = (name for name, op in usual.items() if op.kind == "conv2d")
    assert usual[conv].kernels == all_[conv].kernels != wide[conv].kernels


@pytest.mark.parametrize(("net", "hw", "stack"), [
    ("bert_base", "a100_sxm4_40gb", None),  # no op that PyTorch narrows
    ("resnet_50", "tesla_v100_sxm2", "pytorch-2"),  # no tf32 on the chip
    ("resnet_50", "i7_6700k", None),
])  # fmt: skip
def test_elsewhere_products_are_fp32(net: str, hw: str, stack: str | None) -> None:
    request = make_request(net, hw, stack=stack)
    assert (request.precision, request.narrowed) == ("fp32", None)
    assert not [note for note in request.notes if note.startswith("precision")]


def test_an_engine_may_narrow_all_products() -> None:
    request = make_request("bert_base", "a100_sxm4_40gb", stack="tensorrt-8")
    assert request.precision == "tf32"
    assert {"linear", "matmul", "attention", "conv2d"} <= set(stacks.find("tensorrt-8").tf32)


def test_a_memory_bound_kernel_of_a_power_limited_card_keeps_a_higher_clock_than_a_dense_one() -> None:
    """The clock is decided for each kernel by its own power."""
    ops = archsim.estimate(net="resnet_50", hw="l4", batch=32, precision="fp32").ops
    clocks = {bound: [kernel.clock_hz for op in ops for kernel in op.kernels if kernel.bound == bound and op.kind == kind]
              for kind, bound in (("relu", "dram"), ("conv2d", "compute"))}  # fmt: skip
    assert median(clocks["dram"]) > median(clocks["compute"])


def test_a_library_that_may_narrow_products_need_not() -> None:
    """PyTorch lets cuDNN narrow convolutions, and keeps linear layers as they are."""
    found = [archsim.estimate(net="resnet_50", hw="rtx_5090", batch=16, precision=name) for name in (None, "fp32", "tf32")]
    usual, wide, narrow = (sum(op.time_s for op in one.ops if op.kind == "conv2d") for one in found)
    assert usual <= min(wide, narrow)
