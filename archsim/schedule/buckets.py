"""The gradients of one device's training step, grouped into the buckets that are exchanged together."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.schedule.training import DeviceStep
from archsim.trace.kind import UPDATE
from archsim.trace.kinds.pointwise import KEPT_BYTES, OPTIMISERS
from archsim.trace.trace import BoundOp

BUCKET_BYTES = 25e6  # B of one bucket (Li et al. 2020, PyTorch Distributed, section 4.2)


def device_step(
    ops: Sequence[BoundOp], end_s: Sequence[float], value_bytes: float, bucket_bytes: float = BUCKET_BYTES
) -> DeviceStep:  # fmt: skip
    """The training step of one device: when computation ends, and when each bucket of gradients is complete.

    Gradients fill buckets in the order in which the backward pass produces them. A bucket is closed as soon as it holds
    `bucket_bytes`; the last one may be smaller. Updates that overlap no computation come after it.

    ops: the bound ops of a training step, updates included, in execution order, [N]
    end_s: when each of them ends on an otherwise idle device [s], [N]
    value_bytes: size of a gradient, on the links as in memory [B]
    bucket_bytes: size at which a bucket is closed [B]

    >>> from archsim.trace.file import load
    >>> from archsim.trace.training import task_trace
    >>> ops = task_trace(load("alexnet"), "training_step").bind(N=1).ops
    >>> step = device_step(ops, [float(i + 1) for i in range(len(ops))], 4.0)
    >>> round(sum(size for _, size in step.buckets) / 4)  # the parameters of AlexNet
    60965224
    """
    position = {op.name: i for i, op in enumerate(ops)}
    updates = [op for op in ops if op.phase == UPDATE]
    compute_s = max(end_s[i] for i, op in enumerate(ops) if op.phase != UPDATE)
    complete_s = [max(end_s[position[name]] for name in op.inputs if name in position) for op in updates]
    ready = sorted((time, value_bytes * op.shape[0]) for time, op in zip(complete_s, updates, strict=True))
    buckets, size = [], 0.0
    for i, (time, values) in enumerate(ready):
        size += values
        if size >= bucket_bytes or i + 1 == len(ready):
            buckets.append((min(time, compute_s), size))
            size = 0.0
    kept = max((1 + OPTIMISERS[getattr(op.kind, "optimiser", "sgd")].state for op in updates), default=1)
    return DeviceStep(compute_s=compute_s, update_s=max(0.0, max(end_s) - compute_s), buckets=tuple(buckets),
                      server_passes=2.0 * kept * KEPT_BYTES / value_bytes)  # fmt: skip
