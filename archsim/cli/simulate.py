"""`archsim simulate`: the group of simulations."""

from __future__ import annotations

import importlib
from typing import Any

import click

from archsim.cli.terminal import color_option

SIMULATIONS = {
    "serve": ("archsim.cli.simulate_serve", "A server with a queue and dynamic batching: latency percentiles."),
    "train": ("archsim.cli.simulate_train", "Data-parallel training on the devices of a node: the scaling curve."),
    "sm": ("archsim.cli.simulate_sm", "One SM that runs a kernel, clock by clock: issue, stalls, bandwidth."),
    "core": ("archsim.cli.simulate_core", "One core of a CPU that runs a loop, clock by clock: ports, chains, what binds."),
    "kernels": ("archsim.cli.simulate_kernels", "Random kernels by the closed form and by the cycle model."),
    "allreduce": ("archsim.cli.simulate_allreduce", "A ring all-reduce on the links of a node."),
}


class Simulations(click.Group):
    """A group whose simulations are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(SIMULATIONS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the simulation."""
        if cmd_name not in SIMULATIONS:
            return None
        found: click.Command = importlib.import_module(SIMULATIONS[cmd_name][0]).command
        return color_option(found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing every simulation for its help."""
        with formatter.section("Simulations"):
            formatter.write_dl([(name, text) for name, (_, text) in SIMULATIONS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest simulation when there is no such one."""
        from archsim.base.errors import nearest

        if args and args[0] not in SIMULATIONS and not args[0].startswith("-"):
            near = nearest(args[0], SIMULATIONS) or list(SIMULATIONS)
            raise click.UsageError(f"no simulation {args[0]!r}; nearest: {', '.join(near)}", ctx)
        return super().resolve_command(ctx, args)


@click.command("simulate", cls=Simulations)
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
