"""Laws of simulated traffic: what no cache can do, and what a bigger one never does.

The laws hold for the stack distances of loop nests at any sizes. Of addresses that are simulated, they hold for more ways at as
many sets: with more sets other lines meet in a set, and a stream may lose lines that it kept before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.cache.access import LOAD, STORE, UPDATE, LoopNest, NestedLoop, Ref
from archsim.cache.cpu_products import cpu_nest
from archsim.cache.hierarchy import hierarchy_of
from archsim.cache.launch import Tiling, of_cpu, of_gpu, whole
from archsim.cache.layers import launch_traffic, product_of
from archsim.cache.reuse import CacheView, moved
from archsim.cache.roles import KernelShape
from archsim.device.device import Gpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from tests import shipped

ROUNDING = 1 + 1e-9
NETWORKS = ("alexnet", "mobilenet_v2", "lstm_ptb", "resnet_18")


@st.composite
def nests(draw: st.DrawFn) -> LoopNest:
    """Two or three loops around a few references, each of which a loop may leave where it is."""
    names = [f"l{i}" for i in range(draw(st.integers(1, 3)))]
    refs = tuple([
        Ref(array=draw(st.sampled_from("abc")), run=draw(st.integers(1, 512)), mode=draw(st.sampled_from((LOAD, STORE, UPDATE))),
            strides=tuple([(name, draw(st.sampled_from((0, 4, 64, 100, 512, 4096)))) for name in names]))
        for _ in range(draw(st.integers(1, 3)))
    ])  # fmt: skip
    body: tuple[NestedLoop | Ref, ...] = refs
    for i, name in enumerate(names):
        body = (NestedLoop(name=name, trips=draw(st.integers(1, 200)), body=body, parallel=i == len(names) - 1),)
    return LoopNest(body=body, warm=(("b", float(draw(st.integers(1, 10**6)))),))


@given(nests(), st.floats(1024, 1e6), st.floats(1, 20), st.integers(1, 16), st.booleans(), st.integers(1, 8))
def test_a_bigger_cache_of_as_many_ways_never_moves_more(
    nest: LoopNest, size: float, factor: float, ways: int, hashed: bool, workers: int
) -> None:
    def total(size: float, ways: int) -> float:
        view = CacheView(size=size, ways=ways, line=64, sector=32, hashed=hashed, sharers=workers)
        return moved(nest, [view], workers)[0].total

    assert total(size * factor, ways) <= total(size, ways) * ROUNDING
    assert total(size * 2, ways * 2) <= total(size, ways) * ROUNDING  # more ways at as many sets


@given(nests(), st.lists(st.floats(1024, 1e6), min_size=2, max_size=3), st.booleans())
def test_a_level_never_asks_for_more_than_it_is_asked(nest: LoopNest, sizes: list[float], hashed: bool) -> None:
    found = moved(nest, [CacheView(size=size, ways=8, line=64, sector=64, hashed=hashed) for size in sizes], 1)
    for above, below in pairwise(found):
        assert below.read <= above.read
        assert below.written <= above.written


def shapes(net: str, hw: str, **choices: object) -> list[tuple[KernelShape, Tiling, float]]:
    """Every kernel that runs, with its tile and the cores at work."""
    request = make_request(net, hw, **choices)  # type: ignore[arg-type]
    result = run(request)
    kernels, cost, gpu = result.lowered.kernels, result.cost, isinstance(request.spec.device, Gpu)
    assert cost.choice is not None
    assert cost.variants is not None
    found = []
    for column in cost.choice.ran[0].tolist():
        shape = KernelShape(op=kernels.ops[int(kernels.nest.plan_of[column])], element=4, gpu=gpu,
                            kernel=kernels.kernels[int(kernels.kernel_of[column])])  # fmt: skip
        tile = Tiling()
        if gpu:
            resident = cost.variants.terms.resident
            tile = Tiling(m=int(kernels.tile_m[column]), n=int(kernels.tile_n[column]), split=int(kernels.split[column]),
                          resident=int(resident.ravel()[column % resident.size]))  # fmt: skip
        workers = 1.0 if gpu else float(cost.variants.terms.workers.ravel()[column % cost.variants.terms.workers.size])
        found.append((shape, tile, workers))
    return found


@pytest.mark.parametrize("net", NETWORKS)
@pytest.mark.parametrize("task", ["inference", "training_step"])
def test_memory_moves_at_least_what_no_cache_can_have_and_at_most_what_all_accesses_are(net: str, task: str) -> None:
    """On a CPU. Parameters come from memory, activations at most as often as the first level asks for them."""
    device = shipped.cpu("i7_6700k")
    for shape, _, workers in shapes(net, "i7_6700k", task=task):
        seen, kernel = of_cpu(shape, device, workers), shape.kernel
        where = f"{shape.op.name} {shape.op.phase} {kernel.name}"
        packed = 0 if kernel.cpu is None else 4 * (kernel.cpu.packed > 0) * kernel.cpu.packed
        assert seen.dram_read >= 0.98 * kernel.a_bytes - 8192, where
        assert seen.dram <= (seen.shared + 1.0) * ROUNDING, where
        assert seen.shared <= (seen.core + 1.0) * ROUNDING, where
        least = kernel.a_bytes + 0.98 * (kernel.b_bytes if kernel.b_bytes > 4 * device.l3.size else 0.0)  # type: ignore[union-attr]
        assert seen.dram_read >= least - 8192 - packed, where


@pytest.mark.parametrize("net", NETWORKS)
def test_a_bigger_level_of_a_cpu_moves_no_more_for_the_same_loops(net: str) -> None:
    """The blocks of a library follow the caches; with those of the smaller cache a bigger one never moves more."""
    device = shipped.cpu("i7_6700k")
    parts = [part for part in (device.l1, device.l2, device.l3) if part is not None]
    views = [CacheView(size=float(part.size), ways=float(part.ways), line=64, sector=64, sharers=float(part.shared_by))
             for part in parts]  # fmt: skip
    for shape, _, workers in shapes(net, "i7_6700k"):
        nest = cpu_nest(shape, device, workers)
        if not nest.body:
            continue
        for level in range(3):
            grown = [replace(view, size=view.size * (2 if i == level else 1)) for i, view in enumerate(views)]
            before, after = moved(nest, views, workers), moved(nest, grown, workers)
            assert all(a.total <= b.total * ROUNDING for a, b in zip(after, before, strict=True)), shape.op.name


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["conv2", "conv3", "conv5", "fc6"]), st.sampled_from([2, 4]))
def test_more_ways_of_an_l2_at_as_many_sets_never_move_more_of_simulated_products(layer: str, factor: int) -> None:
    device = shipped.gpu("gtx_1080")
    own = [(shape, tile) for shape, tile, _ in shapes("alexnet", "gtx_1080", batch=2)
           if shape.op.name == layer and shape.kernel.menu]  # fmt: skip
    for shape, tile in own:
        product = product_of(shape.op, shape.kernel, (tile.m, tile.n), 4, tile.split)
        ways = float(device.l2.ways or 16)
        seen = [
            launch_traffic(product, tile.resident * 20, hierarchy_of(whole(one), 20), shape.kernel.b_bytes, most_waves=2)
            for one in (device, replace(device, l2=replace(device.l2, size=device.l2.size * factor, ways=ways * factor)))
        ]
        assert seen[1].dram_read <= seen[0].dram_read
        assert seen[1].l2_bytes == seen[0].l2_bytes


@pytest.mark.parametrize("task", ["inference", "training_step"])
def test_a_gpu_moves_its_parameters_and_results_at_least_once(task: str) -> None:
    device = shipped.gpu("gtx_1080")
    for shape, tile, _ in shapes("lenet5", "gtx_1080", task=task):
        seen = of_gpu(shape, device, tile, {})
        where = f"{shape.op.name} {shape.op.phase} {shape.kernel.name}"
        assert seen.shared * ROUNDING + 4096 >= seen.dram_read, where
        least = shape.kernel.c_bytes * (0.5 if shape.kernel.role.value == "scatter" else 1.0)
        assert seen.dram_written >= 0.97 * least - 4096, where
