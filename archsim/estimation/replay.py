"""Whether a run can be replayed as a CUDA graph, or its ops overlap on several streams."""

from __future__ import annotations

from archsim.base.errors import ArgumentError, Unsupported
from archsim.device.device import Device, Gpu
from archsim.estimation.fidelity import find as find_fidelity
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack

MOST_STREAMS = 128  # grids that run at once on any NVIDIA GPU (CUDA programming guide, compute capabilities)


def check_graph(device: Device, stack: Stack, fidelity: str) -> None:
    """Refuse a graph that device, stack or fidelity cannot replay: ArgumentError, Unsupported."""
    if not isinstance(device, Gpu):
        raise ArgumentError(f"graph: graphs are launched on a GPU; a {device.kind.upper()} has none")
    if not stack.graphs:
        able = ", ".join(name for name in stacks.names() if stacks.find(name).graphs)
        raise Unsupported(f"graph: stack {stack.id} does not replay CUDA graphs; these do: {able}")
    if not find_fidelity(fidelity).overheads:
        raise ArgumentError(f"graph: the {fidelity} model has no launches that a graph would save")


def check_streams(device: Device, stack: Stack, fidelity: str, streams: int) -> None:
    """Refuse streams that device, stack or fidelity do not have: ArgumentError, Unsupported."""
    if not 1 <= streams <= MOST_STREAMS:
        raise ArgumentError(f"streams {streams} is not between 1 and {MOST_STREAMS}")
    if not isinstance(device, Gpu):
        raise ArgumentError(f"streams belong to a GPU; a {device.kind.upper()} works on one op at a time")
    if not find_fidelity(fidelity).events:
        raise ArgumentError(f"streams {streams}: the {fidelity} model runs one op after the other; add --fidelity event")
    if stack.waits:
        raise Unsupported(f"streams {streams}: stack {stack.id} waits for each op, so that none overlap")
