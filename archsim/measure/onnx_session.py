"""Networks in onnxruntime on the CPU: a trace as an ONNX model with random weights, and the times of its ops."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from archsim.base.errors import MissingExtra, Unsupported
from archsim.base.record import by_key
from archsim.measure.nodes import BUILDERS, Array, Graph
from archsim.trace.trace import BoundOp, BoundTrace

OPSET, IR_VERSION = 20, 9  # the first opset with Gelu; what onnxruntime 1.17 and newer read


def missing_builders(trace: BoundTrace) -> list[str]:
    """The op kinds of a network that cannot be built, sorted."""
    return sorted({op.kind.op for op in trace.ops} - set(BUILDERS))


def build(trace: BoundTrace, hollow: bool = False) -> Graph:
    """The graph of a network; with `hollow` weights it is only read. Unsupported names op kinds that cannot be built."""
    missing = missing_builders(trace)
    if missing:
        raise Unsupported(f"network {trace.name} cannot be built: it has {', '.join(missing)}")
    graph = Graph(trace, hollow=hollow)
    for op in trace.ops:
        BUILDERS[op.kind.op](graph, op)
    return graph


def index_limits(trace: BoundTrace) -> dict[str, int]:
    """The inputs that hold indices, with their upper limits."""
    return {name: int(getattr(op.kind, "vocabulary", 1)) for op in trace.ops if op.kind.op == "embedding"
            for name in op.inputs if name in trace.inputs}  # fmt: skip


def feeds(trace: BoundTrace) -> dict[str, Array]:
    """Random inputs."""
    random, limits = np.random.default_rng(1), index_limits(trace)
    return {
        name: random.integers(0, limits[name], shape) if name in limits else random.standard_normal(shape, dtype=np.float32)
        for name, shape in trace.inputs.items()
    }  # fmt: skip


def model_of(graph: Graph) -> bytes:
    """The serialised ONNX model; its weights are external data, passed to the session as arrays."""
    from onnx import TensorProto, helper

    limits, trace = index_limits(graph.trace), graph.trace
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64 if name in limits else TensorProto.FLOAT, shape)
              for name, shape in trace.inputs.items()]  # fmt: skip
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in trace.outputs]
    nodes = [helper.make_node(n.kind, n.inputs, n.outputs, name=n.name, **n.attributes) for n in graph.nodes]
    stored = [_initializer(name, values) for name, values in graph.weights.items()]
    whole = helper.make_graph(nodes, "archsim", inputs, outputs, initializer=stored)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def is_external(values: Array) -> bool:
    """Whether an array is external data; small integers (shapes, bounds) must be visible to the optimiser."""
    return values.dtype == np.float32 and values.ndim > 0


def _initializer(name: str, values: Array) -> Any:
    from onnx import TensorProto, numpy_helper

    if not is_external(values):
        return numpy_helper.from_array(values, name)
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="handed over in memory")
    return tensor


# ---------------------------------------------------------------------------------------------------------- the session


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
    return [tuple(names) for names in by_key((top(name), name) for name in place).values()]


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
        seconds = by_key((event["name"].removesuffix(SUFFIX), event["dur"] * 1e-6) for event in events
                         if event.get("cat") == "Node" and event["name"].endswith(SUFFIX))  # fmt: skip
        # The first run of every node is the warm-up; a name that stands for several nodes occurs more than once a run.
        node_s = {name: median(values[len(values) // (rounds + 1) :]) * (len(values) // (rounds + 1) or 1)
                  for name, values in seconds.items()}  # fmt: skip
        return per_group(self.trace.ops, node_s)
