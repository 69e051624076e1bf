"""One published measurement of a network, and the rows that belong to one cell."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from archsim.corpus.shipped import FOLDER, shipped_files
from archsim.files import data_folder


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

    The files are scanned as text first: an estimate must not pay for parsing rows that it will not show.
    """
    for lines in _network_files():
        near = [line for line in lines[1:] if network in line and hardware in line]
        for row in csv.DictReader([lines[0], *near]):
            if (row["network"], row["hardware"]) == (network, hardware) and not row.get("op"):
                yield _measurement(row)


def _measurement(row: dict[str, str]) -> Measurement:
    threads, clock = row.get("threads") or "", row.get("clock_mhz")
    return Measurement(
        source=row["source"], network=row["network"], hardware=row["hardware"], stack=row["stack"], task=row["task"],
        batch=int(row["batch"]), precision=row["precision"], threads=int(threads) if threads.isdigit() else None,
        devices=int(row.get("devices") or 1), clock_hz=float(clock) * 1e6 if clock else None, metric=row["metric"],
        value=float(row["value"]), split=row.get("split") or "",
    )  # fmt: skip


@cache
def _network_files() -> tuple[tuple[str, ...], ...]:
    """The lines of every file of whole networks, told by its header; other files are read no further than that."""
    found = []
    for file in shipped_files():
        if file.name.endswith(".csv"):
            with file.open("r", encoding="utf-8-sig") as stream:
                head = stream.readline()
                if {"network", "stack", "task", "metric", "value"} <= set(head.strip().split(",")):
                    found.append((head, *stream))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a source's script does besides the task that it names.

    `forward`: its forward pass runs as in training. `input_gradient`: the networks or frameworks for which its backward
    pass computes the gradient of the network's input too. `not_fitted`: kinds of device whose rows leave out something that
    matters (say, the number of threads), so that no constant may be fitted to them.
    """

    forward: bool = False
    input_gradient: tuple[str, ...] = ()
    not_fitted: tuple[str, ...] = ()

    def task(self, task: str) -> str:
        """The task as it really ran."""
        return "forward" if task == "inference" and self.forward else task

    def of_inputs(self, network: str, framework: str) -> bool:
        """Whether the gradient of the input was computed."""
        return network in self.input_gradient or framework in self.input_gradient


@cache
def protocol(source: str) -> Protocol:
    """The protocol of a source; a plain one for a source that is not described."""
    entry = _sources().get(source, {})
    return Protocol(
        forward=entry.get("forward") == "training", input_gradient=tuple(entry.get("input_gradient", ())),
        not_fitted=tuple(entry.get("not_fitted", ())),
    )  # fmt: skip


@cache
def citations() -> dict[str, str]:
    """Source id -> short citation."""
    return {name: entry["citation"] for name, entry in _sources().items()}


@cache
def _sources() -> dict[str, Any]:
    return tomllib.loads(data_folder(FOLDER).joinpath("sources.toml").read_text("utf-8"))
