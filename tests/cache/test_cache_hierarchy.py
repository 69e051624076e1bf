"""Geometries: what is supported, what is refused and how; the hierarchy of every shipped device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.base.errors import InputError, Unsupported
from archsim.cache.access import Accesses
from archsim.cache.hierarchy import Hierarchy, Level, hierarchy_of
from archsim.cache.simulate import Simulation, simulate
from archsim.device import catalog

from ..each import each

L1 = {"name": "L1", "size": 32768, "ways": 8}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "zero ways": ({"ways": 0}, "ways is 0, must be at least 1"),
    "a size of nothing": ({"size": 0}, "size is 0"),
    "a negative line": ({"line": -64}, "line is -64"),
    "no multiple": ({"size": 32000}, "not a multiple of line x ways = 512 B; nearest: 31744"),
    "an odd line": ({"line": 48, "size": 48 * 8 * 64}, "not a power of two"),
    "an odd sector": ({"sector": 24}, "sector of 24 B does not divide"),
    "an unknown policy": ({"policy": "mru"}, "'mru' is not one of lru, fifo"),
    "a tree of three": ({"policy": "tree-plru", "ways": 3, "size": 64 * 3 * 64}, "3 is not a power of two"),
    "an unknown write": ({"write": "around"}, "not one of back, through"),
    "exclusive without write-back": ({"holds": "exclusive", "write": "through"}, "must write back"),
}  # fmt: skip


@each(("change", "match"), BAD.values())
def test_what_is_no_level_is_refused_by_its_name(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        Level(**{**L1, **change})
    assert str(caught.value).startswith("L1: ")


def test_levels_must_fit_together() -> None:
    one = Level(**L1)
    for levels, match in (
        ((), "at least one level"),
        ((Level(**L1, holds="exclusive"),), "none above"),
        ((one, Level(name="L2", size=1 << 20, ways=8, line=128)), "not that of L1"),
        ((Level(**L1, cores=2), Level(name="L2", size=1 << 20, ways=8, cores=3)), "no multiple"),
        ((Level(**L1, write="through"), Level(name="L2", size=1 << 20, ways=8, holds="exclusive")), "never drops"),
        ((Level(name="L1", size=1 << 40, ways=8),), "at most"),
    ):
        with pytest.raises(ValueError, match=match):
            Hierarchy(levels=levels)


def test_sets_need_be_no_power_of_two() -> None:
    cache = Hierarchy(levels=(Level(name="L", size=64 * 3, ways=1),))
    lines = 64 * np.array([0, 3, 1, 2, 0])
    assert simulate(cache, [Accesses(address=lines)], fast=False).counts[0].misses == 5
    assert simulate(cache, [Accesses(address=64 * np.array([0, 4, 2, 0, 4]))], fast=False).counts[0].misses == 3


def test_an_access_of_no_core_or_no_byte() -> None:
    cache = Hierarchy(levels=(Level(**L1),))
    with pytest.raises(ValueError, match="core 1"):
        Simulation(cache, False).feed(Accesses(address=np.array([0]), core=1))
    with pytest.raises(ValueError, match="less than one byte"):
        Simulation(cache, False).feed(Accesses(address=np.array([0]), size=0))


def test_straddling_accesses_ask_for_both_lines() -> None:
    cache = Hierarchy(levels=(Level(**L1),))
    state = simulate(cache, [Accesses(address=np.array([60, 0, 64]), size=np.array([8, 1, 1]))], fast=False)
    assert (state.counts[0].misses, state.counts[0].hits) == (2, 2)


def test_sectors_are_filled_one_by_one() -> None:
    cache = Hierarchy(levels=(Level(name="L2", size=4096, ways=4, line=128, sector=32),))
    state = simulate(cache, [Accesses(address=np.array([0, 32, 0, 96]), size=4)], fast=False)
    assert (state.counts[0].misses, state.counts[0].bytes_read) == (3, 96)


@each("name", catalog.names())
def test_every_shipped_device_has_a_hierarchy(name: str) -> None:
    device = catalog.find(name).device
    if device.kind == "tpu":  # whose buffer programs manage
        return
    units = min(2, int(device.sm.count if device.kind == "gpu" else device.core.count))  # a Jetson Nano has one SM
    found = hierarchy_of(device, units)
    for level, key in zip(found.levels, ("l1", "l2", "l3"), strict=False):
        assert level.size == getattr(device, key).size
        spec = getattr(device, key).line
        assert level.line == (device.l1.line if device.kind == "cpu" else spec)
        assert level.line == spec or f"{key}.line {level.line}: the spec's {spec:g} B" in " ".join(found.assumed)
    assert found.instances(0) == units
    assert found.assumed
    if device.kind == "cpu":
        assert [level.ways for level in found.levels] == [getattr(device, level.name.lower()).ways for level in found.levels]
    else:
        assert all((f"l{i}.ways" in " ".join(found.assumed)) == (getattr(device, f"l{i}").ways is None) for i in (1, 2))


SMALL = {"l2.size": "64 KiB", "l3.size": "256 KiB"}


@each(("hardware", "holds"), [("i7_6700k", "inclusive"), ("xeon_e5_2698_v3", "inclusive"), ("i9_10980xe", "exclusive"),
                              ("epyc_7742", "exclusive")])  # fmt: skip
def test_the_last_level_is_inclusive_or_takes_victims_as_its_maker_says(hardware: str, holds: str) -> None:
    found = hierarchy_of(catalog.find(hardware).device)
    assert found.levels[-1].holds == holds
    assert "l3.inclusion" not in " ".join(found.assumed)


def test_a_victim_cache_adds_to_the_level_above() -> None:
    """A working set of the L3 and half the L2, again and again: with victims all of it stays on the chip, else nothing."""
    lines = np.tile(np.arange(0, (256 + 32) * 1024, 64), 2)
    for inclusion, missed in (("victim", 1), ("inclusive", 2), ("neither", 2)):
        spec = catalog.find("i7_6700k").with_settings({**SMALL, "l3.inclusion": inclusion})
        state = simulate(hierarchy_of(spec.device), [Accesses(address=lines)], fast=False)
        assert state.counts[-1].bytes_read == missed * lines.size // 2 * 64


def test_what_an_inclusive_level_drops_is_dropped_above() -> None:
    """One line that is used again and again, while others pass the L3 through its set (Jaleel et al. 2010: inclusion victims)."""
    others = np.arange(1, 200) * 256 * 1024
    lines = np.stack([others, np.zeros_like(others), np.full_like(others, 64 * 1024 * 1024 + 64)]).T.ravel()
    for inclusion, dropped in (("inclusive", True), ("neither", False)):
        spec = catalog.find("i7_6700k").with_settings({**SMALL, "l3.inclusion": inclusion})
        state = simulate(hierarchy_of(spec.device), [Accesses(address=lines)], fast=False)
        assert (state.counts[0].invalidations > 0) == dropped


def test_no_other_word_says_what_a_level_holds() -> None:
    with pytest.raises(InputError, match=r"l3\.inclusion: is none of inclusive, victim, neither"):
        catalog.find("i7_6700k").with_settings({"l3.inclusion": "exclusive"})


def test_more_cores_than_there_are() -> None:
    with pytest.raises(ValueError, match="i7_6700k has 4"):
        hierarchy_of(catalog.find("i7_6700k").device, 5)


def test_a_spec_whose_caches_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = catalog.find("i7_6700k").with_settings({"l2.ways": "3"})
    with pytest.raises(Unsupported, match="the caches of i7_6700k: L2: size of 262144 B is not a multiple"):
        hierarchy_of(spec.device)
