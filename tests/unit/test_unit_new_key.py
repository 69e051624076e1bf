"""A key of a device is one declaration: files, what-ifs, show, JSON, whole files and the README's tables read it there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from archsim.answers.device import record, sections
from archsim.base.errors import InputError
from archsim.device import catalog
from archsim.device import spec as spec_module
from archsim.device.device import PARTS
from archsim.device.part import Sm, whole
from archsim.device.write import to_toml
from archsim.render.text import text_of

from ..data.regenerate import key_tables

BANKS = 'banks = { value = 32, source = "a guess", kind = "assumed", note = "a test" }\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class BankedSm(Sm):
    """SMs whose shared memory has banks."""

    banks: float | None = whole("banks of the shared memory", high=64, optional=True, informational=True, inherited=False)


@pytest.fixture
def banked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A whole file with the new key, while the part that declares it stands in the table of parts."""
    text = to_toml(catalog.find("tesla_t4"), "a copy").replace("[sm]\n", f"[sm]\n{BANKS}", 1)
    place = tmp_path / "mine.toml"
    place.write_text(text, "utf-8")
    caches = (spec_module.keys, spec_module._units)
    monkeypatch.setitem(PARTS["gpu"], "sm", BankedSm)
    for cached in caches:
        cached.cache_clear()
    yield place
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def test_a_new_key_is_found_everywhere_from_its_declaration(banked: Path) -> None:
    mine = catalog.find(str(banked))
    assert mine.device.sm.banks == 32
    assert mine.with_settings({"sm.banks": "16"}).device.sm.banks == 16
    assert "banks of the shared memory" in text_of(sections(mine), level=2)
    assert record(mine)["keys"]["sm.banks"] == {
        "type": "whole", "unit": "1", "range": "1 to 64", "meaning": "banks of the shared memory", "informs_only": True,
        "inherited": False, "required": False,
    }  # fmt: skip
    assert "banks = { value = 32" in to_toml(mine, "again")
    row = "| `sm.banks` | number, 1 to 64 | banks of the shared memory; optional; *not inherited*; *shown only* |"
    assert row in key_tables()


def test_without_its_declaration_it_is_unknown(tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    place.write_text(to_toml(catalog.find("tesla_t4"), "a copy").replace("[sm]\n", f"[sm]\n{BANKS}", 1), "utf-8")
    with pytest.raises(InputError, match=r"sm\.banks: unknown key"):
        catalog.find(str(place))
