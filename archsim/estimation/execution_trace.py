"""An estimate as an execution trace of MLCommons Chakra: a node for each op, with its tensors, work and predicted time.

Nodes wait for the ops whose results they read. Times are whole microseconds in the schema; the attribute `duration_nanos` has
them as whole nanoseconds. Attributes that simulators of systems read have their names: `is_cpu_op`, `num_ops` [FLOP],
`tensor_size` (memory traffic [B]), `comm_type`, `comm_size` [B].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from archsim.estimation.result import Estimate, OpEstimate
from archsim.schedule.observer import Recording
from archsim.trace.chakra import node as chakra
from archsim.trace.chakra.node import HEADER, OP, ExecutionNode, ExecutionTrace, TensorTexts, listed, own_attribute
from archsim.trace.file import header_of, record_of
from archsim.trace.kind import FORWARD
from archsim.trace.kinds.general import COLLECTIVES, Collective, Stated
from archsim.trace.trace import BoundOp, BoundTrace, Op, Trace

TYPES = {"fp32": "float", "tf32": "float", "fp16": "c10::Half", "bf16": "c10::BFloat16", "fp8": "c10::Float8_e4m3fn",
         "int8": "signed char", "fp64": "double"}  # fmt: skip  # as PyTorch's recorder calls them
MESSAGES = {"send": chakra.SEND, "receive": chakra.RECEIVE}


def execution_trace(result: Estimate, trace: BoundTrace, recording: Recording, command: str) -> ExecutionTrace:
    """The trace of an estimate, whose ops `recording` has seen; `command` is the one that writes it."""
    header = header_of(Trace(name=trace.name, inputs=trace.inputs, dtype=trace.dtype, ops=(), outputs=trace.outputs,
                             source="Chakra execution trace"))  # fmt: skip
    said = ("hardware", "stack", "task", "batch", "precision", "fidelity", "latency_s", "energy_j")
    asked = {name: getattr(result, name) for name in said}
    attributes = {"generator": f"archsim {command}", "network": result.network, **asked, HEADER: own_attribute(header)}
    return ExecutionTrace(path="", version=chakra.WRITTEN, attributes=attributes, nodes=tuple(_nodes(result, trace, recording)))


def _nodes(result: Estimate, trace: BoundTrace, recording: Recording) -> Iterator[ExecutionNode]:
    numbers = {op.name: number for number, op in enumerate(trace.ops)}
    estimates = {op.name: op for op in result.ops}
    ran = {piece.name: (piece.start_s, piece.end_s) for piece in recording.slices if "kind" in piece.words}
    ends: dict[str, float] = {}
    for number, op in enumerate(trace.ops):
        waits = max((ends[name] for name in op.inputs if name in ends), default=0.0)
        start, end = ran.get(op.name, (waits, waits))
        ends[op.name] = end
        begin = _ns(start) // 1000
        yield ExecutionNode(
            id=number, name=op.name, type=_type_of(op), data=tuple(dict.fromkeys(numbers[i] for i in op.inputs if i in numbers)),
            start_us=begin, duration_us=max(0, round(_ns(end) / 1000) - begin),
            inputs=_texts(op.input_shapes, result.precision), outputs=_texts((op.shape,), result.precision),
            attributes=_attributes(op, estimates[op.name], _ns(end) - _ns(start), result),
        )  # fmt: skip


def _type_of(op: BoundOp) -> str:
    if isinstance(op.kind, Collective):
        return MESSAGES.get(op.kind.function, chakra.COLLECTIVE)
    if isinstance(op.kind, Stated) and op.kind.does != "compute":
        return chakra.LOAD if op.kind.does == "load" else chakra.STORE
    return chakra.COMPUTE


def _attributes(op: BoundOp, found: OpEstimate, duration_ns: int, result: Estimate) -> Mapping[str, Any]:
    values: dict[str, Any] = {"is_cpu_op": result.threads is not None, "op_schema": op.kind.op}
    if isinstance(op.kind, Collective):
        numbers = {"comm_size": op.kind.size, "pg_name": op.kind.group}
        values |= numbers if op.kind.function in MESSAGES else {"comm_type": COLLECTIVES.index(op.kind.function), **numbers}
    elif isinstance(op.kind, Stated):
        values |= {"num_ops": op.kind.flops, "tensor_size": op.kind.moves}
    else:
        values |= {"num_ops": round(found.flop), "tensor_size": round(found.dram_bytes)}
    kernels = ", ".join(f"{kernel.name} ({kernel.algorithm})" for kernel in found.kernels)
    values |= {"duration_nanos": duration_ns, "energy_j": found.energy_j, "bound": found.bound}
    own = Op(name=op.name, kind=op.kind, inputs=op.inputs, shape=op.shape, phase=op.phase, parent=op.parent,
             of=op.input_shapes if op.phase != FORWARD else (), shares=op.shares)  # fmt: skip
    return values | ({"kernels": kernels} if kernels else {}) | {OP: own_attribute(record_of(own))}


def _texts(shapes: tuple[tuple[int, ...], ...], precision: str) -> TensorTexts:
    kind = f"Tensor({TYPES[precision]})"
    return TensorTexts(values="[]", shapes=listed([list(shape) for shape in shapes]), types=listed([kind] * len(shapes)))


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)
