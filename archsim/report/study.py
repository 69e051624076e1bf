"""A study as files: a report in Markdown, a table for each part, and pictures. Equal studies give equal bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from archsim.base.errors import ArchsimError, InputError
from archsim.base.version import __version__
from archsim.detect.catalog import find
from archsim.report.study_close import before_after, elasticities, over_batches
from archsim.report.study_grid import grid, searched
from archsim.report.study_section import Section
from archsim.study.file import PartForm, Study

RENDER: dict[str, Callable[[PartForm], Section]] = {
    "grid": grid, "sensitivity": elasticities, "whatif": before_after, "batches": over_batches, "search": searched,
}  # fmt: skip
REPORT = "README.md"
LARGEST_REPORT = 1 << 24  # bytes
MADE = (
    "Made by `archsim study study.toml` in this folder; every figure below is a prediction of the model, none a measurement."
)


def study_files(study: Study, tell: Callable[[str], None] = lambda text: None) -> dict[str, str]:
    """The files of a study: name -> text, `REPORT` among them. Raises InputError for a part that cannot be computed."""
    sections = []
    for number, part in enumerate(study.parts, 1):
        tell(f"{part.title} ({number} of {len(study.parts)})")
        try:
            sections.append(RENDER[part.kind](part))
        except ArchsimError as error:
            raise InputError(study.path, f"part {part.name}: {error}") from None
    files = {name: text for section in sections for name, text in section.files.items()}
    return {REPORT: _report(study, sections), **files}


def _report(study: Study, sections: Sequence[Section]) -> str:
    lines = [f"# {study.title}", "", study.question.strip(), "",
             MADE, ""]  # fmt: skip
    for section in sections:
        lines += [f"## {section.title}", "", *section.body, ""]
    lines += ["## Provenance", "", f"archsim {__version__}", "", *_provenance(sections), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _provenance(sections: Sequence[Section]) -> list[str]:
    requests = [request for section in sections for request in section.requests]
    kinds = {
        "network": {q.network: q.trace_digest for q in requests}, "device": {q.spec.identity.id: "" for q in requests},
        "stack": {q.stack.id: q.stack.digest for q in requests},
        "calibration": {q.calibration.version: q.calibration.digest for q in requests},
    }  # fmt: skip
    kinds["device"] = {name: find(name).digest for name in kinds["device"]}
    return [f"- {kind} `{name}`: {digest}" for kind, named in kinds.items() for name, digest in sorted(named.items())]
