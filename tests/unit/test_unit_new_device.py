"""A device of one's own is one file, anywhere: it is estimated, explained and shown as the shipped ones are."""

from __future__ import annotations

from pathlib import Path

import pytest

import archsim
from archsim.base.errors import InputError
from archsim.device import catalog

CARD = """
schema = 1
id = "my_2070_super"
name = "NVIDIA GeForce RTX 2070 SUPER"
inherits = "tesla_t4"
year = 2019

[sources]
page = "NVIDIA GeForce RTX 2070 SUPER product page (2019)"

[clock]
base = { value = "1605 MHz", source = "page", kind = "datasheet" }
boost = { value = "1770 MHz", source = "page", kind = "datasheet" }
sustained = { value = "1800 MHz", source = "none published", kind = "assumed", note = "GeForce cards run above the rated boost" }

[memory]
type = { value = "GDDR6", source = "page", kind = "datasheet" }
data_rate = { value = "14 Gbit/s", source = "page", kind = "datasheet" }
bandwidth = { value = "448 GB/s", source = "page", kind = "datasheet" }
capacity = { value = "8 GiB", source = "page", kind = "datasheet" }

[power]
tdp = { value = "215 W", source = "page", kind = "datasheet" }
idle = { value = "40 W", source = "none published", kind = "assumed", note = "context open and clocks up, as the RTX 2080 Ti" }

[stated]
peak_fp32 = { value = "9.1 TFLOP/s", source = "page", kind = "datasheet", clock = "boost" }
"""


@pytest.fixture
def card(tmp_path: Path) -> str:
    place = tmp_path / "card.toml"
    place.write_text(CARD, "utf-8")
    return str(place)


def test_a_new_card_is_one_file(card: str) -> None:
    found = archsim.estimate(net="alexnet", hw=card, batch=16)
    assert found.hardware == "my_2070_super"
    assert found.clock_hz == pytest.approx(1.8e9, rel=1e-3)  # its board's limit holds it, as nobody measured the clock
    assert found.latency_s < archsim.estimate(net="alexnet", hw="tesla_t4", batch=16).latency_s


def test_a_new_card_runs_halves_at_its_own_clock_and_has_no_price(card: str) -> None:
    assert archsim.estimate(net="alexnet", hw=card, batch=16, precision="fp16").clock_hz == pytest.approx(1.8e9)
    assert "market.price" not in catalog.find(card).entries


def test_a_misread_data_sheet_is_noticed(card: str) -> None:
    Path(card).write_text(CARD.replace('"1770 MHz"', '"1970 MHz"'), "utf-8")
    with pytest.raises(InputError, match=r"stated\.peak_fp32: 9\.1 TFLOP/s is 9\.\d% less .*sm\.count, rate\.fp32, clock\.boost"):
        catalog.find(card)
