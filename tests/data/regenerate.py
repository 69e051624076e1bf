"""The tables of keys in hwspecs/README.md, from the records that declare them. `python tests/data/regenerate.py` writes them."""

from __future__ import annotations

from archsim.base.files import data_folder
from archsim.base.units import COUNT, TEXT
from archsim.device.device import PARTS, Identity
from archsim.device.part import Unit, declared
from archsim.device.spec import keys
from archsim.node.node import TABLES, LinkKind

BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"


def key_tables() -> str:
    """What stands between the two marks: the words of the header, the keys of all kinds, of each kind, of a node."""
    shared = [part for part, cls in PARTS["gpu"].items() if PARTS["cpu"].get(part) is cls]
    own = {kind: [part for part in PARTS[kind] if part not in shared] for kind in PARTS}
    header = [row(name, unit, True) for name, (unit, _) in declared(Identity).items()]
    parts = [("Before the first table", header)] + [
        (title, [row(key, unit, required) for key, unit, required in keys(kind) if key.partition(".")[0] in wanted])
        for title, kind, wanted in (("All kinds", "gpu", shared), *((kind.upper(), kind, own[kind]) for kind in PARTS))
    ]
    tables = {**TABLES, "links.NAME": LinkKind}
    node = [row(f"{table}.{name}", *word) for table, cls in tables.items() for name, word in declared(cls).items()]
    parts.append(("Node (a file in `hosts/`)", node))
    head = "| key | unit | meaning |\n| --- | --- | --- |\n"
    return "\n\n".join(f"### {title}\n\n{head}" + "\n".join(lines) for title, lines in parts)


def row(key: str, unit: Unit, required: bool) -> str:
    """One key: unit, range, meaning, and what else is to be known of it."""
    remarks = [] if required else ["optional"]
    remarks += ["*not inherited*"] if not unit.inherited else []
    remarks += ["*shown only*"] if unit.informational else []
    remarks += ["*cycle*"] if unit.cycle else []
    remarks += ["*cache*"] if unit.cache else []
    name = {COUNT: "number", TEXT: "text"}.get(unit.unit, unit.unit)
    bounds = f", {unit.range}" if unit.range else ""
    return f"| `{key}` | {name}{bounds} | {'; '.join([unit.doc, *remarks])} |"


def with_tables(readme: str) -> str:
    """The README with its tables renewed."""
    head, rest = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{key_tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    from pathlib import Path

    place = Path(str(data_folder("hwspecs"))) / "README.md"
    place.write_text(with_tables(place.read_text("utf-8")), "utf-8")
