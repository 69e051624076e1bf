"""Laws of threads: one fork and join for each parallel loop, whatever it runs over, and no thread that makes a loop slower.

At one clock, within a socket, and with a library that does not change its mind with the number of threads:

    time(n + 1) - time(n) <= barrier(n + 1) - barrier(n)        of every kernel, exactly

The clock goes down with the cores that are awake; a second socket brings the link between the two; a library with a grain
(OpenBLAS) gives a narrow product to one thread where there are more of them; threads that spin take their hyper-thread's core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.cost.cost import Cost
from archsim.device import catalog as devices
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.lower.kernel import CpuKernels, Kernel
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.trace import BoundTrace

from ..each import each
from ..shipped import line, network

ONE_LOOP = ("pytorch-cpu", "onnxruntime-cpu", "mxnet-mkldnn", "mxnet-mkl2017", "tensorflow-eigen")  # convolve in one loop
OF_PRODUCTS = ("caffe-openblas", "mxnet-openblas", "cntk-cpu")  # call a BLAS for each group


def on_images(*ops: dict[str, Any], batch: int, task: str = "inference") -> BoundTrace:
    return network(*ops, batch=batch, task=task, data=["N", 64, 14, 14])


def convolution(groups: int, channels: int = 64) -> dict[str, Any]:
    return line("conv2d", "c", "data", ["N", channels, 14, 14], kernel=[3, 3], pad=[1, 1], groups=groups, bias=False)  # fmt: skip


def plain(kind: str, **words: Any) -> dict[str, Any]:
    return line(kind, "p", "c", ["N", 64, 14, 14], **words)


def launched(stack: str, trace: BoundTrace) -> list[Kernel]:
    """The kernels of the first way to run each op of a trace."""
    columns = lower(trace.ops, stacks.find(stack), "cpu", "fp32", any(op.phase != "forward" for op in trace.ops)).kernels
    first = [columns.options[int(start)] for start in columns.plan_start]
    return [kernel for option in first for kernel in option.kernels]


def loops(stack: str, trace: BoundTrace) -> float:
    """Parallel loops of a trace: how often threads are forked and joined."""
    return sum(kernel.repeat for kernel in launched(stack, trace) if kernel.cpu.threaded)


@each(("stack", "groups"), [(stack, groups) for stack in ONE_LOOP for groups in (2, 8, 64)])
def test_a_convolution_is_one_parallel_loop_whatever_its_groups(stack: str, groups: int) -> None:
    for batch in (1, 16):
        for task in ("inference", "forward_backward"):
            whole, cut = (loops(stack, on_images(convolution(each), batch=batch, task=task)) for each in (1, groups))
            assert cut == whole


@each(("stack", "groups"), [(stack, groups) for stack in OF_PRODUCTS for groups in (2, 8)])
def test_a_blas_forks_for_the_product_of_each_group(stack: str, groups: int) -> None:
    whole, cut = (launched(stack, on_images(convolution(each), batch=2)) for each in (1, groups))
    assert sum(k.repeat for k in cut if k.menu) == groups * sum(k.repeat for k in whole if k.menu)


@each("stack", ONE_LOOP)
def test_loops_over_elements_do_not_grow_in_number_with_channels_or_images(stack: str) -> None:
    window = {"kernel": [3, 3], "pad": [1, 1], "stride": [1, 1]}
    for op in (plain("relu"), plain("batch_norm"), plain("max_pool", **window), plain("lrn", size=5)):
        small, large = (loops(stack, on_images(convolution(1), op, batch=batch)) for batch in (1, 64))
        assert small == large


@pytest.mark.parametrize("stack", ONE_LOOP)
def test_depthwise_channels_lie_in_the_lanes_of_a_register_block(stack: str) -> None:
    """Pixels are its rows: one product of all channels, which multiplies what those of each channel do."""
    (kernel,) = (k for k in launched(stack, on_images(convolution(64), batch=2)) if k.menu)
    assert (kernel.m, kernel.n, kernel.k, kernel.count, kernel.repeat) == (2 * 14 * 14, 64, 9, 1, 1)
    assert kernel.flop == 2.0 * kernel.m * kernel.n * kernel.k


# ------------------------------------------------------------------------------------------------------- what a thread adds

ROUNDING = 1e-12
STACKS = (*ONE_LOOP, "caffe-openblas", "mxnet-openblas", "cntk-cpu", "torch7-cpu", "intel-mkl")
SLEEPING = ("tensorflow-eigen", "torch7-cpu", "cntk-cpu")  # stacks whose idle threads take nothing from the others
CPUS = ("i7_6700k", "epyc_7742", "ryzen_9_7950x", "tegra_x1_cpu", "xeon_e5_2650_v3_2s", "xeon_platinum_8124m")
NETS = ("alexnet", "mobilenet_v2", "resnet_50")


def costs(net: str, hw: str, stack: str, threads: int, batch: int) -> tuple[CpuKernels, Cost]:
    """The kernels of a network and their costs, at the highest clock of the device however many cores work
    and whatever they draw."""
    boost = float(devices.find(hw).device.clock.boost)
    found = run(make_request(net, hw, stack=stack, batch=batch, threads=threads, clock=boost, power_limit=1e5))
    return found.lowered.kernels, found.cost.variants


def steps(hw: str) -> list[tuple[int, int]]:
    """Numbers of threads up to a core each of one socket, and one more than each."""
    core = devices.find(hw).device.core
    most = int(core.count / core.sockets)
    return [(n, n + 1) for n in sorted({1, 2, 3, 4, 7, 8, 15, 31, 63, most - 1}) if n < most]


@pytest.mark.parametrize("hw", CPUS)
def test_another_core_makes_no_kernel_slower_but_for_its_barrier(hw: str) -> None:
    for stack in STACKS:
        for net, batch in zip(NETS, (16, 1, 1), strict=True):
            for n, more in steps(hw):
                kernels, before = costs(net, hw, stack, n, batch)
                _, after = costs(net, hw, stack, more, batch)
                least = kernels.min_rows_per_thread
                same = (least == 0) | (np.minimum(kernels.m, kernels.n) >= least * more)
                slower = (after.busy_s - before.busy_s * (1 + ROUNDING))[..., same]
                assert np.all(slower <= 0), (stack, net, n, kernels.kernels[int(np.argmax(slower))].name)


@pytest.mark.parametrize("stack", SLEEPING)
def test_hyper_threads_make_no_kernel_slower(stack: str) -> None:
    for net in NETS:
        for n, more in ((4, 5), (5, 8), (8, 9)):
            kernels, before = costs(net, "i7_6700k", stack, n, 16)
            _, after = costs(net, "i7_6700k", stack, more, 16)
            same = kernels.min_rows_per_thread == 0  # strips of a product are cut for all threads, and wait for all
            assert np.all((after.busy_s - before.busy_s * (1 + ROUNDING))[..., same] <= 0)


@each("stack", STACKS)
def test_one_thread_forks_nothing(stack: str) -> None:
    for hw in CPUS:
        assert not np.any(costs("mobilenet_v2", hw, stack, 1, 1)[1].overhead_s)


def test_threads_on_fewer_instances_of_the_last_level_have_less_of_it() -> None:
    """Four cores have one instance of 16 MiB, of which tensors keep half; every further four bring another one."""
    trace = {"net": "alexnet", "hw": "epyc_7742", "stack": "mxnet-mkldnn", "batch": 16}
    moved = [float(costs(threads=n, **trace)[1].dram_bytes.sum()) for n in (1, 4, 5, 16, 64)]
    assert moved[0] == moved[1] > moved[2] > moved[3] >= moved[4]
