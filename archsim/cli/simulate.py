"""`archsim simulate`: the group of simulations."""

from __future__ import annotations

import click

from archsim.cli.main import LazyGroup

SIMULATIONS = {
    "serve": "A server with a queue and dynamic batching: latency percentiles.",
    "train": "Data-parallel training on the devices of a node: the scaling curve.",
    "sm": "One SM that runs a kernel, clock by clock: issue, stalls, bandwidth.",
    "core": "One core of a CPU that runs a loop, clock by clock: ports, chains, what binds.",
    "kernels": "Random kernels by the closed form and by the cycle model.",
    "allreduce": "A ring all-reduce on the links of a node.",
}


@click.command("simulate", cls=LazyGroup, rows=SIMULATIONS, noun="simulation", prefix="simulate_")
def command() -> None:
    """Simulate serving, training on several devices, an all-reduce, one SM or one core: queues, links, instructions.

    \b
    Examples:
      archsim simulate serve --net resnet_50 --hw tesla_t4 --rate 200/s --batching max=32,wait=5ms
      archsim simulate train --net resnet_50 --hw tesla_v100_sxm2 --devices 1,2,4,8
      archsim simulate sm --hw gtx_1080 --kernel "gemm 128x128x8 threads=256" --k 512
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2"
      archsim simulate allreduce --node deepbench_8gpu --devices 2,4,8 --bytes 100MB
    """
