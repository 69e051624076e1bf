"""What `python -m tests.data.regenerate` writes from other files: tables of keys, tiles of recorded kernels, rows of stacks."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from archsim.base.files import data_folder
from archsim.base.units import COUNT, TEXT
from archsim.device.device import PARTS, Identity
from archsim.device.part import Unit, declared
from archsim.device.spec import keys
from archsim.evidence.case import Case, ServingPattern
from archsim.node.node import TABLES, LinkKind
from archsim.stack import catalog
from archsim.stack.compose import FOLDER
from archsim.stack.key import markdown
from archsim.stack.launched import RecordedLaunch, rows_of, table_of
from archsim.stack.stack import Stack

BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"
PROFILES, SOURCE = "hopper_kernels.csv.gz", "launches of PyTorch 2.11 on an H100: reports/published/hopper_kernels.csv.gz"
LEAST = 2
FILES = {"cublas-12": ("gemm_tensor",), "cudnn-9": ("conv_forward_tensor",)}
SIZES = {"": ("fp16", "bf16"), "_word": ("tf32",)}  # of the name of a menu -> precisions
ALSO = {"conv_forward_tensor": "conv_backward_data_tensor"}  # gradients of images, of which no launch is recorded


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


def with_tables(readme: str, tables: str) -> str:
    """A README with its tables renewed."""
    head, rest = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}"


def stack_rows(cases: Iterable[Case]) -> str:
    """The file of the measured rows of each shipped stack; what is timed without software is no row of any."""
    counts = Counter(case.stack_id for case in cases if case.pattern is None or isinstance(case.pattern, ServingPattern))
    lines = [f"{name},{catalog.composition(name).libraries},{counts[name]}" for name in catalog.names()]
    return "\n".join(["stack,libraries,rows", *lines]) + "\n"


def launches(precisions: tuple[str, ...]) -> Iterator[RecordedLaunch]:
    """All launches of kernels of these precisions."""
    text = gzip.decompress(data_folder("reports/published").joinpath(PROFILES).read_bytes()).decode()
    for row in csv.DictReader(line for line in io.StringIO(text) if not line.startswith("# ")):
        for ran in json.loads(row["kernel"] or "{}").get("ran", ()) if row["dtype"] in precisions else ():
            yield RecordedLaunch(name=ran["name"], threads=prod(ran["block"]), registers=ran["registers"], shared=ran["shared"])


def kernel_tables() -> Mapping[str, str]:
    """The text of each file of tiles that published profiles give: of cuBLAS 12 and cuDNN 9 on Hopper.

    Rows are made as `archsim profile --kernels` makes them from a trace; tiles of a single launch are left out.
    """
    rows: dict[str, list[Mapping[str, str]]] = {name: [] for name in FILES}
    for suffix, precisions in SIZES.items():
        for row in rows_of(launches(precisions), "hopper", SOURCE, LEAST):
            for name in [name for name, roles in FILES.items() if row["role"] in roles]:
                roles = [row["role"], *([ALSO[row["role"]]] if row["role"] in ALSO else [])]
                own = {"role": " ".join(f"{role}{suffix}" for role in roles)}
                rows[name].append({**row, **own})
    return {name: table_of(found) for name, found in rows.items()}


if __name__ == "__main__":
    from pathlib import Path

    from archsim.evidence.family import serving_files, shipped_files
    from archsim.evidence.readers import read_files

    for where, tables in (("hwspecs", key_tables()), (FOLDER, markdown(Stack))):
        place = Path(str(data_folder(where))) / "README.md"
        place.write_text(with_tables(place.read_text("utf-8"), tables), "utf-8")
    for name, text in kernel_tables().items():
        (Path(str(data_folder("traces/kernels"))) / f"{name}.csv").write_text(text, "utf-8")
    every = read_files([*shipped_files(with_peers=True), *serving_files()[:-1]])[0]
    place.with_name(catalog.COUNTED).write_text(stack_rows(every), "utf-8")
