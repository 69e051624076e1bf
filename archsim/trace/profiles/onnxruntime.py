"""Profiles of onnxruntime: a list of events, of which each node says its operator and the shapes that it read and made.

Runs are marked by events `model_run`. A node is the event `..._kernel_time` of the category "Node"; kernels of a GPU have the
category "Kernel" and name the node that launched them.

Format: microsoft/onnxruntime, onnxruntime/core/common/profiler.cc and core/framework/sequential_executor.cc.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from archsim.base.errors import InputError
from archsim.trace.dims import LARGEST, MOST_DIMS, short
from archsim.trace.profiles.record import Profile, ProfiledCall, ProfiledKernel, ProfiledTensor
from archsim.trace.profiles.stream import US, events, times_of

KEY = "traceEvents"
TIMED = "_kernel_time"
MOST_NODES = 1 << 20


class NodeEvent(NamedTuple):
    """A node as it ran once."""

    name: str
    start_us: float
    duration_us: float
    args: Mapping[str, Any]


def read(path: Path) -> Profile:
    """The profile in a file. Raises MissingFile or InputError."""
    nodes: list[NodeEvent] = []
    kernels: list[NodeEvent] = []
    runs: list[tuple[float, float]] = []
    for count, event in enumerate(events(path, KEY)):
        kind, name = event.get("cat"), event.get("name")
        if not isinstance(name, str) or event.get("ph") != "X":
            continue
        if kind == "Session" and name == "model_run":
            runs.append(times_of(event, path, count))
        elif kind in ("Node", "Kernel") and (kind == "Kernel" or name.endswith(TIMED)):
            args = event.get("args")
            found = NodeEvent(name.removesuffix(TIMED), *times_of(event, path, count), args if isinstance(args, dict) else {})
            (nodes if kind == "Node" else kernels).append(found)
            if len(nodes) + len(kernels) > MOST_NODES:
                raise InputError(str(path), f"has more than {MOST_NODES} nodes; refused")
    if not nodes:
        raise InputError(str(path), "has no nodes that ran: a profile of onnxruntime has events of the category Node")
    return _profile(str(path), nodes, kernels, sorted(runs))


def _profile(path: str, nodes: list[NodeEvent], kernels: list[NodeEvent], runs: list[tuple[float, float]]) -> Profile:
    """The run of the median time."""
    notes = [] if runs else ["all is one run: it marks none (model_run)"]
    windows = [(start, start + took) for start, took in runs] or [(nodes[0].start_us, max(each.start_us for each in nodes) + 1)]
    nodes = sorted(nodes, key=lambda each: each.start_us)
    starts = [each.start_us for each in nodes]
    spans = [(bisect_left(starts, start), bisect_left(starts, end)) for start, end in windows]
    windows = [window for window, (first_node, end) in zip(windows, spans, strict=True) if end > first_node]
    inside = [nodes[first_node:end] for first_node, end in spans if end > first_node]
    if not inside:
        raise InputError(path, "has nodes, but none within a run (model_run)")
    lengths = [max(each.start_us + each.duration_us for each in run) - run[0].start_us for run in inside]
    shown = sorted(range(len(inside)), key=lambda i: lengths[i])[(len(inside) - 1) // 2]
    run, (first, last) = inside[shown], windows[shown]
    place = {each.name: i for i, each in enumerate(run)}
    launched = sorted((k for k in kernels if first <= k.start_us < last), key=lambda k: k.start_us)
    return Profile(
        path=path, source="onnxruntime", calls=tuple(_call(each, path, run[0].start_us) for each in run),
        kernels=tuple(ProfiledKernel(
            name=k.name, start_s=(k.start_us - run[0].start_us) * US, duration_s=k.duration_us * US,
            stream=str(k.args.get("stream", "")), copy=k.name.startswith(("Memcpy", "Memset")),
            call=place.get(str(k.args.get("parent_name", "")).removesuffix(TIMED)),
        ) for k in launched),
        run_s=tuple(length * US for length in lengths), shown=shown, notes=tuple(notes),
    )  # fmt: skip


def _call(event: NodeEvent, path: str, origin_us: float) -> ProfiledCall:
    return ProfiledCall(
        operator=str(event.args.get("op_name", "")) or "node", name=event.name, start_s=(event.start_us - origin_us) * US,
        duration_s=event.duration_us * US, arguments=_tensors(event, "input_type_shape", path),
        results=_tensors(event, "output_type_shape", path),
    )  # fmt: skip


def _tensors(event: NodeEvent, key: str, path: str) -> tuple[ProfiledTensor, ...]:
    """Tensors as [{"float": [2, 3]}, ...]. Raises InputError for shapes that none has."""
    listed = event.args.get(key)
    found = []
    for each in listed if isinstance(listed, list) else []:
        for type_, shape in each.items() if isinstance(each, dict) else ():
            if not isinstance(shape, list):
                continue  # of a sequence
            if len(shape) > MOST_DIMS or not all(type(size) is int and 0 <= size <= LARGEST for size in shape):
                raise InputError(path, f"node {short(event.name)} has the {key} {short(shape)}, which no tensor has")
            found.append(ProfiledTensor(shape=tuple(shape), type=str(type_)))
    return tuple(found)
