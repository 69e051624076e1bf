"""`archsim show`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click


@click.command("show")
@click.argument("what", type=click.Choice(["hw", "node", "net", "stack", "calibration", "silicon"]))
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (hw and stack only).")
def command(what: str, name: str | None, as_json: bool) -> None:
    """One device, node, network, stack, the calibration, or what silicon takes and costs, with every number and its source.

    \b
    Examples:
      archsim show hw tegra_x1
      archsim show node dgx_1_v100
      archsim show net alexnet
      archsim show stack caffe-cudnn4 --json
      archsim show calibration
      archsim show calibration energy.
      archsim show silicon
    """
    if what == "calibration":
        click.echo(_calibration(name or ""))
        return
    if what == "silicon":
        from archsim.report.silicon import silicon_text

        click.echo(silicon_text())
        return
    if what == "stack" and name is not None:
        from archsim.report.stack import stack_record, stack_text

        click.echo(json.dumps(stack_record(name), indent=2, allow_nan=False) if as_json else stack_text(name))
        return
    if name is None:
        raise click.UsageError(f"show {what} needs a name; `archsim list {'hw' if what == 'hw' else what + 's'}` prints them")
    if as_json and what == "hw":
        click.echo(json.dumps(_device_record(name), indent=2, allow_nan=False))
        return
    views: dict[str, Callable[[str], str]] = {"hw": _device, "node": _node, "net": _network}
    click.echo(views[what](name))


def _device(name: str) -> str:
    from archsim.base.units import show
    from archsim.detect.catalog import find
    from archsim.device.spec import keys
    from archsim.report.text import clean, table

    spec = find(name)
    i = spec.identity
    rows = []
    for key, unit, _ in keys(spec.kind):
        entry = spec.entries.get(key)
        if entry is not None:
            value = entry.written if isinstance(entry.value, str) else show(float(entry.number), unit.unit)
            use = "informs only" if unit.informational else ""
            about = "; ".join(filter(None, (entry.source, entry.note, use)))
            rows.append((key, value, unit.kind, unit.range, entry.kind, unit.doc, about))
        else:
            rows.append((key, "-", unit.kind, unit.range, "", unit.doc, "not in this spec; --set gives it a value"))
    head = f"{i.name} ({i.id}): {i.vendor} {i.architecture}, {i.year}, {spec.kind}, default stack {i.default_stack}"
    stated = [(key, e.written, f"{e.clock} clock" if e.clock != "none" else "", e.source) for key, e in spec.stated.items()]
    parts = [clean(head), table(("key", "value", "type", "range", "origin", "meaning", "source, note"), rows, left=7)]
    if stated:
        parts.append("Stated by the vendor\n" + table(("peak", "value", "at", "source"), stated, left=4))
    parts.append(f"{len(spec.assumed)} of {len(spec.entries)} values are assumed")
    return "\n\n".join(parts)


def _node(name: str) -> str:
    from archsim.node.spec import find
    from archsim.report.text import clean, table

    spec = find(name)
    node = spec.node
    rows = [(e.key, e.written, e.kind, "; ".join(filter(None, (e.source, e.note)))) for e in spec.entries.values()]
    links = [(one, other, f"{count} x {kind.name}") for one, other, kind, count in node.links]
    holds = f", sold with {node.holds}" if node.holds else ""
    parts = [clean(f"{node.name} ({node.id}): {node.devices} devices{holds}"),
             table(("key", "value", "kind", "source, note"), rows, left=4), table(("from", "to", "links"), links, left=3),
             f"{len(spec.assumed)} of {len(spec.entries)} values are assumed"]  # fmt: skip
    return "\n\n".join(parts)


def _device_record(name: str) -> dict[str, Any]:
    from dataclasses import asdict

    from archsim.detect.catalog import find
    from archsim.device.spec import keys

    spec = find(name)
    return {
        "identity": asdict(spec.identity),
        "kind": spec.kind,
        "values": {key: asdict(entry) for key, entry in spec.entries.items()},
        "keys": {key: {"type": unit.kind, "unit": unit.unit, "range": unit.range, "meaning": unit.doc,
                       "informs_only": unit.informational, "required": required}
                 for key, unit, required in keys(spec.kind)},
        "stated": {key: asdict(entry) for key, entry in spec.stated.items()},
    }


def _network(name: str) -> str:
    from archsim.base.units import show
    from archsim.report.text import clean, table
    from archsim.trace.file import load

    trace = load(name)
    bound = trace.bind(**dict.fromkeys(trace.unsized, 1))
    rows = [
        (op.name, op.kind.op, ", ".join(op.inputs), "x".join(map(str, op.shape)), f"{b.macs:,}", show(b.flop, "FLOP", 3),
         f"{b.parameters:,}")
        for op, b in zip(trace.ops, bound.ops, strict=True)
    ]
    head = f"{clean(trace.name)}: {clean(trace.source)}\n{bound.macs:,} MACs, {bound.parameters:,} parameters at batch 1"
    head += "".join(f", {name} = {size.usual}" for name, size in trace.sizes.items())
    return f"{head}\n\n" + table(("op", "kind", "inputs", "output", "MACs", "work", "parameters"), rows, left=4)


def _calibration(prefix: str) -> str:
    """The constants whose names begin so, with the interval of those that were fitted."""
    from archsim.calibration.constants import default
    from archsim.report.text import table

    calibration = default()
    spreads = calibration.uncertainties()
    rows = []
    for name, c in calibration.constants.items():
        if name.startswith(prefix):
            factor = spreads.get(name)
            near = "" if factor is None else f"{c.value / factor:.3g} to {c.value * factor:.3g}"
            rows.append((name, f"{c.value:.4g}", near, f"{c.low:g} to {c.high:g}", "fitted" if c.fitted else "prior", c.origin))
    if not rows:
        raise click.UsageError(f"no constant begins with {prefix!r}; without a prefix all are listed")
    head = f"calibration {calibration.version}; {len(rows)} constants, {sum(row[4] == 'fitted' for row in rows)} of them fitted"
    return f"{head}\n\n" + table(("constant", "value", "80 % interval", "range", "kind", "origin"), rows, left=6)
