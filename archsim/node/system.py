"""A whole computer as a power meter sees it: what stands beside its devices, the file hwspecs/systems/<id>.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from archsim.base.errors import ArgumentError, InputError, nearest
from archsim.base.files import LIMITS, read_text
from archsim.base.schema import Form, Word, problems_of
from archsim.base.units import COUNT, TEXT
from archsim.device.device import Cpu, Device
from archsim.device.entry import Entry, read_table, values_of
from archsim.device.file import document
from archsim.device.part import Unit, declared, fraction, spec, whole
from archsim.node.shipped import found, names_in

FOLDER = "hwspecs/systems"
SERVER, DESKTOP, CARRIER, ADAPTER = "server", "desktop", "carrier_board", "single_board"  # the systems of devices with no other
LIMIT = Unit(unit="W", doc="power limit that the system's results at its best efficiency were measured with", low=1.0, high=1e5)
MOST_DEVICES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """The processors beside GPUs, and the memory of the computer. The memory of a module is inside its own boundary."""

    cpu: str | None = spec(TEXT, "the host CPU, an id of hwspecs; that of the device if not given", optional=True)
    sockets: float = whole("processors of that kind", high=1024)
    memory: float | None = spec("B", "memory of the host; none beside a module", low=1e6, high=1e15, optional=True)
    idle: float | None = spec("W", "package with clocks up and nothing running, where no spec has it", high=1e5, optional=True)
    tdp: float | None = spec("W", "package under load, where no spec has it", high=1e5, optional=True)
    cores: float | None = whole("cores of a package, where no spec has them", high=1e5, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherParts:
    """What else is fed: memory modules, main board, drives, network, switches between devices, fans."""

    per_gb: float | None = spec("W", "memory modules, for each GB", high=10.0, optional=True)
    base: float = spec("W", "main board and its controllers, drives, network cards, switches between devices", high=1e5)
    fans: float | None = spec(COUNT, "fans and converters on the boards, as a share of all other parts; as fitted if not given",
                              high=1.0, above=False, optional=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSupply:
    """The supplies that share the load: their rating together, and the efficiencies by load of their class."""

    rating: float = spec("W", "rated output of all supplies that share the load", low=1.0, high=1e7)
    at_10: float = fraction("efficiency at 10 % of the rating")
    at_20: float = fraction("efficiency at 20 % of the rating")
    at_50: float = fraction("efficiency at 50 % of the rating")
    at_100: float = fraction("efficiency at the rating")


TABLES: dict[str, type] = {"host": HostShare, "parts": OtherParts, "supply": PowerSupply}


class SystemHeaderForm(Form):
    """The keys before the first table.

    results: what MLPerf calls the system, as the names of its results begin; beside: CPUs that are usually in such a system
    """

    schema_: Literal[1] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9_]{2,40}$")]
    name: Word
    devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)]
    results: list[Word] = []
    beside: list[Word] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredSystem:
    """A computer with the provenance of its numbers.

    devices: accelerators in it, or 1 for a computer whose device is its CPU, module or board
    generic: it stands for many computers, none of which it describes
    limits: power limit of a device [W] by its id, with which its results for best efficiency were measured
    """

    path: str
    id: str
    name: str
    devices: int
    results: tuple[str, ...]
    beside: tuple[str, ...]
    host: HostShare
    parts: OtherParts
    supply: PowerSupply
    limits: Mapping[str, float]
    entries: Mapping[str, Entry]

    @property
    def generic(self) -> bool:
        """Whether it stands for many computers."""
        return not self.results

    @property
    def assumed(self) -> list[Entry]:
        """The values that nobody published."""
        return [entry for entry in self.entries.values() if entry.unpublished]


def names() -> tuple[str, ...]:
    """The identifiers of the shipped systems, sorted."""
    return names_in(FOLDER)


def find(name_or_path: str) -> PoweredSystem:
    """A shipped system, or that of a file. Raises UnknownName, MissingFile, or InputError with every problem of the file."""
    return found("system", name_or_path, FOLDER, load)


def asked(text: str) -> tuple[PoweredSystem, int]:
    """The system and the number of devices in it that `NAME` or `NAME:DEVICES` says.

    >>> system, devices = asked("server:4")
    >>> system.id, devices
    ('server', 4)
    """
    name, separator, count = text.rpartition(":")
    if not separator or not count.isdecimal():
        found = find(text)
        return found, found.devices
    if not (len(count) < 4 and 1 <= int(count) <= MOST_DEVICES):
        raise ArgumentError(f"system {text}: {count[:20]} devices; a system holds 1 to {MOST_DEVICES}")
    return find(name), int(count)


def usual(device: Device, host: Cpu | None, host_id: str) -> PoweredSystem:
    """The system that a device is taken to be in where nobody names one: by its boundary, and by the host CPU `host_id`."""
    boundary = device.power.boundary if host is None or device.power.boundary == "module" else host.power.boundary
    if boundary in ("module", "board"):
        return find(CARRIER if boundary == "module" else ADAPTER)
    return find(DESKTOP if host_id in find(DESKTOP).beside else SERVER)


def of_result(name: str) -> PoweredSystem | None:
    """The shipped system whose results MLPerf lists under `name`; None where no file describes it."""
    return next((system for system in map(find, names()) if name.startswith(system.results)), None)


def load(place: Path | Traversable) -> PoweredSystem:
    """Read one file."""
    path = str(place)
    words = document(read_text(place, LIMITS["node"].size), path, "node")
    plain = {key: value for key, value in words.items() if not isinstance(value, dict)}
    header, problems = problems_of(SystemHeaderForm, plain, "")
    sources = words.get("sources", {})
    tables = {key: value for key, value in words.items() if isinstance(value, dict) and key != "sources"}
    entries: dict[str, Entry] = {}
    for table, part in TABLES.items():
        content = tables.pop(table, {})
        known = {name: unit for name, (unit, _) in declared(part).items()}
        problems += [f"{table}.{name}: is missing ({unit.doc})" for name, (unit, needed) in declared(part).items()
                     if needed and name not in content]  # fmt: skip
        problems += read_table(table, content, known, sources, plain.get("id", ""), entries)
    limits = tables.pop("limits", {})
    problems += read_table("limits", limits, dict.fromkeys(limits, LIMIT), sources, plain.get("id", ""), entries)
    known_tables = [*TABLES, "limits", "sources"]
    problems += [f"[{name}]: no such table; nearest: {', '.join(nearest(name, known_tables) or known_tables)}" for name in tables]
    if problems or header is None:
        raise InputError(path, dict.fromkeys(problems))
    host = HostShare(**values_of("host", HostShare, entries))
    if host.cpu is None and None in (host.idle, host.tdp, host.cores) and (host.idle, host.tdp, host.cores) != (None, None, None):
        raise InputError(path, ["host: idle, tdp and cores belong together, in place of cpu"])
    return PoweredSystem(
        path=path, id=header.id, name=header.name, devices=header.devices, results=tuple(header.results),
        beside=tuple(header.beside), host=host, parts=OtherParts(**values_of("parts", OtherParts, entries)),
        supply=PowerSupply(**values_of("supply", PowerSupply, entries)), entries=entries,
        limits={key.removeprefix("limits."): float(entry.number) for key, entry in entries.items() if key.startswith("limits.")},
    )  # fmt: skip
