"""`archsim simulate train` and `allreduce`, and the nodes that they take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import archsim

TRAIN = ("simulate", "train", "--net", "resnet_50", "--hw", "gtx_1080", "--node", "deepbench_8gpu")


def answer(cli: Any, *words: str) -> dict[str, Any]:
    result = cli(*TRAIN, *words, "--json")
    assert result.code == 0, result.err
    return dict(result.json)


def test_a_scaling_curve(cli: Any) -> None:
    result = cli(*TRAIN, "--devices", "1,2,4,8", "--input", "disk,decode=8,pcie")
    assert result.code == 0
    for word in ("ring all-reduce overlapped", "8 decode workers", "efficiency", "on 8 devices hides behind the backward pass"):
        assert word in result.out, word
    assert len(result.out.splitlines()) <= 24
    every = cli(*TRAIN, "--devices", "8", "--input", "disk,decode=8,pcie", "--all").out
    for word in ("of gradients are exchanged, in", "not published"):
        assert word in every, word


def test_one_device_takes_what_an_estimate_says(cli: Any) -> None:
    found = answer(cli, "--devices", "1", "--batch", "16")
    alone = archsim.estimate("resnet_50", "gtx_1080", batch=16, task="training_step")
    assert found["schema"] == "archsim-train/1"
    assert found["points"][0]["step_s"] == pytest.approx(alone.latency_s, rel=1e-9)
    assert found["points"][0]["energy_per_sample_j"] == pytest.approx(alone.energy_j / 16, rel=1e-9)
    assert found["gradient_bytes"] == pytest.approx(4 * 25_557_032, rel=0.01)  # parameters of ResNet-50


def test_speed_ups_are_those_of_throughputs_and_the_parts_add_up(cli: Any) -> None:
    one, four = answer(cli, "--devices", "1,4")["points"]
    assert four["speedup"] == pytest.approx(four["throughput_per_s"] / one["throughput_per_s"])
    assert four["efficiency"] == pytest.approx(four["speedup"] / 4)
    assert sum(four[name] for name in ("input_s", "compute_s", "exchange_s", "update_s")) == pytest.approx(four["step_s"])
    assert answer(cli, "--devices", "4")["points"][0] == four


def test_what_makes_it_slower(cli: Any) -> None:
    """No overlap, a server, one worker, a slower network between boxes: each costs something."""
    base = answer(cli, "--devices", "8", "--net", "vgg_16", "--batch", "16")["points"][0]["step_s"]
    for words in (["--no-overlap"], ["--sync", "server"]):
        assert answer(cli, "--devices", "8", "--net", "vgg_16", "--batch", "16", *words)["points"][0]["step_s"] > 1.05 * base
    assert answer(cli, "--devices", "16", "--net", "vgg_16", "--batch", "16")["points"][0]["step_s"] > base
    fed, ready = (answer(cli, "--devices", "8", *words)["points"][0] for words in (["--input", "disk,decode=1,pcie"], []))
    assert fed["step_s"] > 1.05 * ready["step_s"]


def test_published_steps_stand_beside_the_simulated_ones(cli: Any) -> None:
    """A batch of 8192 over two cards, as the source counts it."""
    words = ("--net", "fcn_5", "--hw", "tesla_k40", "--stack", "cntk-cudnn5.1", "--devices", "2", "--batch", "4096")
    [reference] = answer(cli, *words)["references"]
    assert reference["measured_s"] == 0.13
    assert abs(reference["error"]) < 0.25
    assert "measured  2 devices 130 ms a step (guolinke" in cli(*TRAIN, *words).out
    assert answer(cli, "--devices", "2")["references"] == []


def test_a_published_step_is_predicted_as_it_was_run(cli: Any) -> None:
    """Whatever is simulated: CNTK exchanged gradients after the backward pass, in a node with four cards."""
    words = ("--net", "fcn_5", "--hw", "tesla_k40", "--stack", "cntk-cudnn5.1", "--devices", "2", "--batch", "4096")
    [here], [other] = (answer(cli, *words, *more)["references"] for more in ((), ("--sync", "server", "--input", "pcie")))
    assert here["predicted_s"] == other["predicted_s"]
    assert "gradients exchanged in a ring, not by a parameter server" in other["conditions"]
    assert "input ready on the device, not read, decoded or copied" in other["conditions"]
    assert here["conditions"][-1] == "gradients exchanged after the backward pass, not during the backward pass"
    [same] = answer(cli, *words, "--node", "xeon_e5_2680_v2_4gpu", "--no-overlap")["references"]
    assert same["conditions"] == []


def test_more_workers_than_cores_share_them(cli: Any) -> None:
    many, all_cores = (answer(cli, "--devices", "8", "--input", f"decode={n}") for n in (64, 16))
    assert many["points"][0]["step_s"] == all_cores["points"][0]["step_s"]
    assert any("16 cores, which they share" in note for note in many["assumptions"])


def test_page_and_timeline(cli: Any, tmp_path: Path) -> None:
    page, timeline = tmp_path / "train.html", tmp_path / "train.json"
    words = ("--devices", "1,2", "--input", "disk,decode=4,pcie", "--html", str(page), "--timeline", str(timeline))
    assert cli(*TRAIN, *words).code == 0
    assert "<h2>Scaling</h2>" in page.read_text("utf-8")
    events = json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert {"gpu1 decode", "all-reduce", "gpu0"} <= {event["args"]["name"] for event in events if event["ph"] == "M" and
                                                     "name" in event["args"]}  # fmt: skip
    assert {event["ph"] for event in events} == {"M", "X", "C", "s", "f"}
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert {"disk [GB/s]", "cpu0 > plx0 [GB/s]"} <= counters


def test_a_node_without_a_path_is_refused(cli: Any, tmp_path: Path) -> None:
    from archsim.base.files import data_folder

    text = data_folder("hwspecs/hosts").joinpath("desktop_2gpu.toml").read_text("utf-8")
    place = tmp_path / "split.toml"
    place.write_text(text.replace('["gpu1", "cpu0"]', '["gpu1", "plx0"]'), "utf-8")
    result = cli(*TRAIN, "--node", str(place), "--devices", "2")
    assert result.code == 65
    assert "gpu1 has no path to cpu0" in result.err


def test_all_reduces_beside_measured_ones(cli: Any) -> None:
    result = cli("simulate", "allreduce", "--devices", "2,16", "--bytes", "258MB")
    assert result.code == 0
    assert "titan_x_maxwell 41.9 ms" in result.out
    words = ("--node", "dgx_1_v100", "--devices", "8", "--bytes", "1GB", "--json")
    [row] = cli("simulate", "allreduce", *words).json["rows"]
    assert row["rings"] == 3
    assert row["measured"] == []
    assert cli("simulate", "allreduce", "--devices", "1").code == 2
    assert cli("simulate", "allreduce", "--bytes", "-1MB").code == 2


def test_nodes_are_listed_and_shown(cli: Any) -> None:
    assert "dgx_1_v100" in cli("list", "nodes").out
    shown = cli("show", "node", "dgx_1_v100").out
    assert "links.nvlink.bandwidth" in shown
    assert "2 x nvlink" in shown


def test_the_page_says_what_is_assumed_and_what_others_measured(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--net", "fcn_5", "--hw", "tesla_k40", "--node", "xeon_e5_2680_v2_4gpu", "--batch", "2048", "--devices", "4")
    shown = cli("simulate", "train", *words, "--stack", "caffe-cudnn5.1", "--html", str(page))
    assert shown.code == 0
    (rate,) = re.findall(r"^ +4 devices +([\d,]+)", shown.out, re.M)
    html = page.read_text("utf-8")
    assert "4 devices 85 ms a step" in html
    assert "links.pcie.ring" in html
    assert rate in html
