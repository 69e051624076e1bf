"""Constants of the closed form that follow from the cycle model: a table of each kind of SM and core, which a command makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Literal

from pydantic import Field

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document

FILE = "derived.toml"
HEAD = """\
# Constants of the closed form that follow from the cycle model, for each kind of SM: an architecture and the warps
# that an SM holds. Written by `archsim simulate kernels --derive`: random kernels are simulated on some of its
# devices, and these constants bring the closed form nearest to them. How long CTAs start is each device's own.
# Measurements enter in the mix of kernels alone. A core's are the clocks of programs of scalar loops.""".splitlines()

Value = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FamilyForm(Form):
    """What was simulated of a family, how far the closed form stays from it, and the constants with which it does."""

    simulated: list[Word]
    kernels: Annotated[int, Field(ge=1)]
    median: Annotated[float, Field(ge=0)]
    p90: Annotated[float, Field(ge=0)]
    constants: dict[Word, Value]
    beside: Value
    devices: dict[Word, dict[Word, Value]]
    made_from: dict[Word, Word] = {}


class DerivedForm(Form):
    """The whole file."""

    schema_: Literal[2] = Field(alias="schema")
    families: dict[Word, FamilyForm]
    cores: dict[Word, dict[Word, Value]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Constants of one family: GPUs whose SMs are of one architecture and hold as many warps.

    simulated: devices that tell what the SM decides; kernels: how many in all, random ones
    median, p90: of |closed form / simulated - 1| over these kernels
    constants: of a device that is not in the table; devices: the starts of those that are, in place of the family's
    beside: the start of attention kernels, which is fitted beside them and used for nothing else
    made_from: digests of what the family's constants and the starts of its other devices follow from: values of SMs, constants
        before any fit, and code
    """

    simulated: tuple[str, ...]
    kernels: int
    median: float
    p90: float
    constants: Mapping[str, float]
    beside: float
    devices: Mapping[str, Mapping[str, float]]
    made_from: Mapping[str, str]


def family_of(architecture: str, warps: float) -> str:
    """What a family is called. GPUs of one architecture for data centres and for desktops differ in the warps of an SM.

    >>> family_of("ampere", 64.0), family_of("ampere", 48.0)
    ('ampere-64', 'ampere-48')
    """
    return f"{architecture}-{warps:g}"


@cache
def shipped() -> DerivedForm:
    """The shipped file; InputError with every problem of it."""
    place = data_folder("reports/calibration").joinpath(FILE)
    form, problems = problems_of(DerivedForm, read_document(place, "calibration"), "")
    if form is None:
        raise InputError(str(place), problems)
    return form


def cores() -> Mapping[str, Mapping[str, float]]:
    """Constants of CPUs by the architecture of their core."""
    return shipped().cores


@cache
def derived() -> Mapping[str, Derived]:
    """The shipped table of GPUs by family."""
    form = shipped()
    return {name: Derived(**{**row.model_dump(), "simulated": tuple(row.simulated)}) for name, row in form.families.items()}


@lru_cache(maxsize=4096)
def tables_of(device: str, architecture: str, warps: float) -> tuple[str, ...]:
    """The tables that hold for a device, the nearest first: its own, that of its family, and those of its architecture.

    >>> tables_of("a2", "ampere", 48.0)[:2], tables_of("mine", "ampere", 64.0)[:2]
    (('a2', 'ampere-48'), ('mine', 'ampere-64'))
    """
    known = next((name for name, row in derived().items() if device in row.devices), family_of(architecture, warps))
    others = [name for name in sorted(derived()) if name.rpartition("-")[0] == architecture]
    return tuple(dict.fromkeys((device, known, *others)))


def values_of(name: str) -> dict[str, float]:
    """A constant by table: on each family and core that has it, and on each device that has one of its own."""
    found = {family: row.constants[name] for family, row in derived().items() if name in row.constants}
    own = {hw: values[name] for row in derived().values() for hw, values in row.devices.items() if name in values}
    return {**found, **own, **{core: values[name] for core, values in cores().items() if name in values}}


def dump_derived(table: Mapping[str, Derived], of_cores: Mapping[str, Mapping[str, float]]) -> str:
    """The table as the text of its file."""
    lines = [*HEAD, "schema = 2"]
    for name, row in sorted(table.items()):
        lines += ["", f"[families.{name}]", f"simulated = {json.dumps(row.simulated)}", f"kernels = {row.kernels}",
                  f"median = {row.median:.4g}", f"p90 = {row.p90:.4g}", f"beside = {row.beside:.4g}",
                  f"[families.{name}.constants]"]  # fmt: skip
        lines += _lines(row.constants)
        for hw, values in row.devices.items():
            lines += [f"[families.{name}.devices.{hw}]", *_lines(values)]
        lines += [f"[families.{name}.made_from]"]
        lines += [f"{json.dumps(of)} = {json.dumps(digest)}" for of, digest in row.made_from.items()]
    for name, values in sorted(of_cores.items()):
        lines += ["", f"[cores.{name}]", *_lines(values)]
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, float]) -> list[str]:
    return [f"{json.dumps(constant)} = {value:.4g}" for constant, value in values.items()]
