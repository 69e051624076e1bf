"""The closed forms of the traffic beside simulated caches by role: distances by hand, and every role of two small runs."""

from __future__ import annotations

import pytest

from archsim.answers.scoreboard import traffic_record, traffic_sections
from archsim.estimation.request import make_request
from archsim.lower.columns import Role
from archsim.render.text import text_of
from archsim.validation.traffic import KernelDistance, by_role, kernel_distances


def row(closed: float, simulated: float, role: str = "pass", tensors: float = 1e6) -> KernelDistance:
    return KernelDistance(device_kind="cpu", hardware="i7_6700k", network="n", task="inference", layer="x", phase="forward",
                          kernel="k", role=role, level="memory", tensors=tensors, closed=closed, simulated=simulated)  # fmt: skip


def test_a_distance_is_relative_to_the_simulation() -> None:
    assert row(3e6, 2e6).distance == pytest.approx(0.5)
    assert row(1e6, 2e6).distance == pytest.approx(0.5)


def test_what_is_negligible_on_both_sides_is_no_distance() -> None:
    assert row(4e4, 0.0).distance == 0.0
    assert row(1e5, 0.0).distance == pytest.approx(1.0)  # twice what counts at least


def test_a_group_has_median_tail_and_its_worst_kernels() -> None:
    rows = [row(1e6 * (1 + i / 10), 1e6) for i in range(11)] + [row(1e6, 1e6, role="bias"), row(1.0, 2.0, tensors=0.0)]
    bias, passes = by_role(rows)
    assert (bias.role, bias.kernels, bias.median) == ("bias", 1, 0.0)
    assert passes.kernels == 11
    assert passes.median == pytest.approx(0.5)
    assert passes.p90 == pytest.approx(0.9)
    assert [round(one.distance, 6) for one in passes.worst] == [1.0, 0.9, 0.8]


@pytest.fixture(scope="module")
def kinds() -> list[KernelDistance]:
    return [*kernel_distances([
        make_request("lenet5", "i7_6700k", task="training_step", batch=4, stack="caffe-openblas"),
        make_request("lenet5", "gtx_1080", task="training_step", batch=4),
    ])]  # fmt: skip


def test_every_kernel_has_every_level_of_its_device(kinds: list[KernelDistance]) -> None:
    levels = {kind: {one.level for one in kinds if one.device_kind == kind} for kind in ("gpu", "cpu")}
    assert levels == {"gpu": {"L2", "memory"}, "cpu": {"L1", "last level", "memory"}}
    assert {one.role for one in kinds} <= {role.value for role in Role}
    assert {"product", "pass", "im2col", "update"} <= {one.role for one in kinds if one.device_kind == "cpu"}
    assert all(one.simulated >= 0 for one in kinds)


def test_the_record_has_every_role_and_the_text_names_it(kinds: list[KernelDistance]) -> None:
    from archsim.validation.traffic import TrafficRow
    from tests.cache.test_cache_layers import FROZEN

    names = set(TrafficRow.__dataclass_fields__)
    rows = [TrafficRow(**{name: value for name, value in frozen.items() if name in names}) for frozen in FROZEN["rows"]]
    found = traffic_record(rows, by_role(kinds))
    assert {"device_kind", "role", "level", "kernels", "median", "p90", "worst"} == set(found["roles"][0])
    assert found["rows"] == FROZEN["rows"]
    text = text_of(traffic_sections(found))
    assert "gtx_1080 alexnet conv1" in text
    assert all(f"CPU {role['role']}" in text for role in found["roles"] if role["role"] in ("im2col", "update"))
