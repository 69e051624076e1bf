"""Fitted constants: one versioned file holds all of them, each with its bounds and where its value comes from."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from archsim.errors import InputError, UnknownName
from archsim.files import data_folder, read_text
from archsim.form import Form, Word, problems_of

SIZE_LIMIT = 1 << 20


class ConstantForm(Form):
    """One constant; `low` and `high` are what physics allows."""

    value: float
    low: float
    high: float
    origin: Word
    fitted: bool = False


class IntervalForm(Form):
    """Half-width of the interval of log(predicted / measured), per kind of device, at the stated level."""

    level: Annotated[float, Field(gt=0, lt=1)]
    half_width: dict[Word, Annotated[float, Field(gt=0)]]
    origin: Word


class CalibrationForm(Form):
    """The whole file."""

    schema_: int = Field(alias="schema")
    version: Word
    constants: dict[Word, ConstantForm]
    interval: IntervalForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant of the model with the range that physics allows."""

    value: float
    low: float
    high: float
    origin: str
    fitted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All constants of the model, by name, and the interval that belongs to them."""

    version: str
    constants: Mapping[str, Constant]
    interval_level: float
    interval_half_width: Mapping[str, float]
    digest: str

    def __getitem__(self, name: str) -> float:
        """The value of a constant; UnknownName with the nearest names."""
        if name not in self.constants:
            raise UnknownName("constant", name, list(self.constants), hint="it belongs into the calibration file")
        return self.constants[name].value

    def gather(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """The values of several constants, in order."""
        return np.array([self[name] for name in names])

    def with_values(self, values: Mapping[str, float]) -> Calibration:
        """The same calibration with some values replaced; used by fits and sensitivity studies."""
        changed = {name: replace(self.constants[name], value=float(value)) for name, value in values.items()}
        return replace(self, constants={**self.constants, **changed})


@cache
def default() -> Calibration:
    """The shipped calibration."""
    return load(data_folder("reports/calibration").joinpath("default.toml"))


def load(place: str | Path | Traversable) -> Calibration:
    """Read a calibration file; InputError with every problem, among them a value outside its bounds."""
    text = read_text(place, SIZE_LIMIT)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(str(place), f"is not valid TOML: {error}") from None
    form, problems = problems_of(CalibrationForm, document, "")
    if form is None:
        raise InputError(str(place), problems)
    outside = [name for name, c in form.constants.items() if not c.low <= c.value <= c.high]
    if outside:
        raise InputError(str(place), [f"constants.{name}.value: is outside [low, high]" for name in outside])
    constants = {
        name: Constant(value=c.value, low=c.low, high=c.high, origin=c.origin, fitted=c.fitted)
        for name, c in form.constants.items()
    }
    return Calibration(
        version=form.version, constants=constants, interval_level=form.interval.level,
        interval_half_width=dict(form.interval.half_width), digest=hashlib.sha256(text.encode()).hexdigest()[:16],
    )  # fmt: skip
