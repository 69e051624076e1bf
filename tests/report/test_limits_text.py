"""What the text says of the limit of a run."""

import archsim
from archsim.base.units import show
from archsim.report.data import record
from archsim.report.text import floor_line, limit_line, time_line, totals


def test_a_run_that_waits_for_the_host_says_below_what_no_chip_gets() -> None:
    e = archsim.estimate(net="resnet_50", hw="h100_sxm5_80gb", batch=8)
    assert limit_line(e).startswith("host: 20 % faster saves ")
    assert floor_line(e) == (f"xeon_platinum_8480 needs {show(e.host_floor_s, 's', 3)} to issue this; no faster chip gets below; "
                             "--graph does")  # fmt: skip
    assert "waiting for the host" in time_line(e)
    assert f"\nhost        {floor_line(e)}" in totals(e)


def test_a_run_that_the_device_limits_has_no_floor_in_sight() -> None:
    e = archsim.estimate(net="vgg_16", hw="gtx_1080", batch=16)
    assert floor_line(e) == ""
    assert e.limited_by != "host"
    assert limit_line(e).startswith(f"{e.limited_by}: 20 % faster saves ")


def test_json_has_the_limit_and_the_two_parts_of_the_time() -> None:
    e = archsim.estimate(net="alexnet", hw="tegra_x1")
    found = record(e)
    assert found["limited_by"] == next(iter(found["relief_s"])) == e.limited_by
    assert abs(found["device_s"] + found["host_wait_s"] - found["latency_s"]) < 1e-12
    assert abs(sum(op["wait_s"] for op in found["ops"]) - found["host_wait_s"]) < 1e-12
    assert 0 < found["host_floor_s"] <= found["latency_s"]


def test_nothing_to_relieve_is_said() -> None:
    e = archsim.estimate(net="alexnet", hw="tegra_x1", fidelity="roofline")
    assert e.limited_by in ("compute", "dram")
    assert e.host_wait_s < 1e-12
