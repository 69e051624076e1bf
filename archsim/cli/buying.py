"""Options about money, about how long a device works, and about the size of the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archsim.cli.types import together

if TYPE_CHECKING:
    from archsim.study.price import Price
    from archsim.study.usage import Usage, Workload

buying_options = together(
    click.option("--price", multiple=True, metavar="DEVICE=PRICE",
                 help="What a device costs: gtx_1080=450USD to buy, h100=2.5USD/h to rent. Its launch price if not given."),
    click.option("--prices", type=click.Path(), default=None, metavar="FILE",
                 help="A price list, CSV with the columns device, price, per_hour, source."),
    click.option("--exchange", multiple=True, metavar="CODE=USD",
                 help="What a unit of another currency is worth: EUR=1.08USD."),
    click.option("--lifetime", default=None, metavar="TIME",
                 help="Time after which a device that was bought is worth nothing; 3years if not given."),
    click.option("--duty", default=None, metavar="SHARE", help="Share of that time in which it works; 1 if not given."),
    click.option("--electricity", default=None, metavar="PRICE",
                 help="Price of electricity, like 0.25USD/kWh; not counted if not given."),
    click.option("--pue", default=None, metavar="FACTOR",
                 help="Energy of the room / energy of the devices, at least 1; 1 if not given."),
    click.option("--samples", default=None, metavar="N", help="Time, energy and cost of a data set of this size."),
    click.option("--epochs", default=None, metavar="N", help="The same for training this many times over the data set."),
)  # fmt: skip


def buying_from(given: dict[str, Any], compared: Sequence[str]) -> tuple[dict[str, Price], Usage, Workload | None]:
    """Prices by id of the device, the use, and the size of the work, taken out of `given`."""
    from archsim.cli.options import once, pair
    from archsim.study.buying import device_prices, usage_of, workload_of

    said = [pair(text, "--price", "gtx_1080=450USD") for text in given.pop("price")]
    rates = once([pair(text, "--exchange", "EUR=1.08USD") for text in given.pop("exchange")], "--exchange")
    usage = {name: given.pop(name) for name in ("lifetime", "duty", "electricity", "pue")}
    return (
        device_prices(said, given.pop("prices"), compared, rates), usage_of(**usage, exchange=rates),
        workload_of(given.pop("samples"), given.pop("epochs"), given["task"]),
    )  # fmt: skip
