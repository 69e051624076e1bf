"""What a microbenchmark does: to memory (`AccessPattern`), with a tile (`ProductPattern`), in a loop (`LoopPattern`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern:
    """One row of a microbenchmark.

    benchmark, kernel: as the source calls them; variant: of its code
    element: bytes that a thread loads or stores at once [B]; threads: of a block; blocks: on one SM at once
    size: distinct bytes of all arrays [B]; stride: as the benchmark counts it
    words: what else it takes
    """

    benchmark: str
    kernel: str
    variant: str
    element: int
    threads: int
    blocks: int
    size: float
    stride: float
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPattern:
    """One product of a single CTA, of which the tile is the whole result.

    m, n, k: of the product; tile_k, stages: of the ring in shared memory, 0 stages for as many as fit
    operand: size of a value of A and B [B]
    """

    m: int
    n: int
    k: int
    tile_k: int
    stages: int
    operand: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPattern:
    """A loop of one core, in the words of its file."""

    words: Mapping[str, Any]


Pattern = AccessPattern | ProductPattern  # of a GPU
