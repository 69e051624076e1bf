"""Every key of a GPU's microarchitecture moves a result of the cycle fidelity, in the direction that physics says."""

from importlib.util import find_spec

import pytest

from archsim.device.catalog import find
from archsim.device.spec import keys, read_by
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request, with_spec
from archsim.simulate.sm import simulate_sm

WORDS = ("sm.mma_issue", "sm.copies")
PAGES = {level: {f"{level}.tlb_page": "4 kB", f"{level}.tlb_miss": "4000 clk"} for level in ("l1", "l2")}
# Keys that hang on how much a kernel covers: a network, what else is set, a smaller and a larger value, and its sign as above.
NETWORKS = {
    "l1.size": ("alexnet", "gtx_1080", 1, "fp32", {}, ("4 kB", "48 kB"), -1),
    "l1.line": ("alexnet", "gtx_1080", 1, "fp32", {}, ("32 B", "128 B"), -1),
    "l2.ways": ("gpt2_small", "a100_sxm4_40gb", 1, "fp16", {}, ("1", "16"), -1),
    "l2.far": ("alexnet", "a100_sxm4_40gb", 64, "fp16", {}, ("250 clk", "1600 clk"), 1),
    **{f"{level}.tlb_{key}": ("alexnet", "a100_sxm4_40gb", 16, "fp32", {**PAGES[level], f"{level}.tlb_reach": "64 kB"}, values,
                              sign) for level in ("l1", "l2") for key, values, sign in (
           ("reach", ("64 kB", "64 GiB"), -1), ("miss", ("10 clk", "4000 clk"), 1), ("page", ("4 kB", "2 MiB"), -1))},
}  # fmt: skip
CYCLE = {key: unit for key, unit, _ in keys("gpu") if unit.cycle}
KERNELS = ("gemm 64x64x8 threads=64 l2=0.9", "stream read=2 write=1 bytes=4 special=2 threads=64", "gemm 128x128x8 threads=256",
           "stream read=1 write=0 bytes=16 loads=4 l2=1")  # fmt: skip


WARM = "0.1 clk"  # code that is there at once: the start of a short kernel hides what else differs
OWN = {  # a kernel that hangs on little else
    "sm.special_latency": "stream read=1 write=0 special=40 threads=32 registers=255 l2=1",
    "l1.latency": "stream read=1 write=0 threads=32 registers=255 l1=1",
    "sm.barrier_latency": "gemm 128x128x8 threads=256 registers=255 l2=1",
    "sm.tensor_latency": "gemm 16x16x16 threads=32 registers=255 bytes=2 stages=3 l2=1",
    **dict.fromkeys(("sm.mma_m", "sm.mma_n", "sm.mma_depth"), "gemm 128x128x64 threads=128 bytes=2 stages=3 l2=1"),
    "sm.copy_latency": "gemm 64x64x16 threads=128 registers=255 bytes=2 stages=2 l2=1",
    "sm.shared_bandwidth": "gemm 64x64x8 threads=256 l2=1",
    "l1.bandwidth": "stream read=4 write=0 bytes=16 loads=4 l1=1",
    "l2.line": "gemm 128x128x64 threads=384 registers=168 bytes=2 stages=4 l2=0.9",
    **dict.fromkeys(("sm.cta_interval", "sm.warp_interval", "launch.rate"), "stream read=0 write=1 threads=64"),
    "l1.miss_buffers": "stream read=4 write=0 bytes=16 loads=4 l2=1",
    **dict.fromkeys(("sm.memory_interval", "sm.memory_lanes"), "stream read=8 write=0 bytes=4 loads=4 l1=1"),
    "l1.write_bandwidth": "stream read=0 write=1 bytes=16 loads=4",
}  # fmt: skip
TENSOR = ("l2.line", "sm.tensor_latency", "sm.mma_m", "sm.mma_n", "sm.mma_depth", "sm.copy_latency")
COPIES_IN_BULK = "h100_sxm5_80gb"
BULK = ("sm.copy_latency", "l2.line")


def times(hw: str, key: str, settings: dict[str, str]) -> list[float]:
    known = {} if key == "sm.fetch_interval" else {"sm.fetch_interval": WARM}
    spec, precision = find(hw).with_settings({**known, **settings}), "fp16" if key in TENSOR else "fp32"
    kernels = [OWN[key]] if key in OWN else list(KERNELS)
    return [simulate_sm(spec, kernel, clock=1.4e9, depth=64, precision=precision).time_s for kernel in kernels]


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("key", [key for key in CYCLE if key not in NETWORKS and key not in WORDS])
def test_it_moves_a_result_in_the_right_direction(key: str) -> None:
    hw = COPIES_IN_BULK if key in BULK else "a100_sxm4_40gb"
    value = float(find(hw).entries[key].number) if key in find(hw).entries else 1.0
    changed = []
    for factor in (0.25, {"sm.cta_interval": 512.0, "l2.line": 32.0}.get(key, 4.0)):
        new = {"sm.register_reuse": 0.0, "sm.schedulers": 2.0 if factor < 1 else 8.0,
               "sm.mma_depth": 16.0 if factor < 1 else 64.0,
               "l1.miss_buffers": 8.0 if factor < 1 else 1024.0}.get(key, value * factor)  # no more than a few dozen fill the L2
        new = min(new, 1.0) if key == "l2.achievable" else new
        new = max(1.0, round(new)) if CYCLE[key].whole else new
        text = f"{new:g}" if CYCLE[key].unit == "1" else f"{new:g} {CYCLE[key].unit}"
        base, other = times(hw, key, {}), times(hw, key, {key: text})
        changed += [(after / before - 1.0) * (1 if new > value else -1) for before, after in zip(base, other, strict=True)]
    assert any(abs(change) > 1e-4 for change in changed), f"{key} moves nothing"
    assert sum(changed) * CYCLE[key].better < 0 or not CYCLE[key].better, f"{key}: {changed}"


def test_a_larger_latency_of_the_pipes_makes_a_network_slower() -> None:
    request = make_request("alexnet", "gtx_1080", fidelity="cycle", batch=4)
    fast, slow = (with_spec(request, request.spec.with_settings({"sm.fetch_interval": WARM, "sm.alu_latency": latency}))
                  for latency in ("6 clk", "24 clk"))  # fmt: skip
    assert float(run(slow).latency_s[0]) > float(run(fast).latency_s[0])


def test_code_that_comes_slowly_makes_a_network_slower() -> None:
    request = make_request("alexnet", "gtx_1080", fidelity="cycle", batch=4)
    warm = with_spec(request, request.spec.with_settings({"sm.fetch_interval": WARM}))
    assert float(run(request).latency_s[0]) > float(run(warm).latency_s[0])


@pytest.mark.parametrize("key", NETWORKS)
def test_it_moves_a_network_in_the_right_direction(key: str) -> None:
    net, hw, batch, precision, settings, values, sign = NETWORKS[key]
    request = make_request(net, hw, fidelity="cycle", batch=batch, precision=precision)
    less, more = (float(run(with_spec(request, request.spec.with_settings({**settings, key: value}))).latency_s[0])
                  for value in values)  # fmt: skip
    assert (more - less) * sign > 0


def test_only_names_dates_prices_and_origins_move_nothing() -> None:
    """What no command reads, and what only `archsim cache` does."""
    nothing = {key for key, unit, _ in keys("gpu") if not read_by(unit)}
    assert nothing == {
        "clock.base", "memory.channels", "power.boundary", "chip.area", "chip.transistors",
        "link.type", "market.price", "market.launch",
    }  # fmt: skip
    cache = {key for key, unit, _ in keys("gpu") if read_by(unit) == "archsim cache"}
    assert cache == {"l1.sector", "l1.ways", "l2.sector"}
