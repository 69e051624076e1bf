"""Before and after a change of device, software or batch: totals, layer by layer, and which ops changed what limits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archsim.base.answer import Answer
from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArgumentError
from archsim.cost.bounds import BOUNDS
from archsim.cost.power import within_heat
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import Estimate, OpEstimate
from archsim.study.silicon import DieEstimate, die_estimate

TOTALS = (  # attribute of an estimate, what it is called, unit
    ("latency_s", "latency", "s"), ("throughput_per_s", "throughput", ""), ("power_w", "power", "W"), ("energy_j", "energy", "J"),
    ("throughput_per_w", "throughput per watt", ""), ("clock_hz", "clock", "Hz"), ("memory_bytes", "memory", "B"),
    ("dram_bytes", "memory traffic", "B"),
)  # fmt: skip
FOLLOWING = {  # attribute of an estimate that has a default, and what `--to` calls it
    ARGUMENTS[name].estimated: name for name in ("stack", "precision", "threads", "host_cpu", "clock")
}  # fmt: skip
SAME = 1e-9  # relative; outputs that differ by less are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class OpChange:
    """One op before and after; None where the network of one side does not have it."""

    name: str
    kind: str
    before: OpEstimate | None
    after: OpEstimate | None

    @property
    def ratio(self) -> float | None:
        """Time after / time before; None where one side is missing or takes no time."""
        if self.before is None or self.after is None or self.before.time_s <= 0:
            return None
        return self.after.time_s / self.before.time_s

    @property
    def moved(self) -> bool:
        """Whether its limit is on another side of the machine."""
        return self.before is not None and self.after is not None and side(self.before.bound) != side(self.after.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Answer):
    """Two estimates with their ops matched by name; `changes` as text; `dies` before and after."""

    before: Estimate
    after: Estimate
    changes: tuple[str, ...]
    ops: tuple[OpChange, ...]
    dies: tuple[DieEstimate, DieEstimate] | None = None

    @property
    def ratios(self) -> Mapping[str, float]:
        """Every total, after / before."""
        return {name: getattr(self.after, name) / getattr(self.before, name) for name, _, _ in TOTALS
                if getattr(self.before, name)}  # fmt: skip

    @property
    def written(self) -> tuple[str, ...]:
        """The changes as people read them: the changed device by its name, then everything else."""
        if self.after.hardware_name == self.before.hardware_name:
            return self.changes
        others = [words for words in self.changes if "." not in words.split(" ")[0] and not words.startswith("hw = ")]
        other = "hw = " if self.after.hardware != self.before.hardware else ""
        return (f"{other}{self.after.hardware_name}", *others)

    @property
    def followed(self) -> Mapping[str, tuple[str | float | None, str | float | None]]:
        """Defaults that follow the change and that nobody named: before and after, by their name in an estimate.

        The clock is one of another device only: on the same device it is an outcome.
        """
        named = {words.split(" ")[0] for words in self.changes}
        other_device = self.after.hardware != self.before.hardware
        found = {}
        for name, option in FOLLOWING.items():
            before, after = getattr(self.before, name), getattr(self.after, name)
            told = other_device or name != "clock_hz"
            own = name == "host_cpu" and after == self.after.hardware  # a CPU dispatches for itself
            if before != after and option not in named and told and not own:
                found[name] = (before, after)
        return found

    @property
    def idle(self) -> bool:
        """Whether no output has changed."""
        same = all(abs(ratio - 1.0) <= SAME for ratio in self.ratios.values())
        return same and self.before.fits == self.after.fits and self.before.max_batch == self.after.max_batch

    @property
    def moves(self) -> Mapping[tuple[str, str], tuple[OpChange, ...]]:
        """The ops whose limit has changed, by (limit before, limit after), in decreasing order of time."""
        found: dict[tuple[str, str], list[OpChange]] = {}
        for op in self.ops:
            if op.moved and op.before is not None and op.after is not None:
                found.setdefault((side(op.before.bound), side(op.after.bound)), []).append(op)
        return {key: tuple(ops) for key, ops in sorted(found.items(), key=lambda item: -_time(item[1]))}


def beside(request: Request, changed: Request) -> Request:
    """The request of a device as it is sold beside one of a changed device, so that they differ by the change alone.

    Where a measured clock stands and the changed device keeps to its power limit, both do.
    """
    if request.limit is not None or changed.limit is None or changed.spec.base is None:
        return request
    said = "power limit: that of the board, as for the changed device, though the clock was measured"
    return replace(request, limit=within_heat(request.device, request.device.power.tdp), notes=(*request.notes, said))


def _time(ops: list[OpChange]) -> float:
    return sum(op.before.time_s for op in ops if op.before is not None)


def side(bound: str) -> str:
    """What limits an op, in the words of a reader.

    >>> side("dram"), side("compute")
    ('memory-bound', 'compute-bound')
    """
    return BOUNDS[bound].side if bound in BOUNDS else bound


def change(
    before: Estimate, after: Estimate, changes: tuple[str, ...], dies: tuple[DieEstimate, DieEstimate] | None = None
) -> Change:
    """Match the ops of two estimates by name, in the order of the first; ops of the second alone come last."""
    later = {op.name: op for op in after.ops}
    earlier = {op.name for op in before.ops}
    ops = [OpChange(name=op.name, kind=op.kind, before=op, after=later.get(op.name)) for op in before.ops]
    ops += [OpChange(name=op.name, kind=op.kind, before=None, after=op) for op in after.ops if op.name not in earlier]
    live = [op for op in ops if any(one is not None and one.time_s > 0 for one in (op.before, op.after))]
    return Change(before=before, after=after, changes=changes, ops=tuple(live), dies=dies)


def whatif(net: str, hw: str, arguments: Mapping[str, Any], moved: Mapping[str, Any], area: bool = False) -> Change:
    """The change that `settings` and `scales` among the arguments of `make_request` make, and those that are `moved`.

    Raises ArgumentError where nothing is changed.
    """
    lines = changed_words(arguments, moved)
    if not lines:
        raise ArgumentError("nothing is changed: set or scale a value of the device, or change something else by to")
    before = make_request(net, hw, **{name: value for name, value in arguments.items() if name not in ("settings", "scales")})
    after = make_request(net, **{"hw": hw, **arguments, **moved})
    dies = (die_estimate(before.spec), die_estimate(after.spec)) if area else None
    return change(estimate_of(beside(before, after), references=False), estimate_of(after, references=False), lines, dies)


def changed_words(arguments: Mapping[str, Any], moved: Mapping[str, Any]) -> tuple[str, ...]:
    """The changes, one by one."""
    lines = [f"{key} = {value}" for key, value in (arguments.get("settings") or {}).items()]
    lines += [f"{key} x {factor:g}" for key, factor in (arguments.get("scales") or {}).items()]
    return (*lines, *(f"{key} = {ARGUMENTS[key].shown(value)}" for key, value in moved.items()))
