"""Every counter of every level of the 34 reference streams, by both rules for writes that hit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archsim.cache.access import Accesses
from archsim.cache.compile import available
from archsim.cache.hierarchy import Hierarchy, Level
from archsim.cache.simulate import LevelCount, simulate

REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text("utf-8"))
TRACES = {trace["name"]: trace for trace in REFERENCE["traces"]}
# Without numba a million accesses take seconds: the quick tier has the short streams, the slow one three of the others,
# and of the rest their beginning is compared with what the compiled speed counts, which is checked to the end.
PLAIN = [name for name in TRACES if TRACES[name]["accesses"] < 50_000]
WHOLE = ["random_128KiB_n500000_st30", "chase_2048KiB_n500000", "triad_n500000"]
BEGUN = 100_000
LONG = 2_000_000  # accesses; with numba the longer streams belong to the slow tier


def hierarchy(touching: bool) -> Hierarchy:
    return Hierarchy(levels=tuple(
        Level(name=level["name"], size=level["bytes"], ways=level["ways"], writes_touch=touching)
        for level in REFERENCE["about"]["levels"]
    ))  # fmt: skip


def as_pycachesim(count: LevelCount) -> list[int]:
    """load, hit, miss, store, evict: a store that misses is a load that misses besides."""
    return [count.read_hits + count.read_misses + count.write_misses, count.read_hits, count.misses,
            count.write_hits + count.write_misses, count.dirty_evictions]  # fmt: skip


def table(accesses: Accesses, touching: bool, fast: bool) -> dict[str, list[int]]:
    counts = simulate(hierarchy(touching), [accesses], fast).counts
    read, written = counts[-1].bytes_read // 64, counts[-1].bytes_written // 64
    return {**{count.name: as_pycachesim(count) for count in counts}, "MEM": [read, read, 0, written, 0]}


def check(trace: dict[str, Any], stream: Any, fast: bool) -> None:
    accesses = stream(trace["trace"])
    assert len(accesses) == trace["accesses"]
    assert accesses.address.sum() == trace["addr_sum"]
    assert accesses.address[:8].tolist() == trace["addr_first8"]
    assert table(accesses, False, fast) == trace["expected"]
    assert table(accesses, True, fast) == trace.get("touching", trace["expected"])


@pytest.mark.skipif(not available(), reason="numba (extra fast) is not installed")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (trace["accesses"] > LONG)) for name, trace in TRACES.items()]
)
def test_every_counter_compiled(name: str, stream: Any) -> None:
    check(TRACES[name], stream, fast=True)


@pytest.mark.parametrize("name", PLAIN)
def test_every_counter_plain(name: str, stream: Any) -> None:
    check(TRACES[name], stream, fast=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_every_counter_plain_of_long_streams(name: str, stream: Any) -> None:
    check(TRACES[name], stream, fast=False)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="numba (extra fast) is not installed")
@pytest.mark.parametrize("name", [name for name in TRACES if name not in PLAIN])
def test_both_speeds_count_alike_where_long_streams_begin(name: str, stream: Any) -> None:
    accesses = stream(TRACES[name]["trace"]).part(0, BEGUN)
    for touching in (False, True):
        assert table(accesses, touching, fast=False) == table(accesses, touching, fast=True)


def test_the_two_rules_differ_where_the_reference_says_so(stream: Any) -> None:
    differing = [name for name, trace in TRACES.items() if trace.get("touching", trace["expected"]) != trace["expected"]]
    assert differing
    accesses = stream(TRACES[differing[0]]["trace"]).part(0, 20_000)
    assert table(accesses, True, False) != table(accesses, False, False)


def test_there_are_34() -> None:
    assert len(TRACES) == 34
