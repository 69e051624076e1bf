"""NestedLoop nests: their addresses, their footprints, and the traffic that stack distances find beside an exact simulation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from archsim.cache.access import (
    OFFSET,
    REGION,
    STORE,
    UPDATE,
    Accesses,
    LoopNest,
    NestedLoop,
    Ref,
    addresses,
    chunks,
    refs_of,
    runs_of,
)
from archsim.cache.cpu_products import cpu_nest
from archsim.cache.hierarchy import Hierarchy, hierarchy_of
from archsim.cache.reuse import CacheView, Moved, moved, tail
from archsim.cache.roles import NESTS, KernelShape
from archsim.cache.simulate import Simulation
from archsim.device.catalog import find
from archsim.device.device import Cpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.lower.columns import Role
from tests.each import each

I7 = find("i7_6700k").device
assert isinstance(I7, Cpu)
LEVELS = (I7.l1, I7.l2, I7.l3)


def warm_up(nest: LoopNest, most: int, line: int) -> Iterator[Accesses]:
    """What ops before have left: stores of the end of each warm array, of `most` bytes at most, the last one last."""
    names = {name: i for i, name in enumerate(nest.arrays)}
    for array, size in nest.warm:
        begin = max(0, int(size) - most) // line * line
        address = names[array] * (REGION + OFFSET) + np.arange(begin, int(size), line, dtype=np.int64)
        yield Accesses(address=address, size=line, store=1)


def view(size: float, ways: float = 8, **other: object) -> CacheView:
    return CacheView(**{"size": size, "ways": ways, "line": 64, "sector": 64, **other})  # type: ignore[arg-type]


def views() -> list[CacheView]:
    return [view(float(part.size), float(part.ways)) for part in LEVELS if part is not None]


def exactly(nest: LoopNest, hierarchy: Hierarchy) -> list[Moved]:
    """What a simulation of one core moves, after the ops before."""
    state = Simulation(hierarchy)
    for part in chunks(warm_up(nest, 2 * hierarchy.levels[-1].size, hierarchy.line)):
        state.feed(part)
    before = state.counts
    for part in chunks(addresses(nest)):
        state.feed(part)
    return [Moved(read=now.bytes_read - then.bytes_read, written=now.bytes_written - then.bytes_written)
            for now, then in zip(state.counts, before, strict=True)]  # fmt: skip


def kernels(net: str, most: float, **choices: object) -> list[tuple[str, KernelShape]]:
    """Every different kernel of a network on one core that loads and stores fewer runs than `most`."""
    request = make_request(net, "i7_6700k", threads=1, **choices)  # type: ignore[arg-type]
    result = run(request)
    packed, found = result.lowered.kernels, []
    for plan, op in enumerate(packed.ops):
        option = int(result.cost.option[0, plan])
        first = int(packed.option_start[option])
        for kernel in packed.kernels[first : first + len(packed.options[option].kernels)]:
            shape = KernelShape(op=op, kernel=kernel, element=4, gpu=False)
            nest = cpu_nest(shape, I7, 1)
            if nest.body and runs_of(nest.body) * max(1, max(ref.run for ref in refs_of(nest.body)) // 64) < most:
                found.append((f"{op.name} {op.phase} {kernel.name}", shape))
    return found


def test_addresses_by_hand() -> None:
    inner = NestedLoop(name="j", trips=2, body=(Ref(array="b", run=4, strides=(("i", 100), ("j", 4))),
                                          Ref(array="c", run=8, strides=(("i", 8),), mode=UPDATE)))  # fmt: skip
    nest = LoopNest(body=(NestedLoop(name="i", trips=2, body=(inner, Ref(array="a", run=1, mode=STORE))),))
    (part,) = addresses(nest)
    assert part.size.tolist() == [4, 8, 8, 4, 8, 8, 1] * 2
    assert part.store.tolist() == [0, 0, 1, 0, 0, 1, 1] * 2
    b = part.address[part.size == 4]
    assert (b - b[0]).tolist() == [0, 4, 100, 104]
    assert len({address >> 40 for address in part.address.tolist()}) == 3


def test_long_nests_have_the_same_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = Ref(array="b", run=4, strides=(("i", 64), ("j", 4), ("k", 4096)))
    nest = LoopNest(body=(NestedLoop(name="k", trips=3, body=(NestedLoop(name="i", trips=5, body=(
        NestedLoop(name="j", trips=4, body=(leaf,)), Ref(array="c", run=4, strides=(("i", 4),), mode=STORE))),)),))  # fmt: skip
    whole = np.concatenate([part.address for part in addresses(nest)])
    monkeypatch.setattr("archsim.cache.access.PATTERN", 2)
    assert np.concatenate([part.address for part in addresses(nest)]).tolist() == whole.tolist()


def test_parallel_iterations_are_dealt() -> None:
    nest = LoopNest(body=(NestedLoop(name="i", trips=4, parallel=True, body=(Ref(array="b", run=8, strides=(("i", 8),)),)),))
    assert [int(np.max(part.core)) for part in addresses(nest, cores=3)] == [0, 1, 2, 0]


def test_every_role_has_a_nest() -> None:
    assert set(NESTS) == set(Role)


def test_the_tail_is_that_of_the_curve() -> None:
    from archsim.cache.distance import hit_chance

    for distance in (0, 3, 7, 8, 20, 500):
        for sets, ways in ((1.0, 8), (2.0, 4), (64.0, 8)):
            assert tail(float(distance), sets, ways) == pytest.approx(float(hit_chance(np.array([distance]), sets, ways)[0]))


def test_a_loop_that_fits_is_read_once_and_one_that_does_not_each_time() -> None:
    def reads(size: int) -> float:
        inner = NestedLoop(name="i", trips=size // 64, body=(Ref(array="b", run=64, strides=(("i", 64),)),))
        return moved(LoopNest(body=(NestedLoop(name="again", trips=10, body=(inner,)),)), [view(32768.0)], 1)[0].read

    assert reads(16384) == 16384
    assert reads(65536) == 655360


def test_what_the_op_before_has_left_is_not_read_from_memory() -> None:
    def read(size: int) -> float:
        copy = NestedLoop(name="i", trips=size // 64, body=(Ref(array="b", run=64, strides=(("i", 64),)),))
        return moved(LoopNest(body=(copy,), warm=(("b", float(size)),)), [view(2.0**20, 16)], 1)[0].read

    assert read(2**18) == 0.0
    assert read(2**22) == 2**22


def test_results_of_a_gpu_count_and_those_that_a_cpu_keeps_do_not() -> None:
    write = NestedLoop(name="i", trips=64, body=(Ref(array="c", run=64, strides=(("i", 64),), mode=STORE),))
    nest = LoopNest(body=(write,), warm=(("c", 4096.0),))
    assert moved(nest, [view(2.0**20)], 1)[0] == Moved(read=0.0, written=0.0)
    assert moved(nest, [view(2.0**20, settled=False, fetch=False)], 1)[0] == Moved(read=0.0, written=4096.0)
    through = moved(nest, [view(2.0**20, allocate=False, fetch=False)], 1)[0]
    assert through == Moved(read=0.0, written=4096.0)


def test_workers_share_the_last_level_and_what_all_of_them_read() -> None:
    private = Ref(array="b", run=64, strides=(("core", 1 << 20), ("i", 64)))
    common = Ref(array="a", run=64, strides=(("i", 64),))
    again = NestedLoop(name="again", trips=4, body=(NestedLoop(name="i", trips=256, body=(private, common)),))
    nest = LoopNest(body=(NestedLoop(name="core", trips=4, parallel=True, body=(again,)),))
    own, last = moved(nest, [view(65536.0), view(2.0**20, 16, sharers=4)], 4)
    assert own.read == 8 * 16384
    assert last.read == 5 * 16384
    assert moved(nest, [view(65536.0, sharers=4)], 4)[0].read > 5 * 16384  # five arrays of 16 KiB do not fit


@each(("net", "stack", "task"), [("lenet5", "caffe-openblas", "training_step"), ("alexnet", "intel-mkl", "inference")])
def test_stack_distances_are_near_the_simulation(net: str, stack: str, task: str) -> None:
    """Every kernel of two networks at each level: within a third, or half of what ops hand to each other."""
    hierarchy = hierarchy_of(I7, 1)
    for name, shape in kernels(net, 2e5, stack=stack, task=task):
        nest = cpu_nest(shape, I7, 1)
        handed = shape.kernel.b_bytes + shape.kernel.c_bytes
        for level, (seen, found) in enumerate(zip(exactly(nest, hierarchy), moved(nest, views(), 1), strict=True)):
            assert found.read == pytest.approx(seen.read, rel=0.35, abs=0.5 * handed + 40000), f"{name}: L{level + 1}"
