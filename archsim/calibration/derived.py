"""Constants of scalar loops that follow from the cycle model of a core: a table of each architecture, which a command makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document

FILE = "derived.toml"
HEAD = ("# Clocks of scalar loops on each core: those of their programs, simulated. "
        "Written by `archsim simulate kernels --derive`.")  # fmt: skip


class DerivedForm(Form):
    """The whole file."""

    schema_: Literal[2] = Field(alias="schema")
    cores: dict[Word, dict[Word, Annotated[float, Field(gt=0, allow_inf_nan=False)]]] = {}


@cache
def cores() -> Mapping[str, Mapping[str, float]]:
    """Constants of CPUs by the architecture of their core; InputError with every problem of the shipped file."""
    place = data_folder("reports/calibration").joinpath(FILE)
    form, problems = problems_of(DerivedForm, read_document(place, "calibration"), "")
    if form is None:
        raise InputError(str(place), problems)
    return form.cores


def values_of(name: str) -> dict[str, float]:
    """A constant by core."""
    return {core: values[name] for core, values in cores().items() if name in values}


def dump_derived(of_cores: Mapping[str, Mapping[str, float]]) -> str:
    """The table as the text of its file."""
    lines = [HEAD, "schema = 2"]
    for name, values in sorted(of_cores.items()):
        lines += ["", f"[cores.{name}]", *[f"{json.dumps(constant)} = {value:.4g}" for constant, value in values.items()]]
    return "\n".join(lines) + "\n"
