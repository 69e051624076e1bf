"""From the words of a measured row to a case: its device, stack and ops, and under which conditions it was measured.

A row with words that nothing here describes is `Refused`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import Any

from archsim.base.errors import ArchsimError, UnknownName, Unsupported
from archsim.base.files import named_file
from archsim.base.record import P, T, kept
from archsim.detect import catalog as devices
from archsim.device.device import PRECISION_BYTES, Cpu, Gpu
from archsim.device.spec import Spec
from archsim.device.variant import first_of
from archsim.evidence.case import DOUBTED, TIMERS, WATCHED, Case
from archsim.evidence.family import Family
from archsim.evidence.sources import COLD, COLUMNS, Conditions, conditions_of
from archsim.evidence.table import UNPREDICTED, Row
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.stack import catalog as stacks
from archsim.stack.choose import chosen, searching
from archsim.stack.stack import NEVER_AGAIN, Stack
from archsim.trace.formats import is_path
from archsim.trace.task import Work, prepared
from archsim.trace.trace import BoundOp, BoundTrace
from archsim.trace.training import TASKS

HALF_STORAGE = "fp16 storage"  # values of two bytes, arithmetic in fp32
# what sources write -> what is computed
PRECISIONS = {
    **{name: name for name in PRECISION_BYTES},
    "fp32(default)": "fp32", "float32": "fp32", "float": "fp32", "single": "fp32", "": "fp32",
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "fp16 in, fp32 accumulate": "fp16",
    "fp16 storage (pseudo fp16)": HALF_STORAGE, "int8 mult, int32 accumulate": "int8", "fp8_block": "fp8", "fp8_static": "fp8",
    "sq": "int8", "int8_wo": "fp16", "int4_wo": "fp16", "bf16/kv_fp8": "bf16",
}  # fmt: skip
# those of them that keep weights, or cached keys and values, in less: weights have a scale for each output alone
STORED = {"int8_wo": Stored(weight_bytes=1.0), "int4_wo": Stored(weight_bytes=0.5), "bf16/kv_fp8": Stored(cache_bytes=1.0)}
SPLITS = {"score": WATCHED, "doubt": DOUBTED}  # of rows that a rule says are not fitted, whatever their file says


class Refused(Exception):
    """A row cannot be predicted; the message says why and becomes the reason of its skip."""


def remembered(find: Callable[P, T]) -> Callable[P, T]:
    """The function with its answers kept, refusals too: equal words, which many rows have, give the same object.

    Its `cache_clear` forgets them.
    """

    @lru_cache(maxsize=4096)
    def answer(*words: P.args, **more: P.kwargs) -> T | Refused:
        try:
            return find(*words, **more)
        except Refused as refused:
            return refused

    @wraps(find)
    def asked(*words: P.args, **more: P.kwargs) -> T:
        found = answer(*words, **more)  # type: ignore[arg-type]  # words and numbers
        if isinstance(found, Refused):
            raise Refused(str(found))
        return found

    asked.cache_clear = answer.cache_clear  # type: ignore[attr-defined]
    return asked


def not_described(what: str, name: str, error: ArchsimError) -> Refused:
    """The refusal of a row with a name that is of no shipped thing, with those nearest to it."""
    near = ", ".join(error.near) if isinstance(error, UnknownName) else ""
    return Refused(f"{what} {name!r} is not described" + (f"; nearest: {near}" if near else ""))


# ---------------------------------------------------------------------------------------------- devices, stacks, networks


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a measured row ran on: a device, a stack, the precision and format of its values, threads on a CPU (0: the usual)."""

    spec: Spec
    stack: Stack
    precision: str
    threads: int = 0
    stored: Stored = AS_MULTIPLIED


@remembered
def device(name: str, threads: int = 0) -> Spec:
    """The spec of a device; threads: that ran on a CPU, which may be few enough for its faster cores, 0: not told."""
    try:
        return devices.find(name, threads)
    except ArchsimError as error:
        raise not_described("hardware", name, error) from None


def stack_on(name: str, spec: Spec) -> Stack:
    """The stack that a name means on a device; its usual one where a row names none."""
    usual = spec.identity.default_stack
    try:
        return stacks.find(chosen(name, spec.kind, usual) if name else usual, spec.identity.kernels_of)
    except ArchsimError as error:
        raise not_described("stack", name, error) from None


@remembered
def setting(hardware: str, stack_name: str, written: str, threads: int = 0) -> Setting:
    """The device, stack and precision of a row."""
    spec, written = device(hardware, threads), written.strip().lower()
    stack, precision = stack_on(stack_name, spec), PRECISIONS.get(written)
    if not threads and (usual := devices.threads_of(spec, stack)):
        return setting(hardware, stack_name, written, usual)
    if precision is None:
        raise Refused(f"precision {written!r} is not modelled")
    if precision == HALF_STORAGE:
        spec, precision = _without_half_arithmetic(spec), "fp16"
    if stack.kind not in ("any", spec.kind):
        raise Refused(f"stack {stack.id} is for a {stack.kind}, not a {spec.kind}")
    try:
        spec.device.pipe(precision)
    except Unsupported:
        raise Refused(f"{spec.identity.id} has no unit for {precision}") from None
    if isinstance(spec.device, Cpu) and precision == "int8" and {*spec.device.forms(precision)}.isdisjoint(stack.narrow_kernels):
        raise Refused(f"{stack.id} has no kernels of {precision} for {spec.identity.id}")
    stored = STORED.get(written, AS_MULTIPLIED)
    return Setting(spec=spec, stack=stack, precision=precision, threads=threads, stored=stored)


def _without_half_arithmetic(spec: Spec) -> Spec:
    """The device with its half-precision units at the rate of the single ones."""
    if not isinstance(spec.device, Gpu):
        return spec
    single = str(spec.entries["rate.fp32"].written)
    return spec.with_settings({key: single for key in ("rate.fp16", "rate.tensor_fp16") if key in spec.entries})


@kept(4096)
def _as_measured(stack: Stack, how: Conditions, sets: int, library: str) -> Stack:
    """The stack with what a measurement adds to it: inputs, operands, a timer that waits for each layer.

    library: the op for which the stack's library was called directly, without a framework around it. Convolutions take tensors
    in the library's own layout: DeepBench's 1 x 1 convolutions of halves on a T4 take less time than one copy of their input
    would. A recurrent layer is one call for the whole sequence, with one product and one kernel for its gates in each step.
    """
    passes = {name: rows for name, rows in stack.passes.items() if (name, how.operands) != ("quantise", "quantised")}
    found = replace(searching(stack) if how.search else stack, inputs=how.input or stack.inputs, passes=passes,
                    waits=TIMERS[how.timer].waits, operand_sets=sets or stack.operand_sets)  # fmt: skip
    if not library:
        return found
    return replace(found, conv=replace(stack.conv, layout_copies="none"), recurrent="fused", recurrent_launches=2)


def host_of(how: Conditions, spec: Spec) -> Spec | None:
    """The CPU that dispatched to a GPU, by name or as that of the node; None where neither is told, and for a CPU."""
    if spec.kind == "cpu":
        return None
    named = how.host
    if not named and how.node:
        from archsim.node.spec import find as find_node

        named = find_node(how.node).node.host_cpu.id
    return device(named) if named else None


@remembered
def network(work: Work, batch: int, tokens: int | None = None) -> BoundTrace:
    """The ops of a task of a network, with sequences of `tokens`, or the usual ones."""
    graph, task = work.net, work.task
    if task not in TASKS:
        raise Refused(f"task {task!r} is not one of {', '.join(TASKS)}")
    try:
        if is_path(graph):
            named_file(graph)
        trace = prepared(*work)
        named = {trace.symbol_called(called): size for called, size in work.sizes}
        others = [symbol for symbol in trace.unsized if symbol != "N" and symbol not in named]
        if others:
            raise Refused(f"network {graph!r} needs {', '.join(others)}, which the row does not give")
        if tokens is not None and "T" not in trace.free_symbols:
            raise Refused(f"network {graph!r} takes no sequences of a length that can be set")
        if trace.fixed_batch not in (None, batch):
            raise Refused(f"network {graph!r} is of batch {trace.fixed_batch}, the row of batch {batch}")
        sizes = named | {"N": batch} | ({} if tokens is None else {"T": tokens})
        return trace.bind(**{symbol: size for symbol, size in sizes.items() if symbol in trace.free_symbols})
    except UnknownName as error:
        raise not_described("network", graph, error) from None
    except (ArchsimError, ValueError) as error:
        raise Refused(str(error).splitlines()[0].split(";")[0]) from None


# --------------------------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A row while it is read: its place, its cells as the file and as rules call them, its device.

    beside: the cells of all rows of its file that it is compared with
    """

    line: int
    file: str
    family: Family
    cells: Mapping[str, str]
    words: Mapping[str, str]
    spec: Spec
    beside: Sequence[Mapping[str, str]] = ()

    @property
    def source(self) -> str:
        """The id of its source."""
        return self.family.cell(self.cells, "source")

    def conditions(self, metric: str, **more: str) -> Conditions:
        """Under which conditions a value was measured; `more` are words that the row has in no column of its own.

        Refused for a row that a rule skips.
        """
        words = {**self.words, **more, "metric": metric}
        named = words["stack"] or conditions_of(self.source, words)[0].stack
        framework = stack_on(named, self.spec).framework
        how, why = conditions_of(self.source, {**words, "framework": framework})
        if how.use == "skip":
            raise Refused(why)
        return how

    def ran(self, how: Conditions, threads: int = 0, library: str = "") -> Setting:
        """What a row ran on: the stack that it names, else that of a rule, else the usual one of the device.

        threads: on a CPU, 0: as many as the stack usually takes; library: the op for which its library was called alone

        Refused where device, stack or precision are not described.
        """
        written = self.family.cell(self.cells, "hardware")
        found = setting(written, self.words["stack"] or how.stack, how.precision or self.words["precision"], threads)
        sets = NEVER_AGAIN if how.loop == COLD else int(how.loop)  # of operands, before the first comes again; 0: not alone
        return replace(found, stack=_as_measured(found.stack, how, sets, library))

    def case(
        self, label: str, metric: str, measured: float, *ops: BoundOp, how: Conditions | None = None, ran: Setting | None = None,
        **more: Any,
    ) -> Case:  # fmt: skip
        """The case of a value; `more` are fields that are otherwise than of most rows, which time ops, or a pattern, alone."""
        how = how or self.conditions(metric)
        ran = ran or self.ran(how)
        clock = how.clock_mhz or self.words["clock_mhz"]
        usual: dict[str, Any] = {
            "task": how.task or "inference", "batch": 1, "stored": ran.stored, "precision": ran.precision,
            "split": SPLITS.get(how.use) or self.cells.get("split", ""), "fields": {**self.cells, "source": self.source},
            "trace": alone(label, *ops), "timer": TIMERS[how.timer], "calls": how.calls, "host_cpu": host_of(how, ran.spec),
            "clock": float(clock) * 1e6 if clock else None,
        }  # fmt: skip
        if how.loop == COLD:
            usual["clock"] = first_of(ran.spec.device.clock.boost)
        return Case(
            line=self.line, file=self.file, source=self.source, label=label, hardware=self.spec.identity.id,
            stack_id=ran.stack.id, metric=metric, measured=measured, spec=ran.spec, stack=ran.stack, **(usual | more),
        )  # fmt: skip


def alone(name: str, *ops: BoundOp) -> BoundTrace:
    """Single ops as what was timed; they read nothing from each other."""
    return BoundTrace(name=name, inputs={}, ops=ops, symbols={})


def row_of(family: Family, row: Row, file: str, beside: Sequence[Mapping[str, str]] = ()) -> PublishedRow:
    """A row with its words and its device; Refused for an unknown device, and for a row that says why it is not predicted."""
    if reason := row.cells.get(UNPREDICTED):
        raise Refused(reason)
    spec = device(family.cell(row.cells, "hardware"))
    words = {column: family.cell(row.cells, column) for column in COLUMNS}
    words |= {"family": family.name, "hardware": spec.identity.id, "architecture": spec.identity.kernels_of}
    return PublishedRow(line=row.line, cells=row.cells, file=file, family=family, words=words, spec=spec, beside=beside)


def integer(cells: Mapping[str, str], column: str) -> int:
    """A whole number of a checked row; `pad=0` says what an empty cell stands for, which otherwise is Refused."""
    name, _, usual = column.partition("=")
    text = cells.get(name) or usual
    if not text:
        raise Refused(f"{name} is not given")
    return int(float(text))


def integers(cells: Mapping[str, str], columns: str) -> tuple[int, ...]:
    """The whole numbers of several columns, as in "m n k batch=1"."""
    return tuple([integer(cells, column) for column in columns.split()])


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


@remembered
def _parameters(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Refused("kernel parameters are not JSON") from None
    if not isinstance(found, dict):
        raise Refused("kernel parameters are no JSON object")
    return found


def parameters(cells: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object in the column `kernel` or `params`."""
    return _parameters(cells.get("kernel") or cells.get("params") or "{}")
