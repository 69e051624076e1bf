"""An explanation for a terminal and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.cost.bounds import BOUNDS
from archsim.explain.algorithms import Candidate
from archsim.explain.equation import Step
from archsim.explain.kernel import KernelExplanation, Variant
from archsim.explain.layer import SCHEMA, ExplainedOp, Explanation, Slow, ValueOrigin
from archsim.explain.reader import CONSTANT, SPEC
from archsim.report.text import clean, table

NOTHING = "It launches nothing in this stack, so it takes no time."
PART = "fusion: part of the kernel"  # how a note of an op begins that has none of its own
NOISE = 1e-9  # a shorter wait, relative to the op, is a rounding error of the schedule
NOTE = 58  # column at which the meaning of an equation begins, where the equation is short enough
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def explanation_record(e: Explanation) -> dict[str, Any]:
    """The explanation as plain values."""
    return {"schema": SCHEMA, **asdict(e)}


def slowest_text(rows: Iterable[Slow], network: str, hardware: str) -> str:
    """The list from which a layer is chosen."""
    cells = [(r.layer, r.kind, r.phase, show(r.time_s, "s", 3), f"{100 * r.share:.1f} %") for r in rows]
    head = f"The slowest ops of {clean(network)} on {clean(hardware)}; --layer NAME explains one, --phase its gradient"
    return f"{head}\n\n{table(('layer', 'kind', 'phase', 'time', 'share'), cells, left=3)}"


def explanation_text(e: Explanation, every: bool = False) -> str:
    """The whole explanation; equations of the longest kernel only, unless those of `every` kernel are asked for."""
    parts = [heading(e), layer_lines(e, bool(e.kernels))]
    if not e.kernels:
        fused = [note for note in e.notes if note.startswith(PART)]
        return "\n\n".join([*parts, f"It takes no time of its own: {clean(fused[0])}." if fused else NOTHING])
    parts.append(_algorithms(e.algorithms))
    longest = max(e.kernels, key=lambda kernel: kernel.time_s)
    parts.append(_kernels(e))
    shown = e.kernels if every else (longest,)
    parts += [_kernel(kernel, e) for kernel in shown]
    parts += [_sum(e), _origins("Spec values", e.spec), _origins("Constants", e.constants)]
    parts += [_other_names(kernel) for kernel in shown]
    parts.append("\n".join(f"assumed  {clean(note)}" for note in e.notes))
    return "\n\n".join(part for part in parts if part)


def heading(e: ExplainedOp) -> str:
    """What is explained."""
    tokens = f", {e.seq_len} tokens" if e.seq_len else ""
    threads = f", {e.threads} threads" if e.threads else ""
    return (
        f"{clean(e.layer)} of {clean(e.network)} on {clean(e.hardware_name)}: {e.task}, batch {e.batch}{tokens}, {e.precision}, "
        f"stack {e.stack}, {show(e.clock_hz, 'Hz')}{threads}"
    )


def layer_lines(e: ExplainedOp, launches: bool) -> str:
    """The op, its work, and its time beside the least that it can take; an op without launches has no work."""
    shapes = ", ".join("x".join(map(str, shape)) for shape in e.inputs)
    attributes = ", ".join(f"{name} {_plain(value)}" for name, value in e.attributes.items())
    share = f"{100 * e.time_s / e.latency_s:.1f} % of {show(e.latency_s, 's')}"
    rows = [
        ("layer", f"{e.kind}, {e.phase}: {shapes} -> {'x'.join(map(str, e.output))}" + (f"; {attributes}" if attributes else "")),
        ("work", f"{show(e.flop, 'FLOP')}, at least {show(e.least_bytes, 'B')} of memory traffic"
                 + (f", {show(e.flop / e.least_bytes, '1', 3)} FLOP/B" if e.least_bytes else "")),
        ("at least", f"{show(e.roofline_s, 's')}: what no software can beat here, limited by {e.roofline_bound}"),
        ("predicted", f"{show(e.time_s, 's')}, {share}"
                      + (f", {show(e.time_s / e.roofline_s, '1', 3)} times that" if e.roofline_s else "")),
    ]  # fmt: skip
    if e.input_s:
        taken = ", ".join(f"{name} {show(time, 's', 3)}" for name, time in e.input_s.items() if name != "wait" and time)
        rows.append(("input", f"{show(e.input_s['wait'], 's')} of this the device waits for its batch, which takes: {taken}"))
    return "\n".join(f"{name:<10} {clean(text)}" for name, text in rows if launches or name in ("layer", "predicted", "input"))


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _algorithms(rows: Iterable[Candidate]) -> str:
    cells = [
        (r.algorithm, *["-" if value is None else show(value, unit, 3) for value, unit in ((r.time_s, "s"), (r.workspace, "B"))],
         r.verdict, r.reason)
        for r in rows
    ]  # fmt: skip
    return "Algorithms of the stack\n" + table(("algorithm", "time", "workspace", "", "why"), cells, left=(0, 3, 4))


def _kernel_head(kernel: KernelExplanation, e: Explanation) -> str:
    times = "" if kernel.launches == 1 else f", {kernel.launches:g} launches"
    share = f"{100 * kernel.time_s / e.device_s:.1f} %"
    return f"Kernel {kernel.name}{times}: {show(kernel.time_s, 's')} ({share} of the op), limited by {kernel.bound}"


def _kernel(kernel: KernelExplanation, e: Explanation) -> str:
    w = kernel.work
    sizes = ", ".join(f"{name.upper()[0]} {show(w[name], 'B', 3)}" for name in ("a_bytes", "b_bytes", "c_bytes"))
    if kernel.matrix:
        count = "" if w["count"] == 1 else f"{w['count']:g} x "
        m, n, k = (f"{w[name]:g}" for name in ("m", "n", "k"))
        what = f"{count}C[{m}, {n}] = A[{m}, {k}] B[{k}, {n}]; {sizes}; {show(w['flop'], 'FLOP')}"
    else:
        what = f"element-wise over {w['items']:,.0f} values; {sizes} (A parameters, B read, C written); {show(w['flop'], 'FLOP')}"
    parts = [f"{_kernel_head(kernel, e)}\n{what}"]
    if kernel.variants:
        parts.append(_tiles(kernel.variants))
    parts.append(_steps(kernel.steps))
    parts.append(f"Its energy, {show(kernel.energy_j, 'J')} (one launch, the last line all)\n"
                 + _steps(kernel.energy))  # fmt: skip
    return "\n\n".join(parts)


def _tiles(variants: tuple[Variant, ...]) -> str:
    bounds = list(variants[0].bounds_s)
    rows = [
        (f"{v.tile[0]}x{v.tile[1]}x{v.tile[2]}", "chosen" if v.chosen else "", f"{v.split}", f"{v.ctas:g}", f"{v.resident:g}",
         f"{v.waves:.3g}", *[show(v.bounds_s[name], "s", 3) for name in bounds], show(v.time_s, "s", 3))
        for v in variants
    ]  # fmt: skip
    head = ("tile", "", "split", "CTAs", "per SM", "waves", *bounds, "time")
    return "The fastest tiles of the menu (bounds of one launch, time of all)\n" + table(head, rows, left=2)


def _steps(steps: tuple[Step, ...]) -> str:
    """Equations, with their signs of equality in one column."""
    width = max(len(step.name) for step in steps)
    return "\n".join([line for step in steps for line in _step(step, width)])


def _step(step: Step, width: int) -> list[str]:
    """An equation with its meaning, then its numbers and its value, then why it holds."""
    filled, value = _filled(step.text, step.names), _amount(step.value, step.unit)
    first = f"{step.name:<{width}} = {_signs(step.text)}"
    if filled in (value, step.text):
        lines = [_noted(first if step.text == value else f"{first} = {value}", step.meaning)]
    else:
        second = f"{'':<{width}} = {_signs(filled)} = {value}"
        early = len(first) <= NOTE or len(first) <= len(second)
        lines = [_noted(first, step.meaning), second] if early else [first, _noted(second, step.meaning)]
    why = [f"{_signs(reason.text)}: {_signs(_filled(reason.text, reason.names))}" for reason in step.because]
    return lines + [f"{'':<{width}}   as {reason}" for reason in why]


def _filled(text: str, names: Mapping[str, tuple[float, str]]) -> str:
    """An expression with numbers for names."""
    return _NAME.sub(lambda found: _amount(*names[found[0]]) if found[0] in names else found[0], text)


def _amount(value: float, unit: str) -> str:
    """A quantity; bytes of one value may be a part of a byte."""
    return f"{value:.4g} B" if unit == "B" and value < 1000 else show(value, unit)


def _noted(text: str, meaning: str) -> str:
    return f"{text:<{NOTE}}  # {meaning}" if meaning else text


def _signs(text: str) -> str:
    return text.replace(" ** ", "^").replace(" * ", " x ")


def _kernels(e: Explanation) -> str:
    """All kernels of the op, in order; bounds are of one launch."""
    written = {step.name for kernel in e.kernels for step in kernel.steps}
    bounds = [name for name in BOUNDS if name in written]
    rows = []
    for kernel in e.kernels:
        values = {step.name: step.value for step in kernel.steps}
        times = [show(values[name], "s", 3) if name in values else "-" for name in bounds]
        share = f"{100 * kernel.time_s / e.device_s:.1f} %"
        rows.append((kernel.name, f"{kernel.launches:g}", *times, show(kernel.time_s, "s", 3), share))
    head = ("kernel", "launches", *bounds, "time", "share")
    return "Its kernels (bounds of one launch, time of all)\n" + table(head, rows)


def _sum(e: Explanation) -> str:
    wait = e.wait_s if e.wait_s > NOISE * e.time_s else 0.0
    device, waiting, total = (show(time, "s") for time in (e.device_s, wait, e.time_s))
    text = f"together     = {device} on the device + {waiting} of {'dispatch' if e.threads else 'waiting for the host'} = {total}"
    spent = " + ".join(f"{name} {show(part, 'J')}" for name, part in e.energy_breakdown_j.items() if part)
    energy = f"its energy   = {spent} = {show(e.energy_j, 'J')}, {show(e.energy_j / e.time_s, 'W', 3)} on average"
    return "\n".join([*[line for step in e.host for line in _step(step, len("together    "))], text, energy])


def _origins(title: str, rows: tuple[ValueOrigin, ...]) -> str:
    if not rows:
        return ""
    cells = [(r.name, show(r.value, r.unit), r.kind, r.source) for r in rows]
    return f"{title}\n" + table(("name", "value", "kind", "source"), cells, left=4)


def _other_names(kernel: KernelExplanation) -> str:
    """What the equations of a kernel name besides keys of the spec and constants."""
    rows = [(name, _amount(leaf.value, leaf.unit), leaf.kind, leaf.meaning) for name, leaf in kernel.stands_for.items()
            if leaf.kind not in (SPEC, CONSTANT)]  # fmt: skip
    return f"Other names in the equations of {kernel.name}\n" + table(("name", "value", "kind", "meaning"), rows, left=4)
