"""Parts of a study about few devices: sensitivities, before and after, batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archsim.answers.sensitivity import HEAD, TITLES, rows_of
from archsim.answers.whatif import limits, quantity, ratio_text
from archsim.base.arguments import changes_of
from archsim.base.units import grouped, show
from archsim.estimation.estimate import estimate_of
from archsim.estimation.result import OpEstimate
from archsim.render.csv import csv_lines
from archsim.report.lines_svg import lines_svg
from archsim.report.study_figures import PlotAxis, Series
from archsim.report.study_section import DIGITS, Section, csv_text, markdown, requests, section
from archsim.study.batches import CURVATURE, BatchCurve, batch_curve, batches_of
from archsim.study.contender import Contender, contender
from archsim.study.file import BatchesForm, PartForm, SensitivityForm, WhatIfForm
from archsim.study.sensitivity import NOTHING, OUTPUTS, by_swing, sensitivity
from archsim.study.whatif import TOTALS, Change, beside, change, changed_limits


def elasticities(part: PartForm) -> Section:
    """Elasticities with respect to the values of the spec."""
    assert isinstance(part, SensitivityForm)
    asked = requests(part)
    made = section(part, asked)
    for request in asked:
        found = sensitivity(request)
        name = f"{part.name}_{request.network}_{request.spec.identity.id}.csv"
        made.files[name] = csv_lines([HEAD, *([_rounded(cell) for cell in row] for row in rows_of(found))])
        cell = f"{request.network} on {request.spec.identity.id}"
        made.body += ["", f"{cell}: elasticities, per cent of output for each per cent of the value."]
        shown = [(e.key, show(e.value, e.unit.unit), *(f"{e.local[name]:+.3f}" for name in OUTPUTS), e.jump)
                 for e in by_swing(found)[: part.top]]  # fmt: skip
        made.body += markdown(("value of the device", "", *(TITLES[name] for name in OUTPUTS), ""), shown)
    return made


def _rounded(cell: Any) -> Any:
    """A number with fewer digits: differences of logs have fewer significant ones."""
    return f"{cell if abs(cell) > NOTHING else 0.0:.{DIGITS - 2}g}" if isinstance(cell, float) else cell


def before_after(part: PartForm) -> Section:
    """Totals before and after a change, ops whose limit changed, and a table of all ops."""
    assert isinstance(part, WhatIfForm)
    target = part.to.get("hw")
    other = part.model_copy(update={"hw": [str(target)]}) if target else part
    moved = {name: value for name, value in changes_of(part.to).items() if name != "hw"}
    changed = {"settings": {**part.arguments.get("settings", {}), **part.change}, **moved}
    before, after = requests(part), requests(other, **changed)
    made = section(part, [*before, *after])
    words = tuple([f"{k} = {v}" for k, v in {**part.change, **part.to}.items()])
    rows: list[list[Any]] = []
    for b, a in zip(before, after, strict=True):
        found = change(estimate_of(beside(b, a), references=False), estimate_of(a, references=False), words)
        made.body += ["", f"{b.network} on {b.spec.identity.id}, what if {', '.join(words)}:"]
        made.body += [*markdown(("", "before", "after", ""), _totals(found)), *(f"- {x}" for x in changed_limits(found))]
        rows += [[b.network, b.spec.identity.id, op.name, op.kind, *_op(op.before), *_op(op.after), op.ratio] for op in found.ops]
    head = ("network", "hardware", "op", "kind", "before_s", "before_bound", "after_s", "after_bound", "ratio")
    made.files[f"{part.name}.csv"] = csv_text(head, rows)
    return made


def _totals(c: Change) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, title, unit in TOTALS:
        before, after = (quantity(getattr(e, name), unit, name, e) for e in (c.before, c.after))
        rows.append((title, before, after, ratio_text(c.ratios.get(name))))
    return [*rows, ("limited by", limits(c.before), limits(c.after), "")]


def _op(one: OpEstimate | None) -> tuple[Any, Any]:
    return (None, None) if one is None else (one.time_s, one.bound)


def over_batches(part: PartForm) -> Section:
    """Time per sample against batch for each device and precision: a chart, the best batch of each, and the curvature."""
    assert isinstance(part, BatchesForm)
    sizes = batches_of(part.batches)
    made, rows = section(part, [], ["batch"], ", ".join(part.precisions)), list[list[Any]]()
    for net in part.net:
        curves = [(precision, _curve(part, made, net, hw, precision, sizes)) for hw in part.hw for precision in part.precisions]
        series = [
            Series(name=f"{c.name} {precision}", x=c.batches, y=c.per_sample_s, hollow=[not p.estimate.fits for p in c.points])
            for precision, c in curves
        ]
        picture = f"{part.name}_{net}.svg"
        across, up = PlotAxis(title="batch (rings do not fit the memory)", log=True), PlotAxis(title="time per sample", unit="s")
        made.files[picture] = lines_svg(f"{net}, {part.arguments['task']}", series, across, up)
        start = curves[0][1].points[0]
        head = ("", "stack", f"batch {sizes[0]}", "faster", "best batch", "samples/s there", "faster", "power")
        made.body += ["", f"![{net} over batches]({picture})"]
        made.body += markdown(head, [_best(precision, c, start) for precision, c in curves], left=2)
        made.body += [f"Faster: than {series[0].name} at batch {sizes[0]}.", ""]
        made.body += [*(f"- {precision}: {_shape(c)}" for precision, c in curves), "", CURVATURE]
        rows += [
            [net, c.name, precision, p.estimate.stack, p.estimate.batch, p.latency_s, time, p.throughput_per_s,
             p.estimate.power_w, p.energy_j, int(p.estimate.fits)]
            for precision, c in curves for p, time in zip(c.points, c.per_sample_s, strict=True)
        ]  # fmt: skip
    columns = ("network", "hardware", "precision", "stack", "batch", "latency_s", "per_sample_s", "throughput_per_s", "power_w",
               "energy_j", "fits")  # fmt: skip
    made.files[f"{part.name}.csv"] = csv_text(columns, rows)
    return made


def _curve(part: PartForm, made: Section, net: str, hw: str, precision: str, sizes: Sequence[int]) -> BatchCurve:
    one = part.model_copy(update={"net": [net], "hw": [hw]})
    asked = [requests(one, precision=precision, batch=batch)[0] for batch in sizes]
    made.requests.append(asked[0])
    return batch_curve([contender(request, copies=False, references=False) for request in asked])


def _shape(c: BatchCurve) -> str:
    """The curvature of one device, and its largest batch."""
    return f"{c.name}: curvature {c.curvature}; {c.limit}" if c.bends else f"{c.name}: {c.limit}"


def _best(precision: str, c: BatchCurve, start: Contender) -> tuple[str, ...]:
    """The first batch and the best that fits, beside the first batch of the first device."""
    first, fitting = c.points[0], [p for p in c.points if p.fits]
    alone = (f"{c.name} {precision}", first.estimate.stack, show(c.per_sample_s[0], "s", 3),
             ratio_text(first.throughput_per_s / start.throughput_per_s))  # fmt: skip
    if not fitting:
        return (*alone, "none fits", "-", "-", "-")
    best = max(fitting, key=lambda p: p.throughput_per_s)
    return (*alone, str(best.estimate.batch), grouped(best.throughput_per_s),
            ratio_text(best.throughput_per_s / start.throughput_per_s), show(best.estimate.power_w, "W", 3))  # fmt: skip
