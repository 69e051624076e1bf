"""Profiles of PyTorch (Kineto): Chrome traces with calls of ATen's operators and, of a GPU, the kernels that they launched.

A kernel belongs to the call whose "External id" it bears; without one, to that of the runtime call of its "correlation". Runs
are the steps that the profiler marked (`ProfilerStep#N`), else equal repetitions of the outermost calls, else all is one run.

Format: pytorch/kineto, libkineto/src/output_json.cpp.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import InputError
from archsim.trace.dims import LARGEST, MOST_DIMS, short
from archsim.trace.jsonlines import DECODER
from archsim.trace.profiles.calls import counted_calls, outermost, period
from archsim.trace.profiles.record import (
    PYTORCH,
    US,
    Argument,
    Profile,
    ProfiledCall,
    ProfiledKernel,
    ProfiledTensor,
    events,
    middle,
    times_of,
)
from archsim.trace.readers.torch_program import NOT_RECORDED

KEY = "traceEvents"
Places = NDArray[np.int64]
FloatColumn = NDArray[np.float64]
NOBODY, LARGEST_ID = -1, 2**62
STEP = "ProfilerStep#"
CALLS = ("cpu_op", "operator")
KERNELS, COPIES = ("kernel",), ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
RUNTIME = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "hip_driver", "xpu_runtime", "driver")
NO_TENSOR = ("", "Scalar", "ScalarList", "None", "NoneType")
MOST_SIGNATURES = 1 << 17  # distinct calls


class Signature(NamedTuple):
    """What tells one call from the next: operator, and what the profile says of its arguments."""

    operator: str
    dims: Any
    types: Any
    values: Any


def _column(code: str) -> Any:
    return field(default_factory=lambda: array(code))


@dataclass(slots=True)
class CallColumns:
    """All calls of a profile, a column for each property."""

    start: array[float] = _column("d")
    duration: array[float] = _column("d")
    thread: array[int] = _column("i")
    signature: array[int] = _column("i")
    external: array[int] = _column("q")


@dataclass(slots=True)
class KernelColumns:
    """All kernels and copies of a profile."""

    start: array[float] = _column("d")
    duration: array[float] = _column("d")
    name: array[int] = _column("i")
    stream: array[int] = _column("i")
    external: array[int] = _column("q")
    correlation: array[int] = _column("q")
    copy: array[int] = _column("b")


class _Interned:
    """Numbers for values that come again and again."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}
        self.values: list[Any] = []

    def of(self, key: Any, value: Any = None) -> int:
        found = self.number.get(key)
        if found is None:
            found = self.number[key] = len(self.values)
            self.values.append(key if value is None else value)
        return found


class _Reading:
    """The columns of a profile while its events are read."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.calls, self.kernels = CallColumns(), KernelColumns()
        self.signatures, self.names, self.threads, self.streams = _Interned(), _Interned(), _Interned(), _Interned()
        self.steps: list[tuple[float, float]] = []
        self.launches, self.launchers = array("q"), array("q")  # correlations of runtime calls, and their external ids
        self.shapes = False
        self.count = 0

    def event(self, event: Mapping[str, Any]) -> None:
        """One event; those of other kinds are passed over."""
        self.count += 1
        kind = event.get("cat")
        if event.get("ph") != "X" or type(kind) is not str:
            return
        kind = kind.lower()
        if kind in CALLS:
            self.call(event)
        elif kind in KERNELS or kind in COPIES:
            self.kernel(event, kind in COPIES)
        elif kind in RUNTIME:
            args = self.args(event)
            correlation, external = args.get("correlation"), args.get("External id", args.get("external id"))
            if _is_id(correlation) and _is_id(external):
                self.launches.append(correlation)
                self.launchers.append(external)
        elif kind == "user_annotation" and str(event.get("name", "")).startswith(STEP):
            self.steps.append(self.times(event))

    def wrong(self, said: str) -> InputError:
        return InputError(self.path, f"event {self.count - 1} of its list {KEY!r} {said}")

    def args(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        args = event.get("args")
        return args if type(args) is dict else {}

    def times(self, event: Mapping[str, Any]) -> tuple[float, float]:
        """Start and duration [us]."""
        return times_of(event, self.path, self.count - 1)

    def call(self, event: Mapping[str, Any]) -> None:
        start, duration = self.times(event)
        args, name = self.args(event), event.get("name")
        if type(name) is not str:
            raise self.wrong("has no name")
        dims = args.get("Input Dims", args.get("Input dims"))
        said = Signature(name, dims, args.get("Input type"), args.get("Concrete Inputs"))
        key = (name, str(said.dims), str(said.types), str(said.values))
        self.shapes = self.shapes or said.dims is not None
        c = self.calls
        c.start.append(start)
        c.duration.append(duration)
        c.thread.append(self.threads.of((str(event.get("pid")), str(event.get("tid")))))
        c.signature.append(self.signatures.of(key, said))
        external = args.get("External id", args.get("external id"))
        c.external.append(external if _is_id(external) else NOBODY)
        if len(self.signatures.values) > MOST_SIGNATURES:
            raise InputError(self.path, f"has more than {MOST_SIGNATURES} calls that differ; refused")

    def kernel(self, event: Mapping[str, Any], copy: bool) -> None:
        start, duration = self.times(event)
        args, name, k = self.args(event), event.get("name"), self.kernels
        if type(name) is not str:
            raise self.wrong("has no name")
        k.start.append(start)
        k.duration.append(duration)
        k.name.append(self.names.of(name))
        k.stream.append(self.streams.of(str(args.get("stream", event.get("tid")))))
        k.copy.append(copy)
        for column, wanted in ((k.external, ("External id", "external id")), (k.correlation, ("correlation",))):
            value = next((args[each] for each in wanted if each in args), None)
            column.append(value if _is_id(value) else NOBODY)


def _is_id(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < LARGEST_ID


def read(path: Path) -> Profile:
    """The profile in a file. Raises MissingFile or InputError."""
    reading = _Reading(path)
    for event in events(path, KEY):
        reading.event(event)
    if not reading.calls.start and not reading.kernels.start:
        raise InputError(str(path), "has no calls of operators and no kernels: a profile of PyTorch has events of the "
                                    "categories cpu_op and kernel")  # fmt: skip
    return _profile(reading)


def _profile(r: _Reading) -> Profile:
    """The run of the median time."""
    owner = _owners(r)
    windows, notes = _windows(r)
    runs = _runs(r, windows, owner, frozenset(owner.tolist()))
    lengths = [run.length_us for run in runs]
    shown = middle(lengths)
    run = runs[shown]
    calls, place = run.counted()
    if r.kernels.start and not run.kernels:
        notes.append("no kernel belongs to this run: the profile's kernels bear no External id or correlation of its calls")
    if not r.shapes:
        notes.append("no shapes were recorded: profile(record_shapes=True) records them")
    kernels = [ProfiledKernel(
        name=r.names.values[r.kernels.name[k]], start_s=(r.kernels.start[k] - run.origin_us) * US,
        duration_s=r.kernels.duration[k] * US, stream=r.streams.values[r.kernels.stream[k]], copy=bool(r.kernels.copy[k]),
        call=place.get(int(owner[k])),
    ) for k in run.kernels]  # fmt: skip
    return Profile(path=r.path, source=PYTORCH, calls=tuple(calls), kernels=tuple(kernels),
                   run_s=tuple([length * US for length in lengths]), shown=shown, shapes=r.shapes,
                   notes=tuple(notes))  # fmt: skip


def _owners(r: _Reading) -> Places:
    """The call that launched each kernel, by the places of both; NOBODY where that is not known."""
    external, correlation = np.array(r.kernels.external, np.int64), np.array(r.kernels.correlation, np.int64)
    launches = np.array(r.launches, np.int64)
    by_launch = _looked_up(correlation, launches)
    launchers = np.array([*r.launchers, NOBODY], np.int64)
    return _looked_up(np.where(external >= 0, external, launchers[by_launch]), np.array(r.calls.external, np.int64))


def _looked_up(wanted: Places, among: Places) -> Places:
    """The place of each number among others, NOBODY where it is not there."""
    if not among.size:
        return np.full(wanted.shape, NOBODY, np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among, wanted, sorter=order, side="right") - 1
    found = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (wanted >= 0) & (among[found] == wanted), found, NOBODY)


def _windows(r: _Reading) -> tuple[list[tuple[float, float]], list[str]]:
    """From when to when each run lasts [us]."""
    c = r.calls
    if r.steps:
        return [(start, start + duration) for start, duration in sorted(r.steps)], []
    if not c.start:
        return [(-math.inf, math.inf)], ["no calls of operators were recorded: kernels have no shapes and belong to no op"]
    top = outermost(c.start, c.duration, c.thread)
    every = period([c.signature[i] for i in top])
    begins = [c.start[i] for i in top[::every]]
    if len(begins) < 2:
        return [(-math.inf, math.inf)], ["all is one run: no step is marked (ProfilerStep#N, by prof.step()), nothing repeats"]
    return [*zip(begins, [*begins[1:], math.inf], strict=True)], []


def _runs(r: _Reading, windows: list[tuple[float, float]], owner: Places, launchers: frozenset[int]) -> list[_Run]:
    """The runs that have calls or kernels; a kernel belongs to the run of its call."""
    calls, kernels = np.array(r.calls.start), np.array(r.kernels.start)
    longest = np.array(r.calls.duration)
    begins, ends = (np.array(each) for each in zip(*windows, strict=True))
    launched = np.where(owner >= 0, calls[owner], kernels) if calls.size else kernels

    def split(times: FloatColumn, order: Places) -> list[Places]:
        place = np.searchsorted(begins, times, side="right") - 1
        inside = (place >= 0) & (times < ends[np.maximum(place, 0)])
        order = order[inside[order]]
        place = place[order]
        by_run = np.argsort(place, kind="stable")
        return np.split(order[by_run], np.searchsorted(place[by_run], np.arange(1, len(windows))))

    parts = zip(split(calls, np.lexsort((-longest, calls))), split(launched, np.argsort(kernels, kind="stable")), strict=True)
    runs = [_Run(r, of_calls.tolist(), of_kernels.tolist(), launchers) for of_calls, of_kernels in parts]
    return [run for run in runs if run.calls or run.kernels] or runs[:1]


class _Run:
    """The calls and kernels of one run by their places, in the order in which they began; `launchers` launched kernels."""

    def __init__(self, r: _Reading, calls: list[int], kernels: list[int], launchers: frozenset[int]) -> None:
        self.r, self.calls, self.kernels, self.launchers = r, calls, kernels, launchers

    @property
    def origin_us(self) -> float:
        """When the first call or kernel began [us]."""
        starts = [self.r.calls.start[i] for i in self.calls[:1]] + [self.r.kernels.start[i] for i in self.kernels[:1]]
        return min(starts, default=0.0)

    @property
    def length_us(self) -> float:
        """From the first kernel to the end of the last, or of calls where there are no kernels [us]."""
        columns, places = (self.r.kernels, self.kernels) if self.kernels else (self.r.calls, self.calls)
        ends = [columns.start[i] + columns.duration[i] for i in places]
        return max(ends) - min(columns.start[i] for i in places) if places else 0.0

    def counted(self) -> tuple[list[ProfiledCall], dict[int, int]]:
        """The calls that count, and for each call of the profile the place of the one that it ran within."""
        r, c = self.r, self.r.calls
        names = [r.signatures.values[c.signature[i]].operator for i in self.calls]
        chosen, within = counted_calls([c.start[i] for i in self.calls], [c.duration[i] for i in self.calls],
                                       [c.thread[i] for i in self.calls], names, [i in self.launchers for i in self.calls])
        inside: dict[int, list[str]] = {}
        for at, top in within.items():
            if at != top:
                inside.setdefault(top, []).append(names[at])
        made: list[ProfiledCall] = []
        number: dict[int, int] = {}
        for at in chosen:
            i = self.calls[at]
            number[at] = len(made)
            made.append(ProfiledCall(
                operator=names[at], arguments=arguments_of(r.signatures.values[c.signature[i]], r.path),
                start_s=(c.start[i] - self.origin_us) * US, duration_s=c.duration[i] * US,
                within=tuple(dict.fromkeys(inside.get(at, ()))),
            ))  # fmt: skip
        return made, {self.calls[at]: number[top] for at, top in within.items()}


def arguments_of(said: Signature, path: str) -> tuple[Argument, ...]:
    """The arguments of a call, none where its shapes were not recorded. Raises InputError for sizes that no tensor has."""
    if not isinstance(said.dims, list):
        return ()
    dims, types, values = (each if isinstance(each, list) else [] for each in (said.dims, said.types, said.values))
    found: list[Argument] = []
    for place in range(max(len(dims), len(types), len(values))):
        dim, type_, value = (each[place] if place < len(each) else "" for each in (dims, types, values))
        if isinstance(dim, list) and any(isinstance(each, list) for each in dim):
            kinds = type_ if isinstance(type_, list) else []
            found.append([ProfiledTensor(shape=_shape(each, said, path), type=str(kinds[i]) if i < len(kinds) else "")
                          for i, each in enumerate(dim)])  # fmt: skip
        elif isinstance(type_, str) and type_ not in NO_TENSOR and not type_.startswith(("GenericList", "TensorList")):
            found.append(ProfiledTensor(shape=_shape(dim, said, path), type=type_))
        else:
            unsaid = value == "" and (not values or type_ in ("Scalar", "ScalarList"))
            found.append(NOT_RECORDED if unsaid else _value(value))
    return tuple(found)


def _shape(dim: Any, said: Signature, path: str) -> tuple[int, ...]:
    sizes = dim if isinstance(dim, list) else []
    if len(sizes) > MOST_DIMS or not all(type(size) is int and 0 <= size <= LARGEST for size in sizes):
        raise InputError(path, f"a call of {short(said.operator)} has Input Dims {short(sizes)}, which no tensor has")
    return tuple(sizes)


def _value(text: Any) -> Any:
    """A value that is written as text: a number, a truth value, a list of them, else the text; None for nothing.

    >>> _value("[1, 2]"), _value("False"), _value("0."), _value(""), _value("none")
    ([1, 2], False, 0.0, None, 'none')
    """
    if not isinstance(text, str) or not text:
        return None
    if text in ("True", "False"):
        return text == "True"
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = float(text)
        return value if math.isfinite(value) else None
    except ValueError:
        return text

