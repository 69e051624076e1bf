"""What a profile holds: calls with their shapes, kernels with their times, and the run among those recorded that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PYTORCH = "PyTorch profiler"  # of `Profile.source`
Argument = Any  # a shape (tuple), a list of shapes, or the value of what is no tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledTensor:
    """A tensor that a call was given or made: its shape, and the type of its values as the profile writes it."""

    shape: tuple[int, ...]
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledCall:
    """One call of an operator, with all that it called itself.

    operator: as the framework calls it: aten::conv2d, Conv
    name: of a node, where the profile has one
    arguments: tensors, lists of them, and values, by place
    results: tensors that it made, where the profile has them
    start_s, duration_s: on the host [s]
    within: operators that ran inside it
    """

    operator: str
    name: str = ""
    arguments: tuple[Argument, ...] = ()
    results: tuple[ProfiledTensor, ...] = ()
    start_s: float
    duration_s: float
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledKernel:
    """One kernel or copy on a device. `call` is the place of the call that launched it; None where that is not known."""

    name: str
    start_s: float
    duration_s: float
    stream: str = ""
    copy: bool = False
    call: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile, of whose runs one is held: that of the median time.

    source: of which tool the file is
    calls: of the run, in the order in which they began; none overlaps another of its thread
    kernels: of the run, in the order in which they began; empty where the profile is of a CPU alone
    run_s: time of each recorded run [s]; `shown` is the place of the one that is held
    """

    path: str
    source: str
    calls: tuple[ProfiledCall, ...]
    kernels: tuple[ProfiledKernel, ...]
    run_s: tuple[float, ...]
    shown: int
    device: str = ""
    shapes: bool = True
    notes: tuple[str, ...] = ()
