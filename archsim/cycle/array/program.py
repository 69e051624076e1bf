"""A product as the program of a systolic array: which tiles are loaded, and how many rows pass through each."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from archsim.base.errors import ArgumentError

DATAFLOWS = {  # which sizes of C[m, n] = A[m, k] B[k, n] lie along rows, along columns, and pass through; B has the filters
    "ws": ("k", "n", "m"),  # weight-stationary
    "is": ("k", "m", "n"),  # input-stationary
    "os": ("m", "n", "k"),  # output-stationary: sums stay in the cells and leave through the rows
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TileProgram:
    """The instructions of a product, in loops: for each block of moving rows, each column of tiles, each tile of the column.

    tiles: of one column, whose sums add up; columns: of tiles; blocks: rows that pass through the tiles of one block
    repeat: how often all of it runs, such as products of one launch
    shifted: whether stationary operands are shifted into the cells first, a row each clock; sums that stay there begin at zero
    """

    tiles: int
    columns: int
    blocks: tuple[float, ...]
    repeat: float = 1.0
    shifted: bool = True

    @property
    def loads(self) -> float:
        """Tiles that are loaded in all."""
        return self.repeat * self.tiles * self.columns * len(self.blocks)


def product_program(m: int, n: int, k: int, rows: int, columns: int, dataflow: str = "ws", sums: float = inf) -> TileProgram:
    """The program of C[m, n] = A[m, k] B[k, n] on an array of `rows` x `columns` cells.

    sums: rows of sums that the accumulators take at once; a block has no more rows. An output-stationary array adds up in its
    cells: every tile is complete in itself.

    Raises ArgumentError for a dataflow that is not one of `DATAFLOWS`.

    >>> product_program(3025, 96, 363, 256, 256)
    TileProgram(tiles=2, columns=1, blocks=(3025.0,), repeat=1.0, shifted=True)
    """
    if dataflow not in DATAFLOWS:
        raise ArgumentError(f"dataflow {dataflow!r} is not one of {', '.join(DATAFLOWS)}")
    size = {"m": m, "n": n, "k": k}
    along_rows, along_columns, moving = (size[name] for name in DATAFLOWS[dataflow])
    blocks = ceil(moving / sums) if sums < inf else 1
    return TileProgram(tiles=ceil(along_rows / rows), columns=ceil(along_columns / columns), blocks=(moving / blocks,) * blocks,
                       shifted=dataflow != "os")  # fmt: skip
