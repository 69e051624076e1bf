"""One published measurement of a network, and the rows that belong to one cell."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from archsim.files import data_folder

FOLDER = "reports/published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured time [s], rate [1/s], power [W] or energy [J] of a network on a device with a stack."""

    source: str
    network: str
    hardware: str
    stack: str
    task: str
    batch: int
    precision: str
    threads: int | None
    devices: int
    clock_hz: float | None
    metric: str
    value: float
    split: str


def rows_of(network: str, hardware: str) -> Iterator[Measurement]:
    """The shipped measurements of one network on one device.

    The file is scanned as text first: an estimate must not pay for parsing rows that it will not show.
    """
    lines = _lines()
    needle = f",{network},{hardware},"
    for row in csv.DictReader([lines[0], *(line for line in lines if needle in line)]):
        yield Measurement(
            source=row["source"], network=row["network"], hardware=row["hardware"], stack=row["stack"], task=row["task"],
            batch=int(row["batch"]), precision=row["precision"],
            threads=int(row["threads"]) if row["threads"].isdigit() else None,
            devices=int(row["devices"] or 1),
            clock_hz=float(row["clock_mhz"]) * 1e6 if row["clock_mhz"] else None,
            metric=row["metric"], value=float(row["value"]), split=row["split"],
        )  # fmt: skip


@cache
def _lines() -> tuple[str, ...]:
    place = data_folder(FOLDER).joinpath("networks.csv")
    return tuple(place.read_text("utf-8").splitlines())


@cache
def citations() -> dict[str, str]:
    """Source id -> short citation."""
    document = tomllib.loads(data_folder(FOLDER).joinpath("sources.toml").read_text("utf-8"))
    return {name: entry["citation"] for name, entry in document.items()}
