"""The loop over networks, batches and threads: build, time, write, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from archsim.base.errors import ArchsimError, InputError, Unsupported, one_of
from archsim.base.units import show_capacity
from archsim.detect.catalog import find, names
from archsim.detect.system import Told
from archsim.estimation.memory import USABLE, footprint
from archsim.estimation.network import bound as all_bound
from archsim.estimation.network import sized
from archsim.measure import onnx_session
from archsim.measure.rows import TimedCell, op_rows, rows_of
from archsim.measure.timing import EnergyMeter, Reading, Session, measure, meter_for
from archsim.stack import catalog as stacks
from archsim.trace.formats import Sizes
from archsim.trace.task import Work, prepared
from archsim.trace.trace import BoundTrace
from archsim.trace.training import OPTIMISER

BACKENDS = ("onnxruntime", "torch")
PROFILED = 5  # rounds with the profiler
ELEMENT = 4  # B, of what is measured in fp32
Open = Callable[[BoundTrace, int], Session]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """What to measure.

    seconds: time limit of the timed rounds of one measurement [s]
    strict: drop disturbed measurements
    by_processor: measure processor time instead of wall time, for one thread on a shared computer
    stack: that of the backend; its variants of networks run under their names
    seq_len: tokens of each sequence; None for what each network has
    sizes: of other symbols of the networks' files
    """

    networks: tuple[str, ...]
    batches: tuple[int, ...]
    threads: tuple[int, ...]
    hw: str
    rounds: int
    seconds: float
    per_op: bool = False
    strict: bool = False
    by_processor: bool = False
    split: str = "calibrate"
    stack: str = ""
    seq_len: int | None = None
    sizes: Sizes = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One measurement: rows to write, and text to report; a refused one has no rows."""

    label: str
    rows: list[dict[str, str]]
    said: str
    refused: bool = False


def opener(backend: str, device: str, stack: str = "", precision: str = "fp32", task: str = "inference") -> Open:
    """The function that prepares a network to run; Unsupported or MissingExtra where the backend cannot run here."""
    if one_of("backend", backend, BACKENDS) == "torch":
        from archsim.measure.torch_session import session_class

        return session_class(device, stack, precision, task)
    if device != "cpu":
        raise Unsupported("--device cuda needs --backend torch: onnxruntime is run on the processor only")
    if stack or precision != "fp32" or task != "inference":
        raise Unsupported("--stack, --precision and --task need --backend torch: onnxruntime runs inference in fp32")
    onnx_session.runtime()
    return onnx_session.OnnxSession


def device_of(hw: str | None, device: str) -> str:
    """The device of the rows: the named one, else this processor or the shipped spec of this GPU."""
    if hw is not None or device == "cpu":
        return hw or "host"
    from archsim.detect.detect import read_gpus, relative

    found = read_gpus()
    if not found:
        raise Unsupported("--device cuda: the driver lists no GPU")
    facts = found[0]
    kin = relative(facts)
    if kin is None:
        raise Unsupported(f"{facts.name} is not among the shipped devices; write its spec and name it with --hw")
    return kin.identity.id


def stack_of(backend: str, device: str, stack: str = "") -> str:
    """The stack that models a backend on a device."""
    from archsim.measure import torch_session

    return (stack or torch_session.default_stack(device)) if backend == "torch" else onnx_session.STACK


def check(plan: MeasurementPlan, kind: str = "cpu") -> None:
    """Refuse what cannot be measured on a device of this kind, or would be wrong, before anything runs."""
    spec = find(plan.hw)
    if spec.kind != kind:
        raise Unsupported(f"--hw {plan.hw} is a {spec.kind}, but the networks would run on a {kind}")
    if plan.by_processor and (plan.threads != (1,) or kind != "cpu"):
        raise Unsupported("--processor-time says what one thread of a processor takes; add --threads 1")


def check_networks(
    networks: Sequence[str], batches: Sequence[int], stack: str, seq_len: int | None = None, sizes: Sizes = ()
) -> None:  # fmt: skip
    """Refuse networks that are not there, or that cannot run at these batches and sizes, before anything else.

    Rows contain no absolute paths, which would reveal users and folders.
    """
    variants = stacks.find(stack).variants
    for net in networks:
        if os.path.isabs(net):
            raise Unsupported(f"--net {net}: the rows would hold this path; name the file by a relative one")
        for batch in batches:
            bound(variants.get(net, net), batch, seq_len, sizes)


def results(plan: MeasurementPlan, open_session: Open, tell: Tell = lambda text: None) -> Iterator[Result]:
    """Measure one by one. A network that cannot be built, or is too large, is refused by name; the others continue."""
    spec = find(plan.hw)
    shipped = spec.identity.id in names() and find(spec.identity.id).digest == spec.digest
    variants = stacks.find(plan.stack).variants if plan.stack else {}
    for net in plan.networks:
        for batch in plan.batches:
            for threads in plan.threads if spec.kind == "cpu" else (1,):
                label = f"{net}, batch {batch}" + (f", {threads} threads" if spec.kind == "cpu" else "")
                tell(f"{label}: building")
                trace = bound(variants.get(net, net), batch, plan.seq_len, plan.sizes)
                try:
                    session = open_session(trace, threads)
                    cell = TimedCell(network=net, batch=batch, threads=threads, stack=session.stack, software=session.software,
                                precision=session.precision, task=session.task, spec=spec, shipped=shipped, split=plan.split,
                                seq_len=plan.seq_len, sizes=plan.sizes)  # fmt: skip
                    yield _measured(plan, cell, session, label, tell)
                except (Unsupported, MemoryError, RuntimeError) as error:  # runtimes raise the last
                    yield Result(label=label, rows=[], said=refusal(label, error), refused=True)


def refusal(label: str, error: BaseException) -> str:
    """That something was not measured, and why, in a line; an error without a word is that of the memory."""
    return f"{label}: refused, {(str(error).splitlines() or ['not enough memory'])[0][:200]}"


def bound(net: str, batch: int, seq_len: int | None = None, sizes: Sizes = ()) -> BoundTrace:
    """All sizes given. Raises InputError for a batch, ArgumentError for other sizes that it does not take or lacks."""
    work = Work(net, "inference", OPTIMISER, False, True, sizes=sizes).now
    samples, tokens = sized(work, batch, seq_len)
    try:
        prepared(*work).samples(batch)
    except ValueError as error:
        raise InputError(net, str(error)) from None
    return all_bound(work, batch if samples is None else samples, tokens)


def _measured(plan: MeasurementPlan, cell: TimedCell, session: Session, label: str, tell: Tell) -> Result:
    meter = meter_for(session.host)
    found = measure(session, plan.rounds, plan.seconds, meter if isinstance(meter, EnergyMeter) else None, plan.by_processor,
                    lambda done: tell(f"{label}: {done} of {plan.rounds} rounds"))  # fmt: skip
    if plan.strict and not found.sound:
        said = f"{label}: refused, other work took the cores in {found.disturbed} of {found.rounds} rounds"
        return Result(label=label, rows=[], said=said, refused=True)
    rows, said = rows_of(cell, found), _said(label, found)
    if plan.per_op:
        tell(f"{label}: profiling")
        times, others = session.per_op(PROFILED)
        rows += op_rows(cell, times)
        total = sum(times.values()) + others
        said += f"; per op {1e3 * total:.3g} ms" + (f", {100 * others / total:.0f} % in layout changes" if others else "")
    return Result(label=label, rows=rows, said=said)


def _said(label: str, r: Reading) -> str:
    text = f"{label}: {1e3 * r.time_s:.3g} ms ({1e3 * r.low_s:.3g} to {1e3 * r.high_s:.3g}), {r.rounds} rounds"
    text += "".join(f", {of.power_w:.3g} W ({of.covers})" for of in r.metered)
    text += f"; {r.unmetered}" if r.unmetered else ""
    if r.disturbed:
        text += f", {r.disturbed} disturbed" + ("" if r.sound else f" (processor share {100 * r.share:.0f} %: do not trust it)")
    return text


def energy_said(host: str) -> str:
    """The source of the energy, or the reason why there is none."""
    meter = meter_for(host)
    if isinstance(meter, str):
        return meter
    return f"energy: {meter.covers}" + ("" if meter.memory is None else ", and memory modules apart")


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """A comma-separated list of whole numbers from 1; ArchsimError otherwise."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and len(word) <= 7 and 0 < int(word) <= 1 << 20 for word in words):
        raise ArchsimError(f"{option} {text!r} is not a list of whole numbers from 1, like 1,16")
    return tuple(dict.fromkeys(map(int, words)))


def check_threads(threads: Sequence[int], allowed: int) -> None:
    """Refuse more threads than the process has processors: such a time says nothing about the computer."""
    if max(threads) > allowed:
        raise Unsupported(f"--threads {max(threads)}: this process may use {allowed} processors")


# ---------------------------------------------------------------------------------------------- memory


def needed_bytes(net: str, batch: int, stack: str, seq_len: int | None = None, sizes: Sizes = ()) -> float:
    """Memory that a network takes while it is built and runs in fp32 [B]: parameters, activations, and what the stack takes.

    onnxruntime holds the parameters twice: as they were handed over, and packed for its products.
    """
    chosen = stacks.find(stack)
    found = footprint(bound(chosen.variants.get(net, net), batch, seq_len, sizes), ELEMENT, 0.0, chosen.reserved)
    return found.total + (found.parameters if stack == onnx_session.STACK else 0.0)


def check_memory(
    networks: Sequence[str], batches: Sequence[int], stack: str, room: Told | None, seq_len: int | None = None,
    sizes: Sizes = (),
) -> None:  # fmt: skip
    """Raise Unsupported for a network that takes more than the `room`, the memory that is left [B]; None where nobody tells."""
    if room is None:
        return
    for net in networks:
        for batch in batches:
            needed = needed_bytes(net, batch, stack, seq_len, sizes)
            if needed > room.value:
                takes, left = show_capacity(needed, 3), show_capacity(room.value, 3)
                raise Unsupported(f"{net}, batch {batch}: takes about {takes} of memory, and there are {left} ({room.source}); "
                                  "leave it out, or take a smaller batch")  # fmt: skip


def memory_of(hw: str) -> Told:
    """The memory of a device that networks can use [B]."""
    return Told(value=USABLE * float(find(hw).device.memory.capacity), source=f"the memory of {hw}")
