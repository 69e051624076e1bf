"""The measured rows of one network on one device, found without reading the rest of the corpus."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from archsim.evidence import readers_network
from archsim.evidence.case import Case
from archsim.evidence.resolve import Refused
from archsim.evidence.shipped import shipped_files
from archsim.evidence.table import UNPREDICTED, Row, table_name

Lines = tuple[tuple[int, str], ...]  # (number in the file, text)


def network_cases(network: str, hardware: str, wanted: Callable[[Mapping[str, str]], bool]) -> Iterator[Case]:
    """The cases of a whole network on a device whose columns are `wanted`; rows that cannot be predicted are left out.

    Lines are searched as text first: an estimate must not pay for reading rows that it will not show.
    """
    for name, header, lines in _network_files():
        near = [(number, line) for number, line in lines if network in line and hardware in line]
        for (number, _), cells in zip(near, csv.DictReader([header, *(line for _, line in near)]), strict=True):
            other = (cells["network"], cells["hardware"]) != (network, hardware)
            if other or cells.get("op") or cells.get(UNPREDICTED) or not wanted(cells):
                continue
            try:
                found = readers_network.read(Row(number, cells), name)
            except Refused:
                continue
            yield from (case for case in found if isinstance(case, Case))


@cache
def _network_files() -> tuple[tuple[str, str, Lines], ...]:
    """Name, header and lines of every file of whole networks, told by its header; other files are read no further than that."""
    found = []
    for file in shipped_files():
        if file.name.endswith(".csv"):
            with file.open("r", encoding="utf-8-sig") as stream:
                header = stream.readline()
                if set(readers_network.FAMILY.columns) <= set(header.strip().split(",")):
                    found.append((table_name(file.name), header, tuple(enumerate(stream, start=2))))
    return tuple(found)
