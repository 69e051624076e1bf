"""A section of a study's report, with its files and tables, and the requests of a part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from archsim.base.arguments import ARGUMENTS
from archsim.estimation.request import Request, make_request
from archsim.report.data import rows_as_csv
from archsim.study.file import PartForm

DIGITS = 6  # of every number in a table, so that another processor's last bits change no byte


@dataclass(slots=True)
class Section:
    """A part of the report and the files beside it."""

    title: str
    body: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)


def requests(part: PartForm, **more: Any) -> list[Request]:
    """The requests of a part: each network on each device, with `more` arguments of an estimate."""
    return [make_request(net, hw, **{**part.arguments, **more}) for net in part.net for hw in part.hw]


def section(part: PartForm, requests: list[Request], varied: Collection[str] = (), precision: str = "") -> Section:
    """A section that names its settings, except for the knobs that are `varied` in it."""
    given = part.arguments
    fixed = {"task": given.pop("task"), "batch": f"batch {given.pop('batch')}", "precision": precision or given["precision"]}
    said = ", ".join([text for knob, text in fixed.items() if knob not in varied])
    asked = f"{', '.join(part.net)} on {', '.join(part.hw)}" + (f": {said}" if said else "")
    changed = [text for name, value in given.items() if name not in ("precision", "stack") for text in _words(name, value)]
    body = [asked + "".join(f", {text}" for text in changed) + "."]
    body += ["", part.note.strip()] if part.note.strip() else []
    return Section(title=part.title, body=body, requests=requests)


def _words(name: str, value: Any) -> list[str]:
    """An argument that a part has, in words."""
    if isinstance(value, dict):
        return [f"{key} x {one:g}" if name == "scales" else f"{key} = {one}" for key, one in value.items()]
    said = {"fidelity": f"{value} model", "seq_len": f"{value} tokens"}
    return [said.get(name, f"{name.replace('_', ' ')} {ARGUMENTS[name].shown(value)}")]


def _number(value: Any) -> Any:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value


def csv_text(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as CSV."""
    return rows_as_csv(tuple(head), [[_number(cell) for cell in row] for row in rows])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """A table in Markdown, the first `left` columns left-aligned."""
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    return ["", *("| " + " | ".join(line) + " |" for line in (head, marks, *rows)), ""]
