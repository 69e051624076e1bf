"""Before and after a change of device, software or batch: totals, layers, what limits each op, die area and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArgumentError
from archsim.base.record import Answer, by_key
from archsim.base.units import show
from archsim.cost.area import die_area, die_parts, die_yield
from archsim.cost.bounds import BOUNDS
from archsim.cost.power import within_heat
from archsim.detect.catalog import find
from archsim.device.silicon import Die, silicon
from archsim.device.spec import Spec
from archsim.estimation.die import area_and_cost, area_scale, gpu_of, largest_area, with_own_area
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.summary import LayerGroup, group_of, layer_groups
from archsim.study.certainty import SAME, Saving, correlated, savings
from archsim.study.ranking import SAME_STACK, TWO_STACKS

# ----------------------------------------------------------------------------------------------------------------- dies

MIB = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DieEstimate:
    """The die of a device: area and its `parts` [mm2], cost [USD], yield (`good`), and the published area of its base [mm2].

    largest: the area that one exposure covers, times the dies that the base is sold with [mm2]
    """

    area: float
    cost: float
    good: float
    parts: dict[str, float]
    published: float | None
    largest: float

    @property
    def feasible(self) -> bool:
        """Whether a mask can make it."""
        return self.area <= self.largest


@dataclass(frozen=True, slots=True, kw_only=True)
class DieCheck:
    """A published die beside the model [mm2]."""

    name: str
    spec: str
    node: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """predicted / published - 1."""
        return self.predicted / self.published - 1.0


def die_estimate(spec: Spec) -> DieEstimate:
    """The die of a device, scaled by the published area of the device that it was changed from."""
    origin, device = with_own_area(spec), gpu_of(spec)
    scale = area_scale(spec)
    area, cost = area_and_cost(device, scale)
    node = silicon().node(float(device.chip.node))
    published = gpu_of(origin).chip.area
    return DieEstimate(
        area=float(area[0]), cost=float(cost[0]), good=float(die_yield(float(area[0]), node, silicon().cluster)),
        parts={name: scale * float(part) for name, part in die_parts(device, silicon()).items()},
        published=None if published is None else float(published), largest=largest_area(spec),
    )  # fmt: skip


def die_checks() -> list[DieCheck]:
    """Every published die of the file beside the model, with all units of the full chip enabled."""
    return [_check(die) for die in silicon().dies]


def _check(die: Die) -> DieCheck:
    device = gpu_of(find(die.spec))
    assert device.chip.area is not None
    sm = device.sm if die.sms is None else replace(device.sm, count=float(die.sms))
    l2 = device.l2 if die.l2_mib is None else replace(device.l2, size=die.l2_mib * MIB)
    memory = device.memory
    if die.pins is not None and memory.bus is not None:
        memory = replace(memory, bandwidth=memory.bandwidth * die.pins / memory.bus)
    whole = replace(device, sm=sm, l2=l2, memory=memory)
    node = silicon().node(float(device.chip.node))
    return DieCheck(name=die.name, spec=die.spec, node=node.name, published=float(device.chip.area),
                 predicted=float(die_area(whole, silicon())))  # fmt: skip


# ----------------------------------------------------------------------------------------------------- before and after

TOTALS = (  # attribute of an estimate, what it is called, unit
    ("latency_s", "latency", "s"), ("throughput_per_s", "throughput", ""), ("power_w", "power", "W"), ("energy_j", "energy", "J"),
    ("throughput_per_w", "throughput per watt", ""), ("clock_hz", "clock", "Hz"), ("memory_bytes", "memory", "B"),
    ("dram_bytes", "memory traffic", "B"),
)  # fmt: skip
FOLLOWING = {  # attribute of an estimate that has a default, and what `--to` calls it
    ARGUMENTS[name].estimated: name for name in ("stack", "precision", "threads", "host_cpu", "clock")
}  # fmt: skip
MOST_NAMES = 4  # of layers whose limit changed in the same way
SETTINGS = ("clock", "memory_clock", "power_limit", "batch")  # of one device, whose savings were counted
RUN = ("hardware", "stack", "precision", "task")  # attributes of an estimate that such a change leaves as they are


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
    """Two estimates with their ops matched by name; `changes` as text; `dies` before and after.

    saved: throughput and energy of a sample after / before, with the interval of the ratio; `basis` says what it is made of
    """

    before: Estimate
    after: Estimate
    changes: tuple[str, ...]
    ops: tuple[OpChange, ...]
    saved: Mapping[str, Saving]
    basis: str
    dies: tuple[DieEstimate, DieEstimate] | None = None

    @property
    def ratios(self) -> Mapping[str, float]:
        """Every total, after / before."""
        return {name: getattr(self.after, name) / getattr(self.before, name) for name, _, _ in TOTALS
                if getattr(self.before, name)}  # fmt: skip

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
        found = by_key(((side(op.before.bound), side(op.after.bound)), op) for op in self.ops
                       if op.moved and op.before is not None and op.after is not None)  # fmt: skip
        return {key: tuple(ops) for key, ops in sorted(found.items(), key=lambda item: -_time(item[1]))}

    @property
    def groups(self) -> tuple[tuple[LayerGroup, LayerGroup | None], ...]:
        """The layers by kind, the longest first, with the same ones after the change."""
        later = {op.name: op for op in self.after.ops}
        found = []
        for group in layer_groups(self.before):
            same = [later[op.name] for op in group.ops if op.name in later]
            found.append((group, group_of(group.name, same) if same else None))
        return tuple(found)


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
    saved, basis = _correlated(before, after)
    return Change(before=before, after=after, changes=changes, ops=tuple(live), saved=saved, basis=basis, dies=dies)


def _correlated(before: Estimate, after: Estimate) -> tuple[Mapping[str, Saving], str]:
    """Throughput and energy of a sample, with the correlation of errors that was measured of times of two GPUs."""
    alike = all(getattr(before, name) == getattr(after, name) for name in RUN[1:])
    known = SAME_STACK if alike else TWO_STACKS

    def ends(name: str, e: Estimate) -> tuple[float, float, float]:
        if name == "throughput_per_s":
            low, high = e.latency_interval_s
            return e.throughput_per_s, e.throughput_per_s * e.latency_s / high, e.throughput_per_s * e.latency_s / low
        low, high = e.energy_interval_j
        return 1.0 / e.throughput_per_w, low / e.batch, high / e.batch

    names = ("throughput_per_s", "energy_per_sample_j")
    saved = {name: correlated(name, ends(name, before), ends(name, after), known, before.interval_level) for name in names}
    return saved, (f"those of both predictions, whose errors are taken to be correlated by {known:g}, as measured of "
                   f"times of two GPUs with {'one stack' if alike else 'two stacks'}")  # fmt: skip


def _of_settings(request: Request, found: Change, moved: Mapping[str, Any]) -> Change:
    """The change with what was counted of two settings of one device, where it is one; else as it is."""
    same = all(getattr(found.before, name) == getattr(found.after, name) for name in RUN)
    if not same or not set(moved) <= {*SETTINGS} or found.before.hardware_name != found.after.hardware_name:
        return found
    old, new = ({"latency_s": e.latency_s, "throughput_per_s": e.throughput_per_s, "power_w": e.power_w,
               "energy_per_sample_j": 1.0 / e.throughput_per_w} for e in (found.before, found.after))  # fmt: skip
    saved = savings(request, old, new, clocks=bool({"clock", "memory_clock"} & set(moved)), batches="batch" in moved)
    return replace(found, saved=saved, basis="counted on pairs of measured rows of one device with two such settings")


def gained(c: Change) -> str:
    """Which layers the difference is in most, as a sentence; empty without any."""
    pairs = [(old, new, old.time / c.before.batch - new.time / c.after.batch) for old, new in c.groups if new is not None]
    if not pairs or c.idle:
        return ""
    sign = 1.0 if c.after.throughput_per_s > c.before.throughput_per_s else -1.0
    old, new, _ = max(pairs, key=lambda pair: sign * pair[2])
    was, now = (show(group.time / e.batch, "s", 3) for group, e in ((old, c.before), (new, c.after)))
    one = "" if c.before.batch == c.after.batch == 1 else " per sample"
    return f"{old.name} {'gain' if sign > 0 else 'lose'} most: {now}{one}, not {was}."


def changed_limits(c: Change) -> list[str]:
    """The layers whose limit changed, grouped: a line for each pair of limits, of which at most `MOST_NAMES` layers are named."""
    lines = []
    for (before, after), ops in c.moves.items():
        names = [op.name for op in ops]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        lines.append(f"{before} to {after}: {', '.join(names[:MOST_NAMES])}{more}")
    return lines or ["no op changes what limits it"]


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
    found = change(estimate_of(beside(before, after), references=False), estimate_of(after, references=False), lines, dies)
    return _of_settings(before, found, moved)


def changed_words(arguments: Mapping[str, Any], moved: Mapping[str, Any]) -> tuple[str, ...]:
    """The changes, one by one."""
    lines = [f"{key} = {value}" for key, value in (arguments.get("settings") or {}).items()]
    lines += [f"{key} x {factor:g}" for key, factor in (arguments.get("scales") or {}).items()]
    return (*lines, *(f"{key} = {ARGUMENTS[key].shown(value)}" for key, value in moved.items()))
