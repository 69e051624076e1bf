"""Areas and costs of dies: the file `hwspecs/silicon/silicon.toml`, every number with its source."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from archsim.base.errors import Unsupported, refuse
from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.toml import parsed

PLACE = "silicon/silicon.toml"
KINDS = ("datasheet", "derived", "assumed", "fitted")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessNode:
    """A process node.

    density: transistors of a whole GPU per area [1/mm2]; cell: area of an SRAM bit cell [um2]
    wafer: price of a processed wafer [USD]; defects: density of defects [1/cm2]
    """

    name: str
    density: float
    cell: float
    wafer: float
    defects: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFamily:
    """A family of memory.

    rate: usual transfer rate of a pin [bit/s], and its source; energy: FAMILY of the constant `energy.byte.FAMILY`
    stacked: whether it is stacked beside the chip, with small pins
    """

    name: str
    rate: float
    source: str
    energy: str
    stacked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Die:
    """A published die, whose area the spec named by `spec` has.

    sms, l2_mib, pins: SMs, L2 [MiB] and memory pins of the whole die where no card has all of them enabled; None: as the spec
    """

    name: str
    spec: str
    sms: int | None
    l2_mib: float | None
    pins: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """The constants of the area model.

    reference: the process node at which areas are given
    fp32, fp64, tensor, gddr, hbm, rest: area of a lane, a tensor core, a memory interface, the rest of the die [mm2]
    control: share of that of an fp32 lane that goes with the scheduler that feeds it [1]
    sm_storage, l2_storage: area of storage over that of its bit cells
    field: largest area that one exposure covers, and so one die has [mm2]
    diameter: of a wafer [mm]; cluster: clustering of defects in the negative binomial yield model
    nodes, memory, dies: process nodes and families of memory by name, published dies
    turnaround: by family, the share of its time that a memory which copies loses to turning its bus
    """

    reference: str
    fp32: float
    control: float
    fp64: float
    tensor: float
    sm_storage: float
    l2_storage: float
    gddr: float
    hbm: float
    rest: float
    field: float
    diameter: float
    cluster: float
    nodes: Mapping[str, ProcessNode]
    memory: Mapping[str, MemoryFamily]
    dies: tuple[Die, ...]
    turnaround: Mapping[str, float]

    def node(self, size: float) -> ProcessNode:
        """The process node of a feature size [m]. Raises Unsupported for one whose figures the file does not have.

        >>> silicon().node(16e-9).name
        '16nm'
        """
        name = f"{size * 1e9:.0f}nm"
        if name not in self.nodes:
            raise Unsupported(f"area: nothing is known of {name}; these nodes are: {', '.join(self.nodes)}")
        return self.nodes[name]

    def family(self, written: str) -> MemoryFamily | None:
        """The family of a memory that a spec describes, `LPDDR4X-4266 (shared with the CPU)`; None for an unknown one.

        >>> silicon().family("HBM2e").name, silicon().family("DDR4-3200").rate, silicon().family("HBM9")
        ('HBM2E', 3200000000.0, None)
        """
        return self.memory.get(re.split(r"[^0-9A-Z]", written.upper(), maxsplit=1)[0])


@cache
def silicon() -> Silicon:
    """The constants that are shipped."""
    place = data_folder("hwspecs").joinpath(*PLACE.split("/"))
    return loads(read_text(place, LIMITS["silicon"].size), str(place))


def loads(text: str, path: str) -> Silicon:
    """The constants that `text` holds. Raises InputError with every problem, each beginning with its key."""
    document = parsed(text, path, "silicon")
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
    families = document.get("memory", {})
    memory = {
        name: MemoryFamily(name=name, rate=of("memory", name, families), source=sources.get(row["source"], row["source"]),
                           energy=row["energy"], stacked=row["stacked"]) for name, row in families.items()
    }  # fmt: skip
    parts, wafer, scanner = (document.get(name) for name in ("parts", "wafer", "scanner"))
    areas = {name: of("parts", f"{name}_mm2", parts) for name in ("fp32", "fp64", "tensor", "gddr", "hbm", "rest")}
    storage = {name: of("parts", name, parts) for name in ("control", "sm_storage", "l2_storage")}
    dies = tuple(
        Die(name=name, spec=row["spec"], sms=row.get("sms"), l2_mib=row.get("l2_mib"), pins=row.get("pins"))
        for name, row in document.get("dies", {}).items()
    )
    reference = of("parts", "reference_node", parts)
    if reference not in nodes:
        problems.append(f"parts.reference_node: {reference!r} is not one of the nodes")
    found = Silicon(
        reference=str(reference), **areas, **storage, field=of("scanner", "field_mm2", scanner),
        diameter=of("wafer", "diameter_mm", wafer),
        cluster=of("wafer", "cluster", wafer), nodes=nodes, memory=memory, dies=dies,
        turnaround={name: of("turnaround", name, document["turnaround"]) for name in document.get("turnaround", {})},
    )  # fmt: skip
    refuse(path, problems)
    return found
