"""Networks in onnxruntime on the CPU, and the times of their ops in the profile that it writes."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from archsim.base.errors import MissingExtra, Unsupported
from archsim.measure.onnx_model import build, feeds, is_external, model_of
from archsim.trace.trace import BoundOp, BoundTrace


def owner(node: str, ops: Collection[str]) -> str | None:
    """The op that a node belongs to: its own name, or the longest prefix of it that ends at "/" or "_".

    >>> owner("conv1_nchwc", {"conv1"}), owner("fused fc6", {"fc6"}), owner("ReorderOutput", {"fc6"})
    ('conv1', 'fc6', None)
    """
    if node not in ops:
        node = node.removeprefix("fused ")
    while node and node not in ops:
        node = node[: max(node.rfind("/"), node.rfind("_"), 0)]
    return node or None


def groups(ops: Sequence[BoundOp], timed: Collection[str]) -> list[tuple[str, ...]]:
    """The groups of fused ops, in trace order; every group has a timed op, unless none was timed.

    A fused op has no node of its own. A pointwise op is fused into the op before it, the latest one of several; a product whose
    node has the name of the next op is fused into that one.
    """
    place = {op.name: i for i, op in enumerate(ops)}
    root = dict(zip(place, place, strict=True))

    def top(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for op in ops:
        before = [name for name in op.inputs if name in place]
        if op.name not in timed and not op.macs and before:
            root[op.name] = top(max(before, key=place.__getitem__))
    alive = {top(name) for name in timed}
    first_use = {name: op.name for op in reversed(ops) for name in op.inputs if name in place}
    for op in ops:  # in execution order, so that a chain of untimed groups ends in the first timed one
        after = first_use.get(op.name)
        if after is not None and top(op.name) not in alive and top(after) != top(op.name):
            merged = top(op.name)
            root[merged] = top(after)
    found: dict[str, list[str]] = {}
    for name in place:
        found.setdefault(top(name), []).append(name)
    return [tuple(names) for names in found.values()]


def per_group(ops: Sequence[BoundOp], node_s: Mapping[str, float]) -> tuple[dict[tuple[str, ...], float], float]:
    """Time of each group of ops [s], and of nodes that belong to no op (layout changes) [s]."""
    names = {op.name for op in ops}
    spent: dict[str, float] = {}
    others = 0.0
    for node, seconds in node_s.items():
        op = owner(node, names)
        if op is None:
            others += seconds
        else:
            spent[op] = spent.get(op, 0.0) + seconds
    times = {group: sum(spent.get(name, 0.0) for name in group) for group in groups(ops, spent)}
    return {group: seconds for group, seconds in times.items() if seconds > 0}, others


STACK = "onnxruntime-cpu"
QUIET = 3  # errors only
SUFFIX = "_kernel_time"


def runtime() -> Any:
    """The onnxruntime module; MissingExtra without it or without onnx."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        raise MissingExtra("`archsim measure --backend onnxruntime`", "measure") from None
    return onnxruntime


class OnnxSession:
    """One network, batch and number of threads, ready to run."""

    stack = STACK
    host = "cpu"
    precision, task = "fp32", "inference"

    def __init__(self, trace: BoundTrace, threads: int) -> None:
        self._ort = runtime()
        self.trace, self.threads = trace, threads
        self.software = f"onnxruntime {self._ort.__version__}"
        self._graph, self._model, self._feeds = build(trace), b"", feeds(trace)
        self._model = model_of(self._graph)
        self._session = self._open(self._options())

    def _options(self) -> Any:
        options = self._ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = QUIET
        weights = {name: values for name, values in self._graph.weights.items() if is_external(values)}
        values = [self._ort.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
        return options

    def _open(self, options: Any) -> Any:
        try:
            return self._ort.InferenceSession(self._model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no other common base
            raise Unsupported(f"onnxruntime refuses the network ({str(error).splitlines()[0][:200]})") from None

    def timed(self, times: int) -> float:
        """Wall time of `times` runs [s]."""
        begin = time.perf_counter()
        for _ in range(times):
            self._session.run(None, self._feeds)
        return time.perf_counter() - begin

    def outputs(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs of one run."""
        return [tuple(array.shape) for array in self._session.run(None, self._feeds)]

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Median time of each group of fused ops [s], from the runtime's profiler, and of nodes that belong to no op [s]."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._options()
            options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "profile")
            session = self._open(options)
            for _ in range(rounds + 1):
                session.run(None, self._feeds)
            events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
        seconds: dict[str, list[float]] = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith(SUFFIX):
                seconds.setdefault(event["name"].removesuffix(SUFFIX), []).append(event["dur"] * 1e-6)
        # The first run of every node is the warm-up; a name that stands for several nodes occurs more than once a run.
        node_s = {name: median(values[len(values) // (rounds + 1) :]) * (len(values) // (rounds + 1) or 1)
                  for name, values in seconds.items()}  # fmt: skip
        return per_group(self.trace.ops, node_s)
