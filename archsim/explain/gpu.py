"""The equations of a kernel on a GPU, in the order in which `archsim.cost.gpu` computes them."""

from __future__ import annotations

from archsim.cost.occupancy import REGISTER, WARP
from archsim.explain.equation import Equation, Quantities
from archsim.query import Query
from archsim.run import arithmetic

RATE = "FMA/clk"

OCCUPANCY = (
    Equation(name="warps", unit="1", text="ceil(threads / warp)", meaning="warps of one CTA"),
    Equation(name="by_registers", unit="1", text="sm.registers / (registers * threads * register)",
             meaning="CTAs that the registers of an SM hold"),
    Equation(name="by_shared", unit="1", text="sm.shared_memory / max(shared, 1)",
             meaning="CTAs that its shared memory holds"),
    Equation(name="by_warps", unit="1", text="sm.warps / warps", meaning="CTAs that its warp slots hold"),
    Equation(name="resident", unit="1", text="max(1, floor(min(by_registers, by_shared, by_warps, sm.ctas)))",
             meaning="CTAs that share an SM"),
    Equation(name="waves", unit="1", text="ctas / (sm.count * resident)", meaning="rounds of CTAs over the chip"),
)  # fmt: skip

PRODUCT = (
    Equation(name="ctas", unit="1", text="ceil(m / tile_m) * ceil(n / tile_n) * count * split", meaning="CTAs of one launch"),
    *OCCUPANCY,
    Equation(name="depth", unit="1", text="ceil(k / split / tile_k) * tile_k", meaning="inner steps of one CTA, padded"),
    Equation(name="side", unit="1", text="sqrt(tile_m * tile_n * work / threads)",
             meaning="a thread holds side x side results"),
    Equation(name="rate", unit=RATE, text="pipe * issue * family / (1 + gemm.kappa * 2 / side)",
             meaning="multiply-accumulates per clock and SM in the inner loop"),
    Equation(name="cta_work", unit="1", text="tile_m * tile_n * work * depth + gemm.prologue_clk * rate / resident",
             meaning="multiply-accumulates of one CTA, with what its start and end cost"),
)  # fmt: skip
STREAM = (
    Equation(name="ctas", unit="1", text="ceil(items / threads)", meaning="CTAs of one launch, a thread for each value"),
    *OCCUPANCY,
    Equation(name="rate", unit=RATE, text="pipe * issue * family", meaning="multiply-accumulates per clock and SM"),
    Equation(name="cta_work", unit="1", text="0.5 * flop / ctas", meaning="multiply-accumulates of one CTA"),
)  # fmt: skip
COMPUTE = (
    Equation(name="fill", unit="1", text="gemm.saturation / warps", meaning="CTAs that keep the pipes of an SM busy"),
    Equation(name="busiest", unit="1", text="ceil(ctas / sm.count)", meaning="CTAs of the busiest SM"),
    Equation(name="full", unit="1", text="floor(busiest / resident)", meaning="its full rounds"),
    Equation(name="tail", unit="1", text="busiest - full * resident", meaning="CTAs in its last, partial round"),
    Equation(name="turns", unit="1", text="full * max(resident, fill) + min(tail, 1) * max(tail, fill)",
             meaning="its time in units of one CTA at the full rate"),
    Equation(name="compute", unit="s", text="cta_work * turns / (rate * clock)", meaning="time of the busiest SM"),
)  # fmt: skip
DRAM = (
    Equation(name="dram", unit="s", text="dram_bytes / (memory.bandwidth * memory.achievable)",
             meaning="memory traffic over the bandwidth that a long stream reaches"),
)  # fmt: skip
PRODUCT_L2 = (
    Equation(name="loaded", unit="B", text="(min(tile_m, m) * operand_a + min(tile_n, n) * operand_b) * depth",
             meaning="what one CTA loads"),
    Equation(name="l2_bytes", unit="B", text="ctas * loaded + max(writes, cache_bytes)", meaning="traffic through the L2"),
)  # fmt: skip
STREAM_L2 = (
    Equation(name="l2_bytes", unit="B", text="max(a_bytes + b_bytes + c_bytes, cache_bytes)", meaning="traffic through the L2"),
)  # fmt: skip
L2 = (
    Equation(name="l2", unit="s", text="l2_bytes / (l2.bandwidth * clock * l2.efficiency)",
             meaning="L2 traffic over its bandwidth"),
)  # fmt: skip
PRODUCT_FLIGHT = Equation(
    name="in_flight", unit="B",
    text="min(ctas, sm.count * resident) * (tile_m * operand_a + tile_n * operand_b) * tile_k * gemm.stages",
    meaning="bytes that the resident CTAs wait for at once",
)  # fmt: skip
STREAM_FLIGHT = Equation(
    name="in_flight", unit="B", text="min(ctas, sm.count * resident) * threads * stream.loads * operand_b",
    meaning="bytes that the resident threads wait for at once",
)  # fmt: skip
LATENCY = Equation(
    name="latency", unit="s", text="(dram_bytes / in_flight + 1) * memory.latency",
    meaning="Little's law: rounds of bytes in flight, each a memory latency",
)  # fmt: skip


def equations(matrix: bool, traffic: Equation, graph: bool = False) -> tuple[Equation, ...]:
    """All of one kernel: a product or a stream. `traffic` is how `dram_bytes` comes about."""
    head, cached = (PRODUCT, PRODUCT_L2) if matrix else (STREAM, STREAM_L2)
    flight = PRODUCT_FLIGHT if matrix else STREAM_FLIGHT
    gap = "min(launch.latency, graph.gap_s)" if graph else "launch.latency"
    launch = Equation(name="launch", unit="s", text=gap, meaning="gap before each launch")
    return (*head, *COMPUTE, traffic, *DRAM, *cached, *L2, flight, LATENCY, launch)


def quantities(query: Query) -> tuple[Quantities, dict[str, str]]:
    """What the equations name beside kernel, spec and constants; and which spec key or constant stands behind a name."""
    device = query.spec.device
    precision = arithmetic(query.stack, device, query.precision)
    pipe = float(device.pipe(precision))
    rates = [key for key, entry in query.spec.entries.items() if key.startswith("rate.") and entry.value == pipe]
    named = [key for key in rates if precision.replace("half", "fp16") in key]
    issue = f"issue.{device.identity.architecture}"
    known = {"warp": (float(WARP), "1"), "register": (float(REGISTER), "B"), "pipe": (pipe, RATE),
             "issue": (query.calibration[issue], "1")}  # fmt: skip
    return known, {"pipe": (named or rates)[0], "issue": issue}
