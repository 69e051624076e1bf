"""What crosses between host and device for a step: its input, the weights of a parameter store, samples that the host decodes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from archsim.base.errors import ArgumentError
from archsim.base.record import kept
from archsim.cost.cost import Array
from archsim.cost.dispatch import host_transfer_time, store_time
from archsim.device.device import Device, Gpu
from archsim.device.variant import first_of
from archsim.estimation.request import Request
from archsim.trace.dims import BATCH
from archsim.trace.kind import FORWARD, UPDATE
from archsim.trace.trace import BoundTrace

if TYPE_CHECKING:
    from archsim.cost.dispatch import InputStage, SampleBatch


def host_transfer_s(request: Request, device: Device) -> Array | float:
    """Time in which inputs and weights cross to the device and back before a step, as the stack has it [s]."""
    stack, trace = request.stack, request.trace
    time_s: Array | float = 0.0
    if stack.inputs == "host" or (stack.inputs == "decoded" and stack.reader.ahead != "batch"):
        time_s = host_transfer_time(input_bytes(trace), stack, device, request.host)
    if stack.parameter_store != "none":
        time_s = time_s + store_time(updated_bytes(trace), stack, device, request.host)
    return time_s


def decoding(request: Request, device: Device) -> InputStage | None:
    """What the samples of a batch take that the host decodes; None where it decodes none."""
    if request.stack.inputs != "decoded" or not isinstance(device, Gpu):
        return None
    from archsim.cost.dispatch import input_stage

    copy_s = host_transfer_time(input_bytes(request.trace), request.stack, device, request.host)
    cores = first_of(request.host.core.count)
    return input_stage(samples_of(request), request.stack.reader, request.host, cores, request.calibration, copy_s)


def samples_of(request: Request) -> SampleBatch:
    """The samples of a batch as a reader prepares them. Raises ArgumentError for JPEG images of a network that takes none.

    >>> from archsim.estimation.request import make_request
    >>> samples_of(make_request("alexnet_r", "gtx_1080", batch=8))
    SampleBatch(count=8, values=3072.0, pixels=1024.0)
    """
    from archsim.cost.dispatch import SampleBatch

    count, images = int(request.trace.symbols.get(BATCH, request.batch)), request.trace.images
    if not images and request.stack.reader.stored == "jpeg":
        raise ArgumentError(f"inputs decoded: network {request.network} reads no images, as the reader of {request.stack.id} "
                            "prepares; decoded,stored=array is for other samples")  # fmt: skip
    return SampleBatch(count=count, values=input_bytes(request.trace) / 4.0 / count,
                       pixels=float(sum(prod(shape[2:]) for shape in images)))  # fmt: skip


@kept(4096)
def input_bytes(trace: BoundTrace) -> float:
    """Size of a network's input [B]: tensors that forward ops read and no op writes, 4 B a value.

    >>> from archsim.trace.task import prepared
    >>> input_bytes(prepared("alexnet", "inference").bind(N=2)) == 2 * 3 * 227 * 227 * 4
    True
    """
    written = {op.name for op in trace.ops}
    read = [(op.inputs, op.input_shapes) for op in trace.ops if op.phase == FORWARD]
    sizes = {name: prod(shape) for names, shapes in read for name, shape in zip(names, shapes, strict=False)}
    return 4.0 * sum(size for name, size in sizes.items() if name not in written)


@kept(4096)
def updated_bytes(trace: BoundTrace) -> float:
    """Size of the weights that a step updates [B], 4 B a value."""
    return 4.0 * sum(prod(op.shape) for op in trace.ops if op.phase == UPDATE)
