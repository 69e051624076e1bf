"""Which instruction stalls, its place and what it waits for; and what relieves a kernel: what it hangs on, and nothing else."""

from dataclasses import replace

import pytest

from archsim.cycle import layout
from archsim.cycle.kernels import Grid, kernel_clocks, kernel_run
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import element_wise
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import FP32, INT, Assembler, Program, Source
from archsim.cycle.run import prepared, room, run
from archsim.cycle.stalls import BETTER, EASINGS, awaited, better, executed, improvements, pipe_use, place, shares, stalled
from archsim.device.catalog import find
from archsim.device.spec import keys
from archsim.estimation import pipeline
from archsim.estimation.request import make_request
from archsim.explain.simulated import simulate_layer
from archsim.simulate.sm import simulate_sm
from tests import shipped
from tests.each import each
from tests.shipped import gpu

TILE = TiledProduct(m=64, n=64, k=8, threads=64, registers=120, shared=8192, depth=512)


def machine(hw: str = "gtx_1080", **changed: object) -> Machine:
    device = shipped.gpu(hw)
    return replace(machine_of(device, 1.6e9), **changed)


def looped(roles: tuple[tuple[int, int], ...] = ()) -> Program:
    """Two instructions, a loop of three, one, a loop of two, an end."""
    a = Assembler(warp=32)
    value, other = a.register(), a.register()
    a.load(value, other, 4)
    a.arithmetic("IADD3", other, (other,), pipe=INT)
    a.arithmetic("FFMA", value, (value,), pipe=FP32)
    a.load_shared(value, other, 4, 1.0)
    a.back(2)
    a.barrier()
    a.arithmetic("FADD", value, (value,), pipe=FP32)
    a.back(6)
    a.end()
    return a.program(threads=64, registers=16, trips=4, streams=(Source(),), roles=roles)


PLACES = {0: "instruction 1, before the loop", 2: "instruction 1 of 3 of loop 1", 4: "instruction 3 of 3 of loop 1",
          5: "instruction 1, after loop 1", 7: "instruction 2 of 2 of loop 2", 8: "instruction 1, after loop 2"}  # fmt: skip


@each("at", PLACES)
def test_the_place_of_an_instruction(at: int) -> None:
    assert place(looped(), at) == PLACES[at]


def test_the_place_names_the_warps_where_not_all_do_the_same() -> None:
    program = looped(roles=((0, 0), (1, 5)))
    assert place(program, 3) == "instruction 2 of 3 of the loop of warp 0"
    assert place(program, 6) == "instruction 1 of 2 of the loop of the warps from 1 on"


AWAITED = {(2, "short scoreboard"): "LDS.32", (2, "long scoreboard"): "LDG.32", (6, "barrier"): "BAR.SYNC",
           (6, "short scoreboard"): "LDS.32", (2, "math pipe throttle"): "", (1, "wait"): ""}  # fmt: skip


@each("case", AWAITED)
def test_what_an_instruction_waits_for(case: tuple[int, str]) -> None:
    """The first instruction of a loop may wait for the last one of the trip before."""
    assert awaited(looped(), *case) == AWAITED[case]


@pytest.mark.parametrize(("hw", "kernel", "first"), [
    ("gtx_1080", "stream read=1 write=1 bytes=16", "FFMA after LDG.128"),
    ("a100_sxm4_40gb", "gemm 128x128x32 threads=256 bytes=2 stages=2", "DEPBAR after LDGSTS.128"),
    ("h100_sxm5_80gb", "gemm 128x128x64 threads=384 registers=168 bytes=2 stages=4", "SYNCS.TRYWAIT after UTMALDG"),
])  # fmt: skip
def test_the_kernels_of_each_generation_wait_for_their_loads(hw: str, kernel: str, first: str) -> None:
    found = simulate_sm(find(hw), kernel, clock=1.6e9, depth=256, waves=1, precision="fp32" if hw == "gtx_1080" else "fp16")
    names = [i.words for i in found.stalled]
    assert any(name.startswith(first) for name in names), names
    assert 0 < sum(i.share for i in found.stalled) <= 1


def test_counted_instructions_are_those_that_issued() -> None:
    on = prepared(machine("h100_sxm5_80gb"), looped(roles=((0, 0), (1, 5))))
    result = run(on, 3, fast=False)
    counts = [count for count, _ in executed(on, result)]
    assert counts == [3, 3, 12, 12, 12, 6, 24, 24, 6]
    assert sum(counts) == result.issued
    assert all(0 <= use <= 1 for use in pipe_use(on, result).values())


def test_what_limits_the_ctas_of_an_sm_is_a_key() -> None:
    found = room(machine(), on_lanes(machine(), TILE))
    assert min(found, key=lambda key: found[key]) == "sm.registers"


@pytest.mark.parametrize("ctas", [20, 500, 3000])
def test_the_counts_of_a_launch_go_with_its_clocks(ctas: int) -> None:
    """One wave, a wave with a tail, and many waves, of which a few trips of the loop are simulated."""
    on, grid = prepared(machine(), on_lanes(machine(), replace(TILE, depth=256))), Grid(ctas=ctas, sms=20)
    found = kernel_run(on, grid, {})
    assert found.clocks == pytest.approx(kernel_clocks(on, grid, {}), rel=1e-12)
    assert found.ctas == grid.busiest
    whole = run(on, on.held)
    assert found.issued == pytest.approx(whole.issued / whole.ctas * grid.busiest, rel=1e-6)
    assert min(found.stalls.values()) >= 0
    assert sum(shares(found).values()) == pytest.approx(1.0)


def test_no_wait_is_no_instruction() -> None:
    on = prepared(machine(), element_wise(machine()))
    nothing = replace(run(on, 1), waiting=tuple([(1.0, *[0.0] * (layout.REASONS - 1))] * len(on.program.instructions)))
    assert stalled(on.program, nothing) == ()


# -------------------------------------------------------------------------------------------------------- what relieves it


@each("key", lambda: [key for _, names, _ in EASINGS for key in names])
def test_what_may_be_better_is_a_key_of_the_spec(key: str) -> None:
    assert key in {name for name, _, _ in keys("gpu")}


def test_better_is_less_of_a_latency_and_more_of_all_else() -> None:
    base = gpu("tesla_v100_sxm2")
    found = better(base, ("l2.latency", "memory.bandwidth", "sm.cta_start"))
    assert found.l2.latency == base.l2.latency / BETTER
    assert found.memory.bandwidth == base.memory.bandwidth * BETTER
    assert (found.sm.cta_start, base.sm.cta_start) == (base.sm.cta_start / BETTER, gpu("tesla_v100_sxm2").sm.cta_start)
    assert replace(found, l2=base.l2, memory=base.memory, sm=base.sm) == base


def test_a_wider_issue_needs_something_to_issue_beside() -> None:
    base = gpu("tesla_v100_sxm2")
    assert (base.sm.pairing, better(base, ("sm.issue_width",)).sm.pairing) == ("none", "memory")


@pytest.mark.parametrize(("layer", "first"), [("relu1", "memory bandwidth"), ("fc6", "memory bandwidth")])
def test_kernels_that_stream_want_bandwidth(layer: str, first: str) -> None:
    kernel = simulate_layer(make_request("alexnet", "gtx_1080", fidelity="cycle"), layer).kernels[0]
    assert kernel.sm is not None
    best, *rest = kernel.sm.improvements
    assert best.what == first
    assert best.saved > 0.2
    assert all(one.saved < best.saved for one in rest)
    assert "shared-memory bandwidth" not in {one.what for one in kernel.sm.improvements}  # it has none in its program


def test_the_saving_is_that_of_the_changed_spec() -> None:
    request = make_request("alexnet", "gtx_1080", fidelity="cycle")
    kernel = simulate_layer(request, "relu1").kernels[0]
    assert kernel.sm is not None
    faster = make_request("alexnet", "gtx_1080", fidelity="cycle", scales={"memory.bandwidth": BETTER})
    other = simulate_layer(faster, "relu1").kernels[0]
    assert other.sm is not None
    relief = next(one for one in kernel.sm.improvements if one.keys == ("memory.bandwidth",))
    assert relief.time_s == pytest.approx(other.sm.busy_s, rel=1e-12)


def test_reliefs_of_one_variant_are_those_of_its_column() -> None:
    """A column alone is the same kernel as in the table of all of them."""
    request = make_request("alexnet", "gtx_1080", fidelity="cycle")
    result = pipeline.run(request)
    choice, cost = result.cost.choice, result.cost.variants
    assert choice is not None
    assert cost is not None
    at = next(i for i, kernel in enumerate(result.lowered.kernels.kernels) if kernel.name == "lrn")
    found = improvements(cost.terms, int(choice.variant[0, at]), {})
    explained = simulate_layer(request, "norm1").kernels[0]
    assert explained.sm is not None
    assert found == explained.sm.improvements


def test_every_number_of_the_machine_may_be_better_or_says_why_not() -> None:
    """Sizes of caches, lines, pages and instructions, and words, are other kernels or other programs."""
    tried = {key for _, names, _ in EASINGS for key in names}
    cycle = {name for name, unit, _ in keys("gpu") if unit.cycle}
    assert cycle - tried == {
        "sm.register_reuse", "sm.mma_m", "sm.mma_n", "sm.mma_depth", "sm.mma_issue", "sm.copies", "l1.size",
        "l1.line", "l2.line", "l2.ways", "l2.far", "l2.achievable", "l1.tlb_reach", "l1.tlb_page", "l2.tlb_reach", "l2.tlb_page",
    }  # fmt: skip
