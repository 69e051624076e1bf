"""Options about money and about how long a device works, and what their texts become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from archsim.base.errors import ArchsimError

if TYPE_CHECKING:
    from archsim.study.price import Price
    from archsim.study.usage import Usage, Workload

YEARS = {"years": 1.0, "year": 1.0, "y": 1.0, "months": 1 / 12, "month": 1 / 12, "days": 1 / 365, "day": 1 / 365, "h": 1 / 8760}
LIFETIMES = (1 / 8760, 100.0)  # years of use that can be asked for
DUTIES = (1e-3, 1.0)
PUES = (1.0, 10.0)
MOST_SAMPLES, MOST_EPOCHS = 10**15, 10**6

OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("--price", "price_texts", multiple=True, metavar="DEVICE=PRICE",
                 help="What a device costs: gtx_1080=450USD to buy, h100=2.5USD/h to rent. Its launch price if not given."),
    click.option("--prices", "price_file", default=None, metavar="FILE",
                 help="A price list, CSV with the columns device, price, per_hour, source."),
    click.option("--exchange", "exchange_texts", multiple=True, metavar="CODE=USD",
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


def buying_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options about prices, use and the size of the work."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def exchange_from(given: dict[str, Any]) -> dict[str, float]:
    """Dollars for one unit of other currencies, taken out of `given`."""
    from archsim.cli.options import once, pair
    from archsim.study.price import exchange_rates

    texts = [pair(text, "--exchange", "EUR=1.08USD") for text in given.pop("exchange_texts")]
    rates: dict[str, float] = _said("--exchange", exchange_rates, once(texts, "--exchange"))
    return rates


def prices_from(given: dict[str, Any], compared: Sequence[str], exchange: Mapping[str, float]) -> dict[str, Price]:
    """The prices by id of the device, taken out of `given`: those of the file, then those of `--price`.

    compared: the devices that are compared; the price of another one is an error in `--price`, but may stand in a file.
    """
    from archsim.cli.options import pair
    from archsim.detect.selection import selected
    from archsim.estimation.request import find_device
    from archsim.study.price import merged, price_of
    from archsim.study.price_file import read_prices

    texts, file = given.pop("price_texts"), given.pop("price_file")
    ids = {name: find_device(name, None).identity.id for name in compared}

    def id_of(name: str) -> str:
        return ids[name] if name in ids else find_device(name, None).identity.id

    found = {} if file is None else read_prices(file, exchange, id_of)
    seen = set[tuple[str, str]]()
    for text in texts:
        name, amount = pair(text, "--price", "gtx_1080=450USD")
        key = "per_hour" if "/" in amount else "price"
        price = _said("--price", price_of, {key: amount}, "given", "--price", exchange)
        named = [identity for identity in map(id_of, selected([name])) if identity in ids.values()]
        if not named:
            raise click.BadParameter(f"{name} is not among the devices of --hw", param_hint="--price")
        for identity in named:
            if (identity, key) in seen:
                raise click.BadParameter(f"{identity} is given twice", param_hint="--price")
            seen.add((identity, key))
            found[identity] = merged(found.get(identity), price)
    return found


def usage_from(given: dict[str, Any], exchange: Mapping[str, float]) -> Usage:
    """How devices are used, taken out of `given`."""
    from archsim.study.price import money
    from archsim.study.usage import Usage

    lifetime, duty, electricity, pue = (given.pop(name) for name in ("lifetime", "duty", "electricity", "pue"))
    if pue is not None and electricity is None:
        raise click.UsageError("--pue needs --electricity, the price of what it multiplies")
    return Usage(
        lifetime_years=None if lifetime is None else _years(lifetime),
        duty=None if duty is None else _number(duty.removesuffix("%"), "--duty", DUTIES, 0.01 if duty.endswith("%") else 1.0),
        electricity=None if electricity is None else _said("--electricity", money, electricity, "kWh", exchange),
        pue=None if pue is None else _number(pue, "--pue", PUES),
    )  # fmt: skip


def workload_from(given: dict[str, Any], task: str) -> Workload | None:
    """The size of the work, taken out of `given`; None where nothing was said."""
    from archsim.study.usage import TRAINING, Workload

    samples, epochs = given.pop("samples"), given.pop("epochs")
    if samples is None and epochs is None:
        return None
    if samples is None:
        raise click.UsageError("--epochs needs --samples, the size of the data set")
    if epochs is not None and task not in TRAINING:
        raise click.UsageError(f"--epochs goes with --task {' or '.join(TRAINING)}, not with {task}")
    return Workload(samples=_count(samples, "--samples", MOST_SAMPLES), epochs=_count(epochs or "1", "--epochs", MOST_EPOCHS))


def _years(text: str) -> float:
    import re

    match = re.fullmatch(r"\s*([-+.eE\d]+)\s*([a-z]+)\s*", text)
    if match is None or match[2] not in YEARS:
        raise click.BadParameter(f"{text!r} is not a time like 3years or 18months", param_hint="--lifetime")
    return _number(match[1], "--lifetime", LIFETIMES, YEARS[match[2]], " years")


def _number(text: str, option: str, bounds: tuple[float, float], scale: float = 1.0, unit: str = "") -> float:
    """A number that lies within bounds after scaling; never one that is not finite."""
    from archsim.base.units import COUNT, parse

    try:
        value = parse(text, COUNT) * scale
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number", param_hint=option) from None
    if not bounds[0] <= value <= bounds[1]:
        raise click.BadParameter(f"{text} is not between {bounds[0]:.3g} and {bounds[1]:g}{unit}", param_hint=option)
    return value


def _count(text: str, option: str, most: int) -> int:
    """A whole number from 1 on; `1.28e6` is one too."""
    value = _number(text, option, (1, most))
    if value != int(value):
        raise click.BadParameter(f"{text} is not a whole number", param_hint=option)
    return int(value)


def _said(option: str, read: Callable[..., Any], *words: Any) -> Any:
    """What `read` makes of the words; its error names the option."""
    try:
        return read(*words)
    except ArchsimError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
