"""What of a device's training step the others wait for: its gradients, in buckets that are exchanged one by one."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.schedule.training import DeviceStep
from archsim.trace.kind import UPDATE
from archsim.trace.trace import BoundOp

VALUE = 4.0  # B of a gradient that is exchanged: fp32, whatever the layers compute in
BUCKET = 25e6  # B of gradients that are exchanged together (Li et al. 2020, PyTorch Distributed, section 4.2)


def step_of(ops: Sequence[BoundOp], end_s: Sequence[float], bucket_bytes: float = BUCKET) -> DeviceStep:
    """The step of one device whose ops end at `end_s` [s]: gradients fill buckets in the order in which they are computed."""
    position = {op.name: i for i, op in enumerate(ops)}
    updates = [op for op in ops if op.phase == UPDATE]
    compute_s = max(end_s[i] for i, op in enumerate(ops) if op.phase != UPDATE)
    ready = sorted((max(end_s[position[name]] for name in op.inputs if name in position), VALUE * op.shape[0]) for op in updates)
    buckets, size = [], 0.0
    for i, (time, values) in enumerate(ready):
        size += values
        if size >= bucket_bytes or i + 1 == len(ready):
            buckets.append((min(time, compute_s), size))
            size = 0.0
    return DeviceStep(compute_s=compute_s, update_s=max(0.0, max(end_s) - compute_s), buckets=tuple(buckets))
