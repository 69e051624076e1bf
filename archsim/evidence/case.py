"""A case: one measured value with everything that is needed to predict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from archsim.device.spec import Spec
from archsim.node.node import Node
from archsim.stack.stack import Stack
from archsim.trace.trace import BoundOp

METRICS = ("latency_s", "throughput_per_s", "power_w", "energy_j")  # of whole networks; a kernel may have a clock_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Devices of a `node` that train together, each on its part of the batch. `overlaps`: gradients are exchanged while others
    are computed.
    """

    node: Node
    devices: int
    overlaps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Another run of the same work, under the power limit `limit` [W], with its `measured` value."""

    limit: float
    measured: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a measurement file, ready to be predicted.

    `label` is the network, or the op of a kernel row. `clock` [Hz] is the measured one, None where the row gives none.
    `limit` [W] is the power limit that was set, None for the device's own. With an `anchor`, only the ratio to another run
    is predicted. With `shared` devices the ops are those of one of them, the batch is that of all. `host` is how much longer
    than the stack says the framework's host took, 0 where its time does not belong to the measurement (a kernel timed alone).
    `line` and `file` say where the row stands, `fields` hold all its columns.
    """

    line: int
    fields: Mapping[str, str]
    source: str
    label: str
    hardware: str
    stack_id: str
    task: str
    metric: str
    measured: float
    split: str
    ops: tuple[BoundOp, ...]
    spec: Spec
    stack: Stack
    precision: str
    batch: int
    threads: int | None = None
    clock: float | None = None
    limit: float | None = None
    anchor: Anchor | None = None
    shared: Shared | None = None
    host: float = 1.0
    file: str = ""

    @property
    def training(self) -> bool:
        """Whether the ops run as in training."""
        return self.task != "inference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A row that cannot be predicted, and why."""

    line: int
    reason: str
    file: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def with_power(cases: Sequence[Case]) -> list[Case]:
    """The cases that the constants of energy are fitted to: power, energy, ratios and clocks under a power limit."""
    return [case for case in cases if case.metric in ("power_w", "energy_j", "clock_hz") or case.anchor is not None]
