"""The file of a node, hwspecs/hosts/<id>.toml: its host CPU, disk and links, every value with unit, source and kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from archsim.base.errors import ArchsimError, ArgumentError, InputError, Unsupported, nearest
from archsim.base.files import LIMITS, read_text
from archsim.base.schema import Form, Word, problems_of
from archsim.device import catalog
from archsim.device.device import Cpu
from archsim.device.entry import Entry, read_table, values_of
from archsim.device.file import document
from archsim.device.part import declared
from archsim.node.node import SERVER, TABLES, LinkKind, Node
from archsim.node.shipped import found, names_in

FOLDER = "hwspecs/hosts"
FABRIC = "fabric"  # the one switch that all boxes of a cluster share

class NodeHeaderForm(Form):
    """The keys before the first table."""

    schema_: Literal[1] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9_]{2,40}$")]
    name: Word
    devices: Annotated[int, Field(ge=1, le=64)]
    boxes: Annotated[int, Field(ge=1, le=64)] = 1
    holds: Word | None = None
    takes: list[Word] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A node with the provenance of its numbers."""

    path: str
    node: Node
    entries: Mapping[str, Entry]

    @property
    def assumed(self) -> list[Entry]:
        """The values that nobody published."""
        return [entry for entry in self.entries.values() if entry.unpublished]


def names() -> tuple[str, ...]:
    """The identifiers of the shipped nodes, sorted."""
    return names_in(FOLDER)


def find(name_or_path: str) -> NodeSpec:
    """A shipped node, or that of a file. Raises UnknownName, MissingFile, or InputError with every problem of the file."""
    return found("node", name_or_path, FOLDER, load)


def joining(device: str, count: int, what: str, name: str | None = None) -> NodeSpec:
    """The node `name`, else the smallest of those that a device is sold in, or that have slots for it, with `count` devices.

    Memory of another size is another card of the same node. `what` the user counts stands in the ArgumentError.

    >>> joining("h100_sxm5_80gb", 8, "devices").node.id, joining("a100_sxm4_80gb", 2, "devices").node.id
    ('dgx_h100', 'dgx_a100')
    """
    if name is not None:
        able = [find(name)]
        if count > able[0].node.devices:
            raise ArgumentError(f"{what} {count}: node {able[0].node.id} holds {able[0].node.devices} devices")
    else:
        able = [spec for each in names() if (spec := find(each)).node.devices >= count and spec.node.sold_with(device)]
    if not able:
        raise ArgumentError(f"{what} {count}: no node of {device} with so many is described; --node takes {', '.join(names())}")
    return min(able, key=lambda spec: (spec.node.holds != device, spec.node.devices))


def load(place: Path | Traversable) -> NodeSpec:
    """Read one file."""
    path = str(place)
    words = document(read_text(place, LIMITS["node"].size), path, "node")
    plain = {key: value for key, value in words.items() if not isinstance(value, dict)}
    header, problems = problems_of(NodeHeaderForm, plain, "")
    sources, graph = words.pop("sources", {}), words.pop("graph", {})
    links = words.pop("links", {})
    tables = {key: value for key, value in words.items() if isinstance(value, dict)}
    entries: dict[str, Entry] = {}
    for table, part in TABLES.items():
        problems += _table(table, tables.pop(table, {}), part, sources, str(words.get("id", "")), entries)
    problems += [f"[{name}]: no such table; nearest: {', '.join(nearest(name, _TABLES) or _TABLES)}" for name in tables]
    for name, content in links.items() if isinstance(links, dict) else ():
        problems += _table(f"links.{name}", content, LinkKind, sources, str(words.get("id", "")), entries)
    problems += _graph_problems(graph, links, header)
    if problems or header is None:
        raise InputError(path, dict.fromkeys(problems))
    try:
        node = _node(header, entries, graph)
    except ArchsimError as error:
        raise InputError(path, f"host_cpu.id: {error}") from None
    lost = _unreachable(node)
    if lost:
        raise InputError(path, [f"graph: {vertex} has no path to {SERVER}" for vertex in lost])
    return NodeSpec(path=path, node=node, entries=entries)


_TABLES = [*TABLES, "links", "graph", "sources"]


def _table(table: str, content: Any, part: type, sources: Any, file: str, entries: dict[str, Entry]) -> list[str]:
    if not isinstance(content, dict):
        return [f"[{table}]: must be a table"]
    known = {name: unit for name, (unit, _) in declared(part).items()}
    missing = [f"{table}.{name}: is missing ({unit.doc})" for name, (unit, required) in declared(part).items()
               if required and name not in content]  # fmt: skip
    return missing + read_table(table, content, known, sources, file, entries)


def _graph_problems(graph: Any, links: Any, header: NodeHeaderForm | None) -> list[str]:
    if not isinstance(graph, dict) or not graph:
        return ['graph: is missing; write [graph] with a line for each kind of link: pcie = [["gpu0", "cpu0"]]']
    problems: list[str] = []
    vertices: set[str] = set()
    for kind, edges in graph.items():
        if not isinstance(links, dict) or kind not in links:
            problems.append(f"graph.{kind}: no table [links.{kind}] says what it is")
        for edge in edges if isinstance(edges, list) else [None]:
            if edge is not None and _is_link(edge):
                vertices.update(edge)
            else:
                problems.append(f'graph.{kind}: {str(edge)[:60]} is not a link between two ends like ["gpu0", "cpu0"]')
    wanted = {SERVER, *(f"gpu{i}" for i in range(header.devices if header else 0))}
    problems += [f"graph: {vertex} has no link" for vertex in sorted(wanted - vertices)]
    problems += [f"graph: {vertex} is beyond the {header.devices} devices" for vertex in sorted(vertices)
                 if header and vertex.startswith("gpu") and vertex not in wanted]  # fmt: skip
    return problems


def _is_link(edge: Any) -> bool:
    named = isinstance(edge, list) and len(edge) == 2 and all(isinstance(vertex, str) and vertex for vertex in edge)
    return named and edge[0] != edge[1]


def _node(header: NodeHeaderForm, entries: Mapping[str, Entry], graph: dict[str, list[list[str]]]) -> Node:
    parts = {table: cls(**values_of(table, cls, entries)) for table, cls in TABLES.items()}
    links = []
    for kind, edges in graph.items():
        of_kind = LinkKind(name=kind, **values_of(f"links.{kind}", LinkKind, entries))
        for (one, other), count in Counter((one, other) for one, other in edges).items():
            links += [(_in_box(one, box, header), _in_box(other, box, header), of_kind, count) for box in range(header.boxes)]
    core = host_cpu(parts["host_cpu"].id).core
    cores = parts["host_cpu"].sockets * float(core.count / core.sockets)
    return Node(id=header.id, name=header.name, devices=header.devices * header.boxes, links=tuple(links), cores=cores,
                holds=header.holds or "", takes=tuple(header.takes), **parts)  # fmt: skip


def host_cpu(name: str) -> Cpu:
    """The CPU of a node, by the id or path that its file names. Raises UnknownName, or Unsupported for a GPU."""
    device = catalog.find(name).device
    if not isinstance(device, Cpu):
        raise Unsupported(f"{name} is a GPU; a CPU dispatches kernels")
    return device


def _in_box(vertex: str, box: int, header: NodeHeaderForm) -> str:
    """The name of a vertex of one of several equal boxes; devices are numbered through."""
    if vertex.startswith("gpu"):
        return f"gpu{int(vertex[3:]) + box * header.devices}"
    return vertex if box == 0 or vertex == FABRIC else f"box{box} {vertex}"


def _unreachable(node: Node) -> list[str]:
    import networkx

    graph = node.graph()
    return sorted(set(graph) - networkx.node_connected_component(graph, SERVER))
