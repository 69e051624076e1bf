"""What `sweep` and `search` share: the knobs that vary, and asking before very many points are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archsim.base.arguments import chosen
from archsim.cli.progress import duration
from archsim.cli.types import Decorator, Keyed

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.study.space import Space

KNOBS = chosen(lambda row: row.varies and row.group != "place")  # beside the keys of a device
ROW_BYTES = 150  # of a point in the file of a sweep


def vary_option(text: str) -> Decorator:
    """`--vary KEY=VALUES`: what varies, and over which values."""
    said = f"{text} Knobs are the keys that `archsim show hw` prints, and {', '.join(KNOBS)}."
    return click.option("--vary", type=Keyed(*KNOBS), multiple=True, metavar="KEY=VALUES", help=said)


def ask_about(space: Space, request: Request, yes: bool, many: int, stored: bool = False) -> None:
    """Refuse `many` points and more without --yes, with the time that they would take, and the size of their file if `stored`."""
    if space.count < many or yes:
        return
    from archsim.study.sweep import points_per_second

    rate = points_per_second(space, request)
    size = f" and {space.count * ROW_BYTES / 1e9:,.1f} GB" if stored else ""
    raise click.UsageError(f"{space.count:,} points would take about {duration(space.count / rate)} on one core{size}; "
                           "--sample N takes some of them, --yes goes on")  # fmt: skip
