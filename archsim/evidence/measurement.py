"""One published measurement of a network, and the rows that belong to one cell."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from archsim.base.files import data_folder
from archsim.evidence.shipped import FOLDER, shipped_files

EAGER = "pytorch-"  # software whose kernels the host launches one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured time [s], rate [1/s], power [W] or energy [J] of a network on a device with a stack."""

    source: str
    network: str
    hardware: str
    stack: str
    task: str
    batch: int
    precision: str
    threads: int | None
    devices: int
    clock_hz: float | None
    metric: str
    value: float
    split: str
    reference: str  # where in the source


def rows_of(network: str, hardware: str) -> Iterator[Measurement]:
    """The shipped measurements of one network on one device.

    The files are scanned as text first: an estimate must not pay for parsing rows that it will not show.
    """
    for lines in _network_files():
        near = [line for line in lines[1:] if network in line and hardware in line]
        for row in csv.DictReader([lines[0], *near]):
            if (row["network"], row["hardware"]) == (network, hardware) and not row.get("op"):
                yield _measurement(row)


def _measurement(row: dict[str, str]) -> Measurement:
    threads, clock = row.get("threads") or "", row.get("clock_mhz")
    return Measurement(
        source=row["source"], network=row["network"], hardware=row["hardware"], stack=row["stack"], task=row["task"],
        batch=int(row["batch"]), precision=row["precision"], threads=int(threads) if threads.isdigit() else None,
        devices=int(row.get("devices") or 1), clock_hz=float(clock) * 1e6 if clock else None, metric=row["metric"],
        value=float(row["value"]), split=row.get("split") or "", reference=row.get("source_ref") or "",
    )  # fmt: skip


@cache
def _network_files() -> tuple[tuple[str, ...], ...]:
    """The lines of every file of whole networks, told by its header; other files are read no further than that."""
    found = []
    for file in shipped_files():
        if file.name.endswith(".csv"):
            with file.open("r", encoding="utf-8-sig") as stream:
                head = stream.readline()
                if {"network", "stack", "task", "metric", "value"} <= set(head.strip().split(",")):
                    found.append((head, *stream))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A power meter that is read when a run begins, and every `every_s` [s] until it ends.

    A run is at most `runs` rounds of one call, or of as many as `calls` says of its "op dtype".
    """

    every_s: float
    runs: int
    calls: Mapping[str, int] = field(default_factory=dict)

    def longest_run(self, op: str, dtype: str, latency_s: float) -> float:
        """The longest that the repeats of a call can have taken [s]."""
        return self.runs * self.calls.get(f"{op} {dtype}", 1) * latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a source's script does besides the task that it names.

    `forward`: its forward pass runs as in training, always or for some a "framework network". `input_gradient`: the
    networks or frameworks for which its backward pass computes the gradient of the network's input too. `updates`: the
    frameworks whose backward pass also updates the weights. `graphs`: network or "framework network" -> the graph that it
    builds under that name. `inputs`: where its timed loop finds them, "device" or "host"; empty for what the stack says.
    `input_copies`: framework -> copies of a batch within host memory that its loop takes as long as.
    `stacks`: stack, "hardware stack" or "network stack" -> the one that it ran; `versions`: the same by how a row's
    place in the source begins. `tokens`: "framework network" -> tokens in a sequence, where its batch counts tokens instead
    of sequences. `waits`: the frameworks whose timer waits for each layer. `threads`: how a row's place in the source
    begins -> the threads that really ran. `lengths`: network -> tokens of its sequences. `clocks`: hardware -> the
    core clock [MHz] that was set. `boundary`: what its powers cover. `node`: the node whose devices shared a step;
    `overlapping`: the frameworks that exchange gradients while they compute others.
    `launched`: how "software dtype" of the kernels begins that the host launches one by one, as PyTorch does; others replay a
    graph. `slower_hosts`: hardware or "hardware op" -> how much longer the host of those rows took.
    `metered_from_s`: the shortest call whose repeats last as long as its power meter averages [s]; `meter`: when it reads.
    `unwritten`: the "op dtype" whose operands are memory that nothing has written, so that what they switch is not known.
    """

    forward: bool | tuple[str, ...] = ()
    input_gradient: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    graphs: Mapping[str, str] = field(default_factory=dict)
    inputs: str = ""
    input_copies: Mapping[str, int] = field(default_factory=dict)
    stacks: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    waits: tuple[str, ...] = ()
    threads: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, float] = field(default_factory=dict)
    boundary: str = ""
    node: str = ""
    overlapping: tuple[str, ...] = ()
    launched: tuple[str, ...] = ()
    slower_hosts: Mapping[str, float] = field(default_factory=dict)
    metered_from_s: float = 0.0
    meter: Meter | None = None
    unwritten: tuple[str, ...] = ()

    def task(self, task: str, network: str, framework: str) -> str:
        """The task as it really ran."""
        if framework in self.updates:
            task = {"backward": "backward_update", "forward_backward": "training_step"}.get(task, task)
        trained = self.forward if isinstance(self.forward, bool) else f"{framework} {network}" in self.forward
        return "forward" if task == "inference" and trained else task

    def stack(self, hardware: str, network: str, stack: str, reference: str) -> str:
        """The stack that really ran."""
        named = _longest(self.versions, reference) or self.stacks.get(f"{hardware} {stack}")
        return str(named or self.stacks.get(f"{network} {stack}") or self.stacks.get(stack, stack))

    def working_threads(self, reference: str, otherwise: int | None) -> int | None:
        """The threads that really ran, `otherwise` unless they are known to differ."""
        return _longest(self.threads, reference) or otherwise

    def copies(self, framework: str, otherwise: int) -> int:
        """Copies of a batch within host memory before it crosses the link, `otherwise` unless they are known to differ."""
        return self.input_copies.get(framework, otherwise)

    def waits_for(self, framework: str) -> bool:
        """Whether each layer was waited for."""
        return framework in self.waits

    def host_time(self, software: str, dtype: str, hardware: str, op: str) -> float:
        """How much longer than usual the host took for each call of a kernel, 0 where a graph was replayed."""
        if not f"{software} {dtype}".startswith((EAGER, *self.launched)):
            return 0.0
        return float(self.slower_hosts.get(f"{hardware} {op}", self.slower_hosts.get(hardware, 1.0)))

    def samples(self, batch: int, network: str, framework: str) -> int:
        """The samples in a batch that the source calls `batch`."""
        return max(1, batch // self.tokens.get(f"{framework} {network}", 1))

    def graph(self, network: str, framework: str, otherwise: str) -> str:
        """The graph that it built, `otherwise` unless it is known to differ."""
        return self.graphs.get(f"{framework} {network}") or self.graphs.get(network, otherwise)

    def of_inputs(self, network: str, framework: str) -> bool:
        """Whether the gradient of the input was computed."""
        return network in self.input_gradient or framework in self.input_gradient


def _longest(beginnings: Mapping[str, Any], text: str) -> Any:
    """What belongs to the longest of the beginnings that `text` has."""
    found = [start for start in beginnings if text.startswith(start)]
    return beginnings[max(found, key=len)] if found else None


@cache
def protocol(source: str) -> Protocol:
    """The protocol of a source; a plain one for a source that is not described."""
    entry = _sources().get(source, {})
    forward = entry.get("forward", ())
    return Protocol(
        forward=forward == "training" or tuple(forward), input_gradient=tuple(entry.get("input_gradient", ())),
        updates=tuple(entry.get("updates", ())), graphs=entry.get("graphs", {}), inputs=entry.get("inputs", ""),
        input_copies=entry.get("input_copies", {}), stacks=entry.get("stacks", {}),
        versions=entry.get("versions", {}), tokens=entry.get("tokens", {}),
        waits=tuple(entry.get("waits", ())), threads=entry.get("threads", {}),
        lengths=entry.get("lengths", {}), clocks=entry.get("clocks", {}), boundary=entry.get("boundary", ""),
        node=entry.get("node", ""), overlapping=tuple(entry.get("overlapping", ())),
        launched=tuple(entry.get("launched", ())), slower_hosts=entry.get("slower_hosts", {}),
        metered_from_s=float(entry.get("metered_from_s", 0.0)),
        meter=Meter(**entry["meter"]) if "meter" in entry else None, unwritten=tuple(entry.get("unwritten", ())),
    )  # fmt: skip


@cache
def citations() -> dict[str, str]:
    """Source id -> short citation."""
    return {name: entry["citation"] for name, entry in _sources().items()}


@cache
def _sources() -> dict[str, Any]:
    return tomllib.loads(data_folder(FOLDER).joinpath("sources.toml").read_text("utf-8"))
