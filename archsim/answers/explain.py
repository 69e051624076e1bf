"""What an explanation of a layer says: what decides, its kernels, and behind `--equations` every equation with its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archsim.answers import tagged
from archsim.base.units import show
from archsim.cost.bounds import BOUNDS, bound_word
from archsim.explain.equation import Step
from archsim.explain.kernel import KernelExplanation, Variant
from archsim.explain.layer import SCHEMA, ExplainedOp, Explanation, ValueOrigin
from archsim.explain.reader import CONSTANT, SPEC
from archsim.explain.verdict import decides, wait_name, waited
from archsim.render.blocks import Block, Cell, Facts, Note, Table, Verdict, columns, number, percent, words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


record = tagged(SCHEMA)


def sections(e: Explanation, hint: bool = True) -> list[Block]:
    """The blocks of an explanation; the equations of the longest kernel at level 1, of the others at level 2.

    hint: say how to get them
    """
    if not e.kernels:
        return [verdict(e, decides(e, "", 0.0, "none")), layer_facts(e)]
    longest = max(e.kernels, key=lambda kernel: kernel.time_s)
    found: list[Block] = [verdict(e, decides(e, longest.name, longest.time_s, longest.bound)), layer_facts(e), kernels_table(e)]
    found += [*_algorithms(e), assumed(e)]
    text = "--equations prints how these times come about, --all those of every kernel."
    found += [Note(text=text, only="text")] if hint else []
    for kernel in e.kernels:
        found += _kernel(kernel, e, 1 if kernel is longest else 2)
    return [*found, *_sum(e), *_origins("Spec values", e.spec), *_origins("Constants", e.constants),
            Note(text="The equations without numbers: `archsim manual model`. Names with a dot: `archsim list keys`.", level=1)]


def verdict(e: ExplainedOp, sentences: Sequence[str], model: str = "") -> Verdict:
    """The layer, its time beside the least that it can take, and its work."""
    tokens = [f"{e.seq_len} tokens"] if e.seq_len else []
    threads = [f"{e.threads} {'thread' if e.threads == 1 else 'threads'}"] if e.threads else []
    asked = [f"{e.kind}, {e.phase.replace('_', ' ')}", e.task.replace("_", " "), f"batch {e.batch}", *tokens, e.precision,
             e.stack, show(e.clock_hz, "Hz"), *threads, *([model] if model else [])]  # fmt: skip
    least = f"{show(e.time_s / e.roofline_s, '1', 3)} times the least" if e.roofline_s else ""
    lines = [(show(e.time_s, "s"), f"{100 * e.time_s / e.latency_s:.1f} % of {show(e.latency_s, 's')}", least)]
    if e.roofline_s:
        intensity = f"{show(e.flop / e.least_bytes, '1', 3)} FLOP/B" if e.least_bytes else ""
        lines += [
            (f"at least {show(e.roofline_s, 's')}", "what no software can beat here",
             f"limited by {bound_word(e.roofline_bound)}"),
            (show(e.flop, "FLOP"), f"at least {show(e.least_bytes, 'B')} of traffic", intensity),
        ]
    return Verdict(title=f"{e.layer} of {e.network} on {e.hardware_name}", asked=asked, lines=lines, sentences=sentences)


def layer_facts(e: ExplainedOp) -> Facts:
    """Shapes and attributes, and what a batch that the host decodes waits for."""
    shapes = ", ".join("x".join(map(str, shape)) for shape in e.inputs)
    attributes = ", ".join(f"{name} {_plain(value)}" for name, value in e.attributes.items())
    taken = ", ".join(f"{name} {show(time, 's', 3)}" for name, time in e.input_s.items() if name != "wait" and time)
    return Facts(rows=[
        ("shapes", f"{shapes} -> {'x'.join(map(str, e.output))}" + (f"; {attributes}" if attributes else "")),
        ("input", f"the device waits {show(e.input_s['wait'], 's')} for its batch, which takes: {taken}" if e.input_s else ""),
    ])  # fmt: skip


def assumed(e: ExplainedOp) -> Facts:
    """What was chosen where nobody asked for something else."""
    return Facts(rows=[("assumed", list(e.notes))])


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def wait_row(e: ExplainedOp, width: int) -> list[list[Cell]]:
    """A row of a table of kernels for what stands before them: name, launches, time, share, limit."""
    wait = waited(e)
    if not wait:
        return []
    name = {"host": "waiting for the host", "input": "waiting for input"}.get(wait_name(e), "dispatch")
    cells = [words(name, tone="host"), words(""), number(wait, "s"), percent(wait / e.time_s),
             words(f"{wait_name(e)} {100 * wait / e.time_s:.0f} %")]  # fmt: skip
    return [[*cells, *[words("")] * (width - len(cells))]]


def kernels_table(e: Explanation) -> Table:
    """All kernels of the op, in order; bounds are of one launch."""
    written = {step.name for kernel in e.kernels for step in kernel.steps}
    bounds = [name for name in BOUNDS if name in written]
    rows = []
    for kernel in e.kernels:
        values = {step.name: step.value for step in kernel.steps}
        rows.append([words(kernel.name), words(f"{kernel.launches:g}"), number(kernel.time_s, "s"),
                     percent(kernel.time_s / e.time_s), words(bound_word(kernel.bound), tone=kernel.bound),
                     *[number(values.get(name), "s") for name in bounds]])  # fmt: skip
    heads = columns("kernel", "launches", "time", "share", "limited by", *bounds, numbers=[1, 2, 3, *range(5, 5 + len(bounds))])
    return Table(title="Its kernels", columns=heads, rows=[*wait_row(e, len(heads)), *rows],
                 notes=[f"{', '.join(bounds)}: what a launch takes at least of each; time is of all launches."])  # fmt: skip


def _algorithms(e: Explanation) -> list[Block]:
    """What else the stack could run; nothing where there is one way."""
    rows = [[words(r.algorithm), number(r.time_s, "s"), number(r.workspace, "B"), words(r.verdict), words(r.reason)]
            for r in e.algorithms]  # fmt: skip
    heads = columns("algorithm", "time", "workspace", "", "why", numbers=(1, 2))
    return [Table(title="Algorithms of the stack", columns=heads, rows=rows)] if len(rows) > 1 else []


def _kernel(kernel: KernelExplanation, e: Explanation, level: int) -> list[Block]:
    """What a kernel computes, its tiles, the equations of its time and of its energy, and what their names stand for."""
    w = kernel.work
    sizes = ", ".join(f"{name.upper()[0]} {show(w[name], 'B', 3)}" for name in ("a_bytes", "b_bytes", "c_bytes"))
    if kernel.matrix:
        count = "" if w["count"] == 1 else f"{w['count']:g} x "
        m, n, k = (f"{w[name]:g}" for name in ("m", "n", "k"))
        what = f"{count}C[{m}, {n}] = A[{m}, {k}] B[{k}, {n}]; {sizes}; {show(w['flop'], 'FLOP')}"
    else:
        what = f"element-wise over {w['items']:,.0f} values; {sizes} (A parameters, B read, C written); {show(w['flop'], 'FLOP')}"
    share = f"{show(kernel.time_s, 's')}, {100 * kernel.time_s / e.time_s:.1f} % of the layer"
    found: list[Block] = [Note(text=f"Kernel {kernel.name}: {share}\n{what}", level=level)]
    found += [_tiles(kernel.variants, level)] if kernel.variants else []
    found.append(Facts(title=f"Time of {kernel.name}", rows=[*_equations(kernel.steps)], level=level))
    found.append(Facts(title=f"Energy of {kernel.name}: {show(kernel.energy_j, 'J')} in all launches",
                       rows=[*_equations(kernel.energy)], level=level))  # fmt: skip
    named = [[words(name), words(_amount(leaf.value, leaf.unit)), words(leaf.kind), words(leaf.meaning)]
             for name, leaf in kernel.stands_for.items() if leaf.kind not in (SPEC, CONSTANT)]  # fmt: skip
    found.append(Table(title=f"Other names in the equations of {kernel.name}", rows=named, level=level,
                       columns=columns("", "value", "kind", "meaning", numbers=(1,))))  # fmt: skip
    return found


def _tiles(variants: tuple[Variant, ...], level: int) -> Table:
    bounds = list(variants[0].bounds_s)
    rows = [
        [words(f"{v.tile[0]}x{v.tile[1]}x{v.tile[2]}"), words("chosen" if v.chosen else "", tone="good"), words(f"{v.split}"),
         words(f"{v.ctas:g}"), words(f"{v.resident:g}"), words(f"{v.waves:.3g}"),
         *[number(v.bounds_s[name], "s") for name in bounds], number(v.time_s, "s")]
        for v in variants
    ]  # fmt: skip
    heads = columns("tile", "", "split", "CTAs", "per SM", "waves", *bounds, "time", numbers=range(2, 7 + len(bounds)))
    return Table(title="The fastest tiles of the menu", columns=heads, rows=rows, level=level)


def _equations(steps: Sequence[Step]) -> Iterator[tuple[str, list[str]]]:
    """Each equation by its name, with its meaning, its numbers and its value, and why it holds."""
    for step in steps:
        filled, value = _filled(step.text, step.names), _amount(step.value, step.unit)
        first = f"= {_signs(step.text)}" + (f" = {value}" if filled in (value, step.text) and step.text != value else "")
        lines = [f"{first}   # {step.meaning}" if step.meaning else first]
        lines += [] if filled in (value, step.text) else [f"= {_signs(filled)} = {value}"]
        yield step.name, lines + [f"  as {_signs(why.text)}: {_signs(_filled(why.text, why.names))}" for why in step.because]


def _filled(text: str, names: Mapping[str, tuple[float, str]]) -> str:
    """An expression with numbers for names."""
    return _NAME.sub(lambda found: _amount(*names[found[0]]) if found[0] in names else found[0], text)


def _amount(value: float, unit: str) -> str:
    """A quantity; bytes of one value may be a part of a byte."""
    return f"{value:.4g} B" if unit == "B" and value < 1000 else show(value, unit)


def _signs(text: str) -> str:
    return text.replace(" ** ", "^").replace(" * ", " x ")


def _sum(e: Explanation) -> list[Block]:
    device, waiting, total = (show(time, "s") for time in (e.device_s, waited(e), e.time_s))
    beside = "dispatch" if e.threads else "waiting for the host"
    spent = " + ".join(f"{name} {show(part, 'J')}" for name, part in e.energy_breakdown_j.items() if part)
    return [Facts(title="Together", level=1, rows=[
        *_equations(e.host), ("time", f"= {device} on the device + {waiting} of {beside} = {total}"),
        ("energy", f"= {spent} = {show(e.energy_j, 'J')}, {show(e.energy_j / e.time_s, 'W', 3)} on average"),
    ])]  # fmt: skip


def _origins(title: str, rows: tuple[ValueOrigin, ...]) -> list[Block]:
    cells = [[words(r.name), words(show(r.value, r.unit)), words(r.kind), words(r.source)] for r in rows]
    heads = columns("", "value", "kind", "source", numbers=(1,))
    return [Table(title=title, columns=heads, rows=cells, level=1)] if rows else []
