"""The explanation of a layer by the cycle model, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.cycle.eased import BETTER, Relief
from archsim.explain.simulated import SCHEMA, ArrayOfKernel, LoopOfKernel, SimulatedKernel, SimulatedLayer, SmOfKernel
from archsim.report.explain import NOISE, NOTHING, heading, layer_lines
from archsim.report.sm import bandwidths, pipes, stall_lines, stalled_lines
from archsim.report.text import clean, table

WORTH = 0.005  # of the time of a kernel: less is no relief
NAMED = 3  # reliefs in the text; JSON has all
SHOWN = 0.0005  # of the clocks of the warps: a smaller stall is left to JSON


def simulated_record(e: SimulatedLayer) -> dict[str, Any]:
    """The explanation as plain values."""
    return {"schema": SCHEMA, **asdict(e)}


def simulated_text(e: SimulatedLayer) -> str:
    """The whole explanation, kernel by kernel."""
    parts = [f"{heading(e)}, cycle model", layer_lines(e, bool(e.kernels))]
    if not e.kernels:
        return "\n\n".join([*parts, NOTHING])
    parts += [part for kernel in e.kernels for part in _kernel(kernel, e)]
    wait = e.wait_s if e.wait_s > NOISE * e.time_s else 0.0
    device, waiting, total = (show(time, "s") for time in (e.device_s, wait, e.time_s))
    parts.append(f"together     {device} on the device + {waiting} of waiting for the host = {total}")
    parts.append("\n".join(f"assumed  {clean(note)}" for note in e.notes))
    return "\n\n".join(part for part in parts if part)


def _kernel(kernel: SimulatedKernel, e: SimulatedLayer) -> list[str]:
    times = "" if kernel.launches == 1 else f", {kernel.launches:g} launches"
    tile = f", tile {'x'.join(map(str, kernel.tile))}" if kernel.tile else ""
    first = f"Kernel {kernel.name} of {e.algorithm}{tile}{times}: {show(kernel.time_s, 's')} " \
            f"({100 * kernel.time_s / e.device_s:.1f} % of the op)"  # fmt: skip
    if kernel.loops:
        return [f"{first}\n{_loops(kernel.loops)}"]
    if kernel.array is not None:
        return [first + "".join(f"\n{name:<12} {text}" for name, text in _array(kernel.array))]
    if kernel.sm is None:
        return [f"{first}\nIt has no program yet, and keeps its closed form: --fidelity analytical explains it."]
    sm = kernel.sm
    lines = "\n".join([first, *(f"{name:<12} {text}" for name, text in _lines(sm))])
    shown = {name: share for name, share in sm.stalls.items() if share > SHOWN}
    return [lines, "\n".join([*stall_lines(shown), *stalled_lines(sm.stalled)]), _relief(sm.relief)]


def _loops(loops: Iterable[LoopOfKernel]) -> str:
    """The loops of a kernel as a table, those of the largest share first."""
    rows = [(one.name, f"{one.binds} ({100 * one.explained:.0f} %)", f"{one.times:,.0f}", f"{one.cycles:.1f}",
             f"{100 * one.share:.1f} %", f"{one.flop_per_cycle:.1f}")
            for one in sorted(loops, key=lambda one: -one.share)]  # fmt: skip
    return table(("loop", "binds (of its clocks)", "times", "clocks", "share", "FLOP/clk"), rows, left=2)


def _array(a: ArrayOfKernel) -> Iterable[tuple[str, str]]:
    yield "array", f"{a.rows} x {a.columns} cells, {a.tiles:,.0f} tiles, {a.streamed:,.0f} rows through each"
    active, stalled = (100 * clocks / a.clocks for clocks in (a.active, a.stalled))
    yield "clocks", (f"{a.clocks:,.0f}: {active:.1f} % while rows enter, {stalled:.1f} % waiting for memory, which takes "
                     f"{a.tile_clocks:,.0f} for a tile")  # fmt: skip


def _lines(sm: SmOfKernel) -> Iterable[tuple[str, str]]:
    full = f" ({' and '.join(sm.limited_by)} {'let' if len(sm.limited_by) > 1 else 'lets'} no more in)" if sm.limited_by else ""
    yield "launch", (f"{sm.ctas} CTAs on {sm.sms} SMs, {sm.waves:.3g} waves; {sm.sm_ctas} on the busiest SM, "
                     f"{sm.resident} at once{full}")  # fmt: skip
    yield "time", f"{show(sm.busy_s, 's')}{_origin(sm)}; {sm.clocks:,.0f} clocks of the busiest SM"
    yield "issue", (f"{sm.instructions_per_clock:.2f} warp instructions per clock ({sm.instructions:,} in all), "
                    f"{100 * sm.issue_use:.1f} % of the issue slots")  # fmt: skip
    yield "pipes", pipes(sm.pipe_use)
    yield "occupancy", (f"{100 * sm.occupancy:.0f} % of the warps that an SM can hold, "
                        f"{100 * sm.achieved_occupancy:.0f} % on average")  # fmt: skip
    if sm.bandwidth_bps:
        yield "bandwidth", f"{bandwidths(sm.bandwidth_bps)} of one SM"


def _origin(sm: SmOfKernel) -> str:
    """What besides the clocks makes the time of a launch."""
    if sm.busy_s <= sm.memory_s:
        return " of one launch, which its memory traffic takes at full bandwidth"
    fitted = f" (the library reaches {100 * sm.efficiency:.3g} % of its program: fitted)"
    return f" of one launch{fitted if sm.efficiency != 1.0 else ''}"


def _relief(found: Iterable[Relief]) -> str:
    """The largest savings."""
    best = [one for one in found if one.saved >= WORTH][:NAMED]
    if not best:
        return f"No rate, latency or number of places of the device relieves it alone, if it is {BETTER:g} times as good"
    head = f"What would relieve it: what is saved if one of these is {BETTER:g} times as good"
    return "\n".join([head, *(f"{100 * one.saved:5.1f} %  {one.what} ({', '.join(one.keys)})" for one in best)])
