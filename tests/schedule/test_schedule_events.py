"""The processor-sharing server: closed forms, conservation, order of slots, and what observers are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from archsim.schedule.events import Phase, SharedServer
from archsim.schedule.observer import Recording

TIMES = st.floats(0.001, 10).map(lambda value: round(value, 4))


def ends_of(jobs: list[tuple[float, list[Phase]]], capacity: dict[str, float]) -> tuple[list[float], SharedServer]:
    """When jobs that start at given times end, and the server that ran them."""
    env = Environment()
    server = SharedServer(env, capacity)
    ends = [0.0] * len(jobs)

    def one(i: int, start: float, phases: list[Phase]):
        yield env.timeout(start)
        yield server.run(phases).done
        ends[i] = env.now

    for i, (start, phases) in enumerate(jobs):
        env.process(one(i, start, phases))
    env.run()
    return ends, server


def copy(size: float, *links: str) -> list[Phase]:
    return [Phase(size, tuple((link, 1.0) for link in links), cap=float("inf"))]


def test_equal_flows_that_start_together_end_together() -> None:
    ends, _ = ends_of([(0.0, copy(6.0, "link"))] * 3, {"link": 2.0})
    assert ends == pytest.approx([9.0] * 3)


def test_processor_sharing_of_staggered_flows() -> None:
    """Two flows of 4 over a link of 1: alone until 2, half each until both... the first has 2 left, which take 4 at half rate."""
    ends, _ = ends_of([(0.0, copy(4.0, "link")), (2.0, copy(4.0, "link"))], {"link": 1.0})
    assert ends == pytest.approx([6.0, 8.0])


def test_a_job_alone_takes_the_sum_of_its_phases() -> None:
    phases = [Phase(1.0), Phase(2.0, (("a", 0.5),)), Phase(4.0, (("a", 2.0),))]
    ends, server = ends_of([(1.0, phases)], {"a": 1.0})
    assert ends == pytest.approx([1 + 1 + 2 + 8])
    assert server.used == pytest.approx({"a": 1.0 + 8.0})


def test_slots_go_to_whoever_came_first() -> None:
    """Full waves hold all slots, so the second kernel waits; beside the tail, which holds a quarter, it has three quarters."""
    first = [Phase(2.0, slots=1.0), Phase(1.0, slots=0.25)]
    ends, _ = ends_of([(0.0, first), (0.5, [Phase(1.5, slots=1.0)])], {})
    assert ends == pytest.approx([3.0, 2.0 + 1.0 + 0.75])


def test_kernels_that_bound_on_different_things_overlap_and_those_on_the_same_do_not() -> None:
    memory, pipes = [Phase(1.0, (("DRAM", 1.0),))], [Phase(1.0, (("pipes", 1.0),))]
    apart, _ = ends_of([(0.0, memory), (0.0, pipes)], {"DRAM": 1.0, "pipes": 1.0})
    same, _ = ends_of([(0.0, memory), (0.0, memory)], {"DRAM": 1.0, "pipes": 1.0})
    assert apart == pytest.approx([1.0, 1.0])
    assert same == pytest.approx([2.0, 2.0])


@st.composite
def loads(draw: st.DrawFn) -> list[tuple[float, list[Phase]]]:
    def phase() -> Phase:
        names = draw(st.lists(st.sampled_from(("a", "b")), unique=True))
        return Phase(draw(TIMES), tuple((name, draw(st.floats(0.1, 1.0))) for name in names), slots=draw(st.floats(0, 1)))

    return [(draw(TIMES), [phase() for _ in range(draw(st.integers(1, 4)))]) for _ in range(draw(st.integers(1, 5)))]


@given(loads())
def test_work_is_conserved_and_nothing_is_faster_than_any_bound(jobs: list[tuple[float, list[Phase]]]) -> None:
    capacity = {"a": 1.0, "b": 1.0}
    ends, server = ends_of(jobs, capacity)
    for name in capacity:
        asked = sum(p.work * weight for _, phases in jobs for p in phases for resource, weight in p.demand if resource == name)
        assert server.used.get(name, 0.0) == pytest.approx(asked, rel=1e-9, abs=1e-12)
        assert max(ends) * (1 + 1e-9) >= min(start for start, _ in jobs) + asked / capacity[name]
    for end, (start, phases) in zip(ends, jobs, strict=True):
        assert end * (1 + 1e-9) >= start + sum(phase.work for phase in phases)
    busy = sum(phase.work * phase.slots for _, phases in jobs for phase in phases)
    assert max(ends) * (1 + 1e-9) >= min(start for start, _ in jobs) + busy


@given(loads())
def test_without_limits_every_job_takes_its_own_time(jobs: list[tuple[float, list[Phase]]]) -> None:
    free = [(start, [replace(phase, slots=0.0) for phase in phases]) for start, phases in jobs]
    ends, _ = ends_of(free, {})
    assert ends == pytest.approx([start + sum(phase.work for phase in phases) for start, phases in free], rel=1e-9)


@given(loads())
def test_the_same_jobs_end_at_the_same_times(jobs: list[tuple[float, list[Phase]]]) -> None:
    assert ends_of(jobs, {"a": 1.0, "b": 1.0})[0] == ends_of(jobs, {"a": 1.0, "b": 1.0})[0]


def test_observers_hear_of_loads_and_change_nothing() -> None:
    env, seen = Environment(), Recording()
    server = SharedServer(env, {"a": 1.0}, [seen], {"a": ("load of a [%]", 100.0)})
    server.run([Phase(1.0, (("a", 0.25),)), Phase(1.0, (("a", 0.5),))])
    env.run()
    assert env.now == 2.0
    assert seen.levels == [("load of a [%]", 0.0, 25.0), ("load of a [%]", 1.0, 50.0), ("load of a [%]", 2.0, 0.0)]


def test_a_job_that_starts_before_an_end_that_was_foreseen_changes_it() -> None:
    """The first would end at 8; from 1.5 on, within its second phase, both have half of it, until that phase ends at 2.5."""
    first = [Phase(1.0), Phase(1.0, (("a", 1.0),)), Phase(4.0), Phase(2.0, (("a", 1.0),))]
    ends, server = ends_of([(0.0, first), (1.5, [Phase(1.0, (("a", 1.0),))])], {"a": 1.0})
    assert ends == pytest.approx([1 + 1.5 + 4 + 2, 1.5 + 0.5 + 0.5 + 0.5])
    assert server.used == pytest.approx({"a": 4.0})


def test_ends_of_phases_lie_where_the_levels_change_and_starts_by_others_move_them() -> None:
    env, seen = Environment(), Recording()
    server = SharedServer(env, {"a": 1.0}, [seen], {"a": ("load of a [%]", 100.0)})
    first = server.run([Phase(1.0), Phase(2.0, (("a", 1.0),))])

    def later():
        yield env.timeout(2.0)
        yield server.run([Phase(0.5, (("a", 1.0),))]).done

    env.process(later())
    env.run()
    assert first.ends == pytest.approx([1.0, 3.5])
    assert [(time, level) for _, time, level in seen.levels] == [(0, 0), (1, 100), (2, 100), (3, 100), (3.5, 0)]
