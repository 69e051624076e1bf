"""What an estimate says in words: what decides, where the time goes, by level of its network.

A cache-aware roofline has a slope for each level (Ilic, Pratas and Sousa 2014). An op whose data stay on the chip is limited by
the slope of the level that holds them; the others by that of the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.base.record import by_key
from archsim.base.units import grouped, show
from archsim.cost.bounds import BOUNDS, INPUT, POWER
from archsim.cost.evaluate import SPEEDUP
from archsim.device.device import Cpu, Tpu
from archsim.estimation.result import HOST, Estimate, OpEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineLevel:
    """A level on the chip: what it delivers to all units in use [B/s], and how much data it keeps from one op to the next [B]."""

    name: str
    bandwidth: float
    keeps: float


def levels(e: Estimate) -> list[RooflineLevel]:
    """The levels on the chip at the clock of the estimate, the nearest first.

    An L1 of a GPU keeps nothing: kernels begin with it empty. A TPU has one buffer, whose bandwidth may not be known.
    """
    device, clock = e.spec.device, e.clock_hz
    if isinstance(device, Tpu):
        known, size = device.buffer.bandwidth, float(device.buffer.size)
        return [] if known is None else [RooflineLevel(name="buffer", bandwidth=float(known) * clock, keeps=size)]
    if isinstance(device, Cpu):
        cores = float(device.core.count) * cores_used(e)
        named = [("L1", device.l1), ("L2", device.l2), *([] if device.l3 is None else [("L3", device.l3)])]
        return [RooflineLevel(name=name, bandwidth=cores * float(cache.bandwidth) * clock,
                           keeps=float(cache.size) * max(1.0, cores / float(cache.shared_by)))
                for name, cache in named]  # fmt: skip
    sms = float(device.sm.count)
    return [RooflineLevel(name="L1", bandwidth=sms * float(device.l1.bandwidth) * clock, keeps=0.0),
            RooflineLevel(name="L2", bandwidth=float(device.l2.bandwidth) * clock, keeps=float(device.l2.size))]  # fmt: skip


def cores_used(e: Estimate) -> float:
    """Share of the cores that the threads of a CPU occupy [1]; 1 on other devices."""
    device = e.spec.device
    return min(1.0, e.threads / float(device.core.count)) if isinstance(device, Cpu) and e.threads else 1.0


def level_of(op: OpEstimate, e: Estimate) -> RooflineLevel | None:
    """The nearest level that keeps all data of an op; the last one where none has room for all; None where none is known."""
    found = levels(e)
    moved = e.least_bytes.get(op.name, 0.0)
    return next((level for level in found if level.keeps >= moved), found[-1] if found else None)


# ---------------------------------------------------------------------------------------------------------- the summary

FAMILIES = {  # of layers that a reader takes as one: name of one, of many -> kinds
    ("convolution", "convolutions"): ("conv1d", "conv2d", "conv3d", "conv_transpose2d"),
    ("linear layer", "linear layers"): ("linear", "matmul", "batch_matmul"),
    ("expert layer", "expert layers"): ("experts", "gated"),
    ("attention layer", "attention layers"): ("attention", "latent_attention"),
    ("recurrent layer", "recurrent layers"): ("lstm", "gru", "rnn", "lstm_cell"),
}
ALIKE = {  # word for several kinds of small layers -> kinds
    "norm": ("lrn", "batch_norm", "layer_norm", "rms_norm", "group_norm"),
    "pool": ("max_pool", "avg_pool", "global_avg_pool"),
    "activations": ("relu", "relu6", "leaky_relu", "gelu", "gelu_tanh", "silu", "sigmoid", "hard_sigmoid", "hard_swish", "tanh"),
    "copies": ("concat", "slice", "transpose", "reshape", "pad", "gather", "scatter", "upsample"),
    "weight updates": ("update",), "loss": ("cross_entropy",), "linear": ("linear", "matmul", "batch_matmul"),
}  # fmt: skip
LONE = ("norm", "pool", "copies", "weight updates", "loss", "linear")  # words that stand for a single kind, too
DIRECTIONS = {"backward_data": "backward", "backward_filter": "backward", "update": ""}  # phase -> word before its layers
FEW = 3  # names of layers that are listed; of more the first and the last
LONGEST = 24  # characters of a list of names
MOST_GROUPS = 5
SMALL = 0.02  # of the latency: layers of a family that take less stand with those of none
NOTABLE = 0.25  # of a group's time: what takes as much limits it
SAVES = 0.005  # of the latency: less is not worth a word
NEAR_FLOOR = 0.8  # of the latency: from here on the host's floor is
ROUNDING = 1e-6  # relative; sums that differ by less are equal but for rounding
FASTER_TEXT = f"{100 * (SPEEDUP - 1):.0f} %"
LEAST = 0.02  # of the peak: less is no share of it that a reader cares for
LARGER = 16  # the batch that is proposed where a larger one helps
HIGHER = 2.0  # times the peak: a precision that has as much is proposed
ABOVE = 1.005  # times a peak: what reaches more needs fewer operations than it is counted with
MOSTLY = 0.5  # of the latency: a wait of as much decides
WEIGHTS = 0.3  # of what layers move: weights of as much are worth a larger batch
SAMPLES = {"img": "image", "seq": "sequence", "samples": "sample"}  # of a rate -> one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers of one kind and phase: what they add to the latency [s], by bound, and what they do.

    called: how a sentence calls them
    limited_by: bounds that take a quarter of the time or more, the largest first
    """

    name: str
    called: str = ""
    ops: tuple[OpEstimate, ...]
    time_s: Mapping[str, float]
    energy_j: Mapping[str, float]

    @property
    def time(self) -> float:
        """In all [s]."""
        return math.fsum(self.time_s.values())

    @property
    def flop(self) -> float:
        """Arithmetic [FLOP]."""
        return math.fsum(op.flop for op in self.ops)

    @property
    def dram_bytes(self) -> float:
        """Memory traffic [B]."""
        return math.fsum(op.dram_bytes for op in self.ops)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What limits it, by name of the bound."""
        ranked = sorted(self.time_s.items(), key=lambda pair: -pair[1])
        return tuple(name for i, (name, time) in enumerate(ranked) if not i or time >= NOTABLE * self.time)


def layer_groups(e: Estimate) -> list[LayerGroup]:
    """The layers that take time by family and direction, the longest group first; those that take little stand together."""
    live = [op for op in e.ops if op.time_s > 0]
    several = len({op.phase for op in live}) > 1
    found = by_key(((_family(op.kind), DIRECTIONS.get(op.phase, op.phase.replace("_", " ")) if several else ""), op)
                   for op in live)
    for family, direction in [key for key, ops in found.items() if key[0] and _time(ops) < SMALL * e.latency_s]:
        if len(found) > 1:
            found.setdefault(("", direction), []).extend(found.pop((family, direction)))
    groups = sorted((_named(*key, ops) for key, ops in found.items()), key=lambda group: -group.time)
    if len(groups) > MOST_GROUPS:
        rest = [op for group in groups[MOST_GROUPS - 1 :] for op in group.ops]
        groups = [*groups[: MOST_GROUPS - 1], group_of(f"{len(rest)} others", rest, f"the {len(rest)} others")]
    return groups


def _time(ops: Sequence[OpEstimate]) -> float:
    return math.fsum(op.time_s for op in ops)


def group_of(name: str, ops: Sequence[OpEstimate], called: str = "") -> LayerGroup:
    """Some ops under one name, or one for sentences too: their times by bound, their energies by component."""
    times: dict[str, float] = {}
    for op in ops:
        times[op.bound] = times.get(op.bound, 0.0) + op.time_s
    energy = {part: math.fsum(op.energy_breakdown_j[part] for op in ops) for part in ops[0].energy_breakdown_j}
    return LayerGroup(name=name, called=called or name, ops=tuple(ops), time_s=times, energy_j=energy)


def _family(kind: str) -> str:
    return next((names[0] for names, kinds in FAMILIES.items() if kind in kinds), "")


def _named(family: str, direction: str, ops: Sequence[OpEstimate]) -> LayerGroup:
    """Layers of a family and direction: `fc6 fc7 fc8`, `conv1 to conv5`, `53 convolutions`, `backward convolutions`; those of no
    family by their kinds."""
    names = [op.name for op in ops]
    if not family:
        name = f"{direction} {_kinds(ops)}".strip()
        if name.endswith("more"):
            return group_of(name, ops, f"{name} kinds of layer")
        return group_of(name, ops, f"the {name}" if name.endswith("updates") else f"the {name} layers")
    many = next(plural for (one, plural), _ in FAMILIES.items() if one == family)
    if direction:
        return group_of(f"{direction} {many}", ops, f"the {direction} {many}")
    if len(names) == 1 or (len(names) <= FEW and sum(map(len, names)) < LONGEST):
        return group_of(" ".join(names), ops)
    stem = re.fullmatch(r"([A-Za-z_]+)\d+", names[0])
    if stem and all(re.fullmatch(re.escape(stem[1]) + r"\d+", name) for name in names):
        return group_of(f"{names[0]} to {names[-1]}", ops)
    return group_of(f"{len(names)} {many}", ops, f"the {len(names)} {many}")


def _kinds(ops: Sequence[OpEstimate]) -> str:
    """The kinds of layers in words, those that take longest first."""
    there = {op.kind for op in ops}
    times: dict[str, float] = {}
    for op in ops:
        word, kinds = next(((word, kinds) for word, kinds in ALIKE.items() if op.kind in kinds), (op.kind, ()))
        said = word if word in LONE or len(there.intersection(kinds)) > 1 else op.kind
        times[said] = times.get(said, 0.0) + op.time_s
    listed = [word.replace("_", " ") for word in sorted(times, key=lambda word: -times[word])]
    more = len(listed) - FEW
    return ", ".join(listed) if more <= 1 else f"{', '.join(listed[:FEW])} and {more} more"


def busy_s(op: OpEstimate) -> float:
    """How long an op runs [s]: what it adds to the latency, or longer where it overlaps with others."""
    alone = math.fsum(kernel.time_s for kernel in op.kernels)
    return alone if alone > op.time_s * (1 + ROUNDING) else op.time_s


def peak(e: Estimate, precision: str = "") -> float | None:
    """Arithmetic that the cores in use can do at the clock of the estimate [FLOP/s], in its precision or another one; None where
    that has no peak."""
    try:
        found = float(e.spec.device.peak_flops(precision or e.precision, e.clock_hz))
    except Unsupported:
        return None
    return found * cores_used(e)


def bandwidth(e: Estimate) -> float:
    """The memory's own at its clock [B/s]."""
    return float(e.spec.device.memory.bandwidth) * e.memory_clock_share


def reaches(group: LayerGroup, e: Estimate) -> str:
    """How much of the memory or of the arithmetic a group uses that one of them limits; else empty."""
    first, top = group.limited_by[0], peak(e)
    if first == "dram":
        return _of(group.dram_bytes / group.time, bandwidth(e), "B/s")
    if first == "compute" and top is not None and group.flop > LEAST * top * group.time:
        return _of(group.flop / group.time, top, "FLOP/s")
    return ""


def _of(rate: float, most: float, unit: str) -> str:
    """`18.4 of 25.6 GB/s (72 %)`; a rate above the peak is that of an algorithm that needs fewer operations."""
    if rate > ABOVE * most:
        return f"{show(rate, unit, 3)}, {rate / most:.1f} x the peak"
    whole = show(most, unit, 3)
    prefix = whole.split(" ")[1]
    scale = most / float(whole.split(" ")[0].replace(",", ""))
    return f"{rate / scale:.3g} of {whole.split(' ')[0]} {prefix} ({100 * rate / most:.0f} %)"


def why(e: Estimate) -> list[str]:
    """Why it takes this time, and what a faster part would save and a user may try: a line each."""
    groups = layer_groups(e)
    if not groups:
        return []
    helps = " ".join(filter(None, (relieved(e), advice(e, groups))))
    return [line for line in (decides(e, groups), helps) if line]


def decides(e: Estimate, groups: Sequence[LayerGroup]) -> str:
    """What decides the time, and at which layers one sees it."""
    name = e.limited_by
    if name == HOST or (name == "none" and e.host_wait_s > MOSTLY * e.latency_s):
        if e.threads:
            return f"Dispatch decides: the framework takes {show(e.host_floor_s, 's', 3)} to call {len(e.ops)} ops."
        return (f"Dispatch decides: the host CPU ({e.host_cpu}) takes {show(e.host_floor_s, 's', 3)} to issue the kernels of "
                f"{len(e.ops)} ops, and no faster chip gets below.")  # fmt: skip
    if name == INPUT:
        return "Input decides: samples are read and decoded more slowly than the device takes them."
    if name == POWER:
        within, clock = show(e.power_limit_w, "W", 3), show(e.clock_hz, "Hz", 3)
        return f"The power limit decides: within {within} the core clock is {clock} in the mean."
    if name == "none":
        return f"No single part decides: none that is {FASTER_TEXT} faster saves much."
    mine = max(groups, key=lambda group: group.time_s.get(name, 0.0))
    if name == "dram" and mine.dram_bytes:
        top = peak(e)
        balance = f"; this chip balances at {grouped(top / bandwidth(e), 3)}" if top else ""
        return (f"Memory decides: {_subject(mine, 'move')} {show(mine.dram_bytes, 'B', 3)} {_samples(e)} "
                f"({grouped(mine.flop / mine.dram_bytes, 2)} FLOP per byte{balance}).")  # fmt: skip
    if name == "compute" and mine.flop:
        return f"Arithmetic decides: {_subject(mine, 'do')} {show(mine.flop, 'FLOP', 3)} {_samples(e)}{_share(mine, e)}."
    return f"{BOUNDS[name].decides}, most of all in {mine.called}."


def _subject(group: LayerGroup, verb: str) -> str:
    """A group as the subject of a sentence: `the 53 convolutions do`, `fc6 fc7 fc8 do`, `fc does`."""
    of_one = {"do": "does", "move": "moves"}[verb] if group.called == group.ops[0].name else verb
    return f"{group.called} {of_one}"


def _share(group: LayerGroup, e: Estimate) -> str:
    """At which share of the peak a group computes."""
    top = peak(e)
    if top is None:
        return ""
    share = group.flop / group.time / top
    if share > ABOVE:
        return f", {share:.1f} x the chip's peak by an algorithm that needs fewer"
    return f", at {100 * share:.0f} % of the chip's peak"


def _samples(e: Estimate) -> str:
    return f"for one {SAMPLES[e.sample]}" if e.batch == 1 else f"for {e.batch} {SAMPLES[e.sample]}s"


def relieved(e: Estimate) -> str:
    """What `SPEEDUP` times as much of the first two resources would save; empty where that is little."""
    saved = [(BOUNDS[name].more, time / e.latency_s) for name, time in e.saved_s.items() if time > SAVES * e.latency_s][:2]
    said = [f"{FASTER_TEXT} {more}{' saves' if not i else ''} {100 * share:.0f} %" for i, (more, share) in enumerate(saved)]
    return f"{', '.join(said)}." if said else ""


def advice(e: Estimate, groups: Sequence[LayerGroup]) -> str:
    """What a user may try that needs no other device; empty where nothing is sure to help."""
    grows = e.batch < LARGER <= (e.max_batch or 0)
    if e.limited_by == HOST and e.graph_helps:
        return "A replayed graph issues all at once: try --graph."
    if e.limited_by == HOST:
        return f"A larger batch takes hardly more calls: try --batch {LARGER}." if grows else ""
    if e.limited_by == "latency":
        return f"A larger batch fills the chip: try --batch {LARGER}." if grows else ""
    if e.limited_by in (INPUT, POWER):
        return ""
    first = groups[0]
    if first.limited_by[0] == "dram" and e.task == "inference" and e.memory.parameters > WEIGHTS * first.dram_bytes:
        return f"A larger batch reads the same weights once: try --batch {LARGER}." if grows else ""
    top = peak(e)
    if e.limited_by == "compute" and top is not None and e.precision in ("fp32", "tf32"):
        half = peak(e, "fp16") or 0.0
        return f"fp16 has {half / top:.0f} times the peak: try --precision fp16." if half > HIGHER * top else ""
    return ""
