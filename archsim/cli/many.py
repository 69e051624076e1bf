"""What `sweep` and `search` share: the knobs that vary, and asking before very many points are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archsim.base.arguments import chosen
from archsim.cli.progress import duration
from archsim.cli.vocabulary import Keyed, together

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.study.space import Space

KNOBS = chosen(lambda row: row.varies and row.group != "place")  # beside the keys of a device
ROW_BYTES = 150  # of a point in the file of a sweep


space_options = together(
    click.option("--vary", type=Keyed(*KNOBS), multiple=True, metavar="KEY=VALUES",
                 help="A knob and its values: FROM:TO:STEP, FROM:TO:x2, FROM:TO:50log, FROM:TO:20lin, or a list. Knobs are the "
                      f"keys that `archsim show hw` prints, and {', '.join(KNOBS)}."),
    click.option("--link", multiple=True, metavar="KEY=KNOB[^E]",
                 help="Let a value follow a knob: l2.bandwidth=sm.count in proportion, power.tdp=clock^3 to a power."),
    click.option("--sample", type=click.IntRange(min=1), metavar="N",
                 help="N points of a Latin hypercube instead of the whole grid."),
    click.option("--yes", is_flag=True, help="Go on even with a very large number of points."),
)  # fmt: skip


def ask_about(space: Space, request: Request, yes: bool, many: int, stored: bool = False) -> None:
    """Refuse `many` points and more without --yes, with the time that they would take, and the size of their file if `stored`."""
    if space.count < many or yes:
        return
    from archsim.study.sweep import points_per_second

    rate = points_per_second(space, request)
    size = f" and {space.count * ROW_BYTES / 1e9:,.1f} GB" if stored else ""
    raise click.UsageError(f"{space.count:,} points would take about {duration(space.count / rate)} on one core{size}; "
                           "--sample N takes some of them, --yes goes on")  # fmt: skip
