"""What relieves a kernel: the resource that it hangs on, and no other."""

from dataclasses import replace

import pytest

from archsim.cycle.stalls import BETTER, EASINGS, better, improvements
from archsim.device.spec import keys
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.explain.simulated import simulate_layer
from tests.each import each
from tests.shipped import gpu


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
    result = run(request)
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
