"""A validation as text, JSON and CSV."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from archsim.base.version import __version__
from archsim.evidence.case import Skip
from archsim.evidence.columns import OWN
from archsim.evidence.misses import FAR
from archsim.evidence.pattern import LoopPattern
from archsim.report.cells import cells_text, inside, plain_errors, reasons_text
from archsim.report.data import rows_as_csv
from archsim.report.text import clean, per_cent, table
from archsim.validation.baseline import PLAIN
from archsim.validation.evaluation import GroupScore, Validation, ValidationSettings
from archsim.validation.score import LEVEL, Score

SCHEMA = "archsim-validation/1"
MOST_REASONS = 25
MOST_LINES = 8  # that are named of the rows that a reason skipped
WORST = 8  # loops of a core that are named
_RESULTS = ("measured", "predicted", "error", "lo", "hi")


def validation_text(v: Validation, provenance: dict[str, str]) -> str:
    """One line for each group, the overall lines, and the skipped rows."""
    cells = cells_text(v) if v.settings.cells else ""
    parts = [_heading(v), cells, _scores(v), _reasons(v), _furthest(v), _constants(v), _skipped(v), _provenance(provenance)]
    return "\n\n".join(part for part in parts if part)


def _heading(v: Validation) -> str:
    r = v.settings
    text = f"{len(v.cases)} measured values beside the {r.fidelity} model"
    text += f" without {', '.join(sorted(r.without))}" if r.without else ""
    return text + (f", each predicted without its {r.fold}" if r.fold else "")


def _scores(v: Validation) -> str:
    if not v.cases:
        return "nothing could be predicted"
    names = list(v.baselines)
    head = [
        *v.settings.by, "rows", "MAPE", f"{100 * LEVEL:.0f} % interval", "median", "p90", "bias", "order", "stacks", "covered",
        *names,
    ]  # fmt: skip
    rows = [_line(group, list(group.by.values()), names) for group in v.groups]
    left = len(v.settings.by)
    rows += [_line(group, [f"all {group.by['quantity']}", *[""] * (left - 1)], names) for group in v.overall]
    notes = (
        "MAPE, median and p90 of |predicted / measured - 1|; bias: the median of it, signed; order: Kendall's tau of the\n"
        "devices inside each network, mean (least); stacks: pairs of stacks with which a source ran the same network on the\n"
        "same device, in the measured order (of all); covered: share of measured values inside the stated interval, "
        f"{100 * v.settings.calibration.level:.0f} % meant"
    )
    notes += f";\n{' and '.join(names)}: the median error of that baseline" if names else ""
    notes += ", the model asked with the words of each row alone" if PLAIN in names else ""
    return f"{table(head, rows, left=left)}\n\n{notes}"


def _line(group: GroupScore, names: list[str], baselines: list[str]) -> list[str]:
    s, order, pairs = group.score, group.order, group.stacks
    covered = "-" if s.coverage is None else f"{100 * s.coverage:.0f} %"
    return [
        *names, str(s.n), per_cent(s.mape), f"{per_cent(s.mape_interval[0])} to {per_cent(s.mape_interval[1])}",
        per_cent(s.median_ape), per_cent(s.p90_ape), f"{100 * s.bias:+.1f} %",
        "-" if order is None else f"{order.mean:.2f} ({order.least:.2f})",
        "-" if pairs is None else f"{pairs.right} ({pairs.all})", covered,
        *[per_cent(group.baselines[name].median_ape) if name in group.baselines else "-" for name in baselines],
    ]  # fmt: skip


def _reasons(v: Validation) -> str:
    """Why rows are far off; cells have said it already, and of most rows of a corpus nobody knows."""
    known = sum(map(bool, v.reasons))
    return reasons_text(v) if not v.settings.cells and 2 * known > sum(abs(v.error) > FAR) else ""


def _furthest(v: Validation) -> str:
    """The loops of a core whose prediction is furthest off; nothing where there are none."""
    loops = [i for i, case in enumerate(v.cases) if isinstance(case.pattern, LoopPattern)]
    worst = sorted(loops, key=lambda i: -abs(v.error[i]))[:WORST]
    if not worst:
        return ""
    rows = [(clean(v.cases[i].label), f"{v.cases[i].measured:.2f}", f"{v.predicted[i]:.2f}", f"{100 * v.error[i]:+.1f} %")
            for i in worst]  # fmt: skip
    return "furthest off\n" + table(("loop", "measured clk", "predicted clk", "error"), rows)


def _constants(v: Validation) -> str:
    c = v.constants
    if c is None:
        return ""
    return (
        f"constants: the roofline at {per_cent(c.compute)} of the peak and {per_cent(c.bandwidth)} of the bandwidth, and "
        f"{1e6 * c.per_op_s:.1f} us for each op,\nfitted to {c.rows} rows of split calibrate"
    )


def _skipped(v: Validation) -> str:
    if not v.skips:
        return "no row was skipped"
    counted = Counter(skip.reason for skip in v.skips).most_common()
    lines = [f"{count:>6}  {clean(reason)}{_lines(v, reason)}" for reason, count in counted[:MOST_REASONS]]
    if len(counted) > MOST_REASONS:
        rest = counted[MOST_REASONS:]
        lines.append(f"{sum(count for _, count in rest):>6}  for {len(rest)} further reasons; --json lists each row")
    return "\n".join([f"{len(v.skips)} skipped", *lines])


def _lines(v: Validation, reason: str) -> str:
    """Where the rows stand that a reason skipped, if they are few."""
    places = [f"{skip.file}:{skip.line}" if len({one.file for one in v.skips}) > 1 else str(skip.line)
              for skip in v.skips if skip.reason == reason]  # fmt: skip
    return f" (line {', '.join(places)})" if len(places) <= MOST_LINES else ""


def _provenance(provenance: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in provenance.items())


def provenance_of(v: Validation, data: str) -> dict[str, str]:
    """The versions and hashes of a validation; `data` is that of the measurement files."""
    return provenance_of_settings(v.settings, data)


def provenance_of_settings(settings: ValidationSettings, data: str) -> dict[str, str]:
    """The versions and hashes of whatever is compared by these settings."""
    c = settings.calibration
    return {"version": __version__, "calibration": f"{c.version}+{c.digest}", "data": data}


def record(v: Validation, provenance: dict[str, str]) -> dict[str, Any]:
    """The validation as plain values, keys in the documented order."""
    r = v.settings
    return {
        "schema": SCHEMA,
        "fidelity": r.fidelity,
        "without": sorted(r.without),
        "cross_validated": r.fold,
        "provenance": provenance,
        "groups": [group_record(group) for group in v.groups],
        "overall": [group_record(group) for group in v.overall],
        "rows": [*rows(v)],
        "skipped": [
            {
                "file": skip.file,
                "row": skip.line,
                "reason": skip.reason,
                "source": skipped_source(skip),
                "hardware": skip.fields.get("hardware", ""),
            }
            for skip in v.skips
        ],
        "skipped_by_reason": dict(Counter(skip.reason for skip in v.skips).most_common()),
    }


def skipped_source(skip: Skip) -> str:
    """The source of a row that was skipped."""
    return skip.fields.get("source") or skip.fields.get("source_id", "")


def group_record(group: GroupScore) -> dict[str, Any]:
    """The score of a group as plain values."""
    order = group.order
    return {
        "by": dict(group.by),
        **_figures(group.score),
        "coverage": group.score.coverage,
        "kendall_tau": None if order is None else order.mean,
        "kendall_tau_least": None if order is None else order.least,
        "kendall_tau_groups": 0 if order is None else order.groups,
        "stack_pairs": 0 if group.stacks is None else group.stacks.all,
        "stack_pairs_in_order": 0 if group.stacks is None else group.stacks.right,
        "baselines": {name: _figures(score) for name, score in group.baselines.items()},
    }


def _figures(s: Score) -> dict[str, Any]:
    return {
        "n": s.n, "mape": s.mape, "mape_interval": list(s.mape_interval), "median_ape": s.median_ape, "p90_ape": s.p90_ape,
        "bias": s.bias,
    }  # fmt: skip


def rows(v: Validation) -> list[dict[str, Any]]:
    """One object for each row: the columns of its file, what they were read as, and the results."""
    found, plain = [], plain_errors(v)
    for i, case in enumerate(v.cases):
        numbers = (case.measured, v.predicted[i], v.error[i], v.low[i], v.high[i])
        found.append(
            {
                **case.fields,
                **{name: value(case) for name, value in OWN.items()},
                **{name: finite(value) for name, value in zip(_RESULTS, numbers, strict=True)},
                "inside": inside(v, i),
                "reason": v.reasons[i],
                **{name: finite(values[i]) for name, values in v.baselines.items()},
                **({"plain_error": finite(plain[i]), "conditions": "; ".join(v.conditions[i])} if plain else {}),
            }
        )
    return found


def finite(value: Any) -> float | None:
    """A number for JSON, which knows no infinity."""
    return float(value) if math.isfinite(value) else None


def validation_json(v: Validation, provenance: dict[str, str]) -> str:
    """One JSON object; never NaN or Infinity."""
    return json.dumps(record(v, provenance), allow_nan=False, ensure_ascii=True)


def validation_csv(v: Validation) -> str:
    """One line per row: what it is, the results, then the other columns of its file."""
    listed = rows(v)
    head = [*OWN, *_RESULTS, "inside", "reason", *v.baselines]
    head += [name for name in dict.fromkeys(name for row in listed for name in row) if name not in head]
    return rows_as_csv(tuple(head), [[row.get(name, "") for name in head] for row in listed])
