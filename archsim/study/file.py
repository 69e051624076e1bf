"""A study as a file: a question and the parts that answer it, each a table and mostly a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from archsim.base.arguments import changes_of, rows_of
from archsim.base.errors import InputError, near_words, refuse
from archsim.base.files import named_file
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document
from archsim.trace.formats import is_path

MOST_PARTS = 40
OF_PARTS = {row.called: row for row in rows_of("run", without=("devices", "calibration"))}  # the constants are the shipped ones
Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=60)]


class StudyHeaderForm(Form):
    """The words of a study before its parts."""

    schema_: Literal[1] = Field(alias="schema")
    title: Word
    question: Word


class PartForm(Form):
    """The keys of every part, among them its `name`, which its files bear; any argument of an estimate stands beside them."""

    kind: Word
    name: Name
    title: Word
    note: str = ""
    net: list[Word] = Field(min_length=1)
    hw: list[Word] = Field(min_length=1)
    _given: dict[str, Any] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `make_request`, with what a study takes where it says nothing."""
        return {"batch": 1, "precision": "fp32", "task": "inference", **self._given}


class GridForm(PartForm):
    """All values of some knobs: `y` against `x`, a line for each of `lines`; `double` prints what doubling each knob does."""

    vary: list[Word] = Field(min_length=1)
    x: Word
    lines: Word | None = None
    y: Word = "latency"
    double: bool = True


class SensitivityForm(PartForm):
    """The `top` elasticities."""

    top: Annotated[int, Field(ge=1)] = 8


class WhatIfForm(PartForm):
    """Before and after: `change` are spec keys, `to` other arguments of an estimate."""

    change: dict[Word, Word] = {}
    to: dict[Word, Word | int] = {}

    @field_validator("to")
    @classmethod
    def _values(cls, to: dict[str, str | int]) -> dict[str, str | int]:
        changes_of(to)
        return to


class BatchesForm(PartForm):
    """Time per sample against `batches`, on several devices and in several `precisions`."""

    batches: Word
    precisions: list[Word] = ["fp32"]


class SearchForm(PartForm):
    """The best points of a space and the Pareto front."""

    vary: list[Word] = Field(min_length=1)
    minimise: list[Word] = []
    maximise: list[Word] = []
    where: Word | None = None
    top: Annotated[int, Field(ge=1)] = 3


FORMS: dict[str, type[PartForm]] = {
    "grid": GridForm, "sensitivity": SensitivityForm, "whatif": WhatIfForm, "batches": BatchesForm, "search": SearchForm,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A question and the parts that answer it, as checked forms."""

    path: str
    title: str
    question: str
    parts: tuple[PartForm, ...]


def load(path: str | Path) -> Study:
    """Read a study. Raises MissingFile, or InputError with every problem, each beginning with its part and key."""
    document = read_document(path, "study")
    raw = document.pop("part", [])
    header, problems = problems_of(StudyHeaderForm, document, "")
    if not isinstance(raw, list) or not raw or len(raw) > MOST_PARTS:
        problems.append(f"part: write 1 to {MOST_PARTS} tables [[part]]")
        raw = []
    parts = []
    for i, content in enumerate(raw):
        part, wrong = _part(content, f"part {i + 1}: ")
        problems += wrong
        parts += [part] if part else []
    names = [part.name for part in parts]
    problems += [f"part {name}: the name is used twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    for part in parts:
        try:
            for net in filter(is_path, part.net):
                named_file(net)
        except InputError as error:
            problems.append(f"part {part.name}: net: {error}")
    refuse(path, problems)
    assert header is not None
    return Study(path=str(path), title=header.title, question=header.question, parts=tuple(parts))


def _part(content: Any, prefix: str) -> tuple[PartForm | None, list[str]]:
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind not in FORMS:
        return None, [f"{prefix}kind: {kind!r} is none; nearest: {near_words(str(kind), FORMS)}"]
    given, rest, problems = dict[str, Any](), dict[str, Any](), list[str]()
    for key, value in content.items():
        if key not in OF_PARTS:
            rest[key] = value
            continue
        try:
            given[OF_PARTS[key].name] = OF_PARTS[key].read(value)
        except ValueError as error:
            problems.append(f"{prefix}{key}: {error}")
    part, wrong = problems_of(FORMS[kind], rest, prefix, OF_PARTS)
    if part is not None:
        part._given |= given
    return part, [*problems, *wrong]
