"""Parts of a study over many devices: grids and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archsim.answers.asked import knob_text
from archsim.answers.front import thin
from archsim.answers.search import columns_of, output_text
from archsim.answers.whatif import ratio_text
from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.estimation.request import Request
from archsim.report.lines_svg import lines_svg
from archsim.report.study_figures import PlotAxis, Series
from archsim.report.study_section import Section, csv_text, markdown, requests, section
from archsim.study.axis import KnobAxis as Knob
from archsim.study.axis import axis_of
from archsim.study.coupling import base_value
from archsim.study.file import GridForm, PartForm, SearchForm
from archsim.study.grid import OUTPUTS as GRID_OUTPUTS
from archsim.study.grid import evaluate
from archsim.study.knob import WORDS, meaning
from archsim.study.objective import OUTPUTS, conditions, objectives, output_of
from archsim.study.search import Evaluator, SearchGoal, search, with_default_front
from archsim.study.space import Space

DOUBLE = 2.0
MOST_POINTS = 20_000  # of one grid, so that its table stays readable
FRONT_ROWS = 6


def _axis_of(knob: str, kind: str) -> PlotAxis:
    unit = meaning(kind, knob).unit
    return PlotAxis(title=knob, unit="" if unit == "1" else unit)


def grid(part: PartForm) -> Section:
    """All values of some knobs: a chart for each network and device, the effect of doubling each knob, and a table."""
    assert isinstance(part, GridForm)
    asked = requests(part)
    output = output_of(part.y)
    if output not in GRID_OUTPUTS:
        raise ArchsimError(f"y: {part.y} is no output of a grid; one of {', '.join(GRID_OUTPUTS)}")
    kind = asked[0].spec.kind
    axes = tuple(axis_of(text, kind) for text in part.vary)
    found = section(part, asked, [axis.knob for axis in axes])
    for named in filter(None, (part.x, part.lines)):
        if named not in [axis.knob for axis in axes]:
            raise ArchsimError(f"{named}: is drawn and not varied")
    rows, doubled = [], []
    for request in asked:
        base = {"net": request.network, "hw": request.spec.identity.id}
        space = Space(bases=(base,), axes=axes)
        if space.count > MOST_POINTS:
            raise ArchsimError(f"{space.count:,} points are more than {MOST_POINTS:,}, the most of one part")
        columns = space.columns(space.part(0), request) if space.parts == 1 else _all(space, request)
        values = evaluate(request, columns)
        names = [axis.knob for axis in axes]
        rows += [[*base.values(), *(columns[n][i] for n in names), *(float(values[o][i]) for o in GRID_OUTPUTS)]
                 for i in range(space.count)]  # fmt: skip
        picture = f"{part.name}_{request.network}_{request.spec.identity.id}.svg"
        fixed = {"batch": f"batch {request.batch}", "precision": request.precision}
        said = [text for knob, text in fixed.items() if knob not in [axis.knob for axis in axes]]
        title = ", ".join([f"{request.network} on {request.spec.identity.id}", *said])
        across, up = _axis_of(part.x, kind), PlotAxis(title=OUTPUTS[output][0], unit=OUTPUTS[output][1])
        found.files[picture] = lines_svg(title, _lines(part, axes, columns, values[output], kind), across, up)
        found.body += ["", f"![{title}]({picture})"]
        doubled += [_doubled(request, axis) for axis in axes if part.double and axis.knob not in WORDS]
    if doubled:
        found.body += markdown(("twice", "of", "latency", "energy", "throughput per watt"), doubled, left=2)
    found.files[f"{part.name}.csv"] = csv_text(("network", "hardware", *(a.knob for a in axes), *GRID_OUTPUTS), rows)
    return found


def _all(space: Space, request: Request) -> dict[str, Any]:
    pieces = [space.columns(space.part(i), request) for i in range(space.parts)]
    return {knob: np.concatenate([piece[knob] for piece in pieces]) for knob in pieces[0]}


def _lines(part: GridForm, axes: Sequence[Knob], columns: dict[str, Any], y: Any, kind: str) -> list[Series]:
    """One line for each value of `lines`; other axes stay at their first value."""
    at = np.ones(len(y), dtype=bool)
    for axis in axes:
        if axis.knob not in (part.x, part.lines):
            at &= columns[axis.knob] == columns[axis.knob][0]
    if part.lines is None:
        return [Series(name=part.y, x=columns[part.x][at].tolist(), y=y[at].tolist())]
    found = []
    for value in dict.fromkeys(columns[part.lines].tolist()):
        here = at & (columns[part.lines] == value)
        unit = None if isinstance(value, str) else meaning(kind, part.lines).unit
        name = value if unit is None else f"{part.lines} {show(value, unit, 3)}"
        found.append(Series(name=name, x=columns[part.x][here].tolist(), y=y[here].tolist()))
    return found


def _doubled(request: Request, axis: Knob) -> tuple[str, ...]:
    """The effect of twice the base value, everything else unchanged."""
    base = base_value(request, axis.knob)
    values = evaluate(request, {axis.knob: np.array([base, DOUBLE * base])})
    ratios = [float(values[n][1] / values[n][0]) for n in ("latency_s", "energy_j", "throughput_per_w")]
    where = f"{request.network} on {request.spec.identity.id}"
    return (axis.knob, where, *(ratio_text(r) for r in ratios))


def searched(part: PartForm) -> Section:
    """The best points of a space beside the base device, and the front."""
    assert isinstance(part, SearchForm)
    asked = requests(part)
    kind = asked[0].spec.kind
    axes = tuple(axis_of(text, kind) for text in part.vary)
    made, rows = section(part, asked, [axis.knob for axis in axes]), []
    limited = tuple(conditions(part.where, {})) if part.where else ()
    aims = tuple(objectives(part.minimise, part.maximise))
    if not aims:
        raise ArchsimError("minimise: name what is wanted, like minimise = [\"latency\"]")
    head: tuple[str, ...] = ()
    for request in asked:
        space = Space(bases=({"net": request.network, "hw": request.spec.identity.id},), axes=axes)
        goal = with_default_front(SearchGoal(objectives=aims, conditions=limited), space.knobs, Evaluator(request).silicon)
        found = search(request, space, goal, top=part.top)
        columns = columns_of(found)
        head = (*found.knobs, *columns)
        wants = ", ".join(o.written for o in aims) + (f" where {part.where}" if part.where else "")
        made.body += ["", f"{request.network} on what-ifs of {request.spec.identity.id}: {wants}; {found.points:,} points, "
                         f"{found.feasible:,} within the limits."]  # fmt: skip
        base = ("as it is", *(knob_text(request, k, base_value(request, k)) for k in found.knobs),
                *(output_text(n, found.base) for n in columns))  # fmt: skip
        body = [(str(i + 1), *(knob_text(request, k, r[k]) for k in found.knobs), *(output_text(n, r) for n in columns))
                for i, r in enumerate(found.best)]  # fmt: skip
        made.body += markdown(("", *found.knobs, *(OUTPUTS[n][0] for n in columns)), [base, *body])
        edge = [(*(knob_text(request, k, r[k]) for k in found.knobs), *(output_text(o.output, r) for o in goal.front))
                for r in thin(found.front, FRONT_ROWS)]  # fmt: skip
        made.body += ["The front, from end to end:"]
        made.body += markdown((*found.knobs, *(OUTPUTS[o.output][0] for o in goal.front)), edge, left=0)
        rows += [[request.network, request.spec.identity.id, *(r[n] for n in head)] for r in found.front]
    made.files[f"{part.name}_front.csv"] = csv_text(("network", "hardware", *head), rows)
    return made
