"""What is not modelled of a request on a TPU: one clear line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archsim.base.errors import ArgumentError, Unsupported
from archsim.device.device import Tpu
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
