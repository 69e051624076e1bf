"""A study as files: a report in Markdown, pictures, and a table for each part. Equal studies give equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archsim.answers import search as of_search
from archsim.answers import sensitivity as of_sensitivity
from archsim.answers import whatif as of_whatif
from archsim.base.arguments import ARGUMENTS, changes_of
from archsim.base.errors import ArchsimError, InputError
from archsim.base.units import COUNT, grouped, show
from archsim.base.version import __version__
from archsim.detect.catalog import find
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import OpEstimate
from archsim.render.blocks import Axis, Block, Cell, Chart, Facts, Note, Series, Table, Verdict, columns, count, number, words
from archsim.render.markdown import file_name, markdown, pictures
from archsim.render.text import csv_lines
from archsim.study.axis import axis_of, base_value
from archsim.study.batches import BatchCurve, batch_curve, batches_of
from archsim.study.contender import contender
from archsim.study.file import BatchesForm, GridForm, PartForm, SearchForm, SensitivityForm, Study, WhatIfForm
from archsim.study.grid import OUTPUTS as GRID_OUTPUTS
from archsim.study.grid import evaluate
from archsim.study.knob import WORDS, meaning
from archsim.study.objective import OUTPUTS, conditions, objectives, output_of
from archsim.study.search import Evaluator, SearchGoal, search, with_default_front
from archsim.study.sensitivity import NOTHING, SPAN, STEP, Sensitivity, sensitivity
from archsim.study.space import Space
from archsim.study.whatif import beside, change

REPORT = "README.md"
LARGEST_REPORT = 1 << 24  # bytes
MADE = (
    "Made by `archsim study study.toml` in this folder; every figure below is a prediction of the model, none a measurement."
)
DIGITS = 6  # of every number in a table, so that another processor's last bits change no byte
DOUBLE = 2.0
DOUBLED = ("latency_s", "energy_j", "throughput_per_w")  # what doubling a knob is told of
MOST_POINTS = 20_000  # of one grid, so that its table stays readable


@dataclass(slots=True, kw_only=True)
class Section:
    """A part of the report: its answers as blocks, its tables as CSV by file, and the requests behind them."""

    requests: list[Request]
    precision: str = ""
    varied: Collection[str] = ()
    blocks: list[Block] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)


def study_files(study: Study, tell: Callable[[str], None] = lambda text: None) -> dict[str, str]:
    """The files of a study: name -> text, `REPORT` among them. Raises InputError for a part that cannot be computed."""
    intro: list[Block] = [Verdict(title=study.title, sentences=_paragraphs(study.question)), Note(text=MADE, tone="quiet")]
    report, files, requests = markdown(intro), dict[str, str](), list[Request]()
    for place, part in enumerate(study.parts, 1):
        tell(f"{part.title} ({place} of {len(study.parts)})")
        try:
            made = PARTS[part.kind](part)
        except ArchsimError as error:
            raise InputError(study.path, f"part {part.name}: {error}") from None
        head = Verdict(title=part.title, asked=_asked(part, made), sentences=_paragraphs(part.note))
        report += markdown([head], 2) + markdown(made.blocks, 3)
        files |= {**pictures(made.blocks), **made.tables}
        requests += made.requests
    report += markdown([Verdict(title="Provenance", asked=[f"archsim {__version__}"]), Facts(rows=_provenance(requests))], 2)
    return {REPORT: report.rstrip() + "\n", **files}


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a text of a file, each in one line."""
    return [" ".join(lines.split()) for lines in text.strip().split("\n\n")]


def _asked(part: PartForm, made: Section) -> list[str]:
    """What a part runs on what, but for the knobs that vary in it."""
    given = part.arguments
    given["precision"] = made.precision or given["precision"]
    return [f"{', '.join(part.net)} on {', '.join(part.hw)}",
            *(text for name, value in given.items() if name not in (*made.varied, "stack") for text in _words(name, value))]


def _words(name: str, value: Any) -> list[str]:
    """An argument that a part has, in words."""
    if isinstance(value, dict):
        return [f"{key} x {one:g}" if name == "scales" else f"{key} = {one}" for key, one in value.items()]
    return [f"{name.replace('_', ' ')} {ARGUMENTS[name].shown(value)}"]


def _provenance(requests: Sequence[Request]) -> list[tuple[str, str]]:
    """Each thing that entered, with the digest of its values."""
    devices = dict.fromkeys(q.spec.identity.id for q in requests)
    kinds = {"network": {q.network: q.trace_digest for q in requests}, "device": {name: find(name).digest for name in devices},
             "stack": {q.stack.id: q.stack.digest for q in requests},
             "calibration": {q.calibration.version: q.calibration.digest for q in requests}}  # fmt: skip
    return [(f"{kind} `{name}`", digest) for kind, named in kinds.items() for name, digest in sorted(named.items())]


def _requests(part: PartForm, **more: Any) -> list[Request]:
    """Each network on each device, with `more` arguments of an estimate."""
    return [make_request(net, hw, **{**part.arguments, **more}) for net in part.net for hw in part.hw]


def _name(part: PartForm, request: Request) -> str:
    return f"{part.name}_{request.network}_{request.spec.identity.id}"


def _where(request: Request) -> str:
    return f"{request.network} on {request.spec.identity.id}"


def _csv(head: Iterable[str], rows: Iterable[Sequence[Any]], digits: int = DIGITS) -> str:
    return csv_lines([[*head], *([f"{cell:.{digits}g}" if isinstance(cell, float) else cell for cell in row] for row in rows)])


def grid(part: PartForm) -> Section:
    """All values of some knobs: a chart for each network and device, the effect of doubling each knob, and a table."""
    assert isinstance(part, GridForm)
    asked, output = _requests(part), output_of(part.y)
    if output not in GRID_OUTPUTS:
        raise ArchsimError(f"y: {part.y} is no output of a grid; one of {', '.join(GRID_OUTPUTS)}")
    kind = asked[0].spec.kind
    axes = tuple(axis_of(text, kind) for text in part.vary)
    knobs = [axis.knob for axis in axes]
    for named in filter(None, (part.x, part.lines)):
        if named not in knobs:
            raise ArchsimError(f"{named}: is drawn and not varied")
    made, rows, doubled = Section(requests=asked, varied=knobs), list[list[Any]](), list[list[Cell]]()
    title, unit = OUTPUTS[output][:2]
    across, up = Axis(title=part.x, unit=meaning(kind, part.x).unit), Axis(title=title.replace("_", " "), unit=unit)
    for request in asked:
        base = {"net": request.network, "hw": request.spec.identity.id}
        space = Space(bases=(base,), axes=axes)
        if space.count > MOST_POINTS:
            raise ArchsimError(f"{space.count:,} points are more than {MOST_POINTS:,}, the most of one part")
        pieces = [space.columns(space.part(i), request) for i in range(space.parts)]
        points = {knob: np.concatenate([piece[knob] for piece in pieces]) for knob in pieces[0]}
        values = evaluate(request, points)
        rows += [[*base.values(), *(points[knob][i] for knob in knobs), *(float(values[o][i]) for o in GRID_OUTPUTS)]
                 for i in range(space.count)]  # fmt: skip
        made.blocks.append(Chart(title=f"{_where(request)}: {up.title} over {part.x}", name=_name(part, request), x=across, y=up,
                                 series=_lines(part, knobs, points, values[output], kind)))  # fmt: skip
        doubled += [_doubled(request, knob) for knob in knobs if part.double and knob not in WORDS]
    if doubled:
        heads = columns("twice", "of", *(OUTPUTS[name][0].replace("_", " ") for name in DOUBLED), numbers=(2, 3, 4))
        made.blocks.append(Table(title="What doubling does", columns=heads, rows=doubled))
    made.tables[f"{part.name}.csv"] = _csv(("network", "hardware", *knobs, *GRID_OUTPUTS), rows)
    return made


def _lines(part: GridForm, knobs: Sequence[str], points: Mapping[str, Any], y: Any, kind: str) -> list[Series]:
    """One line for each value of `lines`; other knobs stay at their first value."""
    at = np.ones(len(y), dtype=bool)
    for knob in knobs:
        if knob not in (part.x, part.lines):
            at &= points[knob] == points[knob][0]
    if part.lines is None:
        return [Series(name=part.y, x=points[part.x][at].tolist(), y=y[at].tolist())]
    found = []
    for value in dict.fromkeys(points[part.lines].tolist()):
        here = at & (points[part.lines] == value)
        name = value if isinstance(value, str) else f"{part.lines} {show(value, meaning(kind, part.lines).unit, 3)}"
        found.append(Series(name=name, x=points[part.x][here].tolist(), y=y[here].tolist()))
    return found


def _doubled(request: Request, knob: str) -> list[Cell]:
    """The effect of twice the base value, everything else unchanged."""
    base = base_value(request, knob)
    values = evaluate(request, {knob: np.array([base, DOUBLE * base])})
    ratios = [float(values[name][1] / values[name][0]) for name in DOUBLED]
    return [words(knob), words(_where(request)), *(words(of_whatif.ratio_text(ratio)) for ratio in ratios)]


def elasticities(part: PartForm) -> Section:
    """Elasticities with respect to the values of the spec."""
    assert isinstance(part, SensitivityForm)
    made = Section(requests=_requests(part))
    for request in made.requests:
        found = tuple(sensitivity(request))
        rows = [[0.0 if isinstance(cell, float) and abs(cell) <= NOTHING else cell for cell in row]
                for row in of_sensitivity.rows_of(found)]  # fmt: skip
        # differences of logs have fewer digits
        made.tables[file_name(_name(part, request), "csv")] = _csv(of_sensitivity.HEAD, rows, DIGITS - 2)
        whole = Sensitivity(request=request, values=found, step=STEP, span=SPAN, output="latency_s")
        made.blocks += of_sensitivity.sections(whole, part.top)
    return made


def before_after(part: PartForm) -> Section:
    """Totals before and after a change, which layers gain, and a table of all ops."""
    assert isinstance(part, WhatIfForm)
    target = part.to.get("hw")
    other = part.model_copy(update={"hw": [str(target)]}) if target else part
    moved = {name: value for name, value in changes_of(part.to).items() if name != "hw"}
    changed = {"settings": {**part.arguments.get("settings", {}), **part.change}, **moved}
    before, after = _requests(part), _requests(other, **changed)
    made, rows = Section(requests=[*before, *after]), list[list[Any]]()
    said = tuple([f"{name} = {value}" for name, value in {**part.change, **part.to}.items()])
    for b, a in zip(before, after, strict=True):
        found = change(estimate_of(beside(b, a), references=False), estimate_of(a, references=False), said)
        made.blocks += [*of_whatif.sections(found), replace(of_whatif.totals_table(found), level=0)]
        rows += [[b.network, b.spec.identity.id, op.name, op.kind, *_op(op.before), *_op(op.after), op.ratio] for op in found.ops]
    head = ("network", "hardware", "op", "kind", "before_s", "before_bound", "after_s", "after_bound", "ratio")
    made.tables[f"{part.name}.csv"] = _csv(head, rows)
    return made


def _op(one: OpEstimate | None) -> tuple[Any, Any]:
    return (None, None) if one is None else (one.time_s, one.bound)


def over_batches(part: PartForm) -> Section:
    """Time per sample against batch for each device and precision: a chart, and the best batch of each."""
    assert isinstance(part, BatchesForm)
    sizes = batches_of(part.batches)
    made, rows = Section(requests=[], precision=", ".join(part.precisions), varied=["batch"]), list[list[Any]]()
    for net in part.net:
        curves = {}
        for hw in part.hw:
            for precision in part.precisions:
                one = part.model_copy(update={"net": [net], "hw": [hw]})
                asked = [_requests(one, precision=precision, batch=batch)[0] for batch in sizes]
                made.requests.append(asked[0])
                curve = batch_curve([contender(request, copies=False, references=False) for request in asked])
                curves[f"{curve.name} {precision}"] = curve
                rows += [[net, curve.name, precision, p.estimate.stack, p.estimate.batch, p.latency_s, time, p.throughput_per_s,
                          p.estimate.power_w, p.energy_j, int(p.estimate.fits)]
                         for p, time in zip(curve.points, curve.per_sample_s, strict=True)]  # fmt: skip
        made.blocks += _curves(net, f"{part.name}_{net}", curves, sizes[0])
    head = ("network", "hardware", "precision", "stack", "batch", "latency_s", "per_sample_s", "throughput_per_s", "power_w",
            "energy_j", "fits")  # fmt: skip
    made.tables[f"{part.name}.csv"] = _csv(head, rows)
    return made


def _curves(net: str, name: str, curves: Mapping[str, BatchCurve], smallest: int) -> list[Block]:
    """The fastest, and all beside the smallest batch of the first device."""
    start = next(iter(curves))
    slowest = curves[start].points[0].throughput_per_s
    fastest = {one: max((p for p in c.points if p.fits), key=lambda p: p.throughput_per_s, default=None)
               for one, c in curves.items()}  # fmt: skip
    rows = []
    for one, c in curves.items():
        best = fastest[one]
        there = [words("none fits"), words("-"), words("-"), words("-")] if best is None else [
            count(best.estimate.batch), count(best.throughput_per_s),
            words(of_whatif.ratio_text(best.throughput_per_s / slowest)), number(best.estimate.power_w, "W")]  # fmt: skip
        rows.append([words(one), words(c.points[0].estimate.stack), number(c.per_sample_s[0], "s"),
                     words(of_whatif.ratio_text(c.points[0].throughput_per_s / slowest)), *there])  # fmt: skip
    live = {one: p for one, p in fastest.items() if p is not None}
    said = []
    if live:
        first = max(live, key=lambda one: live[one].throughput_per_s)
        p = live[first]
        said = [f"{first} is fastest: {grouped(p.throughput_per_s)} {p.estimate.sample}/s at batch {p.estimate.batch}, "
                f"{p.throughput_per_s / slowest:.3g} times {start} at batch {smallest}."]  # fmt: skip
    heads = columns("", "stack", f"batch {smallest}", "faster", "best batch", "samples/s there", "faster", "power",
                    numbers=range(2, 8))  # fmt: skip
    series = [Series(name=one, x=c.batches, y=c.per_sample_s, hollow=[not p.estimate.fits for p in c.points])
              for one, c in curves.items()]  # fmt: skip
    return [
        Verdict(title=net, sentences=said),
        Chart(title=f"{net} over batches", name=name, x=Axis(title="batch (rings do not fit the memory)", unit=COUNT, log=True),
              y=Axis(title="time per sample", unit="s"), series=series, height=400),
        Table(columns=heads, rows=rows, notes=[f"faster: than {start} at batch {smallest}"]),
    ]  # fmt: skip


def searched(part: PartForm) -> Section:
    """The best points of a space beside the base device, and the front."""
    assert isinstance(part, SearchForm)
    asked = _requests(part)
    axes = tuple(axis_of(text, asked[0].spec.kind) for text in part.vary)
    made, rows, head = Section(requests=asked, varied=[axis.knob for axis in axes]), list[list[Any]](), tuple[str, ...]()
    limited = tuple(conditions(part.where, {})) if part.where else ()
    aims = tuple(objectives(part.minimise, part.maximise))
    if not aims:
        raise ArchsimError("minimise: name what is wanted, like minimise = [\"latency\"]")
    for request in asked:
        space = Space(bases=({"net": request.network, "hw": request.spec.identity.id},), axes=axes)
        goal = with_default_front(SearchGoal(objectives=aims, conditions=limited), space.knobs, Evaluator(request).silicon)
        found = search(request, space, goal, top=part.top)
        head = (*found.knobs, *of_search.columns_of(found))
        made.blocks += [replace(block, name=_name(part, request)) if isinstance(block, Chart) else block
                        for block in of_search.sections(found)]  # fmt: skip
        rows += [[request.network, request.spec.identity.id, *(row[name] for name in head)] for row in found.front]
    made.tables[f"{part.name}_front.csv"] = _csv(("network", "hardware", *head), rows)
    return made


PARTS: dict[str, Callable[[PartForm], Section]] = {
    "grid": grid, "sensitivity": elasticities, "whatif": before_after, "batches": over_batches, "search": searched,
}  # fmt: skip
