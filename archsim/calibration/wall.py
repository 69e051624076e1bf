"""What is fitted of power at the wall, and its errors on systems that were held out: reports/calibration/wall/wall.toml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field

from archsim.base.errors import InputError
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document
from archsim.calibration.constants import Spread, SpreadForm

DESCRIBED, GENERIC = "described", "generic"


class WallForm(Form):
    """The file.

    fans: of fans and converters on the boards, as a share of all other parts
    described, generic: errors of systems with a file of their own, and of others
    """

    fans: Annotated[float, Field(ge=0, le=1)]
    origin: Word
    described: SpreadForm
    generic: SpreadForm


@dataclass(frozen=True, slots=True, kw_only=True)
class WallConstants:
    """The share of the fans, and the spread of held-out errors by class."""

    fans: float
    origin: str
    spreads: dict[str, Spread]


@cache
def wall_constants() -> WallConstants:
    """The shipped constants."""
    place = data_folder("reports/calibration/wall").joinpath("wall.toml")
    form, problems = problems_of(WallForm, read_document(place, "calibration"), "")
    if form is None:
        raise InputError(str(place), problems)
    spreads = {name: Spread(**getattr(form, name).model_dump()) for name in (DESCRIBED, GENERIC)}
    return WallConstants(fans=form.fans, origin=form.origin, spreads=spreads)
