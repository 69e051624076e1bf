"""Clocks of a CPU by the cores that are awake: the turbo table of a spec."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archsim.base.errors import InputError
from archsim.cost.cores import active_clock
from archsim.device.catalog import find, names
from archsim.device.cpu_core import turbo_knots, turbo_table
from archsim.device.device import Cpu

TABLE = "2: 3.6 GHz, 3: 3.4 GHz, 4: 3.3 GHz, 5: 3.2 GHz, 6: 3.1 GHz, 7: 3.0 GHz, 8: 2.9 GHz, 16: 2.8 GHz"


def cpu(name: str) -> Cpu:
    device = find(name).with_settings({"clock.turbo": TABLE}).device
    assert isinstance(device, Cpu)
    return device


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("3.6 GHz", 'is not "CORES: CLOCK"'), ("0: 3.6 GHz, 2: 3.4 GHz", 'is not "CORES: CLOCK"'), ("2: fast, 4: slow", "fast"),
        ("4: 3.6 GHz, 2: 3.4 GHz", "more cores must come with a lower clock"), ("2: 3.4 GHz, 4: 3.6 GHz", "lower clock"),
        ("16: 3.6 GHz", "one clock"), ("2: 3.6 THz, 4: 3 GHz", "1 MHz to 100 GHz"), ("2: 3.6 GHz,", 'is not "CORES: CLOCK"'),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_key(written: str, said: str) -> None:
    with pytest.raises(InputError, match=r"clock\.turbo") as refused:
        find("i7_6700k").with_settings({"clock.turbo": written})
    assert said in str(refused.value)


def test_a_table_steps_down_with_the_cores_awake() -> None:
    device = cpu("xeon_e5_2698_v3")  # 3.6 GHz with two cores, 3.4 with three, 2.8 from nine to sixteen
    clocks = active_clock(device, np.array([1.0, 2.0, 3.0, 9.0, 16.0]), 2.8e9)
    assert clocks == pytest.approx([3.6e9, 3.6e9, 3.4e9, 2.8e9, 2.8e9])
    even = active_clock(replace(device, clock=replace(device.clock, turbo=None)), np.array([9.0]), 2.8e9)
    assert even.item() == pytest.approx(2.8e9 + 0.8e9 * 7 / 15)


def test_wider_code_falls_alike_between_its_own_ends() -> None:
    device = cpu("xeon_e5_2698_v3")
    three = active_clock(device, 3.0, 2.5e9).item()
    assert three == pytest.approx(2.5e9 + (3.6e9 - 2.5e9) * (3.4 - 2.8) / (3.6 - 2.8))


def test_cores_of_a_socket_count_and_a_named_clock_is_that_of_every_core() -> None:
    two = cpu("xeon_e5_2698_v3_2s")
    assert active_clock(two, 17.0, 2.5e9).item() == 2.5e9  # all of the first socket
    assert active_clock(replace(two, clock=replace(two.clock, boost=2.0e9)), 1.0, 2.0e9).item() == 2.0e9


def test_fewer_cores_than_run_at_the_highest_clock_fall_evenly() -> None:
    small = find("xeon_e5_2698_v3").with_settings({"core.count": "2", "core.threads": "2", "clock.turbo": TABLE}).device
    assert isinstance(small, Cpu)
    assert active_clock(small, np.array([1.0, 2.0]), 2.5e9).tolist() == [3.6e9, 2.5e9]


def test_shipped_tables_begin_at_the_boost_and_end_with_all_cores() -> None:
    tables = 0
    for name in names():
        device = find(name).device
        if isinstance(device, Cpu) and device.clock.turbo is not None:
            tables += 1
            table = turbo_table(device.clock.turbo)
            assert table[0][1] == device.clock.boost, name
            assert table[-1][1] == device.clock.all_core, name
            assert turbo_knots(device.clock.turbo)[0][0] == 1.0
            assert table[-1][0] <= device.core.count / device.core.sockets, name
    assert tables >= 20
