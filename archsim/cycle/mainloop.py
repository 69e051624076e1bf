"""The loop of one product on one SM: a single CTA, whose stages and tile a benchmark varies."""

from __future__ import annotations

from dataclasses import replace

from archsim.base.errors import Unsupported
from archsim.cycle.kernels import Grid, kernel_clocks
from archsim.cycle.machine import Machine, farther, machine_of
from archsim.cycle.product import TiledProduct
from archsim.cycle.program import Source
from archsim.cycle.run import prepared
from archsim.cycle.tensor import on_tensor_cores
from archsim.device.device import Gpu
from archsim.evidence.pattern import ProductPattern

BARRIERS = 16  # B of a stage besides its data: one barrier for full and one for empty (CUTLASS, StageCountAuto)
REGISTERS = 128  # of a thread; a single CTA has room


def mainloop(device: Gpu, clock: float, p: ProductPattern, precision: str) -> float:
    """Time of a launch [s] that is repeated at once, so that its operands are where they were left: in the L2, if they fit.

    Raises Unsupported for a device without tensor cores in this precision.
    """
    if not device.has_tensor(precision):
        raise Unsupported(f"{device.identity.id} has no tensor cores for {precision}")
    machine = machine_of(device, clock, tensor_rate=float(device.pipe(precision)), sharing=1)
    machine, source = placed(device, machine, (p.m + p.n) * p.k * p.operand)
    stage = (p.m + p.n) * p.tile_k * p.operand
    stages = p.stages or max(2, int(float(device.sm.shared_memory_cta) // (stage + BARRIERS)))
    tile = TiledProduct(m=p.m, n=p.n, k=p.tile_k, threads=256, registers=REGISTERS, shared=stage * stages, depth=p.k,
                        operand=p.operand, a=source, b=source, stages=stages)  # fmt: skip
    clocks = kernel_clocks(prepared(machine, on_tensor_cores(machine, tile)), Grid(ctas=1, sms=1), {})
    return clocks / clock + float(device.launch.latency)


def placed(device: Gpu, machine: Machine, size: float) -> tuple[Machine, Source]:
    """Where a set of `size` bytes is that is read again and again: each half of a split L2 keeps its own copies."""
    beyond = 0.0 if size <= float(device.l2.size) else 1.0
    return replace(machine, l2=machine.l2 + farther(device, size)), Source(past_l2=beyond)
