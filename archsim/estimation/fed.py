"""What a step is fed with: the bytes that cross to the device and back, and the samples that the host decodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.base.record import ByIdentity
from archsim.cost.cost import Array
from archsim.cost.dispatch import feed_time, store_time
from archsim.device.device import Device, Gpu
from archsim.estimation.request import Request
from archsim.trace.dims import BATCH
from archsim.trace.kind import FORWARD, UPDATE
from archsim.trace.trace import BoundOp

if TYPE_CHECKING:
    from archsim.cost.input_stage import InputStage, SampleBatch


def moved_with_host(request: Request, device: Device) -> Array | float:
    """Time in which inputs and weights cross to the device and back, as the stack has it [s]."""
    stack, ops = request.stack, ByIdentity(request.trace.ops)
    time_s: Array | float = 0.0
    if stack.inputs == "host" or (stack.inputs == "decoded" and stack.reader.ahead != "batch"):
        time_s = _fed(request, device)
    if stack.parameter_store != "none":
        time_s = time_s + store_time(_updated_bytes(ops), stack, device, request.host)
    return time_s


def _fed(request: Request, device: Device) -> Array | float:
    """Time in which a batch crosses to the device [s]."""
    stack, ops = request.stack, ByIdentity(request.trace.ops)
    return feed_time(_input_bytes(ops), stack, device, request.host)


def decoding(request: Request, device: Device) -> InputStage | None:
    """What the samples of a batch take that the host decodes; None where it decodes none."""
    if request.stack.inputs != "decoded" or not isinstance(device, Gpu):
        return None
    from archsim.cost.input_stage import input_stage

    samples, cores = samples_of(request), float(np.ravel(request.host.core.count)[0])
    return input_stage(samples, request.stack, device, request.host, cores, request.calibration, _fed(request, device))


def samples_of(request: Request) -> SampleBatch:
    """The samples of a batch as a reader prepares them. Raises ArgumentError for JPEG images of a network that takes none.

    >>> from archsim.estimation.request import make_request
    >>> samples_of(make_request("alexnet_r", "gtx_1080", batch=8))
    SampleBatch(count=8, values=3072.0, pixels=1024.0)
    """
    from archsim.cost.input_stage import SampleBatch

    count = int(request.trace.symbols.get(BATCH, request.batch))
    values = _input_bytes(ByIdentity(request.trace.ops)) / 4.0 / count
    images = request.trace.images
    if not images and request.stack.reader.stored == "jpeg":
        raise ArgumentError(f"inputs decoded: network {request.network} reads no images, as the reader of {request.stack.id} "
                            "prepares; decoded,stored=array is for other samples")  # fmt: skip
    return SampleBatch(count=count, values=values, pixels=float(sum(prod(shape[2:]) for shape in images)))


def input_bytes(ops: Sequence[BoundOp]) -> float:
    """Size of a network's input [B]: tensors that forward ops read and no op writes, 4 B a value.

    >>> from archsim.trace.task import prepared
    >>> input_bytes(prepared("alexnet", "inference").bind(N=2).ops) == 2 * 3 * 227 * 227 * 4
    True
    """
    written = {op.name for op in ops}
    read = [(op.inputs, op.input_shapes) for op in ops if op.phase == FORWARD]
    sizes = {name: prod(shape) for names, shapes in read for name, shape in zip(names, shapes, strict=False)}
    return 4.0 * sum(size for name, size in sizes.items() if name not in written)


def updated_bytes(ops: Sequence[BoundOp]) -> float:
    """Size of the weights that a step updates [B], 4 B a value."""
    return 4.0 * sum(prod(op.shape) for op in ops if op.phase == UPDATE)


@lru_cache(maxsize=4096)
def _updated_bytes(ops: ByIdentity[tuple[BoundOp, ...]]) -> float:
    return updated_bytes(ops.it)


@lru_cache(maxsize=4096)
def _input_bytes(ops: ByIdentity[tuple[BoundOp, ...]]) -> float:
    return input_bytes(ops.it)
