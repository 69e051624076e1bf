"""An estimate as one HTML page that needs no network: figures, charts, every layer, and where the numbers come from."""

from __future__ import annotations

from importlib.resources import files

from archsim.answer import Estimate, OpEstimate
from archsim.device.spec import Entry, Spec
from archsim.quantity import show, show_capacity
from archsim.report import figures
from archsim.report.layers import by_kind, by_op, is_large, phase_name
from archsim.report.markup import Cell, number, percent, table, text, words
from archsim.report.palette import look, order
from archsim.report.references import references
from archsim.report.roofline import roof

# The browser itself then refuses to load anything: all that the page needs stands in it.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def page(estimate: Estimate, spec: Spec) -> str:
    """The whole page. `spec` is the device that the estimate is of, with the same settings.

    Raises ValueError for the spec of another device.
    """
    if spec.identity.id != estimate.hardware:
        raise ValueError(f"the estimate is of {estimate.hardware!r}, the spec of {spec.identity.id!r}")
    sections = [
        _heading(estimate, spec), _warnings(estimate), _totals(estimate), _measured(estimate), _breakdown(estimate),
        _bars(estimate), _roofline(estimate, spec), _layers(estimate), _assumptions(estimate, spec), _provenance(estimate),
    ]  # fmt: skip
    title = text(f"{estimate.network} on {spec.identity.name}")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=1184">\n'
        f"<title>{title}</title>\n<style>\n{_asset('page.css')}</style>\n<script>{figures.library()}</script>\n</head>\n"
        f"<body>\n{chr(10).join(filter(None, sections))}\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return files("archsim.report").joinpath(name).read_text(encoding="utf-8")


def _heading(e: Estimate, spec: Spec) -> str:
    asked = [e.task.replace("_", " "), f"batch {e.batch}", e.precision, f"stack {e.stack}", show(e.clock_hz, "Hz")]
    if e.threads:
        asked.append(f"{e.threads} {'thread' if e.threads == 1 else 'threads'}")
    if e.devices != 1:
        asked.append(f"{e.devices} devices")
    asked.append(f"{e.fidelity} model")
    line = " · ".join(map(text, asked))
    return f'<h1>{text(e.network)} on {text(spec.identity.name)}</h1>\n<p class="asked">{line}</p>'


def _warnings(e: Estimate) -> str:
    return "\n".join(f'<p class="warn"><b>Warning:</b> {text(line)}</p>' for line in e.warnings)


def _totals(e: Estimate) -> str:
    low, high = e.latency_interval_s
    rate = e.flop / e.latency_s
    fits = "fits" if e.fits else '<span class="bad">does not fit</span>'
    cards = [
        ("latency", show(e.latency_s, "s"),
         f"{100 * e.interval_level:.0f} % interval: {show(low, 's', 3)} to {show(high, 's', 3)}"),
        ("throughput", show(e.throughput_per_s, "img/s"), f"batch {e.batch}, {show(rate, 'FLOP/s', 3)}"),
        ("power", show(e.power_w, "W", 3), "mean over the batch"),
        ("energy", show(e.energy_j, "J", 3), f"per batch; {show(e.energy_j / e.batch, 'J', 3)} per image"),
        ("efficiency", f"{e.throughput_per_w:.3g} img/s/W",
         f"{show(e.flop, 'FLOP')}, {show(e.dram_bytes, 'B')} of memory traffic"),
        ("memory", show(e.memory_bytes, "B", 3), f"of {show_capacity(e.memory_capacity_bytes)}: {fits}"),
    ]  # fmt: skip
    boxes = "\n".join(
        f'<div><dt>{name}</dt><dd class="big">{text(value)}</dd><dd class="note">{note}</dd></div>' for name, value, note in cards
    )
    return f'<dl class="cards">\n{boxes}\n</dl>\n<p class="quiet">Memory is {_memory_uses(e)}.</p>'


def _memory_uses(e: Estimate) -> str:
    m = e.memory
    uses = [("parameters", m.parameters), ("activations", m.activations), ("gradients", m.gradients),
            ("optimiser", m.optimiser), ("workspace", m.workspace), ("context", m.reserved)]  # fmt: skip
    return ", ".join(f"{name} {show(size, 'B', 3)}" for name, size in uses if size)


def _measured(e: Estimate) -> str:
    if not e.references:
        return "<h2>Measured by others</h2>\n<p>Nothing published for this cell is in the corpus.</p>"
    note = "Each prediction is for the stack and clock of its own row; an error above zero predicts too much."
    return f'<h2>Measured by others</h2>\n{references(e)}\n<p class="quiet">{note}</p>'


def _breakdown(e: Estimate) -> str:
    """The time by bound as one stripe, and a legend with figures for all charts."""
    whole = sum(e.breakdown_s.values()) or 1.0
    split = [(name, e.breakdown_s[name]) for name in order(set(e.breakdown_s))]
    stripe = "".join(
        f'<span style="width:{100 * time / whole:.3f}%;background:{look(name).colour}">{_in_stripe(name, time / whole)}</span>'
        for name, time in split
        if time > 0.0005 * whole
    )
    rows = [(_bound(name), number(time, "s", 4), percent(time / whole), words(look(name).meaning)) for name, time in split]
    return (
        f'<h2>What limits it</h2>\n<div class="stripe">{stripe}</div>\n'
        f"{table(('bound', 'time', 'share', 'meaning'), rows)}"
    )


def _in_stripe(name: str, share: float) -> str:
    return f"{text(name)} {100 * share:.0f} %" if share > 0.09 else ""


def _bars(e: Estimate) -> str:
    parts = []
    if is_large(e):
        parts += ["<h2>Time and energy by kind of layer</h2>",
                  figures.embed(figures.bars(by_kind(e), e.latency_s, e.energy_j), "by-kind"),
                  f"<h2>Time and energy of the longest layers</h2>\n<p class=\"quiet\">In execution order; all {len(e.ops)} "
                  "stand in the table below.</p>"]  # fmt: skip
    else:
        parts.append('<h2>Time and energy by layer</h2>\n<p class="quiet">In execution order, coloured by what limits each.</p>')
    parts.append(figures.embed(figures.bars(by_op(e), e.latency_s, e.energy_j), "by-layer"))
    return "\n".join(parts)


def _roofline(e: Estimate, spec: Spec) -> str:
    shown = roof(e, spec)
    note = (
        "Each mark is an op, or several that are equal; its area is as their time. FLOP are those of the layer's definition, "
        f"so an algorithm that needs fewer can pass a ceiling. Ceilings are at {show(e.clock_hz, 'Hz')}."
    )
    return f'<h2>Roofline</h2>\n<p class="quiet">{text(note)}</p>\n{figures.embed(figures.roofline(shown), "roofline")}'


def _layers(e: Estimate) -> str:
    head = ("name", "kind", "phase", "time", "share", "bound", "algorithm", "FLOP", "DRAM", "energy")
    rows = [_layer(op, e.latency_s) for op in e.ops]
    note = "A click on a head sorts; an algorithm's kernels show when the pointer rests on it."
    return f'<h2>Layers</h2>\n<p class="quiet">{note}</p>\n<div class="scroll">\n{table(head, rows)}\n</div>'


def _layer(op: OpEstimate, latency: float) -> tuple[Cell, ...]:
    kernels = "; ".join(f"{kernel.name} {show(kernel.time_s, 's', 3)} ({kernel.bound})" for kernel in op.kernels)
    algorithm = op.kernels[0].algorithm if op.kernels else ""
    return (
        words(op.name), words(op.kind), words(phase_name(op.phase)), number(op.time_s, "s"), percent(op.time_s / latency),
        _bound(op.bound), words(algorithm, style="kernels" if kernels else "", tip=kernels), number(op.flop, "FLOP"),
        number(op.dram_bytes, "B"), number(op.energy_j, "J"),
    )  # fmt: skip


def _bound(name: str) -> Cell:
    return Cell(body=f'<i class="swatch" style="background:{look(name).colour}"></i>{text(name)}')


def _assumptions(e: Estimate, spec: Spec) -> str:
    parts = ["<h2>Assumptions</h2>"]
    if e.assumptions:
        parts.append("<ul>" + "".join(f"<li>{text(line)}</li>" for line in e.assumptions) + "</ul>")
    changed = [entry for entry in spec.entries.values() if entry.kind == "set"]
    if changed:
        parts.append(f"<p>Values of the device that the user has set:</p>\n{_entries(changed, 'source')}")
    if spec.assumed:
        note = f"{len(spec.assumed)} of {len(spec.entries)} values of the device are published nowhere; assumed are:"
        parts.append(f"<p>{note}</p>\n{_entries(spec.assumed, 'note')}")
    elif not e.assumptions:
        parts.append("<p>None.</p>")
    return "\n".join(parts)


def _entries(entries: list[Entry], remark: str) -> str:
    rows = [(words(entry.key), words(entry.written, style="num"), words(getattr(entry, remark))) for entry in entries]
    return table(("value of the spec", "written", remark), rows)


def _provenance(e: Estimate) -> str:
    rows = [(words(key.replace("_", " ")), Cell(body=f"<code>{text(value)}</code>")) for key, value in e.provenance.items()]
    return f"<h2>Provenance</h2>\n{table(('what', 'version or hash'), rows, style='pairs')}"
