"""A whole spec as a file to start from: it gives the same device back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archsim.base.errors import InputError
from archsim.device import catalog
from archsim.device.entry import Entry
from archsim.device.spec import Spec
from archsim.device.write import to_toml

from ..each import each


def saved(spec: Spec, folder: Path) -> Spec:
    place = folder / "mine.toml"
    place.write_text(to_toml(spec, "a copy"), "utf-8")
    return catalog.find(str(place))


def said(entry: Entry) -> tuple[object, ...]:
    return (entry.key, entry.value, entry.source, entry.kind, entry.note, entry.clock)


@each("name", catalog.names())
def test_a_printed_spec_gives_the_same_device_with_the_same_sources(name: str, tmp_path: Path) -> None:
    spec = catalog.find(name)
    copy = saved(spec, tmp_path)
    assert copy.identity == spec.identity
    assert copy.device == spec.device
    assert copy.digest == spec.digest
    assert [said(entry) for entry in copy.entries.values()] == [said(entry) for entry in spec.entries.values()]
    assert [said(entry) for entry in copy.stated.values()] == [said(entry) for entry in spec.stated.values()]


def test_a_printed_heir_has_no_parent(tmp_path: Path) -> None:
    copy = saved(catalog.find("a100_pcie_80gb"), tmp_path)
    assert {entry.file for entry in copy.entries.values()} == {"a100_pcie_80gb"}


def test_sources_with_the_same_first_words_have_names_of_their_own(tmp_path: Path) -> None:
    copy = saved(catalog.find("xeon_e5_2698_v3"), tmp_path)
    assert {"Intel ARK, Xeon E5-2698 v3", "Intel ARK, Core i7-4790K"} <= {entry.source for entry in copy.entries.values()}


def test_words_that_toml_would_misread_come_back(tmp_path: Path) -> None:
    spec = catalog.find("i7_6700k")
    word = 'DDR4 "fast" \\ µ\x7f'
    odd = Entry(key="memory.type", value=word, written=word, source="a\ttab", kind="assumed", note="x\ny")
    copy = saved(replace(spec, entries={**spec.entries, "memory.type": odd}), tmp_path)
    assert said(copy.entries["memory.type"]) == said(odd)


def test_a_copy_that_is_changed_is_another_device(tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    place.write_text(to_toml(catalog.find("tesla_t4"), "a copy").replace('"320 GB/s"', '"640 GB/s"', 1), "utf-8")
    with pytest.raises(InputError, match=r"640 GB/s is not 320 GB/s, what memory\.bus \(256 bit\) moves"):
        catalog.find(str(place))
