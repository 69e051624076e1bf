"""What a microbenchmark does: to memory (`AccessPattern`), with a tile (`ProductPattern`), in a loop (`LoopPattern`), with the
units of a GPU (`UnitPattern`)."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPattern:
    """How busy a kernel keeps the units of a GPU, by the name of the unit; nothing of a GPU that idles with clocks up.

    shares: of what each unit could do
    core [Hz], memory: the clocks at which they were counted, that of the memory as a share of the usual one
    memory_now: the memory's clock, as a share of the usual one, when the power was read
    running: share of the time of which the power is the mean in which the kernel runs; the device idles in the rest
    alike: whether each value in memory is like the next, so that bytes switch as little as those of zeros
    """

    shares: Mapping[str, float]
    core: float
    memory: float = 1.0
    memory_now: float = 1.0
    running: float = 1.0
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPattern:
    """A workload at a lower clock than `top` [Hz], at which it takes `power` [W].

    rate: work in a second beside that at the top clock; free: share of its time that does not go with the clock
    """

    top: float
    power: float
    rate: float
    free: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VoltagePattern:
    """The core voltage at a lower clock than `top` [Hz], at which it is `volts` [V]."""

    top: float
    volts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPattern:
    """A language model that an engine served.

    model: id of a shipped one; engine: its stack; arguments: of `archsim.generation.plan.serving_plan`
    batch: requests at once, on average; steady: new requests take the place of finished ones
    fed: tokens of a prompt for each step of the engine (`llama-bench -b`), 0: as the engine does
    """

    model: str
    engine: str
    input: int
    output: float
    batch: float
    steady: bool = False
    fed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


UNSIMULATED = (UnitPattern, ClockPattern, VoltagePattern, ServingPattern)  # answered without ops of a case
Pattern = AccessPattern | ProductPattern  # of a GPU
