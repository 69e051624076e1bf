"""A case: one measured value with everything that is needed to predict it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archsim.device.spec import Spec
from archsim.stack.stack import Stack
from archsim.trace.trace import BoundOp

METRICS = ("latency_s", "throughput_per_s", "power_w", "energy_j")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a measurement file, ready to be predicted.

    `label` is the network, or the op of a kernel row. `clock` [Hz] is the measured one, None where the row gives none.
    `host` says whether the framework's host time belongs to the measurement (a kernel timed alone has none). `line` and
    `file` say where the row stands, `fields` hold all its columns.
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
    host: bool = True
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
