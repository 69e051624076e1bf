"""What a device says: its peaks, then every value with its kind and source; all that is declared of a key at level 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show, show_capacity
from archsim.device.device import Device, Tpu
from archsim.device.entry import Entry
from archsim.device.spec import Spec, keys, unit_of
from archsim.render.blocks import Block, Cell, Facts, Table, Verdict, columns, words

GUESSED = ("assumed", "sibling")


def record(spec: Spec) -> dict[str, Any]:
    """A device as plain values."""
    return {
        "identity": asdict(spec.identity),
        "kind": spec.kind,
        "hash": spec.digest,
        "values": {key: asdict(entry) for key, entry in spec.entries.items()},
        "keys": {key: {"type": unit.kind, "unit": unit.unit, "range": unit.range, "meaning": unit.doc,
                       "informs_only": unit.informational, "inherited": unit.inherited, "required": required}
                 for key, unit, required in keys(spec.kind)},
        "stated": {key: asdict(entry) for key, entry in spec.stated.items()},
    }  # fmt: skip


def sections(spec: Spec) -> list[Block]:
    """The blocks of a device."""
    i, device = spec.identity, spec.device
    about = [f"{i.vendor} {i.architecture}", str(i.year), spec.kind, f"default stack {i.default_stack}"]
    own, usual = _counted_in(device), float(device.usual_clock)
    lines = [
        (f"{show(float(device.peak_flops(own)), 'FLOP/s', 3)} at most", own,
         f"{show(float(device.peak_flops(own, usual)), 'FLOP/s', 3)} at {show(usual, 'Hz')}"),
        (f"{show(float(device.memory.bandwidth), 'B/s')} of memory", f"{show_capacity(float(device.memory.capacity))}", ""),
        (f"{show(float(device.power.tdp), 'W')}", "its power limit", ""),
    ]  # fmt: skip
    rows = {entry.key: (entry.key, _value(spec, entry), entry) for key, _, _ in keys(spec.kind)
            if (entry := spec.entries.get(key)) is not None}  # fmt: skip
    stated = [[words(key), words(e.written), words(f"{e.clock} clock" if e.clock != "none" else ""), words(e.source)]
              for key, e in spec.stated.items()]  # fmt: skip
    return [
        Verdict(title=f"{i.name} ({i.id})", asked=about, lines=lines, sentences=[counted(spec)]), *values(rows.values()),
        Table(title="Stated by the vendor", columns=columns("", "value", "at", "source", numbers=(1,)), rows=stated),
        _declared(spec),
    ]  # fmt: skip


def fp32_peak(device: Device) -> str:
    """The peak of fp32; of a TPU without it that of the first precision of its cells, which is named."""
    own = _counted_in(device)
    return show(float(device.peak_flops(own)), "FLOP/s", 3) + (f" {own}" if own != "fp32" else "")


def _counted_in(device: Device) -> str:
    return device.precisions[0] if isinstance(device, Tpu) else "fp32"


def _value(spec: Spec, entry: Entry) -> str:
    return entry.written if isinstance(entry.value, str) else show(float(entry.number), unit_of(spec.kind, entry.key).unit)


def values(rows: Iterable[tuple[str, str, Entry]]) -> list[Block]:
    """Values with their kind and the number of their source, then the sources."""
    listed = [*rows]
    about = ["; ".join(filter(None, (entry.source, entry.note))) for _, _, entry in listed]
    numbers = {text: i for i, text in enumerate(dict.fromkeys(filter(None, about)), 1)}
    cells = [[words(key), words(value), words(entry.kind, tone="bad" if entry.kind in GUESSED else ""),
              words(f"[{numbers[text]}]" if text else "")]
             for (key, value, entry), text in zip(listed, about, strict=True)]  # fmt: skip
    heads = columns("", "value", "kind", "source", numbers=(1, 3))
    return [Table(title="Values", columns=heads, rows=cells, long=len(cells) > 20), sources(numbers)]


def sources(numbers: dict[str, int]) -> Facts:
    """Sources by their numbers."""
    return Facts(title="Sources", rows=[(f"[{number}]", text) for text, number in numbers.items()])


def _declared(spec: Spec) -> Table:
    """Every key of the kind of device, those that this one lacks too."""
    rows: list[Sequence[Cell]] = []
    for key, unit, _ in keys(spec.kind):
        entry = spec.entries.get(key)
        note = "informs only" if unit.informational else "" if entry else "not in this spec; --set gives it a value"
        rows.append([words(key), words(unit.kind), words(unit.range), words(entry.file if entry else ""), words(unit.doc),
                     words(note)])  # fmt: skip
    return Table(title="Keys", columns=columns("", "type", "range", "file", "meaning", ""), rows=rows, level=2)


def counted(spec: Spec) -> str:
    """How many values are assumed or of a sibling chip, and how many come from the specs that this one inherits."""
    text = f"{len(spec.entries)} values: {unpublished(spec.assumed)}"
    for file in dict.fromkeys(entry.file for entry in spec.entries.values() if entry.file != spec.identity.id):
        text += f"; {sum(entry.file == file for entry in spec.entries.values())} are inherited from {file}"
    return text


def unpublished(entries: Sequence[Entry]) -> str:
    """How many values nobody has published of this very device, by kind."""
    of_sibling = sum(entry.kind == "sibling" for entry in entries)
    return f"{len(entries) - of_sibling} are assumed, {of_sibling} are of a sibling chip"
