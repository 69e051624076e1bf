"""What silicon takes and costs: the file `hwspecs/silicon/silicon.toml`, every number with its source."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import data_folder, read_text

PLACE = "silicon/silicon.toml"
SIZE_LIMIT = 1 << 18
KINDS = ("datasheet", "derived", "assumed", "fitted")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessNode:
    """A process node: `density` of transistors in whole GPUs [1/mm2], SRAM `cell` [um2], `wafer` [USD], `defects` [1/cm2]."""

    name: str
    density: float
    cell: float
    wafer: float
    defects: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Die:
    """A published die: the spec that holds its area, and units that no shipped card has all of; None: as the spec says."""

    name: str
    spec: str
    sms: int | None
    l2_mib: float | None
    pins: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """Areas of parts at the `reference` node [mm2] (storage: over that of its cells), nodes, and wafers."""

    reference: str
    fp32: float
    fp64: float
    tensor: float
    sm_storage: float
    l2_storage: float
    gddr: float
    hbm: float
    rest: float
    diameter: float  # of a wafer [mm]
    cluster: float  # of the defects, in the negative binomial
    nodes: Mapping[str, ProcessNode]
    dies: tuple[Die, ...]

    def node(self, size: float) -> ProcessNode:
        """The node of a feature size [m]. Raises Unsupported for one whose figures the file does not have."""
        name = f"{size * 1e9:.0f}nm"
        if name not in self.nodes:
            raise Unsupported(f"area: nothing is known of {name}; these nodes are: {', '.join(self.nodes)}")
        return self.nodes[name]


@cache
def silicon() -> Silicon:
    """The shipped figures."""
    place = data_folder("hwspecs").joinpath(*PLACE.split("/"))
    return loads(read_text(place, SIZE_LIMIT), str(place))


def loads(text: str, path: str) -> Silicon:
    """The figures that `text` holds. Raises InputError with every problem, each beginning with its key."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(path, f"is not valid TOML: {error}") from None
    problems: list[str] = []
    sources = document.get("sources", {})

    def of(table: str, name: str, content: Any) -> Any:
        entry = content.get(name) if isinstance(content, dict) else None
        key = f"{table}.{name}"
        if not isinstance(entry, dict) or not {"value", "source", "kind"} <= entry.keys():
            problems.append(f"{key}: is missing, or lacks value, source or kind")
            return math.nan
        if entry["kind"] not in KINDS:
            problems.append(f"{key}: kind {entry['kind']!r} is not one of {', '.join(KINDS)}")
        if entry["kind"] == "assumed" and not entry.get("note"):
            problems.append(f"{key}: an assumed value needs a note that says why")
        if " " not in str(sources.get(entry["source"], entry["source"])):
            problems.append(f"{key}: source {entry['source']!r} is not in [sources]")
        value = entry["value"]
        if not isinstance(value, str) and not (isinstance(value, int | float) and 0 < value < math.inf):
            problems.append(f"{key}: must be a number above 0")
        return value

    nodes = {}
    for name, content in document.get("nodes", {}).items():
        read = [of(f"nodes.{name}", key, content) for key in ("transistors_per_mm2", "cell_um2", "wafer_usd", "defects_per_cm2")]
        nodes[name] = ProcessNode(name=name, density=read[0], cell=read[1], wafer=read[2], defects=read[3])
    parts, wafer = document.get("parts"), document.get("wafer")
    areas = {name: of("parts", f"{name}_mm2", parts) for name in ("fp32", "fp64", "tensor", "gddr", "hbm", "rest")}
    storage = {name: of("parts", name, parts) for name in ("sm_storage", "l2_storage")}
    dies = tuple(
        Die(name=name, spec=row["spec"], sms=row.get("sms"), l2_mib=row.get("l2_mib"), pins=row.get("pins"))
        for name, row in document.get("dies", {}).items()
    )
    reference = of("parts", "reference_node", parts)
    if reference not in nodes:
        problems.append(f"parts.reference_node: {reference!r} is not one of the nodes")
    found = Silicon(
        reference=str(reference), **areas, **storage, diameter=of("wafer", "diameter_mm", wafer),
        cluster=of("wafer", "cluster", wafer), nodes=nodes, dies=dies,
    )  # fmt: skip
    if problems:
        raise InputError(path, problems)
    return found
