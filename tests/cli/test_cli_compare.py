"""`archsim compare`: rankings and curves on the command line."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest

from archsim.detect.catalog import find, names, selected

BUYER = ("compare", "--net", "alexnet", "--hw", "tesla_k40,gtx_1080,tesla_v100_sxm2", "--batch", "16")
CROSS = ("compare", "--hw", "tegra_x1_cpu,gtx_1080", "--batch", "1:4:x2")


def test_the_best_comes_first_with_its_odds_and_the_places_after_all(cli: Any) -> None:
    first, every = cli(*BUYER).out, cli(*BUYER, "--all").out
    for text in ("Tesla V100 SXM2 is fastest", "% sure", "no price            of Tesla V100 SXM2 for speed per dollar: --price"):
        assert text in first, text
    for text in ("before next", "Whole order right: by speed", "correlated as measured"):
        assert (text in first, text in every) == (False, True), text
    by = cli(*BUYER, "--correlation", "0.5", "--by", "cost", "--all").out
    assert by.splitlines()[2].startswith("  GTX 1080 is cheapest")
    assert all(text in by for text in ("correlation 0.5", "electricity is not counted (--electricity"))


def test_json_has_the_places(cli: Any) -> None:
    rows = cli(*BUYER, "--by", "dollar", "--json").json
    assert [row["hardware"] for row in rows] == ["gtx_1080", "tesla_k40", "tesla_v100_sxm2"]
    assert rows[0]["ranking"]["dollar"]["place"] == 1
    assert rows[2]["ranking"]["dollar"] is None
    assert 0.5 <= rows[2]["ranking"]["speed"]["before_next"] <= 1


def test_curves_name_the_best_and_after_all_ops(cli: Any) -> None:
    first, every = cli(*CROSS).out, cli(*CROSS, "--all").out
    assert "GTX 1080 is fastest at every batch" in first
    for text in ("largest batch that fits", "Ops that gain on GTX 1080", "Times include copying"):
        assert (text in first, text in every) == (False, True), text
    assert "opies" not in cli(*CROSS, "--no-copies").out


def test_curves_as_json_and_csv(cli: Any) -> None:
    found = cli(*CROSS, "--json").json
    assert found["schema"] == "archsim-curves/1"
    assert [p["batch"] for p in found["curves"][0]["points"]] == [1, 2, 4]
    assert {row["guest"] for row in found["payoffs"]} == {"gtx_1080"}
    assert len(cli(*CROSS, "--csv").out.splitlines()) == 7
    assert found["network"] == "alexnet"  # where none is named
    single = cli("compare", "--hw", "gtx_1080", "--batch", "4", "--json").json[0]
    point = cli(*CROSS, "--json", "--no-copies").json["curves"][1]["points"][-1]
    assert point["latency_s"] == pytest.approx(single["latency_s"], rel=1e-12)


FULL = ("compare", "--net", "vgg_16", "--hw", "gtx_1080,tesla_k40", "--batch", "64", "--task", "training_step")


def test_what_does_not_fit_is_listed_apart(cli: Any) -> None:
    out = cli(*FULL, "--stack", "caffe-cudnn5.1").out
    assert "does not fit  GTX 1080: needs 9.18 GB of 8 GiB, of which 95 % can be used; largest batch 55" in out
    assert "GTX 1080" not in out.split("does not fit")[0]  # only where it is listed apart, and with what differs besides
    rows = cli(*FULL, "--stack", "caffe-cudnn5.1", "--json").json
    assert {row["hardware"]: row["fits"] for row in rows} == {"tesla_k40": True, "gtx_1080": False}
    assert all(place is None for place in rows[1]["ranking"].values())
    result = cli("compare", "--net", "vgg_16", "--hw", "gtx_480", "--batch", "64")
    assert (result.code, "no device holds this work" in result.err) == (1, True)


def test_a_batch_that_does_not_fit_is_never_the_best(cli: Any) -> None:
    found = cli("compare", "--net", "vgg_16", "--hw", "gtx_1080,gtx_480", "--batch", "1,64,512", "--json").json
    assert [row["speed"] and row["speed"]["name"] for row in found["best"]] == ["gtx_1080", "gtx_1080", None]
    assert [[p["fits"] for p in curve["points"]] for curve in found["curves"]] == [[True, True, False], [True, False, False]]


def test_groups_and_patterns_of_devices(cli: Any) -> None:
    rows = cli("compare", "--hw", "a100*,tegra_x1", "--csv").rows
    assert {row["hardware"] for row in rows} == {*fnmatch.filter(names(), "a100*"), "tegra_x1"}
    for group in ("gpu", "cpu"):
        assert {find(name).kind for name in selected([group])} == {group}
    assert selected(["all"]) == list(names())
    assert "nearest" in cli("compare", "--hw", "gtx_9999*").err
    assert cli("compare", "--hw", "b100*").code == 2


STACKS = ("compare", "--net", "alexnet", "--hw", "gtx_1080,tesla_k40,i7_6700k", "--batch", "16",
          "--stack", "caffe-cudnn5.1,tensorflow-cudnn5.1")  # fmt: skip


def test_which_stack_on_which_device(cli: Any) -> None:
    out = cli(*STACKS).out
    *_, head, one, two = out.split("Which stack on which device")[0].splitlines()
    assert head.split() == ["device", "caffe-cudnn5.1", "tensorflow-cudnn5.1", "best"]
    assert (one.count("*"), two.count("*")) == (1, 1)
    assert "i7_6700k with caffe-cudnn5.1: stack caffe-cudnn5.1 is for a gpu" in out
    rows = cli(*STACKS, "--json").json
    assert len(rows) == 6
    assert [row["hardware"] for row in rows if "cannot_run" in row] == ["i7_6700k"] * 2
    told = cli(*STACKS, "--csv").rows
    assert [row["cannot_run"] != "" for row in told] == [False] * 4 + [True] * 2


def test_several_networks_are_compared_one_by_one_and_together(cli: Any) -> None:
    words = ("compare", "--net", "alexnet", "--net", "vgg_16", "--hw", "gtx_1080", "--hw", "gtx_980", "--batch", "4")
    out = cli(*words).out
    assert out.index("alexnet on 2 devices") < out.index("vgg_16 on 2 devices") < out.index("Throughput on every network")
    rows = cli(*words, "--json").json
    assert [row["network"] for row in rows] == ["alexnet", "alexnet", "vgg_16", "vgg_16"]
    assert [row["ranking"]["speed"]["place"] for row in rows] == [1, 2, 1, 2]
    single = cli("compare", "--net", "vgg_16", "--hw", "gtx_1080,gtx_980", "--batch", "4", "--json").json
    assert rows[2:] == single
    curves = cli(*words[:-1], "1,4", "--json").json
    assert [c["network"] for c in curves] == ["alexnet", "vgg_16"]


def test_what_differs_besides_the_device(cli: Any) -> None:
    words = ("compare", "--hw", "gtx_1080,tesla_k40,tegra_x1", "--batch", "16")
    assert "besides the device  clock 690 MHz to 1.65 GHz; 3 different host CPUs\n" in cli(*words).out
    row = cli(*words, "--json").json[0]
    assert [found["what"] for found in row["besides_the_device"]] == ["stack", "clock", "host CPU"]
    assert row["besides_the_device"][0]["values"]["caffe-cudnn4"] == ["tegra_x1"]


def test_prices_of_the_user_count(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("device,price,per_hour,source\ntesla_k40,200USD,,a shop\ntesla_v100_sxm2,,1.5USD/h,a cloud\n", "utf-8")
    words = (*BUYER, "--prices", str(file), "--price", "gtx1080=600 USD")
    rows = {row["hardware"]: row for row in cli(*words, "--json").json}
    assert (rows["gtx_1080"]["price_usd"], rows["tesla_k40"]["price_usd"]) == (600.0, 200.0)
    assert rows["tesla_k40"]["price"]["source"] == f"a shop ({file})"
    assert rows["tesla_v100_sxm2"]["cost"]["hour_by_part"] == {"rent": 1.5}
    assert rows["tesla_v100_sxm2"]["ranking"]["dollar"] is None
    out = cli(*words, "--all").out
    assert "GTX 1080: 600 USD to buy (--price)" in out
    assert "rented: electricity is in the price" in out


COSTLY = (*BUYER, "--task", "training_step", "--samples", "1281167", "--epochs", "90", "--electricity", "0.25USD/kWh",
          "--duty", "50%", "--by", "cost")  # fmt: skip


def test_the_cost_of_training_says_what_was_assumed(cli: Any) -> None:
    assert cli(*COSTLY).out.splitlines()[2].startswith("  GTX 1080 is cheapest")
    out = cli(*COSTLY, "--all").out
    for text in ("90 epochs of 1,281,167 img, training_step, batch 16", "Not counted: loading of data",
                 "worth nothing after 3 years (assumed), at work 50 % of the time; electricity 0.25 USD/kWh, PUE 1 (assumed); it "
                 "idles"):  # fmt: skip
        assert text in out, text
    row = cli(*COSTLY, "--json").json[0]
    assert row["ranking"]["cost"]["place"] == 1
    assert row["cost"]["assumed"] == ["lifetime_years", "pue"]
    assert row["job"]["batches"] == 90 * -(-1281167 // 16)
    assert row["job"]["time_s"] == pytest.approx(row["job"]["batches"] * row["latency_s"])
    cells = cli(*COSTLY, "--csv").rows[0]
    assert float(cells["job_cost_usd"]) == pytest.approx(row["job"]["cost_usd"])
    assert float(cells["cost_usd_per_million"]) == pytest.approx(row["cost"]["usd_per_million"])
    assert (cells["lifetime_years"], cells["duty"], cells["electricity_usd_per_kwh"]) == ("3.0", "0.5", "0.25")


def test_work_over_batches_takes_the_quickest_that_fits(cli: Any) -> None:
    words = ("compare", "--net", "vgg_16", "--hw", "gtx_1080,gtx_480", "--batch", "1,8,64", "--samples", "1e6")
    table = cli(*words).out.split("1,000,000 img, inference, each at its quickest batch")[1].splitlines()
    assert [line.split()[:3] for line in table[1:3]] == [["GTX", "1080", "64"], ["GTX", "480", "8"]]


def test_two_stacks_on_one_device_are_set_against_each_other(cli: Any) -> None:
    words = ("compare", "--net", "resnet_18", "--hw", "a100_sxm4_40gb", "--batch", "8", "--stack", "pytorch-2,pytorch-2-inductor")
    rows = {row["stack"]: row for row in cli(*words, "--json").json}
    change = rows["pytorch-2-compile"]["stack_change"]
    assert rows["pytorch-2"]["stack_change"] is None
    assert change["before_s"] == pytest.approx(rows["pytorch-2"]["latency_s"])
    assert change["after_s"] == pytest.approx(rows["pytorch-2-compile"]["latency_s"])
    assert sum(step["saved_s"] for step in change["steps"]) == pytest.approx(change["before_s"] - change["after_s"])
    first, layers = cli(*words).out, cli(*words, "--layers").out
    assert all(step["title"] in first for step in change["steps"])
    assert all(layer["layer"] in layers for layer in change["layers"])
    single = cli(*words[:-1], "pytorch-2", "--json").json
    assert [row["stack_change"] for row in single] == [None]


def test_the_change_of_a_stack_has_the_threads_that_were_asked_for(cli: Any) -> None:
    words = ("compare", "--net", "alexnet", "--hw", "i7_6700k", "--stack", "caffe-openblas,intel-mkl", "--threads", "2", "--json")
    first, second = sorted(cli(*words).json, key=lambda row: row["stack_change"] is not None)
    assert second["stack_change"]["before_s"] == pytest.approx(first["latency_s"])
