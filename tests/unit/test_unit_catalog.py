"""Devices by a few words about them."""

from __future__ import annotations

from functools import cache

import pytest

from archsim.device import catalog
from archsim.device.catalog import Likeness, most_alike, wanted

from ..each import each


@cache
def found(text: str) -> tuple[Likeness, ...]:
    return tuple(most_alike(text, map(catalog.find, catalog.names())))


@each(
    ("text", "words", "gib", "years"),
    [
        ("ada 24GB", ("ada",), [24], []), ("Ada, 24 GiB", ("ada",), [24], []), ("jetson 2022", ("jetson",), [], [2022]),
        ("gtx 1080", ("gtx", "1080"), [], []), ("xeon 1.5TB", ("xeon",), [1536], []), ("i7-6700K", ("i7.6700k",), [], []),
        ("  ", (), [], []), ("rtx 2080 8g", ("rtx", "2080"), [8], []),
    ],
)  # fmt: skip
def test_what_a_text_asks_for(text: str, words: tuple[str, ...], gib: list[float], years: list[int]) -> None:
    asked = wanted(text)
    assert asked.words == words
    assert [size / 2**30 for size in asked.sizes] == gib
    assert list(asked.years) == years


@each(
    ("text", "first"),
    [
        ("ada 24GB", {"rtx_4090", "l4"}), ("hopper 141GB", {"h200_sxm_141gb"}),
        ("jetson orin gpu 8GB", {"jetson_orin_nano_8g", "jetson_orin_nano_super"}),
        ("geforce turing 11GB", {"rtx_2080_ti"}), ("nvidia gpu 2016 8GB pascal", {"gtx_1080", "gtx_1070"}), ("HBM3e", None),
        ("rtx 2080", {"rtx_2080"}), ("4060", {"rtx_4060"}), ("4070 super", {"rtx_4070_super"}),
    ],
)  # fmt: skip
def test_the_best_fit_comes_first(text: str, first: set[str] | None) -> None:
    ranked = found(text)
    best = {one.spec.identity.id for one in ranked if one.match == ranked[0].match}
    if first is None:
        assert all("HBM3e" in one.spec.device.memory.type for one in ranked if one.match == 1.0)
    else:
        assert ranked[0].spec.identity.id in first
        assert best & first


def test_a_slip_of_the_pen_still_finds_the_family() -> None:
    assert {one.spec.identity.architecture for one in found("blackwel")} == {"blackwell"}
    assert found("blackwel")[0].match < 1.0 == found("blackwell")[0].match


@pytest.mark.parametrize("text", ["", "  ,", "xyzzy", "ada xyzzy"])
def test_what_fits_nothing_leaves_none(text: str) -> None:
    assert found(text) == ()


def test_a_size_ranks_and_does_not_exclude() -> None:
    sizes = [float(one.spec.device.memory.capacity) / 2**30 for one in found("ada 24GB")]
    assert len(sizes) == len(found("ada"))
    assert min(sizes) < 12
    assert abs(sizes[0] - 24) < 2
