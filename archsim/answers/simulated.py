"""What a layer says that the cycle model explains: what limits each of its kernels, where warps wait, what would relieve it."""

from __future__ import annotations

from collections.abc import Iterator

from archsim.answers import tagged
from archsim.answers.explain import assumed, layer_facts, verdict, wait_row
from archsim.answers.sm import bandwidths, pipes, stall_tables
from archsim.base.units import show
from archsim.cycle.stalls import BETTER
from archsim.explain.simulated import SCHEMA, ArrayOfKernel, LoopOfKernel, SimulatedKernel, SimulatedLayer, SmOfKernel
from archsim.explain.verdict import decides_simulated
from archsim.render.blocks import Block, Facts, Note, Table, columns, count, number, percent, words

WORTH = 0.005  # of the time of a kernel: less is none
NAMED = 3  # improvements that are shown; JSON has all


record = tagged(SCHEMA)


def sections(e: SimulatedLayer, hint: bool = True) -> list[Block]:
    """The blocks: all kernels, then the longest one; the others at level 2, to which a `hint` points."""
    found: list[Block] = [verdict(e, decides_simulated(e), "cycle model"), layer_facts(e)]
    if not e.kernels:
        return found
    longest = max(e.kernels, key=lambda kernel: kernel.time_s)
    found += [_kernels_table(e), *_kernel(longest, 0), assumed(e)]
    for kernel in e.kernels:
        found += _kernel(kernel, 2) if kernel is not longest else []
    others = hint and len(e.kernels) > 1
    return [*found, Note(text="--all prints the other kernels in the same way.", only="text")] if others else found


def _kernels_table(e: SimulatedLayer) -> Table:
    rows = [[words(kernel.name), words(f"{kernel.launches:g}"), number(kernel.time_s, "s"), percent(kernel.time_s / e.time_s),
             words(_waits(kernel)), words("x".join(map(str, kernel.tile or ())))] for kernel in e.kernels]  # fmt: skip
    heads = columns("kernel", "launches", "time", "share", "most of its clocks", "tile", numbers=(1, 2, 3))
    return Table(title=f"Its kernels ({e.algorithm})", columns=heads, rows=[*wait_row(e, len(heads)), *rows])


def _waits(kernel: SimulatedKernel) -> str:
    """What a kernel spends most of its clocks with."""
    if kernel.sm is not None:
        name, share = next(iter(kernel.sm.stalls.items()), ("", 0.0))
        return f"{name} {100 * share:.0f} %" if name else ""
    if kernel.loops:
        return max(kernel.loops, key=lambda loop: loop.share).binds
    return "" if kernel.array is None else "the array"


def _kernel(kernel: SimulatedKernel, level: int) -> list[Block]:
    if kernel.loops:
        return [_loops(kernel, level)]
    if kernel.array is not None:
        return [Facts(title=f"Kernel {kernel.name}", rows=[*_array(kernel.array)], level=level)]
    if kernel.sm is None:
        text = f"Kernel {kernel.name} has no program yet, and keeps its closed form: --fidelity analytical explains it."
        return [Note(text=text, level=level)]
    sm = kernel.sm
    return [*stall_tables(sm, kernel.name, level), _improvements(kernel.name, sm, level),
            Facts(title=f"Kernel {kernel.name}", rows=[*_facts(sm)], level=level)]  # fmt: skip


def _loops(kernel: SimulatedKernel, level: int) -> Table:
    """The loops of a kernel, those of the largest share first."""
    loops: list[LoopOfKernel] = sorted(kernel.loops, key=lambda one: -one.share)
    rows = [[words(one.name), words(f"{one.binds} ({100 * one.explained:.0f} %)"), count(one.times), words(f"{one.cycles:.1f}"),
             percent(one.share), words(f"{one.flop_per_cycle:.1f}")] for one in loops]  # fmt: skip
    heads = columns("loop", "binds (of its clocks)", "times", "clocks", "share", "FLOP/clk", numbers=range(2, 6))
    return Table(title=f"Loops of {kernel.name}", columns=heads, rows=rows, level=level)


def _array(a: ArrayOfKernel) -> Iterator[tuple[str, str]]:
    yield "array", f"{a.rows} x {a.columns} cells, {a.tiles:,.0f} tiles, {a.streamed:,.0f} rows through each"
    active, stalled = (100 * clocks / a.clocks for clocks in (a.active, a.stalled))
    yield "clocks", (f"{a.clocks:,.0f}: {active:.1f} % while rows enter, {stalled:.1f} % waiting for memory, which takes "
                     f"{a.tile_clocks:,.0f} for a tile")  # fmt: skip


def _facts(sm: SmOfKernel) -> Iterator[tuple[str, str]]:
    full = f" ({' and '.join(sm.limited_by)} {'let' if len(sm.limited_by) > 1 else 'lets'} no more in)" if sm.limited_by else ""
    yield "launch", (f"{sm.ctas} CTAs on {sm.sms} SMs, {sm.waves:.3g} waves; {sm.sm_ctas} on the busiest SM, "
                     f"{sm.resident} at once{full}")  # fmt: skip
    yield "time", f"{show(sm.busy_s, 's')}{_origin(sm)}; {sm.clocks:,.0f} clocks of the busiest SM"
    yield "issue", (f"{sm.instructions_per_clock:.2f} warp instructions per clock ({sm.instructions:,} in all), "
                    f"{100 * sm.issue_use:.1f} % of the issue slots")  # fmt: skip
    yield "pipes", pipes(sm.pipe_use)
    yield "occupancy", (f"{100 * sm.occupancy:.0f} % of the warps that an SM can hold, "
                        f"{100 * sm.achieved_occupancy:.0f} % on average")  # fmt: skip
    yield "bandwidth", f"{bandwidths(sm.bandwidth_bps)} of one SM" if sm.bandwidth_bps else ""


def _origin(sm: SmOfKernel) -> str:
    """What besides the clocks makes the time of a launch."""
    if sm.busy_s <= sm.memory_s:
        return " of one launch, which its memory traffic takes at full bandwidth"
    fitted = f" (the library reaches {100 * sm.efficiency:.3g} % of its program: fitted)"
    return f" of one launch{fitted if sm.efficiency != 1.0 else ''}"


def _improvements(kernel: str, sm: SmOfKernel, level: int) -> Block:
    """The largest savings."""
    best = [one for one in sm.improvements if one.saved >= WORTH][:NAMED]
    if not best:
        return Note(text=f"No rate, latency or number of places of the device relieves {kernel} alone, if it is {BETTER:g} "
                         "times as good.", level=level)  # fmt: skip
    rows = [[words(one.what), percent(one.saved), words(", ".join(one.keys))] for one in best]
    return Table(title=f"What would relieve {kernel}", rows=rows, level=level,
                 columns=columns("", f"saved if {BETTER:g} times as good", "keys", numbers=(1,)))  # fmt: skip
