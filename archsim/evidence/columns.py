"""The columns of validated rows, what a row is called outside this package, and what others are told of it: its conditions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from archsim.evidence.case import QUANTITY, Case
from archsim.evidence.family import families

# name -> value: columns that every row has, whatever its file calls them
OWN: dict[str, Callable[[Case], str | int]] = {
    **{name: attrgetter(name) for name in ("file", "line", "source", "label", "hardware")}, "stack": attrgetter("stack_id"),
    **{name: attrgetter(name) for name in ("task", "batch", "precision", "metric", "split")},
}  # fmt: skip


def quantity(case: Case) -> str:
    """Time, power or energy."""
    return QUANTITY[case.metric]


DERIVED: dict[str, Callable[[Case], str]] = {
    "quantity": quantity, "kind": attrgetter("spec.kind"), "architecture": attrgetter("spec.identity.architecture"),
    "framework": attrgetter("stack.framework"), "system": lambda case: "" if case.system is None else case.system[0].id,
}  # fmt: skip


def column(cases: Sequence[Case], name: str) -> list[str]:
    """One column of all cases, as text; empty where a case has none."""
    own = OWN.get(name) or DERIVED.get(name)
    return [str(own(case)) if own else case.fields.get(name, "") for case in cases]


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
        text = json.dumps([case.file, case.metric, sorted(conditions(case).items())])
        name = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
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
    named = ("source", "label", "hardware", "stack", "task", "batch", "precision", "metric", "file")
    own = {name: OWN[name](case) for name in named}
    return json.dumps({ID: case.fields[ID], **own, "row": conditions(case)}, ensure_ascii=True)
