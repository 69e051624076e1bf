"""From the words of a measured row to a device, a stack and the ops of a network; a row with unknown words is `Refused`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from archsim.base.errors import ArchsimError, UnknownName, Unsupported
from archsim.base.files import named_file
from archsim.base.identity import ByIdentity
from archsim.detect import catalog as devices
from archsim.device.device import PRECISION_BYTES, Cpu, Gpu
from archsim.device.spec import Spec
from archsim.evidence.conditions import Conditions
from archsim.evidence.timer import TIMERS
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.stack import catalog as stacks
from archsim.stack.choose import chosen
from archsim.stack.stack import Stack
from archsim.trace.formats import is_path
from archsim.trace.task import Work, prepared
from archsim.trace.trace import BoundTrace
from archsim.trace.training import TASKS

HALF_STORAGE = "fp16 storage"  # values of two bytes, arithmetic in fp32

# what sources write -> what is computed
PRECISIONS = {
    **{name: name for name in PRECISION_BYTES},
    "fp32(default)": "fp32", "float32": "fp32", "float": "fp32", "single": "fp32", "": "fp32",
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16",
    "fp16 in, fp32 accumulate": "fp16",
    "fp16 storage (pseudo fp16)": HALF_STORAGE,
    "int8 mult, int32 accumulate": "int8",
    "fp8_block": "fp8",
    "fp8_static": "fp8",
    "sq": "int8",
    "int8_wo": "fp16",
    "int4_wo": "fp16",
    "bf16/kv_fp8": "bf16",
}
# those of them that keep weights, or cached keys and values, in less: weights have a scale for each output alone
STORED = {
    "int8_wo": Stored(weight_bytes=1.0),
    "int4_wo": Stored(weight_bytes=0.5),
    "bf16/kv_fp8": Stored(cache_bytes=1.0),
}


class Refused(Exception):
    """A row cannot be predicted; the message says why and becomes the reason of its skip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a measured row ran on: a device, a stack, the precision and format of its values, threads on a CPU (0: the usual)."""

    spec: Spec
    stack: Stack
    precision: str
    threads: int = 0
    stored: Stored = AS_MULTIPLIED


def setting(hardware: str, stack: str, precision: str, threads: int = 0) -> Setting:
    """The device, stack and precision of a row; equal words give the same objects.

    threads: that ran on a CPU, which may be few enough for its faster cores; 0: not told
    """
    found = _setting(hardware, stack, precision.strip().lower(), threads)
    if isinstance(found, str):
        raise Refused(found)
    return found


def network(work: Work, batch: int, tokens: int | None = None) -> BoundTrace:
    """The ops of a task of a network, with sequences of `tokens`, or the usual ones; equal arguments give the same trace."""
    found = _network(work, batch, tokens)
    if isinstance(found, str):
        raise Refused(found)
    return found


def device(name: str) -> Spec:
    """The spec of a device."""
    found = _device(name)
    if isinstance(found, str):
        raise Refused(found)
    return found


def host_of(how: Conditions, spec: Spec) -> Spec | None:
    """The CPU that dispatched to a GPU, by name or as that of the node; None where neither is told, and for a CPU."""
    if spec.kind == "cpu":
        return None
    named = how.host
    if not named and how.node:
        from archsim.node.spec import find as find_node

        named = find_node(how.node).node.host_cpu.id
    return device(named) if named else None


def as_library(found: Setting, op: str) -> Setting:
    """The setting with the stack's library called directly for one `op`, without a framework around it.

    Convolutions take tensors in the library's own layout: DeepBench's 1 x 1 convolutions of halves on a T4 take less time than
    one copy of their input would. A recurrent layer is one call for the whole sequence, with one product and one kernel for its
    gates in each step.
    """
    own, without = found.stack, found.stack.without_tensor_cores
    if op == "conv" and own.conv.int8_tensor_cores:
        without = tuple(name for name in without if name != "int8")
    return Setting(spec=found.spec, stack=_called(ByIdentity(own), without), precision=found.precision)


@lru_cache(maxsize=256)
def _called(stack: ByIdentity[Stack], without: tuple[str, ...]) -> Stack:
    own = stack.it
    return replace(own, conv=replace(own.conv, layout_copies="none"), without_tensor_cores=without, recurrent="fused",
                   recurrent_launches=2)  # fmt: skip


def as_measured(found: Setting, how: Conditions, sets: int) -> Setting:
    """The setting with what a measurement adds to its stack: inputs, operands, and a timer that waits for each layer.

    sets: of operands that the loop of a kernel timed alone goes through before the first comes again; 0: it is not alone
    """
    return replace(found, stack=_measured(ByIdentity(found.stack), ByIdentity(how), sets))


@lru_cache(maxsize=4096)
def _measured(stack: ByIdentity[Stack], conditions: ByIdentity[Conditions], sets: int) -> Stack:
    own, how = stack.it, conditions.it
    passes = own.passes
    if how.operands == "quantised":
        passes = {name: rows for name, rows in passes.items() if name != "quantise"}
    return replace(own, inputs=how.input or own.inputs, waits=TIMERS[how.timer].waits, operand_sets=sets or own.operand_sets,
                   passes=passes)  # fmt: skip


@lru_cache(maxsize=4096)
def _setting(hardware: str, stack_name: str, written: str, threads: int) -> Setting | str:
    spec, precision = _device(hardware, threads), PRECISIONS.get(written)
    if isinstance(spec, str):
        return spec
    stack = _stack(stack_name, spec)
    if isinstance(stack, str):
        return stack
    if not threads and (usual := devices.threads_of(spec, stack)):
        return _setting(hardware, stack_name, written, usual)
    if precision is None:
        return f"precision {written!r} is not modelled"
    if precision == HALF_STORAGE:
        spec, precision = _without_half_arithmetic(spec), "fp16"
    if stack.kind not in ("any", spec.kind):
        return f"stack {stack.id} is for a {stack.kind}, not a {spec.kind}"
    try:
        spec.device.pipe(precision)
    except Unsupported:
        return f"{spec.identity.id} has no unit for {precision}"
    if isinstance(spec.device, Cpu) and precision == "int8" and {*spec.device.forms(precision)}.isdisjoint(stack.narrow_kernels):
        return f"{stack.id} has no kernels of {precision} for {spec.identity.id}"
    return Setting(spec=spec, stack=stack, precision=precision, threads=threads, stored=_stored(written, spec))


def _stored(written: str, spec: Spec) -> Stored:
    """How weights and cached values of this format lie in memory."""
    found = STORED.get(written, AS_MULTIPLIED)
    emulated = bool(found.cache_bytes) and isinstance(spec.device, Gpu) and not spec.device.has_tensor("fp8")
    return replace(found, emulated=emulated) if emulated else found


def _without_half_arithmetic(spec: Spec) -> Spec:
    """The device with its half-precision units at the rate of the single ones."""
    if not isinstance(spec.device, Gpu):
        return spec
    single = str(spec.entries["rate.fp32"].written)
    return spec.with_settings({key: single for key in ("rate.fp16", "rate.tensor_fp16") if key in spec.entries})


@lru_cache(maxsize=4096)
def _device(name: str, threads: int = 0) -> Spec | str:
    try:
        return devices.find(name, threads)
    except ArchsimError as error:
        return not_described("hardware", name, error)


def stack_on(name: str, spec: Spec) -> Stack:
    """The stack that a name means on a device; its usual one where a row names none."""
    found = _stack(name, spec)
    if isinstance(found, str):
        raise Refused(found)
    return found


def _stack(name: str, spec: Spec) -> Stack | str:
    usual = spec.identity.default_stack
    try:
        return stacks.find(chosen(name, spec.kind, usual) if name else usual, spec.identity.kernels_of)
    except ArchsimError as error:
        return not_described("stack", name, error)


def not_described(what: str, name: str, error: ArchsimError) -> str:
    """The reason of a row with a name that is of no shipped thing, with those nearest to it."""
    near = ", ".join(error.near) if isinstance(error, UnknownName) else ""
    return f"{what} {name!r} is not described" + (f"; nearest: {near}" if near else "")


@lru_cache(maxsize=4096)
def _network(work: Work, batch: int, tokens: int | None) -> BoundTrace | str:
    graph, task = work.net, work.task
    if task not in TASKS:
        return f"task {task!r} is not one of {', '.join(TASKS)}"
    try:
        if is_path(graph):
            named_file(graph)
        trace = prepared(*work)
        named = {trace.symbol_called(called): size for called, size in work.sizes}
        others = [symbol for symbol in trace.unsized if symbol != "N" and symbol not in named]
        if others:
            return f"network {graph!r} needs {', '.join(others)}, which the row does not give"
        if tokens is not None and "T" not in trace.free_symbols:
            return f"network {graph!r} takes no sequences of a length that can be set"
        if trace.fixed_batch not in (None, batch):
            return f"network {graph!r} is of batch {trace.fixed_batch}, the row of batch {batch}"
        sizes = named | {"N": batch} | ({} if tokens is None else {"T": tokens})
        return trace.bind(**{symbol: size for symbol, size in sizes.items() if symbol in trace.free_symbols})
    except UnknownName as error:
        return not_described("network", graph, error)
    except (ArchsimError, ValueError) as error:
        return str(error).splitlines()[0].split(";")[0]
