"""Whether networks fit the memory before anything is built: a process that takes too much is killed without a word."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.errors import Unsupported
from archsim.base.units import show_capacity
from archsim.detect.catalog import find
from archsim.detect.system import Told
from archsim.estimation.memory import USABLE, footprint
from archsim.measure import onnx_session
from archsim.measure.run import bound
from archsim.stack import catalog as stacks
from archsim.trace.formats import Sizes

ELEMENT = 4  # B, networks are measured in fp32


def needed_bytes(net: str, batch: int, stack: str, seq_len: int | None = None, sizes: Sizes = ()) -> float:
    """Memory that a network takes while it is built and runs in fp32 [B]: parameters, activations, and what the stack takes.

    onnxruntime holds the parameters twice: as they were handed over, and packed for its products.
    """
    chosen = stacks.find(stack)
    found = footprint(bound(chosen.variants.get(net, net), batch, seq_len, sizes), ELEMENT, 0.0, chosen.reserved)
    return found.total + (found.parameters if stack == onnx_session.STACK else 0.0)


def check_memory(
    networks: Sequence[str], batches: Sequence[int], stack: str, room: Told | None, seq_len: int | None = None,
    sizes: Sizes = (),
) -> None:  # fmt: skip
    """Raise Unsupported for a network that takes more than the `room`, the memory that is left [B]; None where nobody tells."""
    if room is None:
        return
    for net in networks:
        for batch in batches:
            needed = needed_bytes(net, batch, stack, seq_len, sizes)
            if needed > room.value:
                takes, left = show_capacity(needed, 3), show_capacity(room.value, 3)
                raise Unsupported(f"{net}, batch {batch}: takes about {takes} of memory, and there are {left} ({room.source}); "
                                  "leave it out, or take a smaller batch")  # fmt: skip


def memory_of(hw: str) -> Told:
    """The memory of a device that networks can use [B]."""
    return Told(value=USABLE * float(find(hw).device.memory.capacity), source=f"the memory of {hw}")
