"""A published row on its way to cases: its words, its device, under which conditions it was measured, and what it ran on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.device.spec import Spec
from archsim.evidence.case import DOUBTED, WATCHED, Case
from archsim.evidence.conditions import COLD, COLUMNS, Conditions
from archsim.evidence.family import Family
from archsim.evidence.resolve import Refused, Setting, as_measured, device, host_of, setting, stack_on
from archsim.evidence.sources import conditions_of
from archsim.evidence.table import UNPREDICTED, Row
from archsim.evidence.timer import TIMERS
from archsim.stack.stack import NEVER_AGAIN
from archsim.trace.trace import BoundOp, BoundTrace

SPLITS = {"score": WATCHED, "doubt": DOUBTED}  # of rows that a rule says are not fitted, whatever their file says


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A row while it is read: its place, its cells by the names that rules have for them, its device."""

    row: Row
    file: str
    family: Family
    words: Mapping[str, str]
    spec: Spec
    beside: Any

    @property
    def cells(self) -> Mapping[str, str]:
        """The cells as the file calls them."""
        return self.row.cells

    @property
    def source(self) -> str:
        """The id of its source."""
        return self.family.cell(self.cells, "source")

    @property
    def hardware(self) -> str:
        """What the row calls its device."""
        return self.family.cell(self.cells, "hardware")

    def conditions(self, metric: str, **more: str) -> Conditions:
        """Under which conditions a value was measured; `more` are words that the row has in no column of its own.

        Refused for a row that a rule skips.
        """
        words = {**self.words, **more, "metric": metric}
        named = words["stack"] or conditions_of(self.source, words)[0].stack
        framework = stack_on(named, self.spec).framework
        how, why = conditions_of(self.source, {**words, "framework": framework})
        if how.use == "skip":
            raise Refused(why)
        return how

    def stack(self, how: Conditions) -> str:
        """The name of the stack: the row's own, else that of a rule; empty for the device's usual one."""
        return self.words["stack"] or how.stack

    def ran(self, how: Conditions, threads: int = 0) -> Setting:
        """What a row ran on; on a CPU with `threads`, 0: as many as the stack usually takes.

        Refused where device, stack or precision are not described.
        """
        found = setting(self.hardware, self.stack(how), how.precision or self.words["precision"], threads=threads)
        return as_measured(found, how, NEVER_AGAIN if how.loop == COLD else int(how.loop))

    def case(
        self, how: Conditions, ran: Setting, label: str, metric: str, measured: float, *ops: BoundOp, **more: Any
    ) -> Case:  # fmt: skip
        """The case of a value; `more` are fields that are otherwise than of most rows, which time ops, or a pattern, alone."""
        cells = self.cells
        clock = how.clock_mhz or self.words["clock_mhz"]
        usual: dict[str, Any] = {
            "task": how.task or "inference", "batch": 1, "stored": ran.stored, "precision": ran.precision,
            "split": SPLITS.get(how.use) or cells.get("split", ""), "fields": {**cells, "source": self.source},
            "trace": alone(label, *ops), "timer": TIMERS[how.timer], "calls": how.calls, "host_cpu": host_of(how, ran.spec),
            "clock": float(clock) * 1e6 if clock else None,
        }  # fmt: skip
        if how.loop == COLD:
            usual["clock"] = float(np.ravel(ran.spec.device.clock.boost)[0])
        return Case(
            line=self.row.line, file=self.file, source=self.source, label=label, hardware=self.spec.identity.id,
            stack_id=ran.stack.id, metric=metric, measured=measured, spec=ran.spec, stack=ran.stack, **(usual | more),
        )  # fmt: skip

    def of_pattern(self, label: str, metric: str, measured: float, **more: Any) -> Case:
        """The case of a value that no library decides, but what a microbenchmark does to the device."""
        how = self.conditions(metric)
        return self.case(how, setting(self.hardware, self.stack(how), "fp32"), label, metric, measured, **more)


def alone(name: str, *ops: BoundOp) -> BoundTrace:
    """Single ops as what was timed; they read nothing from each other."""
    return BoundTrace(name=name, inputs={}, ops=ops, symbols={})


def row_of(family: Family, row: Row, file: str, beside: Any = None) -> PublishedRow:
    """A row with its words and its device; Refused for an unknown device, and for a row that says why it is not predicted."""
    if reason := row.cells.get(UNPREDICTED):
        raise Refused(reason)
    spec = device(family.cell(row.cells, "hardware"))
    words = {column: family.cell(row.cells, column) for column in COLUMNS}
    words |= {"family": family.name, "hardware": spec.identity.id, "architecture": spec.identity.kernels_of}
    return PublishedRow(row=row, file=file, family=family, words=words, spec=spec, beside=beside)


def integer(cells: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of a checked row; the default where the cell is empty."""
    text = cells.get(name, "")
    if text:
        return int(float(text))
    if default is None:
        raise Refused(f"{name} is not given")
    return default


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def parameters(cells: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object in the column `kernel` or `params`."""
    text = cells.get("kernel") or cells.get("params") or "{}"
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Refused("kernel parameters are not JSON") from None
    if not isinstance(found, dict):
        raise Refused("kernel parameters are no JSON object")
    return found
