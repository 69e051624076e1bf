"""Constants of the closed form that follow from the cycle model: a table of each GPU architecture, which a command makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document

FILE = "derived.toml"


class ArchitectureForm(Form):
    """What was simulated of an architecture, how far the closed form stays from it, and the constants with which it does."""

    devices: list[Word]
    kernels: Annotated[int, Field(ge=1)]
    median: Annotated[float, Field(ge=0)]
    p90: Annotated[float, Field(ge=0)]
    constants: dict[Word, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class DerivedForm(Form):
    """The whole file."""

    schema_: Literal[1] = Field(alias="schema")
    architectures: dict[Word, ArchitectureForm]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Constants of one architecture.

    devices: those that were simulated; kernels: how many in all, random ones
    median, p90: of |closed form / simulated - 1| over these kernels
    """

    devices: tuple[str, ...]
    kernels: int
    median: float
    p90: float
    constants: Mapping[str, float]


@cache
def derived() -> Mapping[str, Derived]:
    """The shipped table by architecture; InputError with every problem of the file."""
    place = data_folder("reports/calibration").joinpath(FILE)
    form, problems = problems_of(DerivedForm, read_document(place, "calibration"), "")
    if form is None:
        raise InputError(str(place), problems)
    return {name: Derived(**{**row.model_dump(), "devices": tuple(row.devices)}) for name, row in form.architectures.items()}


def values_of(name: str) -> dict[str, float]:
    """A constant on each architecture that has it."""
    return {architecture: row.constants[name] for architecture, row in derived().items() if name in row.constants}


def dump_derived(table: Mapping[str, Derived]) -> str:
    """The table as the text of its file."""
    lines = ["# Constants of the closed form that follow from the cycle model, for each GPU architecture. Written by",
             "# `archsim simulate kernels --derive`: random kernels are simulated on some of its devices, and these constants",
             "# bring the closed form nearest to them. Measurements enter in the mix of kernels alone.",
             "schema = 1"]  # fmt: skip
    for name, row in sorted(table.items()):
        lines += ["", f"[architectures.{name}]", f"devices = {json.dumps(row.devices)}", f"kernels = {row.kernels}",
                  f"median = {row.median:.4g}", f"p90 = {row.p90:.4g}", f"[architectures.{name}.constants]"]  # fmt: skip
        lines += [f"{json.dumps(constant)} = {value:.4g}" for constant, value in row.constants.items()]
    return "\n".join(lines) + "\n"
