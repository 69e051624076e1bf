"""What decides the time of one layer, in a sentence or two."""

from __future__ import annotations

from archsim.base.units import show
from archsim.cost.bounds import BOUNDS, INPUT
from archsim.cycle.stalls import limit
from archsim.estimation.result import HOST
from archsim.explain.layer import ExplainedOp
from archsim.explain.simulated import SimulatedLayer

NOISE = 1e-9  # a shorter wait, relative to the op, is a rounding error of the schedule
NOTABLE = 0.02  # of the time of a layer: a shorter wait is not worth a sentence
PART = "fusion: part of the kernel"  # how a note of an op begins that has none of its own


def waited(e: ExplainedOp) -> float:
    """How long the device waits before the op, a CPU for its own dispatch [s]; 0 for what is but rounding."""
    return e.wait_s if e.wait_s > NOISE * e.time_s else 0.0


def wait_name(e: ExplainedOp) -> str:
    """What it waits for: `host`, `input`, or on a CPU `dispatch`."""
    return INPUT if e.input_s else "dispatch" if e.threads else HOST


def decides(e: ExplainedOp, kernel: str, time_s: float, bound: str) -> list[str]:
    """What limits the kernel that takes most of the time, and how long the device waits; why an op without kernels takes none.

    time_s: of that kernel, all launches [s]
    """
    if not kernel:
        fused = next((note for note in e.notes if note.startswith(PART)), "")
        return [f"It takes no time of its own: {fused}." if fused else
                "It launches nothing in this stack, so it takes no time."]  # fmt: skip
    return [f"{BOUNDS[bound].decides} in {kernel}, {100 * time_s / e.time_s:.0f} % of its time.", *wait_sentence(e)]


def wait_sentence(e: ExplainedOp) -> list[str]:
    """How long the device waits, if that is worth a sentence."""
    if waited(e) <= NOTABLE * e.time_s:
        return []
    wait = f"{show(e.wait_s, 's', 3)} ({100 * e.wait_s / e.time_s:.0f} %)"
    if wait_name(e) == "dispatch":
        return [f"Dispatching it takes {wait}."]
    return [f"The device waits {wait} for {'its batch to be decoded' if e.input_s else 'the host to issue it'}."]


def decides_simulated(e: SimulatedLayer) -> list[str]:
    """The same of a layer that the cycle model explains."""
    if not e.kernels:
        return decides(e, "", 0.0, "none")
    longest = max(e.kernels, key=lambda kernel: kernel.time_s)
    said = [f"{longest.name} takes {100 * longest.time_s / e.time_s:.0f} % of its time."]
    if longest.sm is not None:
        sm = longest.sm
        of_memory = "Memory bandwidth limits it: its traffic takes as long at full rate."
        said.append(of_memory if sm.busy_s <= sm.memory_s else limit(sm.pipe_use, sm.issue_use, sm.stalls))
    elif longest.loops:
        loop = max(longest.loops, key=lambda one: one.share)
        said.append(f"Its longest loop, {loop.name}, is bound by {loop.binds} ({100 * loop.explained:.0f} % of its clocks).")
    elif longest.array is not None:
        array = longest.array
        said.append(f"Its array is at work in {100 * array.active / array.clocks:.0f} % of the clocks, and waits for memory in "
                    f"{100 * array.stalled / array.clocks:.0f} %.")  # fmt: skip
    return [" ".join(said), *wait_sentence(e)]
