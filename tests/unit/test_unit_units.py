"""Numbers with units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.units import BINARY, PREFIXES, UNITS, parse, show

from ..each import each

# Written out here on purpose: the table under test must not be its own witness.
DECIMAL = [("p", -12), ("n", -9), ("u", -6), ("µ", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)]
DIVISIBLE = {"s", "Hz", "W", "J", "Js", "V", "m"}  # everything else is counted
POWERS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def test_the_table_has_exactly_these_prefixes() -> None:
    assert set(PREFIXES) == {name for name, _ in DECIMAL}
    assert set(BINARY) == set(POWERS)


@each(("prefix", "exponent"), DECIMAL)
@each("unit", ["s", "Hz", "B", "B/s", "FLOP", "FLOP/s", "W", "J", "V", "m", "OP/s", "bit/s"])
def test_a_decimal_prefix_is_a_power_of_ten(prefix: str, exponent: int, unit: str) -> None:
    if exponent >= 0 or unit in DIVISIBLE:
        assert parse(f"3 {prefix}{unit}", unit) == pytest.approx(3 * 10**exponent, rel=1e-15)
    else:  # "3 mB" is a slip for "3 MB"
        with pytest.raises(ValueError, match="is not in"):
            parse(f"3 {prefix}{unit}", unit)


@each(("prefix", "size"), POWERS.items())
def test_a_binary_prefix_is_a_power_of_two_for_bytes(prefix: str, size: int) -> None:
    assert parse(f"3 {prefix}B", "B") == 3 * size
    assert parse(f"3 {prefix}B/s", "B/s") == 3 * size


@each("unit", [unit for unit, prefixes in UNITS.items() if "Gi" not in prefixes])
def test_binary_prefixes_are_for_bytes_only(unit: str) -> None:
    with pytest.raises(ValueError, match="is not in"):
        parse(f"1 Gi{unit}", unit)


def test_known_traps() -> None:
    assert parse("1 TB/s", "B/s") == 1e12
    assert parse("1 GB", "B") == 1e9
    assert parse("1 GiB", "B") == 1073741824
    assert parse("1 mm2", "mm2") == 1
    assert parse("16 nm", "m") == pytest.approx(1.6e-8)
    assert parse("7 Gbit/s", "bit/s") == 7e9
    assert parse("  336.5GB/s ", "B/s") == 336.5e9
    assert parse("1e3 MHz", "Hz") == 1e9
    assert parse(".5 W", "W") == 0.5
    assert parse("-2 W", "W") == -2


@each("text", ["336.5", "0", "1e9"])
@each("unit", list(UNITS))
def test_a_number_without_its_unit_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match="lacks its unit"):
        parse(text, unit)


@each(
    ("text", "unit"),
    [("1 XB/s", "B/s"), ("1 gB", "B"), ("1 KB", "B"), ("1 Gb/s", "B/s"), ("1 GB", "B/s"), ("1 GB/s", "B"), ("1 GHz/s", "Hz"),
     ("1 kclk", "clk"), ("1 GmB", "B"), ("1 B GB", "B"), ("1 MFMA/clk", "FMA/clk"), ("1 kUSD", "USD")],
)  # fmt: skip
def test_an_unknown_prefix_or_unit_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match="is not in"):
        parse(text, unit)


@each(
    "text", ["", " ", "GB/s", "nan GB/s", "NaN", "inf B/s", "-inf B/s", "1_000 B/s", "0x10 B", "1,5 GB/s", "١ GB/s", "--1 B/s"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (a number|in B/s)"):
        parse(text, "B/s")


@pytest.mark.parametrize("text", ["1e400 B/s", "1e300 PB/s", "-1e300 PB/s", f"{'9' * 400} B/s"])
def test_what_overflows_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not finite"):
        parse(text, "B/s")


def test_a_count_takes_no_unit() -> None:
    assert parse("24", "1") == 24
    with pytest.raises(ValueError, match="has a unit where a plain number belongs"):
        parse("24 B", "1")


@given(st.floats(1e-11, 1e17), st.sampled_from(list(UNITS)))
def test_what_is_shown_reads_back_and_nothing_that_is_counted_is_in_thousandths(value: float, unit: str) -> None:
    shown = show(value, unit).replace(",", "")
    number, prefix = float(shown.split()[0]), shown.split()[1].removesuffix(unit)
    assert abs(parse(shown, unit) - value) <= max(1e-3 * value, 0.5 if unit in ("B", "FLOP") else 0.0)
    assert prefix in "kMGTP" or unit in DIVISIBLE
    assert not prefix or 1 <= number < 1000


def test_rounding_carries_into_the_next_prefix() -> None:
    assert show(999.99e9, "B/s") == "1 TB/s"
    assert show(999.4e9, "B/s") == "999.4 GB/s"
    assert show(0, "s") == "0 s"
    assert show(-2e9, "Hz") == "-2 GHz"
