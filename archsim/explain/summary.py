"""Why a network takes the time it takes, in a few words: its layers by kind, what limits each, and what would help."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.base.units import show
from archsim.cost.bounds import BOUNDS, INPUT
from archsim.cost.relief import FASTER
from archsim.device.device import Cpu
from archsim.estimation.limits import HOST
from archsim.estimation.result import Estimate, OpEstimate

FAMILIES = {  # of layers that a reader takes as one: name of one, of many -> kinds
    ("convolution", "convolutions"): ("conv1d", "conv2d", "conv3d", "conv_transpose2d"),
    ("linear layer", "linear layers"): ("linear", "matmul", "batch_matmul"),
    ("attention", "attention"): ("attention", "latent_attention"),
    ("recurrent layer", "recurrent layers"): ("lstm", "gru", "rnn"),
}
FEW = 3  # names of layers that are listed; of more the first and the last
MOST_GROUPS = 6
NOTABLE = 0.25  # of a group's time: what takes as much limits it
SAVES = 0.005  # of the latency: less is not worth a word
NEAR_FLOOR = 0.8  # of the latency: from here on the host's floor is
LEAST = 0.02  # of the peak: less is no share of it that a reader cares for
LARGER = 16  # times the batch that is proposed where weights decide


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers of one kind and phase: what they add to the latency [s], by bound, and what they do.

    limited_by: bounds that take a quarter of the time or more, the largest first
    """

    name: str
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
    """The layers that take time by family and phase, the longest group first; the least of many groups are one."""
    found: dict[str, list[OpEstimate]] = {}
    several = len({op.phase for op in e.ops}) > 1
    for op in e.ops:
        if op.time_s > 0:
            phase = f", {op.phase.replace('_', ' ')}" if several and op.phase != op.kind else ""
            found.setdefault(f"{_family(op.kind)}{phase}", []).append(op)
    groups = sorted((group_of(_name(key, ops), ops) for key, ops in found.items()), key=lambda group: -group.time)
    if len(groups) > MOST_GROUPS:
        rest = [op for group in groups[MOST_GROUPS - 1 :] for op in group.ops]
        groups = [*groups[: MOST_GROUPS - 1], group_of(f"{len(rest)} others", rest)]
    return groups


def group_of(name: str, ops: Sequence[OpEstimate]) -> LayerGroup:
    """Some ops under one name: their times by bound, their energies by component."""
    times: dict[str, float] = {}
    for op in ops:
        times[op.bound] = times.get(op.bound, 0.0) + op.time_s
    energy = {part: math.fsum(op.energy_breakdown_j[part] for op in ops) for part in ops[0].energy_breakdown_j}
    return LayerGroup(name=name, ops=tuple(ops), time_s=times, energy_j=energy)


def _family(kind: str) -> str:
    return next((names[0] for names, kinds in FAMILIES.items() if kind in kinds), "")


def _name(key: str, ops: Sequence[OpEstimate]) -> str:
    """`fc6 fc7 fc8`, `conv1 to conv5`, `53 convolutions`, or the kinds of what has no family."""
    family, _, phase = key.partition(",")
    said = f",{phase}" if phase else ""
    names = [op.name for op in ops]
    if not family:
        kinds = sorted({op.kind for op in ops}, key=lambda kind: -math.fsum(op.time_s for op in ops if op.kind == kind))
        listed = ", ".join(kind.replace("_", " ") for kind in (kinds if len(kinds) <= FEW + 1 else kinds[:FEW]))
        return (listed + (f" and {len(kinds) - FEW} more" if len(kinds) > FEW + 1 else "")) + said
    if len(names) <= FEW and sum(map(len, names)) < 24:
        return " ".join(names) + said
    stem = re.fullmatch(r"([A-Za-z_]+)\d+", names[0])
    if stem and all(re.fullmatch(re.escape(stem[1]) + r"\d+", name) for name in names):
        return f"{names[0]} to {names[-1]}{said}"
    many = next(plural for (one, plural), _ in FAMILIES.items() if one == family)
    return f"{len(names)} {many}{said}" if len(names) > 1 else names[0] + said


def peak(e: Estimate) -> float | None:
    """Arithmetic that the cores in use can do at the clock of the estimate [FLOP/s]; None where the precision has no peak."""
    try:
        found = float(e.spec.device.peak_flops(e.precision, e.clock_hz))
    except Unsupported:
        return None
    device = e.spec.device
    return found * (min(1.0, e.threads / float(device.core.count)) if isinstance(device, Cpu) and e.threads else 1.0)


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
    """`18.4 of 25.6 GB/s   (72 %)`."""
    whole = show(most, unit, 3)
    prefix = whole.split(" ")[1]
    scale = most / float(whole.split(" ")[0].replace(",", ""))
    return f"{rate / scale:.3g} of {whole.split(' ')[0]} {prefix} ({100 * rate / most:.0f} %)"


def why(e: Estimate) -> list[str]:
    """Why it takes this time, what a faster part would save, and what a user may try: one sentence each."""
    groups = layer_groups(e)
    if not groups:
        return []
    return [sentence for sentence in (_decides(e, groups), _savings(e), _advice(e, groups)) if sentence]


def _decides(e: Estimate, groups: Sequence[LayerGroup]) -> str:
    name = e.limited_by
    if name == HOST or (name == "none" and e.host_wait_s > 0.5 * e.latency_s):
        return (f"Dispatch decides: {e.host_cpu} takes {show(e.host_floor_s, 's', 3)} to issue {len(e.ops)} ops, and no faster "
                "chip gets below.")  # fmt: skip
    if name == INPUT:
        return "Input decides: samples are read and decoded more slowly than the device takes them."
    mine = max(groups, key=lambda group: group.time_s.get(name, 0.0))
    each = f"for {_samples(e)}"
    top = peak(e)
    if name == "dram":
        balance = f"; this chip balances at {top / bandwidth(e):.3g}" if top else ""
        return (f"Memory decides: {mine.name} move {show(mine.dram_bytes, 'B', 3)} {each} "
                f"({mine.flop / mine.dram_bytes:.2g} FLOP per byte{balance}).")  # fmt: skip
    if name == "compute":
        share = f", at {100 * mine.flop / mine.time / top:.0f} % of the chip's peak" if top and mine.flop else ""
        return f"Arithmetic decides: {mine.name} do {show(mine.flop, 'FLOP', 3)} {each}{share}."
    row = BOUNDS.get(name, BOUNDS["none"])
    return f"{row.word[0].upper()}{row.word[1:]} decide{'' if row.word.endswith('es') else 's'}: {row.meaning}."


def _samples(e: Estimate) -> str:
    one = {"img": "image", "seq": "sequence", "samples": "sample"}.get(e.sample, "sample")
    return f"one {one}" if e.batch == 1 else f"{e.batch} {one}s"


def _savings(e: Estimate) -> str:
    """What `FASTER` times as much of the first two resources would save."""
    saved = [(BOUNDS[name].word, time / e.latency_s) for name, time in e.relief_s.items() if time > SAVES * e.latency_s][:2]
    if not saved:
        return ""
    faster = {"memory": "more bandwidth", "arithmetic": "more arithmetic", "dispatch": "faster dispatch",
              "launches": "faster launches", "latency of loads": "shorter latency"}  # fmt: skip
    first, *others = [f"{faster.get(word, f'more of the {word}')}{{}}{100 * share:.0f} %" for word, share in saved]
    more = f"{100 * (FASTER - 1):.0f} % "
    return more + first.format(" saves ") + "".join(f", {more}{other.format(' ')}" for other in others) + "."


def _advice(e: Estimate, groups: Sequence[LayerGroup]) -> str:
    if e.limited_by == HOST and e.limits.graph:
        return "A replayed graph issues it at once: try --graph."
    larger = LARGER * e.batch
    weights = groups[0].limited_by[0] == "dram" and e.task == "inference" and e.memory.parameters > 0.3 * groups[0].dram_bytes
    if weights and (e.max_batch or 0) >= larger and e.batch < LARGER:
        return f"A larger batch reads the same weights once: try --batch {larger}."
    if e.limited_by == HOST and (e.max_batch or 0) >= larger:
        return f"A larger batch takes hardly more calls: try --batch {larger}."
    return ""
