"""Small kernels, one after the other: what a launch costs besides its work."""

from __future__ import annotations

from math import ceil

from archsim.base.errors import Unsupported
from archsim.cycle.element_wise import element_wise
from archsim.cycle.kernels import Grid, kernel_clocks
from archsim.cycle.machine import machine_of
from archsim.cycle.program import Source
from archsim.cycle.reuse import missing
from archsim.cycle.run import prepared
from archsim.device.device import Gpu
from archsim.evidence.pattern import AccessPattern


def repeated(device: Gpu, clock: float, p: AccessPattern) -> float:
    """gpu-small-kernels [B/s]: kernels that scale an array into another one and back, each after the gap of the device.

    Raises Unsupported for graphs and kernels that wait on each other by themselves: no key says what their gap is.
    """
    if p.variant != "plain" or "n" not in p.words:
        raise Unsupported(f"{p.kernel} by {p.variant}: only plain launches of arrays of one dimension have a gap and a program")
    ctas, sms = int(p.words["n"]) // p.threads + 1, int(float(device.sm.count))
    machine = machine_of(device, clock, sharing=ctas / ceil(ctas / sms))
    source = Source(past_l2=missing(p.size, float(device.l2.size)))
    program = element_wise(machine, lane_bytes=p.element, threads=p.threads, registers=16, sources=(source,))
    clocks = kernel_clocks(prepared(machine, program), Grid(ctas=ctas, sms=sms), {})
    return p.size / (clocks / clock + float(device.launch.latency))
