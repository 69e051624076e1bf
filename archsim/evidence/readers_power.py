"""Rows of whole epochs under a power limit: mean power, and how time and energy change against the run without a limit.

Epochs hold what no network does (loading, decoding), so their times and energies are compared as ratios to the run of the
same batch under the highest limit, in which that cancels; the mean power is compared as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from archsim.evidence.case import Anchor, Case, Skip
from archsim.evidence.family import Family, Reader, integer
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.readers_kernel import parameters
from archsim.evidence.resolve import Refused, network, setting
from archsim.evidence.software import stack_of
from archsim.evidence.sources import protocol
from archsim.evidence.table import CsvTable, Row
from archsim.trace.task import Work, updated_by

CurveKey = tuple[str, str, str, str]  # what the rows of one curve agree in: hardware, model, batch, optimiser
LimitCurve = Mapping[str, Mapping[float, float]]  # metric -> power limit [W] -> measured value
TASKS = {"training": "training_step"}
MOST_POWER = 1e6  # W


def curves(table: CsvTable) -> dict[CurveKey, dict[str, dict[float, float]]]:
    """The measured curves of a table."""
    found: dict[CurveKey, dict[str, dict[float, float]]] = {}
    for row in table.rows:
        try:
            metric, limit = row.cells["metric"], _limit(row.cells)
        except Refused:  # which is said when the row itself is read
            continue
        if limit is not None and row.cells["value"]:
            found.setdefault(_key(row.cells), {}).setdefault(metric, {})[limit] = float(row.cells["value"])
    return found


def reader(table: CsvTable) -> Reader:
    """The reader of a table's rows, which compares each with the run of its curve under the highest limit."""
    known = curves(table)

    def read(row: Row, file: str) -> list[Case | Skip]:
        return _cases(row, file, known.get(_key(row.cells), {}))

    return read


def _cases(row: Row, file: str, curve: LimitCurve) -> list[Case | Skip]:
    """The cases of a row of power: its mean; of a row of energy: its energy, and its time as energy / mean power."""
    cells, limit = row.cells, _limit(row.cells)
    if limit is None:
        raise Refused("no power limit is given")
    if integer(cells, "n_devices", 1) != 1:
        raise Refused("several devices are not modelled")
    script, name, batch = protocol(cells["source_id"]), cells["model"], integer(cells, "batch")
    if name not in script.graphs:
        raise Refused(f"network {name!r} is not described")
    found = setting(cells["hardware"], stack_of(cells, "epochs", cells["software"]), cells["precision"])
    task = TASKS.get(cells["task"], cells["task"])
    optimiser, _ = updated_by(None, task, script.graphs[name], found.stack.optimiser)
    work = Work(script.graphs[name], task, optimiser, False, found.stack.attention.fused).now
    trace = network(work, batch, script.lengths.get(name))
    fields = {**cells, "source": cells["source_id"], "power_limit_w": f"{limit:g}", "boundary": script.boundary}

    def case(metric: str, measured: float, anchor: Anchor | None = None) -> Case:
        return case_of(row, file, found, script.graphs[name], metric, measured, trace=trace, fields=fields, task=task, work=work,
                       batch=batch, limit=limit, anchor=anchor, dispatch=1.0)  # fmt: skip

    if cells["metric"] == "power_w":
        return [case("power_w", float(cells["value"]))]
    if cells["metric"] != "energy_j":
        raise Refused(f"metric {cells['metric']!r} is not power_w or energy_j")
    energy, power = curve["energy_j"], curve.get("power_w", {})
    top = max(energy)
    if limit == top or limit not in power or top not in power:
        raise Refused("the run to which those under a lower limit are compared" if limit == top else "no mean power is given")
    return [
        case("energy_j", energy[limit], Anchor(limit=top, measured=energy[top])),
        case("latency_s", energy[limit] / power[limit], Anchor(limit=top, measured=energy[top] / power[top])),
    ]


def _key(cells: Mapping[str, str]) -> CurveKey:
    return cells["hardware"], cells["model"], cells["batch"], str(parameters(cells).get("optimizer", ""))


def _limit(cells: Mapping[str, str]) -> float | None:
    limit = parameters(cells).get("power_limit_w")
    return float(limit) if isinstance(limit, int | float) and 0 < limit < MOST_POWER else None


FAMILY = Family(
    name="power limits",
    columns=("source_id", "model", "task", "batch", "metric", "value", "hardware", "software", "precision", "params"),
    words=("source_id", "model", "metric", "hardware"),
    numbers=("value",),
    whole=("batch", "n_devices"),
    measured=("value",),
    reader=reader,
)
