"""A family of measurement files: the columns by which it is told, what their cells must be, and how a row becomes cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import LONGEST_WORD, Form, Word, rows_of
from archsim.device.spec import Spec
from archsim.evidence.case import Case
from archsim.evidence.conditions import COLD, COLUMNS, Conditions
from archsim.evidence.resolve import Refused, Setting, as_measured, device, host_of, setting, stack_on
from archsim.evidence.shipped import FOLDER
from archsim.evidence.sources import conditions_of
from archsim.evidence.table import MOST_COUNTED, CsvTable, Row, counted, number, positive, whole
from archsim.evidence.timer import TIMERS
from archsim.stack.stack import NEVER_AGAIN
from archsim.trace.trace import BoundOp, BoundTrace

FILE = "families.toml"


class Family(Form):
    """One kind of measurement file, as `families.toml` has it."""

    name: Word
    columns: list[Word]
    words: list[Word]
    numbers: list[Word] = []
    readings: list[Word] = []
    counters: list[Word] = []
    whole: list[Word] = []
    offsets: list[Word] = []
    measured: list[Word]
    called: dict[Word, Word] = {}
    usual: dict[Word, Word] = {}

    def cell(self, cells: Mapping[str, str], column: str) -> str:
        """A cell by the name that rules have for its column; empty where the file has none."""
        return cells.get(self.called.get(column, column)) or cells.get(column) or self.usual.get(column, "")

    def row(self, row: Row, file: str, beside: Any = None) -> PublishedRow:
        """A row with its words and its device; Refused for an unknown device."""
        spec = device(self.cell(row.cells, "hardware"))
        words = {column: self.cell(row.cells, column) for column in COLUMNS}
        words |= {"family": self.name, "hardware": spec.identity.id, "architecture": spec.identity.kernels_of}
        return PublishedRow(row=row, file=file, family=self, words=words, spec=spec, beside=beside)


@cache
def families() -> tuple[Family, ...]:
    """Every kind of file, in the order in which a header is compared with them."""
    place = data_folder(FOLDER).joinpath(FILE)
    return rows_of(Family, "family", read_text(place, LIMITS["sources"].size), str(place))


@cache
def family_called(name: str) -> Family:
    """The family of a name."""
    return next(one for one in families() if one.name == name)


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
            "split": cells.get("split", "") if how.use == "fit" else "test", "fields": {**cells, "source": self.source},
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


def malformed(table: CsvTable, family: Family) -> dict[int, list[str]]:
    """What is wrong in the form of the cells of each row, by its line; rows without fault are not among them."""
    checks = [(name, positive) for name in family.numbers if name in table.header]
    checks += [(name, number) for name in family.readings if name in table.header]
    checks += [(name, counted) for name in family.counters if name in table.header]
    checks += [(name, whole) for name in family.whole if name in table.header]
    checks += [(name, offset) for name in family.offsets if name in table.header]
    cached = [(name, lru_cache(maxsize=65536)(_problem(rule))) for name, rule in checks]
    found: dict[int, list[str]] = {}
    for row in table.rows:
        cells = row.cells
        problems = [f"{name} is empty" for name in family.words if not cells[name].strip()]
        if not any(cells.get(name) for name in family.measured):
            problems.append(f"no value in {' or '.join(family.measured)}")
        problems += [f"{name} {said}" for name, problem in cached if cells[name] and (said := problem(cells[name]))]
        problems += [f"{name} begins with '{text[0]}', as a formula does"
                     for name, text in cells.items() if text[:1] in ("=", "@")]  # fmt: skip
        problems += [f"{name} is longer than {LONGEST_WORD} characters"
                     for name in family.words if len(cells[name]) > LONGEST_WORD]  # fmt: skip
        if problems:
            found[row.line] = problems
        if len(found) > MOST_COUNTED:
            break
    return found


def offset(text: str) -> int:
    """A whole number from 0."""
    return whole(text, least=0)


def _problem(rule: Callable[[str], float]) -> Callable[[str], str]:
    def problem(text: str) -> str:
        try:
            rule(text)
        except ValueError as error:
            return str(error)
        return ""

    return problem


def integer(cells: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of a checked row; the default where the cell is empty."""
    text = cells.get(name, "")
    if text:
        return int(float(text))
    if default is None:
        raise Refused(f"{name} is not given")
    return default
