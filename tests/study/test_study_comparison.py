"""Comparisons of devices, stacks and networks: who is left out, and tables of two ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archsim.answers.compare import by_stack
from archsim.answers.networks import by_network
from archsim.base.errors import Unsupported
from archsim.base.files import data_folder
from archsim.study import comparison
from archsim.study.comparison import ComparedDevices
from archsim.study.price import Price
from archsim.study.standing import titles


def quiet(_: str) -> None:
    pass


def test_one_reason_for_all_is_said_once() -> None:
    with pytest.raises(Unsupported) as caught:
        ComparedDevices(["gtx_1080"], ["intel-mkl"]).at("alexnet", 1, False, None, quiet)
    assert "nothing to compare" not in str(caught.value)
    with pytest.raises(Unsupported, match=r"nothing to compare on alexnet:\ni7_6700k: .*\ntegra_x1_cpu: "):
        ComparedDevices(["i7_6700k", "tegra_x1_cpu"], [], {"precision": "fp8"}).at("alexnet", 1, False, None, quiet)


def test_a_device_that_is_named_twice_is_compared_once() -> None:
    field = ComparedDevices(["gtx_1080", "GTX 1080", "gtx1080"], ["caffe-cudnn5.1", "caffe-cudnn5.1"])
    assert [entrant.called for entrant in field.entrants] == ["gtx_1080"]


def test_two_devices_that_bear_one_id_are_both_compared(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = Path(str(data_folder("hwspecs").joinpath("gtx_1080.toml"))).read_text("utf-8")
    file.write_text(text.replace("599 USD", "99 USD"), "utf-8")
    field = ComparedDevices(["gtx_1080", str(file)])
    assert [entrant.called for entrant in field.entrants] == ["gtx_1080 (gtx_1080)", f"gtx_1080 ({file})"]


def test_what_does_not_fit_is_not_in_the_running_op_by_op() -> None:
    """At batch 4 relu3_1 is faster on the GTX 480, which holds no batch of 64."""
    def of(*batches: int) -> dict[str, Any]:
        found = ComparedDevices(["i7_6700k", "gtx_480"]).over("vgg_16", batches, True, None, quiet)
        return {row.op: row.resident for row in found.pays[0][2]}

    assert of(1, 4)["relu3_1"] == 4
    assert of(1, 64)["relu3_1"] is None


def test_many_devices_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    field = ComparedDevices(["i7_6700k", "gtx_1080", "gtx_980"])
    few = field.over("alexnet", [1, 4], True, None, quiet)
    assert (len(few.crossings) >= 3, len(few.pays), few.notes) == (True, 2, ())
    monkeypatch.setattr(comparison, "MOST_CROSSED", 2)
    monkeypatch.setattr(comparison, "MOST_PAYOFFS", 1)
    many = field.over("alexnet", [1, 4], True, None, quiet)
    assert (many.crossings, many.pays, len(many.notes)) == ((), (), 2)  # the GTX 1080 is the fastest at both batches


def test_the_best_stack_of_a_device_by_cost_is_the_cheapest() -> None:
    stacks = ["caffe-native", "caffe-cudnn5.1"]
    price = Price(usd=None, usd_per_h=1.0, kind="given", source="test")
    for by, least in (("speed", False), ("cost", True)):
        field = ComparedDevices(["gtx_1080", "gtx_480"], stacks, {}, {"gtx_1080": price}, by=by)
        found = field.at("alexnet", 128, False, None, quiet)
        (table,) = by_stack(found, titles(found.all))
        _, *cells, best = next(row for row in table.rows if row[0].text == "GTX 1080")
        scores = [cell.value for cell in cells]
        assert best.text == stacks[scores.index((min if least else max)(scores))] == "caffe-cudnn5.1"
        assert [cell.text.endswith("*") for cell in cells] == [False, True]
    assert by_stack(ComparedDevices(["gtx_1080"], stacks[:1]).at("alexnet", 1, False, None, quiet), {}) == []


def test_the_mean_is_that_of_devices_that_run_all_networks() -> None:
    field = ComparedDevices(["gtx_1080", "gtx_480", "tesla_k40"])
    both = [field.at(net, 32, False, None, quiet) for net in ("alexnet", "vgg_16")]
    rows = {row[0].text: row[1:] for row in by_network(both).rows}
    assert [cell.text for cell in rows["GTX 480"][1:]] == ["does not fit", "-"]
    assert rows["GTX 1080"][-1].text == "1"
    shares = [c.throughput_per_s / max(x.throughput_per_s for x in one.contenders)
              for one in both for c in one.contenders if c.name == "tesla_k40"]  # fmt: skip
    assert float(rows["Tesla K40"][-1].text) == pytest.approx((shares[0] * shares[1]) ** 0.5, rel=5e-3)
