"""Which core a processor has: the first row of `hwspecs/architectures/cpus.toml` that fits /proc/cpuinfo."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from archsim.base.errors import Unsupported, refuse
from archsim.base.files import data_folder
from archsim.base.schema import Form, Word, problems_of
from archsim.base.toml import read_document
from archsim.detect.system import Computer

FILE = "cpus.toml"


class CoreRow(Form):
    """One row of the file: conditions on /proc/cpuinfo, of which an empty one always holds, and the shipped spec of such a core.

    vendor, family, models, parts: as /proc/cpuinfo has them; flags: all of them are there; without: none of them is
    like: id of the shipped spec whose values fill what the system does not tell; same: whether its core is the same one
    fma_ports: multiply-adds per clock of this core where the relative has another number
    """

    architecture: Word
    year: int
    like: Word
    same: bool = False
    vendor: str = ""
    family: int | None = None
    models: list[int] = []
    parts: list[str] = []
    flags: list[str] = []
    without: list[str] = []
    fma_ports: Annotated[float, Field(gt=0, le=64)] | None = None

    def fits(self, computer: Computer) -> bool:
        """Whether this may be the core of the computer."""
        return (
            self.vendor in ("", computer.vendor)
            and self.family in (None, computer.family)
            and (not self.models or computer.model in self.models)
            and (not self.parts or computer.part in self.parts)
            and computer.flags.issuperset(self.flags)
            and computer.flags.isdisjoint(self.without)
        )


def core_of(computer: Computer) -> CoreRow:
    """The row of a computer; Unsupported where none fits."""
    for row in rows():
        if row.fits(computer):
            return row
    raise Unsupported(
        f"the processor {computer.name or computer.vendor or 'of this computer'} is of no known kind (neither AVX nor NEON); "
        "write a spec as hwspecs/README.md says and name its path"
    )


@cache
def rows() -> tuple[CoreRow, ...]:
    """The rows of the shipped file, in its order."""
    place = data_folder("hwspecs/architectures").joinpath(FILE)
    document = read_document(place, "device")
    parsed = [problems_of(CoreRow, words, f"cpu {i + 1}: ") for i, words in enumerate(document["cpu"])]
    problems = [said for _, found in parsed for said in found]
    refuse(place, problems)
    return tuple([row for row, _ in parsed if row is not None])
