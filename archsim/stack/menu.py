"""The kernels that a library chooses from for one kind of product: rows of `traces/kernels`, and how it cuts the inner dimension.

Tiles are generic: `generic.csv` has those of each generation of SM, of which a library takes the fastest. A menu has the facts of
a library: its smallest tile, and when it splits. Where its kernels are known one by one, they are rows of a file of its own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from math import inf
from typing import Any, TypeVar

from archsim.base.errors import InputError, MissingFile, refuse
from archsim.base.files import LIMITS, data_folder, is_path, named_file, read_text
from archsim.base.record import ByIdentity, by_key
from archsim.stack.key import key

R = TypeVar("R")

FOLDER, GENERIC = "traces/kernels", "generic"
LANES, TENSOR = "lanes", "tensor"  # roles of rows for any kind of product
WORDS = ("whole", "warp_mma", "overlapped", "persistent")  # of the column `loop`
RANGES = {"rows": "m", "columns": "n", "terms": "k"}  # a column that says for which results a row is -> the length
COUNTS = ("m", "n", "k", "threads", "registers", "shared")
MOST = 1 << 24  # of any number
COLUMNS = ("role", "architectures", *RANGES, *COUNTS, "cluster", "loop", "score_slots", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One kernel variant of a library: the block of the result that a CTA computes, and what it occupies.

    m, n: rows and columns of the result that a CTA computes; k: depth of one step of the inner loop
    threads: of a CTA; registers: of a thread; shared: memory of a CTA [B]
    architectures: those that have it; none: those that no other row of its role and file names
    least_m to most_k: the results that the library takes it for, and their terms
    whole: CTAs go through all terms, it has no split
    cluster: CTAs that load the longer side of their tiles together
    score_slots: issue slots of a lane for each score of a softmax between two products
    warp_mma: warps multiply one by one on tensor cores that have instructions for groups of warps
    overlapped: one group of warps takes exponentials while another multiplies
    persistent: a CTA goes on with the next tile, whose loads are under way when it ends one
    file: the place of its file among those of the menu; the first with a row for a result serves it
    """

    m: int
    n: int
    k: int
    threads: int
    registers: int
    shared: int
    architectures: tuple[str, ...] = ()
    least_m: float = 1
    least_n: float = 1
    least_k: float = 1
    most_m: float = inf
    most_n: float = inf
    most_k: float = inf
    whole: bool = False
    cluster: int = 1
    score_slots: float = 4.0
    warp_mma: bool = False
    overlapped: bool = False
    persistent: bool = False
    file: int = 0

    def serves(self, m: float, n: float, k: float) -> bool:
        """Whether it is for results of these rows, columns and terms."""
        return (self.least_m <= m <= self.most_m and self.least_n <= n <= self.most_n
                and self.least_k <= k <= self.most_k)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The variants that a library can choose from for one kind of product, and how far it splits the inner dimension.

    `tiles` are the rows of its files in their order, once `filled` has read them.
    """

    tiles: tuple[Tile, ...] = ()
    kernels: tuple[str, ...] = key(
        "files of traces/kernels, or paths, with its tiles; the first that has a row for a result serves it", some=True,
        default=(GENERIC,),
    )  # fmt: skip
    least: tuple[int, int] = key("fewest rows and columns of a generic tile that it has", low=1, default=(1, 1))
    least_results: int = key("fewest results of a generic tile that it has", low=1, default=1)
    split_k: tuple[int, ...] = key("into how many parts the library can cut the inner dimension", low=1, default=(1,))
    split_least_k: int = key("shortest part of the inner dimension", low=1, default=1)
    split_wide: int = key("most parts for products that are wide in both directions; 0: any number", low=0, default=0)
    split_wide_least: int = key("shortest part of products that are wide in both directions; 0: as of others", low=0, default=0)
    split_wide_side: int = key("rows and columns beyond which a product is wide in that direction", low=0, default=0)
    split_wide_part: float = key(
        "shortest part of the inner dimension of which wide products are cut into more; none: never", low=1, default=inf
    )
    architectures: tuple[str, ...] = key("architectures on which NAME.x takes the place of NAME", default=())
    split_launches: int = key("kernels where it splits: 2 if a second one adds up the parts", low=1, default=1)

    def on(self, architecture: str) -> tuple[Tile, ...]:
        """The tiles that it has on an architecture."""
        return _on(ByIdentity(self), architecture)


@lru_cache(maxsize=4096)
def _on(menu: ByIdentity[Menu], architecture: str) -> tuple[Tile, ...]:
    tiles = menu.it.tiles
    named = {tile.file for tile in tiles if architecture in tile.architectures}
    return tuple([t for t in tiles if (architecture in t.architectures if t.file in named else not t.architectures)])


def filled(menus: Mapping[str, Menu]) -> dict[str, Menu]:
    """The menus with the tiles of their files: the rows whose role is the menu's name, without its architecture, and the generic
    ones for lanes or tensor cores of a file that has none of this role.

    Raises InputError, or MissingFile, which name the file.
    """
    return {name: replace(menu, tiles=tuple(_tiles(name.partition(".")[0], menu))) for name, menu in menus.items()}


def _tiles(role: str, menu: Menu) -> Iterator[Tile]:
    generic = TENSOR if f"_{TENSOR}" in role else LANES
    for place, name in enumerate(menu.kernels):
        rows = kernel_table(name)
        yield from (replace(tile, file=place) for tile in rows.get(role, rows.get(generic, ()))
                    if tile.m >= menu.least[0] and tile.n >= menu.least[1] and tile.m * tile.n >= menu.least_results)  # fmt: skip


@cache
def kernel_table(name: str) -> Mapping[str, tuple[Tile, ...]]:
    """The tiles of a file of `traces/kernels`, or of one at a path, by their role."""
    found = by_key((role, tile) for roles, tile in rows_in(name, FOLDER, "kernels", COLUMNS, _read) for role in roles)
    return {role: tuple(tiles) for role, tiles in found.items()}


def rows_in(name: str, folder: str, key: str, columns: Sequence[str], read: Callable[[Mapping[str, str]], R]) -> list[R]:
    """What `read` makes of each row of a CSV file of a folder, or of one at a path, that a key of a stack names.

    Raises MissingFile, or InputError with every row of which `read` raises ValueError, and its line.
    """
    own = is_path(name) or name.endswith(".csv")
    place = named_file(name) if own else data_folder(folder).joinpath(f"{name}.csv")
    if not place.is_file():
        raise MissingFile(f"{place}: no such file; `{key}` names files of {folder} without .csv, or paths")
    most = LIMITS["kernels"]
    reader = csv.DictReader(io.StringIO(read_text(place, most.size), newline=""), strict=True)
    problems: list[str] = []
    found: list[R] = []
    try:
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise InputError(str(place), f"line 1: the columns must be {', '.join(columns)}")
        for cells in islice(reader, most.entries + 1):
            try:
                if None in cells or None in cells.values():
                    raise ValueError(f"must have {len(columns)} cells")
                found.append(read(cells))
            except ValueError as error:
                problems.append(f"line {reader.line_num}: {error}")
    except csv.Error as error:
        problems.append(f"line {reader.line_num}: {error}")
    if len(found) > most.entries:
        problems.append(f"has more than {most.entries:,} rows")
    refuse(place, problems)
    return found


def _read(cells: Mapping[str, str]) -> tuple[list[str], Tile]:
    """The roles of a row, and its tile. Raises ValueError."""
    given: dict[str, Any] = {"architectures": tuple(cells["architectures"].split())}
    if empty := next((column for column in ("role", *COUNTS) if not cells[column]), ""):
        raise ValueError(f"{empty}: is empty")
    try:
        for column in (*COUNTS, "cluster"):
            if cells[column]:
                given[column] = _number(cells[column], int, 0 if column == "shared" else 1)
        for column, length in RANGES.items():
            low, dots, high = cells[column].partition("..")
            given[f"least_{length}"] = _number(low or "1", float, 1)
            given[f"most_{length}"] = _number(high or low, float, 1) if high or (low and not dots) else inf
        column = "score_slots"
        if cells[column]:
            given[column] = _number(cells[column], float, 0)
    except ValueError:
        raise ValueError(f"{column}: {cells[column]!r} is not what the column holds") from None
    words = cells["loop"].split()
    if unknown := [word for word in words if word not in WORDS]:
        raise ValueError(f"loop: {unknown[0]!r} is none of {', '.join(WORDS)}")
    return cells["role"].split(), Tile(**given | dict.fromkeys(words, True))


def _number(text: str, kind: type[Any], least: float) -> Any:
    value = kind(text)
    if not least <= value <= MOST:
        raise ValueError
    return value
