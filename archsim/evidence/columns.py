"""The columns of validated rows, what a row is called outside this package, and what others are told of it: its conditions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from archsim.evidence.case import QUANTITY, Case, Skip
from archsim.evidence.family import families

# name -> value: columns that every row has, whatever its file calls them
OWN: dict[str, Callable[[Case], str | int | None]] = {
    "file": lambda case: case.file,
    "line": lambda case: case.line,
    "source": lambda case: case.source,
    "label": lambda case: case.label,
    "hardware": lambda case: case.hardware,
    "stack": lambda case: case.stack_id,
    "task": lambda case: case.task,
    "batch": lambda case: case.batch,
    "precision": lambda case: case.precision,
    "metric": lambda case: case.metric,
    "split": lambda case: case.split,
}
DERIVED: dict[str, Callable[[Case], str]] = {
    "quantity": lambda case: QUANTITY[case.metric],
    "kind": lambda case: case.spec.kind,
    "architecture": lambda case: case.spec.identity.architecture,
    "framework": lambda case: case.stack.framework,
    "system": lambda case: "" if case.system is None else case.system[0].id,
}

def quantity(case: Case) -> str:
    """Time, power or energy."""
    return QUANTITY[case.metric]


def column(cases: Sequence[Case], name: str) -> list[str]:
    """One column of all cases, as text; empty where a case has none."""
    own = OWN.get(name) or DERIVED.get(name)
    return [str(own(case)) if own else case.fields.get(name, "") for case in cases]


def written(skip: Skip, name: str) -> str:
    """The value of a column as the file of a skipped row has it; empty where it has none."""
    places = {"source": ("source", "source_id"), "network": ("network", "op"), "metric": ("metric",)}.get(name, (name,))
    return next((skip.fields[place] for place in places if skip.fields.get(place)), "")


def known_columns(cases: Sequence[Case]) -> list[str]:
    """The names that `column` has values for."""
    return list(dict.fromkeys([*OWN, *DERIVED, *(name for case in cases for name in case.fields)]))


ID = "id"
DIGITS = 12  # hexadecimal; two of 50,000 rows agree by chance once in 200,000 corpora
# What a file says of its values besides the values: in other units, as ratios, as printed, how exactly they were read.
RESULTS = frozenset({
    *(name for family in families() for name in family.measured), "power_w", "energy_uj", "published_as", "tflops_printed",
    "gbytes_per_s_printed", "relative_power", "relative_performance", "relative_efficiency", "value_step", "spread_rel",
})  # fmt: skip
CLOCK = "clock_mhz"  # a condition, except where it is what was measured
REMARKS = frozenset({"source_ref", "notes", "note", "n_runs", "suspicious", "split", ID})


def with_ids(cases: Sequence[Case]) -> list[Case]:
    """The cases with their ids in column `id`.

    An id stands for the conditions of a row, so it survives rows before it, remarks and corrected values. A file that
    has the same conditions again gives the later row the id of the first with "-2".
    """
    seen: Counter[str] = Counter()
    found: list[Case] = []
    for case in cases:
        name = _digest(case)
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}-{seen[name]}"
        found.append(replace(case, fields={**case.fields, ID: name}))
    return found


def conditions(case: Case) -> dict[str, str]:
    """The columns of a row that are not empty and tell nothing of its measured value."""
    hidden = RESULTS if case.metric == "clock_hz" else RESULTS - {CLOCK}
    return {name: text for name, text in case.fields.items() if text and name not in hidden and name not in REMARKS}


def case_line(case: Case) -> str:
    """A case as a line of JSON for a predictor: what it is as archsim reads it, and in `row` the columns of its file."""
    own: dict[str, Any] = {name: OWN[name](case) for name in ("source", "label", "hardware", "stack", "task", "batch")}
    own |= {"precision": case.precision, "metric": case.metric, "file": case.file, "row": conditions(case)}
    return json.dumps({ID: case.fields[ID], **own}, ensure_ascii=True)


def _digest(case: Case) -> str:
    text = json.dumps([case.file, case.metric, sorted(conditions(case).items())])
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
