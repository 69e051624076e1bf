"""`archsim simulate serve`: what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archsim

SERVE = ("simulate", "serve", "--net", "resnet_50", "--hw", "tesla_t4")
FEW = ("--requests", "4000")


def answer(cli: Any, *words: str) -> dict[str, Any]:
    result = cli(*SERVE, *words, "--json")
    assert result.code == 0, result.err
    return dict(result.json)


def test_a_server_says_percentiles_use_and_energy(cli: Any) -> None:
    result = cli(*SERVE, "--rate", "200/s", "--batching", "max=32,wait=5ms", *FEW)
    assert result.code == 0
    for word in ("batches of up to 32, wait 5 ms", "200 requests/s  ", "in full batches", "at p99", "% busy", "p99.9", "At 7"):
        assert word in result.out, word
    assert result.err == ""
    assert "seed 1" not in result.out
    assert "seed 1" in cli(*SERVE, "--rate", "200/s", *FEW, "--all").out


def test_json_is_repeatable_and_consistent(cli: Any) -> None:
    words = ("--rate", "150/s", "--batching", "max=8", *FEW)
    first, again = (answer(cli, *words) for _ in range(2))
    assert first == again
    assert first["schema"] == "archsim-serve/1"
    assert first["stable"] is True
    tail = [first["latency_s"][name]["value"] for name in ("p50", "p90", "p99", "p99.9")]
    assert tail == sorted(tail)
    low, high = first["latency_s"]["mean"]["interval"]
    assert low < first["latency_s"]["mean"]["value"] < high
    assert first["throughput_per_s"] == pytest.approx(150, rel=0.05)
    assert first["power_w"] == pytest.approx(first["energy_per_request_j"] * first["throughput_per_s"])
    assert answer(cli, *words, "--seed", "2")["latency_s"] != first["latency_s"]


def test_a_single_stream_takes_an_estimate_with_its_input(cli: Any) -> None:
    found = answer(cli, "--scenario", "singlestream", *FEW)
    alone = archsim.estimate("resnet_50", "tesla_t4").latency_s
    assert found["scenario"] == "SingleStream"
    assert alone < found["latency_s"]["p90"]["value"] < 1.1 * alone


def test_offline_reaches_its_capacity_and_multistream_sends_eight(cli: Any) -> None:
    offline = answer(cli, "--scenario", "Offline", "--batching", "max=16", "--requests", "1600")
    assert offline["latency_s"] is None
    assert offline["throughput_per_s"] == pytest.approx(offline["capacity_per_s"], rel=0.02)
    assert answer(cli, "--scenario", "MultiStream", "--requests", "10")["mean_batch"] == 8


def test_an_overloaded_server_is_called_unstable(cli: Any) -> None:
    found = answer(cli, "--rate", "1e6/s", *FEW)
    assert (found["stable"], found["latency_s"]) == (False, None)
    assert "grows without end" in cli(*SERVE, "--rate", "1e6/s", *FEW).out
    assert answer(cli, "--rate", "150/s", "--batching", "max=8", "--devices", "2", *FEW)["stable"] is True


def test_the_highest_rate_keeps_its_bound_and_a_bit_more_does_not(cli: Any) -> None:
    words = ("--batching", "max=8", *FEW)
    found = answer(cli, "--p99", "40ms", *words)
    rate = found["highest_rate_per_s"]
    assert found["rate_per_s"] == rate
    assert 0 < found["latency_s"]["p99"]["value"] <= 0.04
    assert answer(cli, "--rate", f"{1.05 * rate}/s", *words)["latency_s"]["p99"]["value"] > 0.04
    none = cli(*SERVE, "--p99", "1ms", *FEW)
    assert none.code == 0
    assert "No rate stays within 1 ms at p99, because a request alone takes" in none.out


def test_recorded_arrivals(cli: Any, tmp_path: Path) -> None:
    place = tmp_path / "arrivals.csv"
    place.write_text("user,arrival_s\n" + "".join(f"a,{0.02 * i}\n" for i in range(50)), "utf-8")
    found = answer(cli, "--trace", str(place))
    assert found["requests"] == 50
    assert found["rate_per_s"] == pytest.approx(50)
    assert found["seed"] is None
    assert found["wait_s"]["value"] == 0.0


def test_recorded_arrivals_leave_nothing_to_draw(cli: Any, tmp_path: Path) -> None:
    place = tmp_path / "arrivals.csv"
    place.write_text("arrival_s\n0\n1\n", "utf-8")
    for words, text in (
        (("--requests", "5"), "--requests: no effect with --trace"),
        (("--scenario", "Offline"), "Offline has no arrivals of its own"),
    ):
        result = cli(*SERVE, "--trace", str(place), *words)
        assert (result.code, result.out) == (2, "")
        assert text in result.err


def test_the_group_names_the_nearest_simulation(cli: Any) -> None:
    assert "nearest: serve" in cli("simulate", "server").err
    assert "dynamic batching" in cli("simulate", "--help").out


def test_page_and_timeline(cli: Any, tmp_path: Path) -> None:
    page, timeline = tmp_path / "serve.html", tmp_path / "serve.json"
    result = cli(*SERVE, "--rate", "150/s", *FEW, "--batching", "max=8", "--html", str(page), "--timeline", str(timeline))
    assert result.code == 0
    body = page.read_text("utf-8")
    assert all(f"<h2>{word}" in body for word in ("Latency from arrival", "Latency against load"))
    events = json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "C"} == {"waiting requests [1]", "power [W]"}
    assert sum(event["args"]["requests"] for event in events if event["ph"] == "X") == 4000


def test_a_closed_loop_client_has_a_timeline(cli: Any, tmp_path: Path) -> None:
    timeline = tmp_path / "stream.json"
    assert cli(*SERVE, "--scenario", "MultiStream", "--requests", "7", "--timeline", str(timeline)).code == 0
    events = json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert [event["args"]["requests"] for event in events if event["ph"] == "X"] == [8] * 7
    assert {event["name"] for event in events if event["ph"] == "C"} == {"power [W]"}


# ------------------------------------------------------------------------------------------------------------------- --llm


LLM = ("simulate", "serve", "--llm", "--net", "llama_3_8b", "--hw", "h100_sxm5_80gb", "--requests", "30")


def test_the_command_prints_latencies_and_json(cli: Any, tmp_path: Path):
    found = cli(*LLM, "--rate", "5/s", "--output", "8", "--goodput", "ttft=1s,tpot=50ms")
    assert found.code == 0
    for words in ("time to first token", "between tokens", "within ttft 1 s, tpot 50 ms", "100.0 % of all", "the cache holds"):
        assert words in found.out, words
    place = tmp_path / "r.csv"
    place.write_text("arrival_s,input,output\n0,100,5\n0.5,200,5\n")
    words = cli(*LLM[:-2], "--trace", str(place), "--json").json
    assert (words["schema"], words["requests"], words["output_tokens"]) == ("archsim-serve-llm/1", 2, 10)
    for bad in (("--rate", "0/s"), ("--requests", "0"), ("--goodput", "x=1s"), ("--trace", str(place), "--rate", "1/s")):
        assert cli(*LLM, *bad).code == 2
    assert "--llm" in cli("simulate", "serve", "--help").out
