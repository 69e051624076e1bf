"""`archsim whatif`."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

import archsim

TEGRA = ("whatif", "--net", "alexnet", "--hw", "tegra_x1")


def test_before_and_after_are_two_estimates(cli: Any) -> None:
    more, single = ("--set", "memory.bandwidth=51.2GB/s"), ("estimate", *TEGRA[1:], "--json")
    found = cli(*TEGRA, *more, "--json").json
    alone, changed = cli(*single).json, cli(*single, *more).json
    assert found["before"]["latency_s"] == alone["latency_s"]
    assert found["after"]["latency_s"] == changed["latency_s"]
    assert found["changed"] is True
    assert {"fc6", "fc7", "fc8"} <= {op["name"] for op in found["ops"] if op["moved"]}


def test_the_verdict_comes_first_with_its_interval(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "w.html"
    out = cli(*TEGRA, "--set", "memory.bandwidth=51.2GB/s", "--html", str(page)).out
    found = archsim.whatif("alexnet", "tegra_x1", set="memory.bandwidth=51.2GB/s")
    saved = found.saved["throughput_per_s"]
    assert saved.interval[0] < saved.ratio == found.after.throughput_per_s / found.before.throughput_per_s < saved.interval[1]
    verdict, _, rest = out.partition("Where the time goes")
    for text in (f"{saved.ratio:.3g} times as fast", f"80 %: {saved.interval[0]:.3g} to {saved.interval[1]:.3g}",
                 "fc6 fc7 fc8 gain most", "Memory-bound to"):  # fmt: skip
        assert text in verdict, text
        assert text in page.read_text("utf-8"), text
    assert "correlated by 0.6" in rest
    assert len(out.splitlines()) <= 24
    assert "conv2" not in rest
    assert "conv2" in cli(*TEGRA, "--set", "memory.bandwidth=51.2GB/s", "--layers").out


def test_settings_of_one_device_have_the_interval_that_was_counted(cli: Any) -> None:
    assert "counted on pairs of measured rows" in cli(*TEGRA, "--to", "batch=4", "--to", "clock=600MHz").out
    assert "correlated by 0.1" in cli(*TEGRA, "--to", "precision=fp16").out


def test_hardware_and_software_can_be_changed_together(cli: Any) -> None:
    out = cli(*TEGRA, "--to", "hw=gtx_1080", "--to", "batch=4", "--to", "clock=1.5GHz").out
    assert "what if hw = gtx_1080, batch = 4, clock = 1.5 GHz" in out


def test_a_knob_that_does_nothing_says_so(cli: Any) -> None:
    out = cli(*TEGRA, "--set", "market.price=1USD").out
    assert "Nothing changes" in out
    assert "times as" not in out


def test_a_die_can_be_asked_for(cli: Any) -> None:
    words = ("whatif", "--net", "alexnet", "--hw", "titan_x_maxwell", "--scale", "sm.count=2", "--area")
    out = cli(*words).out
    for text in ("not 601 mm2", "one exposure covers 858 mm2", "without package and memory chips"):
        assert text in out, text
    assert len(cli(*words, "--json").json["dies"]) == 2
    assert cli("whatif", "--net", "alexnet", "--hw", "i7_6700k", "--to", "batch=2", "--area").code == 2


def test_the_die_model_shows_its_errors(cli: Any) -> None:
    out = cli("show", "silicon").out
    for text in ("GM200", "601 mm2", "median error", "it misses half by less than"):
        assert text in out, text


def test_another_device_names_the_defaults_that_come_with_it(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "w.html"
    words = (*TEGRA, "--to", "hw=i7_6700k")
    out = cli(*words, "--html", str(page)).out
    said = "stack intel-mkl, not caffe-cudnn4; threads 4, not none; clock 4 GHz, not 690 MHz"
    assert said in out
    assert "host CPU" not in out  # a CPU dispatches for itself
    assert said in page.read_text("utf-8")
    assert cli(*words, "--json").json["followed"]["stack"] == ["caffe-cudnn4", "intel-mkl"]


def test_what_is_named_has_not_followed(cli: Any) -> None:
    out = cli(*TEGRA, "--to", "hw=gtx_1080", "--to", "stack=caffe-cudnn4", "--to", "host_cpu=tegra_x1_cpu").out
    assert re.search(r"with it +clock 1.65 GHz, not 690 MHz: the defaults there", out)
    assert "with it" not in cli(*TEGRA, "--to", "batch=4").out


FAR = ("--net", "vgg_16", "--hw", "gtx_1080", "--set", "memory.capacity=1GB", "--set", "sm.count=90",
       "--set", "sm.alu_latency=8clk")  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("estimate", *FAR), ("whatif", *FAR, "--to", "batch=4"), ("simulate", "train", *FAR, "--devices", "1", "--batch", "16"),
        ("llm", "--net", "llama_3_8b", "--hw", "gtx_1080", "--set", "memory.capacity=24GB", "--input", "1000", "--output", "4",
         "--batch", "256"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_every_warning_of_the_text_is_on_the_page(cli: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    page = tmp_path / "page.html"
    found = cli(*words, "--html", str(page))
    assert found.code == 0, found.err
    said = [line.partition("warning")[2].strip(" :") for line in found.out.splitlines() if line.startswith("warning")]
    assert said
    for line in said:
        assert escape(line) in page.read_text("utf-8"), line
