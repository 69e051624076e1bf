"""The equations of a kernel on a CPU, in the order in which `archsim.cost.cpu` computes them."""

from __future__ import annotations

from archsim.cost.cpu import LANE_BITS
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.explain.equation import Equation, Quantities
from archsim.query import Query

PIPE = Equation(name="pipe", unit="FMA/clk", text="core.simd / lane * core.fma_ports",
                meaning="multiply-accumulates per clock and core")  # fmt: skip
PRODUCT = (
    Equation(name="columns", unit="1", text="2 * core.simd / lane32", meaning="columns of the register block: two registers"),
    Equation(name="rows", unit="1", text="ceil(core.fma_latency * core.fma_ports * core.simd / lane32 / columns)",
             meaning="its rows, so that latency x ports results are in flight"),
    Equation(name="padded", unit="1", text="ceil(m / rows) * rows * ceil(n / columns) * columns",
             meaning="results, in whole register blocks"),
    Equation(name="macs", unit="1", text="padded * (k + cpu.ramp) * count * work",
             meaning="multiply-accumulates, with the ramp of each block"),
    Equation(name="compute", unit="s", text="macs / (pipe * family) / (workers * clock)", meaning="arithmetic"),
)  # fmt: skip
STREAM = (Equation(name="compute", unit="s", text="flop / (cpu.pointwise_flop * family) / (workers * clock)",
                   meaning="arithmetic of loops that are barely vectorised"),)  # fmt: skip
DENSE = (Equation(name="compute", unit="s", text="flop / (2 * pipe * family) / (workers * clock)",
                  meaning="arithmetic at the rate of a product"),)  # fmt: skip


def equations(matrix: bool, dense: bool, threaded: bool, level: str) -> tuple[Equation, ...]:
    """All of one kernel: a product, or a stream, dense or not; `level` is the last cache level, l2 or l3."""
    workers = "min(threads_asked, core.count, max(1, items))" if threaded else "1"
    return (
        Equation(name="workers", unit="1", text=workers, meaning="cores at work"),
        PIPE,
        *(PRODUCT if matrix else DENSE if dense else STREAM),
        Equation(name="last_level", unit="B", text=f"{level}.size * max(1, core.count / {level}.shared_by)",
                 meaning="the last cache level, all its instances"),
        Equation(name="fresh", unit="1", text="above(b_bytes + c_bytes, kept_share * last_level)",
                 meaning="1 if activations come from memory, 0 if the op before has left them in the cache"),
        Equation(name="dram_bytes", unit="B", text="a_bytes + fresh * (b_bytes + 2 * c_bytes)",
                 meaning="memory traffic; a written line is read first"),
        Equation(name="one_core", unit="B/s", text="cpu.prefetch * core.miss_buffers * l1.line / memory.latency",
                 meaning="what one core draws, by Little's law"),
        Equation(name="bandwidth", unit="B/s", text="min(workers * one_core, memory.bandwidth * memory.achievable)",
                 meaning="what the cores at work draw"),
        Equation(name="dram", unit="s", text="dram_bytes / bandwidth", meaning="memory traffic over bandwidth"),
        Equation(name="l2_bytes", unit="B", text="a_bytes + b_bytes + 2 * c_bytes", meaning="traffic through that cache"),
        Equation(name="l2", unit="s", text=f"l2_bytes / (workers * {level}.bandwidth * clock)",
                 meaning="that traffic over the bandwidth of the level"),
        Equation(name="launch", unit="s", text="cpu.barrier_s * log2(max(workers, 1))",
                 meaning="waking and joining the threads of one loop"),
    )  # fmt: skip


def quantities(query: Query) -> tuple[Quantities, dict[str, str]]:
    """What the equations name beside kernel, spec and constants; on a CPU no name stands for another."""
    lane = 2.0 * LANE_BITS if query.precision == "fp64" else float(LANE_BITS)
    return {"lane": (lane, "bit"), "lane32": (float(LANE_BITS), "bit"), "kept_share": (RESIDENT_SHARE, "1"),
            "threads_asked": (float(query.threads or 1), "1")}, {}  # fmt: skip
