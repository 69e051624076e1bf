"""How a stack multiplies operands of a precision on a device."""

from __future__ import annotations

import numpy as np

from archsim.base.errors import Unsupported
from archsim.device.cpu_core import FORMS
from archsim.device.device import WIDENED, Cpu, Device, Gpu, Tpu
from archsim.stack.stack import Stack

NARROW = ("int8", "fp16", "bf16")


def arithmetic(stack: Stack, device: Device, precision: str) -> str:
    """The pipe that multiplies operands of `precision`, by which `device.pipe` knows its rate.

    GPU: `half` where the stack computes fp16 in fp16 and the GPU can, `dp4a` where the stack's products of int8 do not use tensor
    cores; otherwise that of the precision itself. CPU: the fastest form of instructions for narrow operands that the core has and
    the stack has kernels for; without one `widened` for 16 bit.

    Raises Unsupported for int8 on a CPU without such a form.
    """
    if isinstance(device, Cpu):
        return _on_cpu(stack, device, precision) if precision in NARROW else precision
    if isinstance(device, Tpu):
        return one_pass(stack, device, precision)
    if precision == "fp16" and stack.fp16_arithmetic == "fp16" and device.rate.fp16 is not None:
        return "half"
    if precision == "int8" and precision in stack.without_tensor_cores and device.rate.int8 is not None:
        return "dp4a"
    return precision


def _on_cpu(stack: Stack, device: Cpu, precision: str) -> str:
    able, kernels = device.forms(precision), [form for form in stack.narrow_kernels if FORMS[form].precision == precision]
    both = [form for form in kernels if form in able]
    if both:
        best = max(both, key=lambda form: float(np.ravel(device.pipe(form))[0]))
        widened = float(np.ravel(device.pipe(WIDENED))[0])
        return best if precision == "int8" or float(np.ravel(device.pipe(best))[0]) >= widened else WIDENED
    if precision != "int8":
        return WIDENED
    if not kernels:
        raise Unsupported(f"precision int8: stack {stack.id} has no kernels of int8 for CPUs; "
                          "onnxruntime-cpu and pytorch-cpu have")  # fmt: skip
    raise Unsupported(f"precision int8: stack {stack.id} has kernels for {', '.join(kernels)}, and {device.identity.id} has "
                      f"{'instructions for ' + ', '.join(able) if able else 'none of these instructions'}")  # fmt: skip


def on_tensor_cores(stack: Stack, device: Device, precision: str) -> bool:
    """Whether products of this precision run on tensor cores."""
    return isinstance(device, Gpu) and arithmetic(stack, device, precision) != "dp4a" and device.has_tensor(precision)


def in_halves(stack: Stack, device: Device) -> bool:
    """Whether a stack computes fp16 on a CPU in lanes of 16 bit, so that values between products of int8 are fp16.

    >>> from archsim.device.catalog import find
    >>> from archsim.stack import catalog
    >>> [in_halves(catalog.find("ncnn-cpu"), find(name).device) for name in ("raspberry_pi_4", "raspberry_pi_5")]
    [False, True]
    """
    return isinstance(device, Cpu) and "fp16_lanes" in stack.narrow_kernels and "fp16_lanes" in device.forms("fp16")


def one_pass(stack: Stack, device: Tpu, precision: str) -> str:
    """How a TPU multiplies operands of a precision: as such, or factors of fp32 rounded to bf16, where software may do so.

    >>> from archsim.device.catalog import find
    >>> from archsim.stack import catalog
    >>> one_pass(catalog.find("jax-xla-tpu"), find("tpu_v3").device, "fp32")
    'bf16'
    """
    return "bf16" if precision == "fp32" and device.rate.fp32 is None and not stack.lossless else precision


def precision_notes(device: Gpu | Cpu | Tpu, precision: str, stack: Stack) -> list[str]:
    """What is said of the arithmetic of a precision."""
    if isinstance(device, Tpu):
        if one_pass(stack, device, precision) == precision:
            return []
        return [f"{precision} is storage and sums: {stack.id} rounds the factors of products to bf16 unless told otherwise"]
    narrow = precision in ("fp16", "bf16")
    if isinstance(device, Gpu) and narrow and float(device.pipe(precision)) <= float(device.rate.fp32):
        if precision == "fp16" and stack.fp16_arithmetic == "fp16" and device.rate.fp16 is not None:
            return [f"fp16 is multiplied as such by {stack.id}: {device.pipe('half'):g} per clock, fp32 {device.rate.fp32:g}"]
        return [f"{precision} is storage only: {device.identity.id} multiplies it at the fp32 rate"]
    if isinstance(device, Cpu) and precision in NARROW:
        form = arithmetic(stack, device, precision)
        if form == WIDENED:
            return [f"{precision} is storage only: values are widened to fp32 before they are multiplied"]
        return [f"{precision}: products by {form}, {FORMS[form].doc}; tensors are taken to be {precision} throughout"]
    return []
