"""What is not modelled of a request on a TPU: one clear line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from archsim.base.errors import ArgumentError, Unsupported
from archsim.device.device import Tpu
from archsim.lower.kernel import Kernels
from archsim.trace.trace import BoundTrace

FOR_OTHERS = {  # option -> why a TPU has none
    "threads": "threads belong to a CPU; a TPU has none to set",
    "power_limit": "power limits are not modelled of a TPU: nobody has published how its clock or its voltage follow one",
}
BETWEEN_ACTIVATIONS = ("matmul", "attention", "latent_attention")  # no operand is weights


def checked_tpu(
    device: Tpu, task: str, trace: BoundTrace, precision: str | None, asked: Mapping[str, object], notes: Sequence[str]
) -> tuple[str, list[str]]:
    """The precision of a request on a TPU, that of its cells where nobody asks for one, and the `notes` with what is said of it.

    asked: the arguments of `make_request`

    Raises ArgumentError for options of other devices; Unsupported for training, and for a product of two activations on a TPU
    that has weights from its memory alone (`fifo`).
    """
    for option, why in FOR_OTHERS.items():
        if asked.get(option) is not None:
            raise (ArgumentError if option == "threads" else Unsupported)(why)
    name = device.identity.id
    if task != "inference":
        able = "runs inference alone" if device.fifo is not None else "trains, but training is not modelled: no row is measured"
        raise Unsupported(f"task {task}: {name} {able}; --task inference is modelled")
    held = next((op for op in trace.ops if op.kind.op in BETWEEN_ACTIVATIONS), None)
    if device.fifo is not None and held is not None:
        raise Unsupported(f"network {trace.name}: op {held.name} ({held.kind.op}) multiplies two activations, and {name} takes "
                          "one factor of each product from its weight memory, which programs do not write; "
                          "tpu_v2 and later multiply them")  # fmt: skip
    if precision is not None:
        return precision, list(notes)
    own = device.precisions[0]
    return own, [*notes, f"precision {own}: what the cells of {name} multiply; --precision sets another"]


def spilled(device: Tpu, kernels: Kernels) -> list[str]:
    """A warning where activations stay in the buffer from op to op and those of an op do not fit into it."""
    if not np.all(np.asarray(device.buffer.resident) > 0):
        return []
    needed, size = kernels.b_bytes + kernels.c_bytes, float(np.ravel(device.buffer.size)[0])
    over = int(np.count_nonzero(needed > size))
    if not over:
        return []
    return [f"{over} of {needed.size} kernels have more activations than the buffer holds, {needed.max() / 2**20:.3g} MiB of "
            f"{size / 2**20:.3g} MiB at most: what is over goes through memory, of which no measurement is known"]  # fmt: skip
