"""The equations of a kernel on a GPU, in the order in which `archsim.cost.gpu` computes them."""

from __future__ import annotations

from archsim.cost.gpu import WORD
from archsim.cost.occupancy import REGISTER, WARP
from archsim.cost.sm import SOFTMAX_ISSUES, STAGES
from archsim.cost.traffic import PAGE
from archsim.device.device import Gpu
from archsim.estimation.pipeline import arithmetic
from archsim.estimation.request import Request
from archsim.explain.equation import Equation, Quantities
from archsim.lower.kernel import GpuKernels

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
    Equation(name="products", unit="1", text="tile_m * tile_n * work * depth", meaning="multiply-accumulates of one CTA"),
)  # fmt: skip
PAGES = Equation(name="pages", unit="1", text="depth / tile_k * (min(tile_m, m) + min(tile_n, n)) * row_bytes / page",
                 meaning="memory pages that one CTA visits, each step anew")  # fmt: skip
SOFTMAX = Equation(
    name="softmax", unit="1", text="tile_m * depth * exps * (1 / rate.special + softmax_issues / rate.fp32) * rate",
    meaning="what its exponentials keep the SM from multiplying",
)  # fmt: skip
STREAM = (
    Equation(name="ctas", unit="1", text="ceil(items / threads)", meaning="CTAs of one launch, a thread for each value"),
    *OCCUPANCY,
    Equation(name="rate", unit=RATE, text="pipe * issue * family", meaning="multiply-accumulates per clock and SM"),
)  # fmt: skip
COMPUTE = (
    Equation(name="busiest", unit="1", text="ceil(ctas / sm.count)", meaning="CTAs of the busiest SM"),
    Equation(name="full", unit="1", text="floor(busiest / resident)", meaning="its full rounds"),
    Equation(name="tail", unit="1", text="busiest - full * resident", meaning="CTAs in its last, partial round"),
    Equation(name="turns", unit="1", text="full * max(resident, fill) + min(tail, 1) * max(tail, fill)",
             meaning="its time in units of one CTA at the full rate"),
    Equation(name="compute", unit="s", text="cta_work * turns / (rate * clock)", meaning="time of the busiest SM"),
)  # fmt: skip
DRAM = Equation(
    name="dram", unit="s", text="dram_bytes / (memory.bandwidth * memory.achievable)",
    meaning="memory traffic over the bandwidth that a long stream reaches",
)  # fmt: skip
TWO_PASS = Equation(
    name="two_pass", unit="s", text="dram / family * max(1, word / operand_b) * clock.sustained / clock",
    meaning="the same at the share of it that streams of this family reach, which come back to their values and wait",
)  # fmt: skip
STREAM_L2 = (
    Equation(name="l2_bytes", unit="B", text="max(a_bytes + b_bytes + c_bytes, cache_bytes)", meaning="traffic through the L2"),
)  # fmt: skip
L2 = Equation(
    name="l2", unit="s", text="l2_bytes / (l2.bandwidth * clock * l2.efficiency)", meaning="L2 traffic over its bandwidth"
)
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


def traits(query: Request, kernels: GpuKernels, v: int) -> frozenset[str]:
    """What decides which equations hold for variant `v`."""
    device = query.spec.device
    assert isinstance(device, Gpu)
    precision = arithmetic(query.stack, device, query.precision)
    own = {
        "product": kernels.matrix[v], "lone": kernels.exps[v] > 0 and kernels.tile_m[v] == 1,
        "dense": kernels.dense[v], "softmax": kernels.exps[v], "overlapped": kernels.overlapped[v],
        "pages": kernels.row_bytes[v], "split": kernels.split[v] > 1, "cluster": kernels.cluster[v] > 1,
        "chain": kernels.chain[v] > 1, "single": kernels.single[v], "slots": kernels.slots[v],
        "tensor": device.has_tensor(precision) and not kernels.plain[v], "plain": kernels.plain[v], "graph": query.graph,
        "two_pass": not kernels.matrix[v] and query.calibration[kernels.constants[kernels.efficiency[v]]] < 1.0,
        "paired": precision in ("fp16", "half") and "rate.fp16" in query.spec.entries and not device.has_tensor("fp16"),
    }  # fmt: skip
    return frozenset(name for name, value in own.items() if value)


def equations(of: frozenset[str], traffic: Equation) -> tuple[Equation, ...]:
    """All of one kernel with these traits. `traffic` is how `dram_bytes` comes about."""
    gap = "min(launch.latency, graph.gap_s)" if "graph" in of else "launch.latency"
    chained, single = "chain" in of, "single" in of
    meaning = "gaps before the kernels of each launch" if chained else "gap before each launch"
    launch = Equation(name="launch", unit="s", text=gap + " * chain" * chained + " + conv.between_s" * single,
                      meaning=meaning + ", and between those of one image" * single)  # fmt: skip
    if "product" in of:
        body = (*PRODUCT, *_work(of), _fill(of), *COMPUTE, traffic, DRAM, *_loaded(of), L2, PRODUCT_FLIGHT)
    else:
        memory = (traffic, DRAM, *[TWO_PASS] * ("two_pass" in of), *STREAM_L2, L2)
        body = (*STREAM, _streamed(of), _fill(of), *COMPUTE, *memory, STREAM_FLIGHT)
    return (*body, LATENCY, launch)


def _work(of: frozenset[str]) -> tuple[Equation, ...]:
    """What a CTA of a product keeps its SM from issuing."""
    filled = "gemm.tensor_prologue_clk * min(1, (depth / tile_k + 1) / stages)"
    product = filled if "tensor" in of else "gemm.prologue_clk"
    constant, paged = "attention.prologue_clk" if "softmax" in of else product, "pages" in of
    beside = "min(resident, ceil(ctas / sm.count))" if "lone" in of else "resident"
    lost = Equation(name="lost", unit="clk", text=f"{constant} / {beside}" + (" + gemm.page_clk * pages" if paged else ""),
                    meaning="its start and end" + (", and address translation" if paged else ""))  # fmt: skip
    both = "sqrt(products ** 2 + softmax ** 2)" if "overlapped" in of else "products + softmax"
    whole = both if "softmax" in of else "products"
    work = Equation(name="cta_work", unit="1", text=f"{whole} + lost * rate", meaning="multiply-accumulates, with what it loses")
    return (*[PAGES] * paged, lost, *[SOFTMAX] * ("softmax" in of), work)


def _streamed(of: frozenset[str]) -> Equation:
    """What a CTA of a stream keeps its SM from issuing."""
    text = "max(0.5 * flop, slots) / ctas" if "slots" in of else "0.5 * flop / ctas"
    meaning = "multiply-accumulates of one CTA, or all its issue slots" if "slots" in of else "multiply-accumulates of one CTA"
    return Equation(name="cta_work", unit="1", text=text, meaning=meaning)


def _fill(of: frozenset[str]) -> Equation:
    packing = " * max(1, rate.fp16 / rate.fp32)" if "paired" in of else ""
    return Equation(name="fill", unit="1", text=f"gemm.saturation{packing} / warps",
                    meaning="CTAs that keep the pipes of an SM busy")  # fmt: skip


def _loaded(of: frozenset[str]) -> tuple[Equation, ...]:
    """L2 traffic of a product."""
    from_a, from_b = "min(tile_m, m) * operand_a", "min(tile_n, n) * operand_b"
    shared = f"min({from_a}, {from_b}) + max({from_a}, {from_b}) / cluster"
    stored = "c_bytes + 2 * split * c_bytes" if "split" in of else "c_bytes"
    return (
        Equation(name="loaded", unit="B", text=f"({shared if 'cluster' in of else f'{from_a} + {from_b}'}) * depth",
                 meaning="what one CTA loads"),
        Equation(name="stored", unit="B", text=stored,
                 meaning="its results" + (", and the parts of the split, written and read" if "split" in of else "")),
        Equation(name="l2_bytes", unit="B", text="ctas * loaded + max(stored, cache_bytes)", meaning="traffic through the L2"),
    )  # fmt: skip


def quantities(query: Request, of: frozenset[str]) -> tuple[Quantities, dict[str, str]]:
    """What the equations name beside kernel, spec and constants; and which spec key or constant stands behind a name."""
    device = query.spec.device
    # Streams and plain products compute in fp32, whatever they store.
    narrow = bool(of & {"product", "dense"}) and "plain" not in of
    precision = arithmetic(query.stack, device, query.precision) if narrow else "fp32"
    pipe = float(device.pipe(precision))
    rates = [key for key, entry in query.spec.entries.items() if key.startswith("rate.") and entry.value == pipe]
    named = [key for key in rates if precision.replace("half", "fp16") in key]
    issue = f"issue.{device.identity.architecture}"
    known = {"warp": (float(WARP), "1"), "register": (float(REGISTER), "B"), "page": (float(PAGE), "B"), "pipe": (pipe, RATE),
             "softmax_issues": (SOFTMAX_ISSUES, "1"), "word": (WORD, "B"), "stages": (STAGES, "1"),
             "issue": (query.calibration[issue], "1")}  # fmt: skip
    return known, {"pipe": (named or rates)[0], "issue": issue}
