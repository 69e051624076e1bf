"""An estimate as a self-contained HTML page: totals, charts, every layer, and the origin of the numbers."""

from __future__ import annotations

from archsim.base.units import show, show_capacity
from archsim.cost.energy import COMPONENTS
from archsim.device.entry import Entry
from archsim.device.spec import Spec
from archsim.estimation.boundary import BESIDE
from archsim.estimation.result import Estimate, OpEstimate
from archsim.report import figures
from archsim.report.bars import bars
from archsim.report.components_svg import component_colour, components_svg, power_svg
from archsim.report.drawing import drawing
from archsim.report.frame import document
from archsim.report.gantt import gantt
from archsim.report.layer_tree import tree_html
from archsim.report.layers import by_kind, by_op, is_large, phase_name
from archsim.report.markup import TableCell, bound_cell, items, marked, number, percent, table, text, words
from archsim.report.palette import ink_on, look, order
from archsim.report.references import references
from archsim.report.roofline import roof
from archsim.report.roofline_svg import inline
from archsim.report.text import (
    FASTER_TEXT,
    asked_words,
    energy_parts,
    floor_line,
    limit_line,
    memory_uses,
    peaks,
    rate_unit,
    wall_words,
    work,
)
from archsim.schedule.observer import Recording


def page(estimate: Estimate, spec: Spec, recording: Recording | None = None) -> str:
    """The whole page. `spec` is the device of the estimate, `recording` the simulated timeline, if there is one.

    Raises ValueError for the spec of another device.
    """
    if spec.identity.id != estimate.hardware:
        raise ValueError(f"the estimate is of {estimate.hardware!r}, the spec of {spec.identity.id!r}")
    sections = [
        _heading(estimate, spec), _warnings(estimate), _totals(estimate), _measured(estimate), _breakdown(estimate),
        _bars(estimate), _components(estimate), _power(estimate), _timeline(recording), _roofline(estimate, spec),
        layers_section(estimate), _assumptions(estimate, spec), _provenance(estimate),
    ]  # fmt: skip
    library = "" if recording is None else figures.library()
    return document(f"{estimate.network} on {device_name(estimate, spec)}", sections, library)


def device_name(e: Estimate, spec: Spec) -> str:
    """The full name of a device, or what a changed one is called."""
    return e.hardware_name if e.changes else spec.identity.name


def _heading(e: Estimate, spec: Spec) -> str:
    line = " · ".join(map(text, asked_words(e)))
    return f'<h1>{text(e.network)} on {text(device_name(e, spec))}</h1>\n<p class="asked">{line}</p>'


def _warnings(e: Estimate) -> str:
    return "\n".join(f'<p class="warn"><b>Warning:</b> {text(line)}</p>' for line in e.warnings)


def _totals(e: Estimate) -> str:
    (low, high), (least, most) = e.latency_interval_s, e.power_interval_w
    rate = e.flop / e.latency_s
    each = f"; {show(e.energy_j / e.batch, 'J', 3)} per input" if e.batch > 1 else ""
    fits = "fits" if e.fits else '<span class="bad">does not fit</span>'
    cards = [
        ("latency", show(e.latency_s, "s"),
         f"{100 * e.interval_level:.0f} % interval: {show(low, 's', 3)} to {show(high, 's', 3)}"),
        ("throughput", show(e.throughput_per_s, rate_unit(e)), f"batch {e.batch}, {show(rate, 'FLOP/s', 3)}"),
        ("power", show(e.power_w, "W", 3),
         f"{100 * e.interval_level:.0f} % interval: {show(least, 'W', 3)} to {show(most, 'W', 3)}; {_covers(e)}"),
        ("energy", show(e.energy_j, "J", 3), f"per batch{each}"),
        ("efficiency", f"{e.throughput_per_w:.3g} {rate_unit(e)}/W", work(e)),
        ("memory", show(e.memory_bytes, "B", 3), f"of {show_capacity(e.memory_capacity_bytes)}: {fits}"),
    ]  # fmt: skip
    boxes = "\n".join(
        f'<div><dt>{name}</dt><dd class="big">{text(value)}</dd><dd class="note">{note}</dd></div>'
        for name, value, note in cards
    )
    return f'<dl class="cards">\n{boxes}\n</dl>\n<p class="quiet">Memory is {memory_uses(e.memory)}. Energy is ' \
        f"{energy_parts(e)}.</p>"


def _covers(e: Estimate) -> str:
    """What the power covers."""
    limit = f"at most {show(e.power_limit_w, 'W', 3)}"
    return f"{limit} ({text(e.power_boundary)})" if e.wall is None else f"at the wall, {text(wall_words(e.wall))}"


def _measured(e: Estimate) -> str:
    parts = ["<h2>Measured by others</h2>"]
    if e.references:
        note = "Each prediction is for the conditions of its own row; a positive error means a prediction above the measurement."
        parts += [references(e), f'<p class="quiet">{note}</p>']
    else:
        parts.append("<p>The corpus has no published measurement of this case.</p>")
    seen = e.held_out
    if seen.rows:
        parts.append(
            f'<p class="quiet">On {seen.rows} held-out measurements of this class ({text(e.interval_class)}) the median error '
            f"is {100 * seen.median:.0f} %, and nine of ten errors are below {100 * seen.p90:.0f} %."
            f"{f' Nearest evidence: {text(seen.basis)}.' if seen.basis else ''}</p>"
        )
    return "\n".join(parts)


def _breakdown(e: Estimate) -> str:
    """What limits the run, and its time by bound as one bar, with a legend for all charts."""
    whole = sum(e.breakdown_s.values()) or 1.0
    split = [(name, e.breakdown_s.get(name, 0.0)) for name in order({*e.breakdown_s, *e.relief_s})]
    stripe = "".join(_in_stripe(name, time / whole) for name, time in split if time > 0.0005 * whole)
    rows = [
        (bound_cell(name), number(t, "s", 4), percent(t / whole), percent(e.relief_s.get(name, 0.0) / whole),
         words(look(name).meaning))
        for name, t in split
    ]
    floor = floor_line(e)
    head = ("bound", "time", "share", f"saved if {FASTER_TEXT} faster", "meaning")
    return (
        f"<h2>What limits it</h2>\n<p>{text(limit_line(e))}.{f' {text(floor)}.' if floor else ''}</p>\n"
        f'<div class="stripe">{stripe}</div>\n{table(head, rows)}'
    )


def _in_stripe(name: str, share: float) -> str:
    told = f"{text(name)} {100 * share:.0f} %"
    inside = told if share > 0.09 else ""
    colour = look(name).colour
    return f'<span style="width:{100 * share:.3f}%;background:{colour};color:{ink_on(colour)}" title="{told}">{inside}</span>'


def _bars(e: Estimate) -> str:
    order_note = "In execution order, coloured by what limits each"
    if not is_large(e):
        return f'<h2>Time and energy by layer</h2>\n<p class="quiet">{order_note}.</p>\n{bars(by_op(e), e.latency_s, e.energy_j)}'
    note = ("Stages and blocks by the parts of the names of their layers. The width is time or energy; a click or Enter opens a "
            "block, in the picture and in the list below it.")  # fmt: skip
    return (
        '<h2>Time and energy by kind of layer</h2>\n<p class="quiet">Forward, where nothing else is said.</p>\n'
        f"{bars(by_kind(e), e.latency_s, e.energy_j)}\n<h2>Time and energy by block</h2>\n"
        f'<p class="quiet">{note} The table below has all {len(e.ops)} ops.</p>\n{tree_html(e)}'
    )


def _components(e: Estimate) -> str:
    """The energy of each layer by component, as one static drawing, with what the components cover."""
    meaning = {**COMPONENTS, **BESIDE}

    def row(name: str, part: float) -> tuple[TableCell, ...]:
        return marked(name, component_colour(name)), number(part, "J"), percent(part / e.energy_j), words(meaning[name])

    rows = [row(name, part) for name, part in e.energy_breakdown_j.items()]
    shown = by_kind(e) if is_large(e) else by_op(e)
    return (f"<h2>Energy by component and layer</h2>\n{table(('component', 'energy', 'share', 'meaning'), rows)}\n"
            f"{drawing(components_svg(shown, e.energy_j), 'energy by component', *_component_rows(e))}")  # fmt: skip


def _component_rows(e: Estimate) -> tuple[list[str], list[list[object]]]:
    """The energy of each layer that is drawn, by component [J]."""
    shown = by_kind(e) if is_large(e) else by_op(e)
    return ["layer", *e.energy_breakdown_j], [[row.name, *row.component_j.values()] for row in shown]


def _power(e: Estimate) -> str:
    power, covers = (e.power_w, e.power_boundary) if e.wall is None else (e.wall.device_w, e.wall.device_boundary)
    note = (f"Mean {show(power, 'W', 3)}, {peaks(e)} while the run is repeated. A kernel draws its mean power, a device that "
            f"waits its idle power at its clock. Boundary: {covers}.")  # fmt: skip
    curve = e.power_over_time
    points = [(f"{time:.6g}", f"{power:.4g}") for time, power in zip(curve.time_s, (*curve.power_w, 0.0), strict=True)]
    picture = drawing(power_svg(e), "power over time", ("from_s", "power_w"), points)
    return f'<h2>Power over time</h2>\n<p class="quiet">{text(note)}</p>\n{picture}'


def _timeline(recording: Recording | None) -> str:
    if recording is None:
        return ""
    note = ("Simulated intervals by track; hover for names. --timeline writes the same with every kernel for "
            "ui.perfetto.dev.")  # fmt: skip
    return f'<h2>Timeline</h2>\n<p class="quiet">{text(note)}</p>\n{figures.embed(gantt(recording), "timeline")}'


def _roofline(e: Estimate, spec: Spec) -> str:
    shown = roof(e, spec)
    note = (
        "Each mark is an op, or several equal ones; its area is proportional to their time. FLOP are those of the layer's "
        "definition, so an algorithm that needs fewer can lie above a ceiling. The flat ceilings are peaks at "
        f"{show(e.clock_hz, 'Hz')}; the dotted line is the memory bandwidth that a long copy achieves."
    )
    note += f" {shown.unseen}" if shown.unseen else ""
    head = ("layer", "count", "kind", "bound", "flop_per_byte", "flop_per_s", "time_s")
    points = [(p.name, p.count, p.kind, p.bound, p.intensity, p.rate, p.time_s) for p in shown.points]
    picture = drawing(inline(shown, f"{e.network} on {device_name(e, spec)}"), "roofline", head, points)
    return f'<h2>Roofline</h2>\n<p class="quiet">{text(note)}</p>\n{picture}'


def layers_section(e: Estimate) -> str:
    """Every layer in a table."""
    head = ("name", "kind", "phase", "time", "share", "bound", "algorithm", "FLOP", "DRAM", "energy")
    rows = [_layer(op, e.latency_s) for op in e.ops]
    note = "Click a column head to sort; hover over an algorithm for its kernels."
    return f'<h2>Layers</h2>\n<p class="quiet">{note}</p>\n<div class="scroll">\n{table(head, rows)}\n</div>'


def _layer(op: OpEstimate, latency: float) -> tuple[TableCell, ...]:
    algorithm = op.kernels[0].algorithm if op.kernels else ""
    several = len(op.kernels) > 1 or any(kernel.name != algorithm for kernel in op.kernels)
    kernels = "; ".join(f"{kernel.name} {show(kernel.time_s, 's', 3)} ({kernel.bound})" for kernel in op.kernels)
    return (
        words(op.name), words(op.kind), words(phase_name(op.phase)), number(op.time_s, "s"),
        TableCell(body=percent(op.time_s / latency).body, style="num"), bound_cell(op.bound),
        words(algorithm, tip=kernels if several else ""), number(op.flop, "FLOP"),
        number(op.dram_bytes, "B"), number(op.energy_j, "J"),
    )  # fmt: skip


def _assumptions(e: Estimate, spec: Spec) -> str:
    parts = ["<h2>Assumptions</h2>"]
    if e.assumptions:
        parts.append(items(e.assumptions))
    changed = [entry for entry in spec.entries.values() if entry.kind == "set"]
    if changed:
        parts.append(f"<p>Values of the device that the user has set:</p>\n{_entries(changed, 'source')}")
    if spec.assumed:
        count = f"{len(spec.assumed)} of {len(spec.entries)}"
        note = f"{count} values of the device are not published of it: they are assumed or those of a sibling chip:"
        parts.append(f"<p>{note}</p>\n{_entries(spec.assumed, 'note')}")
    elif not e.assumptions:
        parts.append("<p>None.</p>")
    return "\n".join(parts)


def _entries(entries: list[Entry], remark: str) -> str:
    rows = [(words(entry.key), words(entry.written, style="num"), words(getattr(entry, remark))) for entry in entries]
    return table(("value of the spec", "written", remark), rows)


def _provenance(e: Estimate) -> str:
    rows = [(words(key.replace("_", " ")), TableCell(body=f"<code>{text(value)}</code>")) for key, value in e.provenance.items()]
    return f"<h2>Provenance</h2>\n{table(('what', 'version or hash'), rows, style='pairs')}"
