"""The points of a sweep: the best of each network, curves, maps, fronts; and the file that they are written to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from archsim.answers.asked import asked
from archsim.answers.front import FrontPoint, front_chart, points_table, thin
from archsim.base.errors import ArchsimError, InputError, MissingExtra
from archsim.base.files import read_text
from archsim.base.record import by_key
from archsim.base.units import COUNT, show
from archsim.base.writer import OutputFile, json_with
from archsim.device.variant import called
from archsim.estimation.request import Request
from archsim.render.blocks import Axis, Block, Cell, Chart, Column, Facts, Note, Series, Table, Verdict, words
from archsim.render.text import csv_lines
from archsim.stack.catalog import MeasuredRows, rows_of
from archsim.study.knob import SIZES, WORDS
from archsim.study.store import Store
from archsim.study.swept import ORDERS, SweptPoints, collected, costs_of, grid_of

SCHEMA = "archsim-sweep/1"
DRAWN = 600  # points of a chart beside the front
WIDEST, TALLEST = 24, 40  # values of the knobs of a map
IN_TEXT = (9, 16)  # the same on a terminal
DARKEST = 0.6  # shade of the largest value
MOST_REASONS = 5
NAMES = {"latency_s": "latency", "throughput_per_s": "per second", "power_w": "power", "energy_j": "energy",
         "throughput_per_w": "per watt", "area_mm2": "area"}  # fmt: skip
SINGLE = ("fastest", "least energy")  # what is told where batches do not differ
RATES = ("throughput_per_s", "throughput_per_w")  # told where batches differ
Row = Mapping[str, Any]


def sections(s: Any) -> list[Block]:
    """The blocks of a sweep, or of all its points as the API has them."""
    found = s if isinstance(s, SweptPoints) else collected(s.space, s.requests, zip(*s.columns.values(), strict=True))
    blocks: list[Block] = [_verdict(found)]
    for network in dict.fromkeys(r.network for r in found.requests):
        rows = [row for row in found.some if row["network"] == network and row["problem"] is None]
        if not rows:
            blocks.append(Note(text=f"{network}: no point has an answer.", tone="warning"))
            continue
        blocks += [*_maps(found, network, rows), *_curves(found, network, rows), *_front(found, network, rows),
                   _table(found, network)]  # fmt: skip
    said = [(name, value) for name, value in _points(found) if value]
    return [*blocks, Facts(title="Points", rows=said)] if said else blocks


def _verdict(s: SweptPoints) -> Verdict:
    """The best points of one network; of several how many there are."""
    networks = list(dict.fromkeys(r.network for r in s.requests))
    devices = list(dict.fromkeys(called(r.spec) for r in s.requests))
    where = devices[0] if len(devices) == 1 else f"{len(devices)} devices"
    fixed = asked(s.requests[0], (*s.space.knobs, "stack"))[1:]
    lines, sentences = [], []
    for network in networks:
        for titles, row in _distinct(s, network):
            device = [] if len(devices) == 1 else [_device(row, s)]
            setting = ", ".join([*device, *(f"{knob} {shown(s, knob, row[knob])}" for knob in s.space.knobs)])
            outputs = {title: shown(s, output, row[output]) for title, (output, _) in ORDERS.items()}
            if len(networks) == 1:
                others = [text for title, text in outputs.items() if title not in titles and (s.per_sample or title in SINGLE)]
                others.append(shown(s, "power_w", row["power_w"]))
                lines.append((f"{outputs[titles[0]]} {', '.join(titles)}", setting, ", ".join(others)))
        count = len(s.fronts.get(network, ()))
        points = "1 point is" if count == 1 else f"{count:,} points are"
        sentences.append(f"{network}: {points} on the front, where nothing is both faster and more frugal." if count else
                         f"{network}: no point has an answer that fits the memory.")  # fmt: skip
    return Verdict(title=f"Sweep of {', '.join(networks)} on {where}", lines=lines, sentences=sentences,
                   asked=[f"{s.count:,} points", *fixed, *_varied(s)])  # fmt: skip


def _varied(s: SweptPoints) -> list[str]:
    """What varies, and between which values."""
    said = []
    for axis in s.space.axes:
        values = sorted(axis.values) if not axis.words else list(axis.values)
        ends = [shown(s, axis.knob, value) for value in (values or (axis.low, axis.high))]
        few = len(ends) < 5 and bool(values)
        said.append(f"{axis.knob} {', '.join(ends)}" if few else f"{axis.knob} {ends[0]} to {ends[-1]}"
                    + (f" ({len(values)})" if values else ""))
    return [*said, *(link.written for link in s.space.links)]


def _distinct(s: SweptPoints, network: str) -> list[tuple[list[str], Row]]:
    """The best points, each once, with all that it is best in; of one batch the rates say the same as time and energy."""
    found = {title: row for title, row in s.best.get(network, {}).items() if s.per_sample or title in SINGLE}
    titles = by_key((row["point"], title) for title, row in found.items())
    return [(named, found[named[0]]) for named in titles.values()]


def shown(s: SweptPoints, name: str, value: Any) -> str:
    """A value of a column with its unit."""
    if value is None or isinstance(value, str):
        return value or "-"
    unit = s.units.get(name, COUNT)
    return f"{value:g}" if name in SIZES else show(value, unit.removeprefix("1"), 4)


def _device(row: Row, s: SweptPoints) -> str:
    """A device as a row calls it: its id, and what was changed where that is not the same for all."""
    specs = {called(r.spec): called(r.spec, short=True) for r in s.requests}
    return specs.get(str(row["hardware_name"]), str(row["hardware_name"]))


def _cell(s: SweptPoints, row: Row, name: str) -> Cell:
    value = row.get(name)
    large = ", no mask" if name == "area_mm2" and row.get("one_die") == 0 else ""
    return Cell(text=shown(s, name, value) + large, value=None if value is None or isinstance(value, str) else float(value))


def _table(s: SweptPoints, network: str) -> Table:
    """The devices as they are, the best points, and the others of the front."""
    bases = [base for (of, _), base in s.bases.items() if of == network]
    best = _distinct(s, network)
    points = {row["point"] for _, row in best}
    listed = [*(("as it is", base) for base in bases), *((", ".join(titles), row) for titles, row in best)]
    front = [("front", row) for row in s.fronts.get(network, ()) if row["point"] not in points]
    several = len(s.requests) > len({r.network for r in s.requests})
    told = [name for name in NAMES if s.per_sample or name not in RATES]
    names = [*s.space.knobs, *(name for name in told if any(row.get(name) is not None for _, row in (*listed, *front)))]
    heads = ("", *(["device"] if several else []), *(NAMES.get(name, name) for name in names))

    def cells(which: str, row: Row) -> list[Cell]:
        return [words(which), *([words(_device(row, s))] if several else []), *(_cell(s, row, name) for name in names)]

    return points_table(f"{network}: best points", heads, [cells(*pair) for pair in listed], [cells(*pair) for pair in front],
                        "front: nothing is both faster and more frugal", 1 + several)  # fmt: skip


def _maps(s: SweptPoints, network: str, rows: Sequence[Row]) -> list[Block]:
    """Time and energy over two numbers, as tables whose ground is darker where there is more."""
    numbers = [knob for knob in s.space.knobs if knob not in WORDS]
    if len(s.space.knobs) != 2 or len(numbers) != 2 or s.space.sample or len({row["hardware_name"] for row in rows}) > 1:
        return []
    up, across = numbers
    x, y, *grids = grid_of(rows, across, up, s.per_sample)
    if len(x) > WIDEST or len(y) > TALLEST:
        return []
    of = " per sample" if s.per_sample else ""
    found: list[Block] = []
    for title, unit, grid in zip((f"time{of}", f"energy{of}"), ("s", "J"), grids, strict=True):
        low, high = np.nanmin(grid), np.nanmax(grid)
        cells = [[words(shown(s, up, value)), *(_shade(float(v), float(low), float(high), unit) for v in line)]
                 for value, line in zip(y, grid, strict=True)]  # fmt: skip
        head = [Column(head=f"{up} / {across}"), *(Column(head=shown(s, across, value), kind="number") for value in x)]
        small = len(x) <= IN_TEXT[0] and len(y) <= IN_TEXT[1] and not found
        found.append(Table(title=f"{network}: {title} by {up} and {across}", columns=head, rows=cells,
                           only="" if small else "page"))  # fmt: skip
    return found


def _shade(value: float, low: float, high: float, unit: str) -> Cell:
    if np.isnan(value):
        return words("-", tone="quiet")
    span = np.log(high / low) if high > low > 0 else 0.0
    return Cell(text=show(value, unit, 3), value=value, shade=DARKEST * float(np.log(value / low) / span) if span else 0.0)


def _curves(s: SweptPoints, network: str, rows: Sequence[Row]) -> list[Chart]:
    """Time and energy over the only number that varies, a line for each device and each name that varies."""
    numbers = [knob for knob in s.space.knobs if knob not in WORDS]
    if len(numbers) != 1:
        return []
    (knob,), others = numbers, [name for name in s.space.knobs if name in WORDS]
    several = len(s.requests) > 1
    lines = by_key((", ".join([*([_device(row, s)] if several else []), *(str(row[name]) for name in others)]), row)
                   for row in sorted(rows, key=lambda row: float(row[knob])))  # fmt: skip
    of = " per sample" if s.per_sample else ""
    unit = s.units[knob]
    found = []
    for i, (title, measured) in enumerate((("time", "s"), ("energy", "J"))):
        series = [Series(name=name or title, x=[float(row[knob]) for row in own],
                         y=[costs_of(row, s.per_sample)[i] for row in own],
                         hollow=[not row["fits"] for row in own], tips=[_tip(s, row) for row in own])
                  for name, own in lines.items()]  # fmt: skip
        found.append(Chart(title=f"{network}: {title}{of} over {knob}", x=Axis(title=knob, unit=unit),
                           y=Axis(title=f"{title}{of}", unit=measured), series=series))  # fmt: skip
    return found


def _tip(s: SweptPoints, row: Row) -> str:
    named = [f"{knob} {shown(s, knob, row[knob])}" for knob in s.space.knobs if knob in row]
    return "\n".join([_device(row, s), *named, *(f"{NAMES[name]} {shown(s, name, row.get(name))}" for name in NAMES
                                                 if row.get(name) is not None)])  # fmt: skip


def _front(s: SweptPoints, network: str, rows: Sequence[Row]) -> list[Chart]:
    """Time against energy: the front before some of the other points."""
    front = s.fronts.get(network, ())
    if not front:
        return []
    on_front = {row["point"] for row in front}
    others = thin([row for row in rows if row["point"] not in on_front], DRAWN)
    several = len({row["hardware_name"] for row in rows}) > 1

    def point(row: Row, named: bool = False) -> FrontPoint:
        time, energy = costs_of(row, s.per_sample)
        device = [_device(row, s)] if several else []
        label = ", ".join([*device, *(f"{knob} {shown(s, knob, row[knob])}" for knob in s.space.knobs)]) if named else ""
        return FrontPoint(x=time, y=energy, label=label, tip=_tip(s, row), hollow=not row["fits"])

    of = " per sample" if s.per_sample else ""
    marked = {f"{_device(base, s)} as it is" if several else "as it is": point(base)
              for (net, _), base in s.bases.items() if net == network}  # fmt: skip
    note = f"{len(front) + len(others):,} of {s.count:,} points are drawn" if len(front) + len(others) < len(rows) else ""
    return [front_chart(f"{network}: time and energy", Axis(title=f"time{of}", unit="s"), Axis(title=f"energy{of}", unit="J"),
                        [point(row, named=True) for row in front], [point(row) for row in others], marked,
                        [note] if note else ())]  # fmt: skip


def _points(s: SweptPoints) -> list[tuple[str, Any]]:
    """How many there are, and what is impossible."""
    why = [f"{times:,} x {text}" for text, times in s.problems[:MOST_REASONS]]
    kept = f"pages are of {len(s.some):,} points, evenly picked" if len(s.some) < s.count else ""
    behind = [rows.words for rows in stack_rows(s.requests)]
    broken = [f"{s.impossible:,} are impossible or not modelled:", *why] if s.impossible else []
    return [("stack", behind), ("drawn", kept), ("impossible", broken),
            ("too large", f"{s.beyond:,} need more memory than their device has; they are rings, and on no front"
             if s.beyond else "")]  # fmt: skip


def stack_rows(requests: Iterable[Request]) -> list[MeasuredRows]:
    """The measured rows behind each stack that was swept."""
    return [*dict.fromkeys(rows_of(request.stack) for request in requests)]


def record(s: Any) -> dict[str, Any]:
    """All points, as the API has them."""
    behind = [asdict(rows) for rows in stack_rows(s.requests)]
    return {"schema": SCHEMA, "units": dict(s.units), "stack_rows": behind, "rows": [*s.rows()]}


# ---------------------------------------------------------------------------------------------------------------- files

BATCH = 1 << 16  # rows in memory at once
LARGEST = 1 << 24  # bytes of what a CSV says of itself in the file beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format that a sweep can be written in."""

    write: Callable[[Store, IO[bytes]], None]
    extra: str = ""
    module: str = ""

    def check(self, file: OutputFile) -> None:
        """Raises MissingExtra where its package is absent, InputError where the file is there already."""
        import importlib.util

        if self.module and importlib.util.find_spec(self.module) is None:
            raise MissingExtra(f"a {Path(file.path).suffix} file", self.extra)
        if Path(file.path).exists() and not file.force:
            raise InputError(file.path, "is there already; name another file, or add --force")


def _csv(store: Store, stream: IO[bytes]) -> None:
    stream.write(csv_lines([tuple(store.columns)]).encode())
    rows = store.read(rest="ORDER BY point")
    while block := list(islice(rows, BATCH)):
        stream.write(csv_lines(block).encode())


def _parquet(store: Store, stream: IO[bytes]) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    types = {name: arrow.string() if unit == "text" else arrow.int64() if name in store.whole else arrow.float64()
             for name, unit in store.columns.items()}  # fmt: skip
    about = {"archsim": json.dumps(store.about())}
    schema = arrow.schema(list(types.items()), metadata=about)
    rows = store.read(rest="ORDER BY point")
    with parquet.ParquetWriter(stream, schema) as writer:
        while block := list(islice(rows, BATCH)):
            columns = zip(zip(*block, strict=True), types.values(), strict=True)
            arrays = [arrow.array(column, type=kind) for column, kind in columns]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


FORMATS = {".csv": Format(write=_csv), ".parquet": Format(write=_parquet, extra="data", module="pyarrow")}


def beside(file: OutputFile) -> OutputFile:
    """The file of provenance beside a CSV."""
    return replace(file, path=f"{file.path}.json", kind=json_with("archsim-sweep/"))


def finished(file: OutputFile, about: Mapping[str, Any]) -> bool:
    """Whether a file is that of a sweep which is complete, as it was written."""
    wanted = json.loads(json.dumps(about))
    try:
        if file.path.endswith(".parquet"):
            import pyarrow.parquet as parquet

            return bool(json.loads(parquet.read_schema(file.path).metadata[b"archsim"]) == wanted)
        return bool(json.loads(read_text(beside(file).path, LARGEST)) == {**wanted, "sha256": _digest(file)})
    except (ArchsimError, ImportError, KeyError, OSError, TypeError, ValueError):
        return False


def _digest(file: OutputFile) -> str:
    with open(file.path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def export(store: Store, file: OutputFile) -> None:
    """Write a finished sweep in the format of the ending of its path; a CSV has its provenance beside it, in `PATH.json`.

    Raises InputError where it cannot be written; then no file is left.
    """
    suffix = Path(file.path).suffix
    with file.stream() as stream:
        FORMATS[suffix].write(store, stream)
    if suffix == ".csv":
        beside(file).write(json.dumps({**store.about(), "sha256": _digest(file)}, indent=2) + "\n")
