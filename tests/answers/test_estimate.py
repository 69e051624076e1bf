"""What an estimate says beside what the contract holds of every answer: measurements, trust, energy, layers, floors."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import archsim
from archsim.answers import estimate as said
from archsim.answers.layers import layer_table, layer_tree, roofline, tree_chart
from archsim.answers.timeline import power_chart
from archsim.base.units import show
from archsim.cost.energy import COMPONENTS
from archsim.estimation.estimate import estimate
from archsim.estimation.result import Estimate
from archsim.render.blocks import Table
from archsim.render.html import page
from archsim.render.text import text_of


@pytest.fixture(scope="module")
def alexnet() -> Estimate:
    return archsim.estimate("alexnet", "tegra_x1")


@pytest.fixture(scope="module")
def training() -> Estimate:
    return estimate("resnet_200", "gtx_1080", batch=8, task="training_step")


def first_screen(e: Estimate) -> str:
    return text_of(said.sections(e))


def test_the_heading_says_what_was_asked(alexnet: Estimate) -> None:
    first = first_screen(alexnet).splitlines()[0]
    assert first == "alexnet on NVIDIA Tegra X1 · inference · batch 1 · fp32 · caffe-cudnn4 · 690 MHz"
    odd = first_screen(estimate("googlenet", "gtx_1080", batch=2, fidelity="event", streams=2))
    assert odd.splitlines()[0].startswith("googlenet on NVIDIA GeForce GTX 1080 · ")
    assert odd.splitlines()[0].endswith(" · 2 streams · event model")
    changed = said.title(archsim.estimate("alexnet", "gtx_1080", set={"sm.count": "10"}))
    assert changed == "alexnet on NVIDIA GeForce GTX 1080 with sm.count = 10"
    assert said.title(replace(alexnet, network="/some/folder/my net.onnx")).startswith("my net.onnx on ")


def test_the_verdict_has_every_total_with_its_interval(alexnet: Estimate) -> None:
    e = alexnet
    text = first_screen(e)
    low, high = e.latency_interval_s
    for value in (show(e.latency_s, "s", 3), f"80 %: {1e3 * low:.3g} to {show(high, 's', 3)}",
                  f"{e.throughput_per_s:.3g} img/s", show(e.power_w, "W", 3), show(e.energy_j, "J", 3),
                  f"{e.throughput_per_w:.3g} img/s per W", show(e.memory_bytes, "B", 3),
                  f"fits up to batch {e.max_batch}"):  # fmt: skip
        assert value in text


def test_a_network_that_does_not_fit_is_told(alexnet: Estimate) -> None:
    small = replace(alexnet, memory_capacity_bytes=1e6, max_batch=0)
    assert said.verdict(small).lines[2][1:] == ("DOES NOT FIT", "no batch fits")
    assert said.verdict(replace(small, max_batch=7)).lines[2][2] == "batch 7 would fit"
    assert said.verdict(replace(alexnet, max_batch=None)).lines[2][1] == "fits"


def test_measurements_of_one_run_stand_on_one_line(alexnet: Estimate) -> None:
    rate, power = alexnet.references
    (line,) = said.runs_of_others(alexnet)
    assert line == ("47 img/s and 5.5 W with the same software (NVIDIA Jetson TX1 whitepaper, 2015): predicted "
                    f"{100 * abs(rate.error):.0f} % {'slower' if rate.error > 0 else 'faster'}, {100 * abs(power.error):.0f} % "
                    f"{'more' if power.error > 0 else 'less'} power")  # fmt: skip
    other = replace(rate, stack="caffe-native", conditions=("stack caffe-native, not caffe-cudnn4", "threads 4, not 8"))
    (line,) = said.runs_of_others(replace(alexnet, references=(other,)))
    assert line.startswith("47 img/s with caffe-native (NVIDIA")
    assert line.endswith("; 1 other condition: --all")


@pytest.mark.parametrize(("metric", "errors", "words"), [
    ("latency_s", (0.34, 0.36), "34 to 36 % slower"), ("throughput_per_s", (-0.36, -0.34), "34 to 36 % faster"),
    ("latency_s", (-0.02, 0.05), "2 % faster to 5 % slower"), ("power_w", (0.021, 0.02), "2 % more power"),
    ("energy_j", (-0.5,), "50 % less energy"),
])  # fmt: skip
def test_how_far_predictions_are_off_is_said_in_words(
    alexnet: Estimate, metric: str, errors: tuple[float, ...], words: str
) -> None:  # fmt: skip
    run = [replace(alexnet.references[0], metric=metric, error=error) for error in errors]
    assert said.off_words(run) == words


def test_many_measurements_stand_behind_all(alexnet: Estimate) -> None:
    many = tuple(replace(alexnet.references[0], source=f"source {i}", conditions=("threads 4, not 8",)) for i in range(5))
    e = replace(alexnet, references=many)
    assert "3 more: --all" in first_screen(e)
    assert "source 3" not in first_screen(e)
    text = text_of(said.sections(e), 2)
    assert all(f"source {i}" in text for i in range(5))
    assert text.count("threads 4, not 8") == 5
    assert "Measured by others" not in page(said.sections(replace(alexnet, references=())))
    assert "nobody has published a measurement of this case" in first_screen(replace(alexnet, references=()))


def test_trust_says_how_far_such_predictions_are_off(alexnet: Estimate) -> None:
    seen = replace(alexnet.held_out, rows=31, median=0.12, p90=0.4, like="cards like this one")
    assert "cards like this one: half within 12 %, nine in ten within 40 %" in first_screen(replace(alexnet, held_out=seen))
    assert "half within" not in first_screen(replace(alexnet, held_out=replace(seen, rows=0)))
    assert "4 measurements of this device: predicted " in first_screen(alexnet)
    assert "measurements of this device" not in first_screen(archsim.estimate("alexnet", "gtx_1080", set={"sm.count": "10"}))


def test_everything_else_stands_behind_all(alexnet: Estimate) -> None:
    text = text_of(said.sections(alexnet), 2)
    for words in (*alexnet.assumptions, *alexnet.assumed_values, show(alexnet.flop, "FLOP")):
        assert words in text
    for name, part in alexnet.energy_breakdown_j.items():
        line = rf"^  {name.replace('_', ' ')} +{re.escape(show(part, 'J', 3))} "
        assert (re.search(line, text, re.M) is not None) == (part > 0)
    assert all(op.name in text_of(said.sections(alexnet), 1) for op in alexnet.ops if op.time_s > 0)
    assert [value for value in alexnet.provenance.values() if value not in page(said.sections(alexnet))] == []


def test_warnings_stand_one_on_a_line(alexnet: Estimate) -> None:
    text = first_screen(replace(alexnet, warnings=("one", "two")))
    assert "\nwarning: one\nwarning: two\n" in text


def test_a_run_that_waits_for_the_host_says_below_what_no_chip_gets() -> None:
    e = estimate("resnet_50", "h100_sxm5_80gb", batch=8)
    floor = show(e.host_floor_s, "s", 3)
    assert said.floor_line(e) == f"xeon_platinum_8480 needs {floor} to issue this; no faster chip gets below; --graph does"
    assert said.floor_line(estimate("vgg_16", "gtx_1080", batch=16)) == ""


def test_json_has_the_limit_and_the_two_parts_of_the_time(alexnet: Estimate) -> None:
    found = said.record(alexnet)
    assert found["limited_by"] == next(iter(found["saved_s"])) == alexnet.limited_by
    assert abs(found["device_s"] + found["host_wait_s"] - found["latency_s"]) < 1e-12
    assert abs(sum(op["wait_s"] for op in found["ops"]) - found["host_wait_s"]) < 1e-12
    assert 0 < found["host_floor_s"] <= found["latency_s"]


def test_rows_of_csv_have_the_energy_by_component(alexnet: Estimate) -> None:
    rows = list(csv.DictReader(io.StringIO(said.csv(alexnet))))
    for row, op in zip(rows, alexnet.ops, strict=True):
        parts = {name: float(row[f"energy_breakdown_j.{name}"]) for name in COMPONENTS}
        assert parts == dict(op.energy_breakdown_j)
        assert sum(parts.values()) == pytest.approx(float(row["energy_j"]), rel=1e-12)


def filled(table: Table, column: int) -> list[float]:
    return [max((piece.end for piece in row[column].bar), default=0.0) for row in table.rows]


def test_bars_of_layers_are_as_long_as_their_times_and_energies(alexnet: Estimate) -> None:
    live = [op for op in alexnet.ops if op.time_s > 0]
    for column, values in ((5, [op.time_s for op in live]), (11, [op.energy_j for op in live])):
        assert filled(layer_table(alexnet), column) == pytest.approx([value / max(values) for value in values])


def test_no_layer_in_the_shadow_of_others_computes_beyond_the_peak() -> None:
    """On several streams an op may add next to nothing to the latency; it runs for as long all the same."""
    shares = []
    for streams in (1, 4):
        e = estimate("googlenet", "gtx_1080", batch=16, fidelity="event", streams=streams)
        shares.append(max(row[9].value or 0.0 for row in layer_table(e).rows))
    assert shares[1] <= shares[0] * (1.0 + 1e-9) < 1.0


def leaves(tree: list[Any]) -> Iterator[list[Any]]:
    for node in tree:
        if len(node) == 2:
            yield from leaves(node[1])
        else:
            yield node


def test_a_tree_of_blocks_holds_each_op_once(alexnet: Estimate, training: Estimate) -> None:
    live = [op for op in training.ops if op.time_s > 0]
    found = list(leaves(layer_tree(training)))
    assert len(found) == len(live)
    assert math.fsum(leaf[1] for leaf in found) == pytest.approx(math.fsum(op.time_s for op in live), rel=1e-3)
    assert math.fsum(leaf[2] for leaf in found) == pytest.approx(math.fsum(op.energy_j for op in live), rel=1e-3)
    assert [name for name, _ in layer_tree(training)][:1] == ["forward"]
    assert tree_chart(alexnet) == []


def ceilings(e: Estimate) -> dict[str, tuple[float, bool]]:
    """Of each precision the peak, and whether it is the one of the estimate."""
    lines = [s for s in roofline(e).series if not s.mark and len(set(s.y)) == 1]
    return {s.name.partition(":")[0]: (s.y[0], s.tone != "quiet") for s in lines}


def test_ceilings_are_the_peaks_of_the_device_at_the_clock_of_the_estimate(alexnet: Estimate) -> None:
    fp32 = 2 * 2 * 128 * 690e6
    found = ceilings(alexnet)
    assert found == {"fp32": (fp32, True)}
    assert ceilings(archsim.estimate("alexnet", "tegra_x1", precision="fp16"))["fp16"][0] == pytest.approx(2 * fp32, rel=0.2)


def test_halves_that_a_chip_widens_have_no_ceiling_of_their_own() -> None:
    """A GTX 1080 multiplies 2 halves per clock and SM as such, so that programs compute them as fp32."""
    assert [*ceilings(estimate("alexnet", "gtx_1080", precision="fp16"))] == ["fp32 and fp16"]


def test_a_cpu_that_uses_half_its_cores_has_half_the_peak() -> None:
    whole, half = (ceilings(archsim.estimate("alexnet", "i7_6700k", threads=threads))["fp32"][0] for threads in (4, 2))
    assert math.isclose(half, whole / 2)


def test_ops_in_the_shadow_of_others_stand_no_higher_in_the_roofline() -> None:
    """On several streams an op may add nothing to the latency; it runs for as long all the same."""
    one, four = (estimate("googlenet", "tesla_v100_sxm2", batch=16, stack="pytorch-2", graph=True, fidelity="event", streams=n)
                 for n in (1, 4))  # fmt: skip
    highest = [max(y for s in roofline(e).series if s.mark for y in s.y) for e in (one, four)]
    assert highest[1] <= highest[0] * (1 + 1e-6)


def test_a_roofline_without_ops_is_drawn(alexnet: Estimate) -> None:
    assert not any(s.mark for s in roofline(replace(alexnet, ops=())).series)


def test_the_curve_of_the_power_has_its_mean_and_its_limit(alexnet: Estimate) -> None:
    chart = power_chart(alexnet)
    assert [(axis, value) for axis, value, _ in chart.guides] == [("y", alexnet.power_w), ("y", alexnet.power_limit_w)]
    (curve,) = chart.series
    area = sum(power * (b - a) for power, a, b in zip(curve.y, curve.x, curve.x[1:], strict=False))
    assert area == pytest.approx(alexnet.energy_j, rel=1e-6)
    assert "Boundary: module" in chart.notes[0]


def test_the_curve_of_a_long_run_is_averaged_and_keeps_its_energy(training: Estimate) -> None:
    (curve,) = power_chart(training).series
    assert len(curve.x) < len(training.power_over_time.time_s)
    area = sum(power * (b - a) for power, a, b in zip(curve.y, curve.x, curve.x[1:], strict=False))
    assert area == pytest.approx(training.power_over_time.energy_j, rel=1e-9)


def test_a_sample_of_a_language_model_is_a_sequence() -> None:
    bert = estimate("bert_base", "a100_sxm4_40gb", precision="fp16", seq_len=64)
    assert " per sequence" in first_screen(bert)
    assert " seq/s" in first_screen(bert)
    assert " img/s" not in first_screen(bert)


def test_a_large_training_step_stays_small(training: Estimate) -> None:
    body = page(said.sections(training))
    assert len(training.ops) > 1900
    assert len(body.encode()) < 300_000
    assert re.search(r"[\d,]+ shorter layers, \d+ % of the time, are not listed", body)
    text = text_of(said.sections(training), 1)
    assert sum(f"  {op.name} " in text for op in training.ops) == sum(op.time_s > 0 for op in training.ops)
    assert "Time and energy by block" in body


def test_power_at_the_wall_is_told_with_that_of_the_device() -> None:
    e = archsim.estimate("alexnet", "gtx_1080", boundary="wall")
    assert e.wall is not None
    assert said.verdict(e).lines[1][0] == f"{show(e.power_w, 'W', 3)} at the wall"
    assert f"the device {show(e.wall.device_w, 'W', 3)} of at most 180 W (board)" in said.power_line(e)
