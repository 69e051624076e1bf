"""Elasticities as text, JSON, CSV, and a page with tornados."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from archsim.base.units import show
from archsim.device.part import Unit
from archsim.device.spec import read_by
from archsim.device.variant import called, device_fields
from archsim.estimation.die import moves_area
from archsim.estimation.estimate import estimate_of
from archsim.estimation.fidelity import CLOSED, SIMULATED
from archsim.estimation.request import Request
from archsim.report import figures
from archsim.report.data import rows_as_csv
from archsim.report.frame import document
from archsim.report.markup import table as html_table
from archsim.report.markup import text, valued, words
from archsim.report.study_figures import Span, tornado
from archsim.report.text import clean, floor_line, limit_line, table
from archsim.study.sensitivity import OUTPUTS, Elasticity, by_swing

SCHEMA = "archsim-sensitivity/1"
BAR = 18  # characters of one half of the tornado
TITLES = {"latency_s": "latency", "energy_j": "energy", "power_w": "power"}
AREA = "moves the area of the die alone"


def heading(request: Request, of: str = "") -> str:
    """The request on one line; what stands before the name of the device is `of`."""
    return (f"{clean(request.network)} on {of}{clean(called(request.spec))}: {request.task}, batch {request.batch}, "
            f"{request.precision}, stack {request.stack.id}, {request.fidelity.name} model")  # fmt: skip


def limit_text(request: Request) -> str:
    """What limits the run, and the floor that the host CPU sets, which no value of the device moves."""
    e = estimate_of(request, references=False)
    floor = floor_line(e)
    return f"limited by  {limit_line(e)}" + (f"\nhost        {floor}" if floor else "")


def sensitivity_text(request: Request, found: Sequence[Elasticity], output: str, step: float, span: float) -> str:
    """A table of the values that matter with a tornado of `output`, and the list of the others."""
    live = by_swing(found, output)
    widest = max((abs(v) for e in live for v in e.swing[output] if v is not None), default=0.0) or 1.0
    rows = [
        (e.key, value_text(e), *(f"{e.local[name]:+.3f}" for name in OUTPUTS), _bar(e.swing[output], widest),
         _ends(e.swing[output]), e.jump)
        for e in live
    ]  # fmt: skip
    percent = f"{100 * step:g} %"
    head = ("key", "value", *(TITLES[name] for name in OUTPUTS), f"{TITLES[output]} at -{100 * span:g} % | +{100 * span:g} %", "",
            "")  # fmt: skip
    parts = [
        f"{heading(request)}\n{limit_text(request)}",
        f"Elasticities: per cent of output for each per cent of the value; steps of {percent} (whole numbers: of 1) both ways.",
        table(head, rows, left=(0, 5, 7)),
        _legend(request, found),
    ]
    return "\n\n".join(filter(None, parts))


def value_text(e: Elasticity) -> str:
    """The base value with its unit."""
    return show(e.value, e.unit.unit, 4)


def _bar(pair: tuple[float | None, float | None], widest: float) -> str:
    """A tornado bar: '-' for less of the value, '+' for more; left of the middle the output falls, right of it it rises."""
    cells = [" "] * (2 * BAR + 1)
    for value, sign in zip(pair, "-+", strict=True):
        length = 0 if value is None else round(BAR * abs(value) / widest)
        steps = range(BAR + 1, BAR + 1 + length) if (value or 0.0) > 0 else range(BAR - length, BAR)
        for i in steps:
            cells[i] = sign
    cells[BAR] = "|"
    return "".join(cells)


def _ends(pair: tuple[float | None, float | None]) -> str:
    return " ".join("    no" if v is None else f"{100 * math.expm1(v):+5.1f}%" for v in pair)


def _legend(request: Request, found: Sequence[Elasticity]) -> str:
    titles = ("without effect here", f"read by --fidelity {SIMULATED} alone", "read by --traffic simulated alone",
              "read by no model")  # fmt: skip
    groups: dict[str, list[str]] = {title: [] for title in (*titles[:1], AREA, *titles[1:])}
    for e in found:
        if e.unit.informational or not (e.matters or e.why):
            groups[AREA if moves_area(request.spec, e.key) else titles[_reader(e.unit, request)]].append(e.key)
    lines = ["bars: '-' with less of the value, '+' with more; left of | the output falls, right of it it rises"]
    lines += [f"{title}: {', '.join(names)}" for title, names in groups.items() if names]
    lines += [f"{e.key}: {e.why}" for e in found if e.why]
    return "\n".join(lines)


def _reader(unit: Unit, request: Request) -> int:
    """Who reads a key without an effect: 0 the fidelity of the request, 1 the cycle model, 2 simulated caches, 3 nobody."""
    if unit.informational:
        return 3
    here = unit.cache and request.traffic != CLOSED
    if unit.cycle:
        return 0 if here or request.fidelity.name == SIMULATED else 1
    return 2 if unit.cache and not here else 0


def asked_record(request: Request) -> dict[str, Any]:
    """A request as plain values."""
    return {"network": request.network, **device_fields(request.spec), "stack": request.stack.id, "task": request.task,
            "batch": request.batch, "precision": request.precision}  # fmt: skip


def sensitivity_record(request: Request, found: Sequence[Elasticity], step: float, span: float) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "schema": SCHEMA, **asked_record(request), "step": step, "span": span, **_limits(request),
        "values": [
            {"key": e.key, "unit": e.unit.unit, "value": e.value, "elasticity": dict(e.local) or None,
             "one_sided": {k: list(v) for k, v in e.sides.items()} or None,
             "span_low": e.low, "span_high": e.high, "log_ratio": {k: list(v) for k, v in e.swing.items()} or None,
             "informational": e.unit.informational, "moves": read_by(e.unit), "note": e.why or e.jump}
            for e in found
        ],
    }  # fmt: skip


def _limits(request: Request) -> dict[str, Any]:
    e = estimate_of(request, references=False)
    return {"limited_by": e.limited_by, "relief_s": dict(e.relief_s), "host_floor_s": e.host_floor_s}


def sensitivity_csv(found: Sequence[Elasticity], device: str = "") -> str:
    """One row for each value of the spec, empty where there is no elasticity; with a `device`, its name in each row."""
    own = {"hardware_name": device} if device else {}
    rows = [[*own.values(), e.key, e.unit.unit, e.value, *(e.local.get(name) for name in OUTPUTS), e.why or e.jump]
            for e in found]  # fmt: skip
    return rows_as_csv((*own, "key", "unit", "value", *(f"elasticity_{name}" for name in OUTPUTS), "note"), rows)


def sensitivity_page(request: Request, found: Sequence[Elasticity], span: float) -> str:
    """Tornados of time and energy, and all elasticities."""
    sections = [f'<h1>Sensitivity</h1>\n<p class="asked">{text(heading(request))}</p>\n<p>{text(limit_text(request))}</p>']
    for name in ("latency_s", "energy_j"):
        live = by_swing(found, name)[:20]
        rows = [_span(e, name) for e in live]
        note = f"Change of the {TITLES[name]} with {100 * span:g} % less and more of each value, the widest on top."
        if rows:
            ends = (f"{100 * span:g} % less", f"{100 * span:g} % more")
            chart = figures.embed(tornado(rows, "%", f"change of the {TITLES[name]}", *ends), f"tornado-{name}")
            sections.append(f'<h2>{TITLES[name].capitalize()}</h2>\n<p class="quiet">{note}</p>\n{chart}')
    cells = [
        (words(e.key), words(value_text(e), style="num"),
         *(valued(f"{e.local[n]:+.3f}", e.local[n]) for n in OUTPUTS), words(e.jump))
        for e in by_swing(found)
    ]  # fmt: skip
    body = html_table(("value of the spec", "at the base", *(f"elasticity of {TITLES[n]}" for n in OUTPUTS), ""), cells)
    legend = "".join(f"<p>{text(line)}</p>" for line in _legend(request, found).splitlines()[1:])
    sections.append(f'<h2>Elasticities</h2>\n<div class="scroll">\n{body}\n</div>\n{legend}')
    return document(f"Sensitivity of {request.network} on {called(request.spec)}", sections, figures.library())


def _span(e: Elasticity, name: str) -> Span:
    less, more = e.swing[name]
    low, high = (0.0 if v is None else 100.0 * math.expm1(v) for v in (less, more))
    note = " / ".join("impossible" if v is None else f"{100 * math.expm1(v):+.1f} %" for v in (less, more))
    return Span(name=e.key, low=low, value=0.0, high=high, note=note)


def sensitivity_table(found: Sequence[Elasticity], output: str, most: int) -> str:
    """The first rows as a plain table, for documents, with a remark where the two one-sided slopes differ much."""
    shown = by_swing(found, output)[:most]
    rows = [(e.key, value_text(e), *(f"{e.local[name]:+.3f}" for name in OUTPUTS)) for e in shown]
    head, rule, *lines = table(("key", "value", *(TITLES[name] for name in OUTPUTS)), rows).splitlines()
    return "\n".join([head, rule, *(f"{line}  {e.jump}".rstrip() for line, e in zip(lines, shown, strict=True))])
