"""Prices, what use costs, and work of a given size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import ArgumentError, InputError
from archsim.base.files import LIMITS
from archsim.estimation.hardware import find_device
from archsim.estimation.request import make_request
from archsim.study.contender import Contender, contender, energy_spread, job_totals, time_spread
from archsim.study.price import Price, Usage, Workload, hourly_cost, merged, money, read_prices, spec_price
from archsim.study.ranking import CRITERIA, rank
from tests.each import each

COST = CRITERIA[-1]
LIST = "device,price,per_hour,source\n"


def on(hw: str, price: Price | None = None, usage: Usage | None = None) -> Contender:
    return contender(make_request("alexnet", hw, batch=16), False, references=False, price=price, usage=usage)


def given_price(usd: float | None = None, per_hour: float | None = None) -> Price:
    return Price(usd=usd, usd_per_h=per_hour, kind="given", source="test")


def id_of(name: str) -> str:
    return find_device(name, None).identity.id


@each(("text", "per", "value"), [
    ("30000USD", "", 30000.0), ("599 USD", "", 599.0), ("2.5 USD/h", "h", 2.5), (".25USD / kWh", "kWh", 0.25),
    ("1e12 USD/kWh", "kWh", 1e12),
])  # fmt: skip
def test_amounts_of_money(text: str, per: str, value: float) -> None:
    assert money(text, per) == value


@each(("text", "per", "problem"), [
    ("30000", "", "not in USD"), ("", "", "not an amount"), ("nan USD", "", "not an amount"), ("1e999USD", "", "between"),
    ("0USD", "", "between"), ("-5USD", "", "between"), ("5 USD/h", "", "not an amount"), ("5USD", "h", "per h"),
    ("5USD/kWh", "h", "per h"), ("5 $", "", "not in USD"), ("$5", "", "not an amount"), ("5EUR", "", "not in USD"),
    ("5,000 USD", "", "not an amount"), ("5 usd", "", "not in USD"),
])  # fmt: skip
def test_what_is_no_amount_of_money_is_refused(text: str, per: str, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        money(text, per)


AMOUNTS = st.floats(1.0, 1e5)


@given(AMOUNTS, st.floats(0.1, 10.0), st.floats(1e-3, 1.0), st.floats(0.0, 2.0), st.floats(1.0, 3.0), st.floats(1.0, 1000.0))
def test_what_costs_more_never_makes_work_cheaper(
    usd: float, years: float, duty: float, electricity: float, pue: float, power: float
) -> None:
    def total(**changed: float) -> float:
        said = {"usd": usd, "lifetime_years": years, "duty": duty, "electricity": electricity, "pue": pue, "power": power}
        said |= changed
        price, watts = given_price(usd=said.pop("usd")), said.pop("power")
        return sum((hourly_cost(price, Usage(**said), watts, 0.1 * watts) or {}).values())

    base = total()
    for more in ({"usd": 2 * usd}, {"electricity": electricity + 0.1}, {"pue": pue + 0.5}, {"power": 2 * power}):
        assert total(**more) >= base
    for less in ({"lifetime_years": 2 * years}, {"duty": min(1.0, 2 * duty)}):
        assert total(**less) <= base * (1 + 1e-12)


def test_a_later_price_leaves_what_it_does_not_say() -> None:
    launch = spec_price(find_device("gtx_1080", None))
    assert launch is not None
    assert launch.usd == 599.0
    rented = merged(launch, given_price(per_hour=0.5))
    assert (rented.usd, rented.usd_per_h, rented.kind) == (599.0, 0.5, "datasheet")
    assert merged(launch, given_price(usd=450.0)) == given_price(usd=450.0)
    assert spec_price(find_device("tesla_v100_sxm2", None)) is None


def test_what_an_hour_costs() -> None:
    """1000 USD over 2 years of 8760 h at half time: 8760 h of work; idle for as long as it works."""
    usage = Usage(lifetime_years=2.0, duty=0.5, electricity=0.2, pue=1.5)
    found = hourly_cost(given_price(usd=1000.0), usage, 300.0, 30.0)
    assert found == pytest.approx({"purchase": 1000 / 8760, "electricity": 0.09, "idle electricity": 0.009})
    assert hourly_cost(given_price(usd=1000.0, per_hour=3.0), usage, 300.0, 30.0) == {"rent": 3.0}
    assert hourly_cost(given_price(), usage, 300.0, 30.0) is None
    assert set(hourly_cost(given_price(usd=1.0), Usage(), 300.0, 30.0) or ()) == {"purchase"}  # unknown electricity is not zero


def test_cost_of_a_million_is_that_of_the_hours_they_take() -> None:
    c = on("gtx_1080", given_price(per_hour=0.72))
    assert c.usd_per_million == pytest.approx(0.72 / 3600 * 1e6 / c.throughput_per_s)
    bought = on("gtx_1080", usage=Usage(electricity=0.3))
    electricity = 0.3 / 3.6e6 * bought.energy_j / 16 * 1e6
    assert bought.usd_per_million == pytest.approx(599 / (3 * 8760 * 3600) * 1e6 / bought.throughput_per_s + electricity)


def test_a_cost_is_as_sure_as_the_time_and_power_that_it_follows() -> None:
    """Two equal devices but for their price; rent follows the time alone, electricity alone follows the energy."""
    usage = Usage(electricity=1.0)
    for price, criterion in ((given_price(per_hour=1.0), CRITERIA[0]), (given_price(usd=1e-9), CRITERIA[1])):
        a = on("gtx_1080", price, usage)
        b = replace(a, estimate=replace(on("gtx_980").estimate, stack=a.estimate.stack), price=price, usage=usage)
        by_cost, other = rank([a, b], COST), rank([a, b], criterion)
        assert by_cost.order == other.order
        assert by_cost.ahead[0] == pytest.approx(other.ahead[0], abs=0.01)
    mixed = on("gtx_1080", None, Usage(electricity=0.3))
    assert 0 < mixed.energy_share_of_cost < 1
    assert energy_spread(mixed)[1] > time_spread(mixed)[1]


def test_work_of_a_given_size() -> None:
    c, work = on("gtx_1080", given_price(per_hour=3.6)), Workload(samples=100, epochs=3)
    found = job_totals(c, work)
    assert found.batches == 21  # 7 of 16 an epoch
    assert found.time_s == pytest.approx(21 * c.latency_s)
    assert found.energy_j == pytest.approx(21 * c.energy_j)
    assert found.cost_usd == pytest.approx(found.time_s * 0.001)
    assert found.interval_s[0] < found.time_s < found.interval_s[1]


def test_a_price_list(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(LIST + 'GTX 1080,450 USD,,"a shop, 2017"\nh100,,2.5 USD/h,a cloud\n', "utf-8")
    found = read_prices(file, id_of)
    assert found["gtx_1080"] == Price(usd=450.0, usd_per_h=None, kind="given", source=f"a shop, 2017 ({file})")
    assert found["h100_sxm5_80gb"].usd_per_h == 2.5


@each(("text", "problem"), [
    ("device,source\ngtx_1080,x\n", "neither a column"), ("device,price\ngtx_1080,5USD\n", "no column 'source'"),
    ("device,price,source,prise\ngtx_1080,5USD,x,y\n", "unknown column 'prise'; nearest: price"),
    (LIST + "gtx_1080,,,x\n", "line 2: neither a price"), (LIST + "gtx_1080,5USD,,\n", "line 2: no source"),
    (LIST + "gtx_1090,5USD,,x\n", "line 2: unknown device 'gtx_1090'; nearest: gtx_1080"),
    (LIST + "gtx_1080,5,,x\n", "line 2: '5' is not in USD"),
    (LIST + "gtx_1080,5USD,,x\ngtx1080,6USD,,x\n", "line 3: gtx_1080 has a price in line 2 already"),
    (LIST, "a header and no rows"), (LIST + "gtx_1080,inf USD,,x\n", "not an amount"),
    (LIST + "gtx_1080,5USD,,x\n" * (LIMITS["prices"].entries + 1), "more than 10,000 rows"), ("x" * (1 << 21), "larger than"),
])  # fmt: skip
def test_a_price_list_with_faults_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_prices(file, id_of)
    assert problem in str(caught.value)
    assert str(file) in str(caught.value)


def test_the_least_cost_comes_first() -> None:
    cheap, dear = on("gtx_980", given_price(per_hour=0.1)), on("gtx_1080", given_price(per_hour=10.0))
    unknown = on("tesla_v100_sxm2")
    found = rank([dear, cheap, unknown], COST)
    assert [c.name for c in found.order] == ["gtx_980", "gtx_1080"]
    assert found.scores == tuple(sorted(found.scores))
    assert found.ahead[0] > 0.99
    assert found.unranked == ("tesla_v100_sxm2",)
