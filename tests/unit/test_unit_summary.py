"""Why a network takes its time, in words: groups of layers, what decides, what would help."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from archsim.base.units import show
from archsim.cost.bounds import BOUNDS
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.explain.summary import MOST_GROUPS, SMALL, bandwidth, layer_groups, peak, reaches, why


@pytest.fixture(scope="module")
def alexnet() -> Estimate:
    return estimate("alexnet", "tegra_x1")


@pytest.fixture(scope="module")
def training() -> Estimate:
    return estimate("resnet_50", "gtx_1080", batch=16, task="training_step")


def limited(e: Estimate, **relief: float) -> Estimate:
    """The estimate, where more of these resources saves these shares of the time; a graph could be replayed."""
    saved = {name: share * e.latency_s for name, share in relief.items()}
    return replace(e, saved_s=saved, graph_helps=True)


def test_groups_hold_every_layer_once_and_sum_to_the_latency(alexnet: Estimate, training: Estimate) -> None:
    for e in (alexnet, training):
        groups = layer_groups(e)
        assert len(groups) <= MOST_GROUPS
        assert sorted(op.name for group in groups for op in group.ops) == sorted(op.name for op in e.ops if op.time_s > 0)
        assert math.fsum(group.time for group in groups) == pytest.approx(e.latency_s, rel=1e-9)
        assert [group.time for group in groups] == sorted((group.time for group in groups), reverse=True)


def test_groups_are_called_as_a_reader_calls_them(alexnet: Estimate, training: Estimate) -> None:
    assert [group.name for group in layer_groups(alexnet)] == ["fc6 fc7 fc8", "conv1 to conv5", "norm, relu, pool, softmax"]
    names = {group.name for group in layer_groups(training)}
    assert {"forward convolutions", "backward convolutions", "weight updates"} <= names
    assert any(re.fullmatch(r"backward norm, \w+, \w+ and \d more", name) for name in names)
    (many, *_) = layer_groups(estimate("resnet_50", "gtx_1080", batch=16))
    assert many.name == "53 convolutions"


def test_a_family_that_takes_little_does_not_stand_alone() -> None:
    e = estimate("resnet_50", "gtx_1080", batch=16)
    (fc,) = (op for op in e.ops if op.kind == "linear")
    assert fc.time_s < SMALL * e.latency_s
    assert all(group.time >= SMALL * e.latency_s for group in layer_groups(e))
    (single,) = layer_groups(replace(e, ops=(fc,)))
    assert single.name == fc.name


def test_a_group_says_what_it_reaches_of_what_limits_it(alexnet: Estimate) -> None:
    fc, conv, _ = layer_groups(alexnet)
    top = peak(alexnet)
    assert top is not None
    rate = fc.dram_bytes / fc.time
    assert reaches(fc, alexnet) == f"{rate / 1e9:.3g} of 25.6 GB/s ({100 * rate / bandwidth(alexnet):.0f} %)"
    assert reaches(conv, alexnet).endswith(f"of 353 GFLOP/s ({100 * conv.flop / conv.time / top:.0f} %)")
    fast = replace(conv, ops=tuple(replace(op, flop=10 * op.flop) for op in conv.ops))
    assert reaches(fast, alexnet).endswith(f", {10 * conv.flop / conv.time / top:.1f} x the peak")


def test_the_peak_of_a_cpu_is_that_of_its_threads() -> None:
    one, four = (estimate("lenet_5", "i7_6700k", threads=threads) for threads in (1, 4))
    top = peak(one)
    assert top is not None
    assert peak(four) == pytest.approx(4 * top * four.clock_hz / one.clock_hz)


def test_memory_decides_where_weights_are_read_once(alexnet: Estimate) -> None:
    fc = layer_groups(alexnet)[0]
    said = why(limited(alexnet, dram=0.08, compute=0.06))
    assert said == [
        f"Memory decides: fc6 fc7 fc8 move {show(fc.dram_bytes, 'B', 3)} for one image (0.5 FLOP per byte; this chip balances at "
        "13.8).",
        "20 % more memory bandwidth saves 8 %, 20 % more arithmetic 6 %. A larger batch reads the same weights once: try "
        "--batch 16.",
    ]  # fmt: skip
    assert "batch" not in why(limited(replace(alexnet, max_batch=8), dram=0.08))[1]
    assert "batch" not in why(limited(replace(alexnet, batch=32), dram=0.08))[1]
    assert "batch" not in why(limited(replace(alexnet, task="training_step"), dram=0.08))[1]


def test_arithmetic_decides_and_a_precision_with_a_higher_peak_is_named(alexnet: Estimate) -> None:
    conv = layer_groups(alexnet)[1]
    first, second = why(limited(alexnet, compute=0.1))
    assert first.startswith(f"Arithmetic decides: conv1 to conv5 do {show(conv.flop, 'FLOP', 3)} for one image, at ")
    assert first.endswith(" % of the chip's peak.")
    assert second.startswith("20 % more arithmetic saves 10 %.")
    bert = estimate("bert_base", "a100_sxm4_40gb", batch=8)
    assert why(limited(bert, compute=0.16))[1].endswith("fp16 has 16 times the peak: try --precision fp16.")
    assert "fp16" not in why(limited(replace(bert, precision="fp16"), compute=0.16))[1]
    faster = replace(alexnet, ops=tuple(replace(op, flop=10 * op.flop) for op in alexnet.ops))
    assert re.search(r", \d\.\d x the chip's peak by an algorithm that needs fewer\.$", why(limited(faster, compute=0.1))[0])


def test_dispatch_decides(alexnet: Estimate) -> None:
    first, second = why(limited(alexnet, host=0.16))
    floor = show(alexnet.host_floor_s, "s", 3)
    assert first == (f"Dispatch decides: the host CPU (tegra_x1_cpu) takes {floor} to issue the kernels of "
                     f"{len(alexnet.ops)} ops, and no faster chip gets below.")  # fmt: skip
    assert second == "20 % faster dispatch saves 16 %. A replayed graph issues all at once: try --graph."
    without = limited(alexnet, host=0.16)
    without = replace(without, graph_helps=False)
    assert why(without)[1].endswith("A larger batch takes hardly more calls: try --batch 16.")
    own = estimate("lenet_5", "i7_6700k")
    assert why(limited(own, host=0.1))[0] == (f"Dispatch decides: the framework takes {show(own.host_floor_s, 's', 3)} to call "
                                              f"{len(own.ops)} ops.")  # fmt: skip


def test_input_the_power_limit_latency_and_launches_decide(alexnet: Estimate) -> None:
    assert why(limited(alexnet, input=0.1)) == [
        "Input decides: samples are read and decoded more slowly than the device takes them.",
        "20 % faster input saves 10 %."]  # fmt: skip
    assert why(limited(alexnet, power=0.1)) == [
        f"The power limit decides: within 10 W the core clock is {show(alexnet.clock_hz, 'Hz', 3)} in the mean.",
        "20 % more power saves 10 %."]  # fmt: skip
    first, second = why(limited(alexnet, latency=0.05))
    assert first.startswith("Latency of loads decides: too few loads in flight to hide latency, most of all in ")
    assert second == "20 % shorter latency saves 5 %. A larger batch fills the chip: try --batch 16."
    assert why(limited(alexnet, launch=0.05))[0].startswith("Launches decide: starting kernels or threads, most of all in ")
    assert why(limited(alexnet))[0] == "No single part decides: none that is 20 % faster saves much."


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_bound_gives_a_sentence(alexnet: Estimate, bound: str) -> None:
    for line in why(limited(alexnet, **{bound: 0.05})):
        assert line.endswith(".")
        assert not re.search(r"\b(nan|inf|None)\b|\d e|  ", line)
