"""Rounds, disturbance, meters and rows, with sessions that only pretend."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.base.errors import ArchsimError, ArgumentError, InputError, Unsupported
from archsim.base.writer import OutputFile, table_with
from archsim.detect.system import Told
from archsim.device.catalog import find
from archsim.evidence.readers import read_files
from archsim.measure.rows import COLUMNS, TimedCell, Writer, op_rows, rows_of
from archsim.measure.run import MeasurementPlan, check, check_networks, check_threads, opener, results, stack_of, whole_numbers
from archsim.measure.timing import EnergyMeter, Metered, Round, Session, cpu_share, energy_of, measure, meter_for, reading
from archsim.trace.trace import BoundTrace

Pretended = Callable[..., Session]


def rounds(*pairs: tuple[float, float]) -> list[Round]:
    return [Round(time_s=time_s, share=share, cpu_s=time_s * share) for time_s, share in pairs]


def test_disturbed_rounds_are_left_out_of_the_median() -> None:
    found = reading(rounds((1.0, 1.0), (1.1, 0.95), (1.2, 0.91), (9.0, 0.4)))
    assert (found.time_s, found.rounds, found.disturbed, found.sound) == (1.1, 4, 1, True)
    assert found.least_s == 1.0


def test_without_enough_sound_rounds_all_count_and_the_reading_is_not_sound() -> None:
    found = reading(rounds((1.0, 1.0), (3.0, 0.5), (5.0, 0.5)))
    assert (found.time_s, found.disturbed, found.sound) == (3.0, 2, False)


def test_rounds_go_on_until_enough_are_sound_or_the_time_is_over(pretended: Pretended) -> None:
    shares = iter([0.5, 1.0, 0.2, 1.0, 1.0, 1.0])
    found = measure(pretended(), rounds=4, seconds=60, share_of=lambda *_: next(shares))
    assert (found.rounds, found.disturbed) == (6, 2)
    assert measure(pretended(), rounds=10**9, seconds=0.0, share_of=lambda *_: 0.1).rounds == 3


def test_processor_time_counts_where_it_is_asked_for() -> None:
    found = reading([replace(r, by_processor=True) for r in rounds((2.0, 0.5), (4.0, 0.25), (1.0, 1.0))])
    assert (found.time_s, found.disturbed, found.by_processor) == (1.0, 0, True)
    one = MeasurementPlan(networks=("resnet_56",), batches=(1,), threads=(1,), hw="host", rounds=1, seconds=1.0)
    many = replace(one, threads=(1, 2), by_processor=True)
    with pytest.raises(Unsupported, match="--threads 1"):
        check(many)


def test_short_runs_are_timed_together(pretended: Pretended) -> None:
    session: Any = pretended(seconds=0.002)
    found = measure(session, rounds=3, seconds=60, share_of=lambda *_: 1.0)
    assert found.time_s == pytest.approx(0.002)
    assert session.calls == 3 + 1 + 3 * 10  # warm-up, a look, rounds of 20 ms


def test_the_share_is_of_all_threads() -> None:
    assert cpu_share(2.0, 2.0, 2) == 0.5
    assert cpu_share(2.1, 1.0, 2) == 1.0


def test_a_gpu_s_host_may_sleep(pretended: Pretended) -> None:
    session: Any = pretended()
    session.host = "gpu"
    assert measure(session, rounds=3, seconds=60).disturbed == 0


def test_a_meter_that_cannot_be_read_is_a_reason() -> None:
    assert isinstance(meter_for("gpu"), EnergyMeter | str)
    assert isinstance(meter_for("cpu"), EnergyMeter | str)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.measure.timing.METER_S", 0.02)


def test_energy_is_of_one_run_and_power_is_energy_over_time(pretended: Pretended, short: None) -> None:
    session: Any = pretended()
    meter = EnergyMeter(covers="1 package, RAPL", begin=lambda: lambda: 3.0 * session.calls, memory=lambda: lambda: session.calls)
    package, modules = energy_of(session, meter)
    assert (package.covers, modules.covers) == ("1 package, RAPL", "memory modules, RAPL")
    assert (package.energy_j, modules.energy_j) == pytest.approx((3.0, 1.0))
    assert package.power_w == pytest.approx(3.0 * modules.power_w)
    assert session.calls * package.energy_j / package.power_w >= 0.02  # the time that it was metered


def test_a_counter_that_stands_still_gives_no_row_but_a_reason(pretended: Pretended, short: None) -> None:
    still = EnergyMeter(covers="1 package, RAPL", begin=lambda: lambda: 7.0)
    found = measure(pretended(), 3, 60.0, still, share_of=lambda *_: 1.0)
    assert not found.metered
    assert "(1 package, RAPL) did not move" in found.unmetered
    assert [row["metric"] for row in rows_of(CELL, found)] == ["latency_s"]
    memory_asleep = EnergyMeter(covers="1 package, RAPL", begin=lambda: iter(range(10**6)).__next__, memory=lambda: lambda: 7.0)
    assert [one.covers for one in energy_of(pretended(), memory_asleep)] == ["1 package, RAPL"]


def test_a_meter_that_fails_between_runs_keeps_the_times(pretended: Pretended, short: None) -> None:
    def refused() -> float:
        raise Unsupported("no energy: gone")

    found = measure(pretended(), 3, 60.0, EnergyMeter(covers="x", begin=lambda: refused), share_of=lambda *_: 1.0)
    assert (found.metered, found.unmetered, found.rounds) == ((), "no energy: gone", 3)


CELL = TimedCell(network="alexnet", batch=2, threads=1, stack="onnxruntime-cpu", software="x", spec=find("i7_6700k"),
                 shipped=True, split="test")  # fmt: skip


def test_rows_have_the_columns_and_the_joined_ops() -> None:
    found = reading(rounds((0.5, 1.0)), (Metered(covers="1 package, RAPL", energy_j=4.0, power_w=8.0),))
    rows = [*rows_of(CELL, found), *op_rows(CELL, {("a", "b"): 0.25})]
    assert [(row["metric"], row["value"], row.get("op", ""), row.get("covers", "")) for row in rows] == [
        ("latency_s", "0.5", "", ""), ("energy_j", "4", "", "1 package, RAPL"), ("power_w", "8", "", "1 package, RAPL"),
        ("latency_s", "0.25", "a+b", "")]  # fmt: skip
    assert all(set(row) <= set(COLUMNS) for row in rows)
    assert {row["spec_hash"] for row in rows} == {""}  # a shipped device needs no hash


def out(path: Path) -> OutputFile:
    return OutputFile(path=str(path), kind=table_with(lambda: COLUMNS, "file of measurements"), command="measure")


def test_a_file_grows_row_by_row_and_is_not_touched_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    earlier = ",".join(COLUMNS) + "\n"
    path.write_text(earlier)
    writer = Writer(out(path), io.StringIO())
    writer.write([])
    assert path.read_text() == earlier
    writer.write(op_rows(CELL, {("a",): 0.25}))
    assert len(path.read_text().splitlines()) == 2
    writer.write(op_rows(CELL, {("b",): 0.25}))
    assert [row["op"] for row in csv.DictReader(path.read_text().splitlines())] == ["a", "b"]


@pytest.mark.parametrize(("name", "text"), [(".", "is a folder"), ("no/mine.csv", "no folder")])
def test_a_path_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Writer(out(tmp_path / name), io.StringIO())


def test_rows_that_somebody_else_wrote_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("network,value\nalexnet,1\n")
    with pytest.raises(InputError, match="name another file, or add --force"):
        Writer(out(tmp_path / "mine.csv"), io.StringIO())
    assert (tmp_path / "mine.csv").read_text() == "network,value\nalexnet,1\n"


PLAN = MeasurementPlan(networks=("resnet_56",), batches=(1, 2), threads=(1,), hw="i7_6700k", rounds=1, seconds=0.0, per_op=True)


def test_every_cell_gives_its_rows(pretended: Pretended) -> None:
    found = list(results(PLAN, pretended))
    assert [(r.label, len(r.rows)) for r in found] == [("resnet_56, batch 1, 1 threads", 2), ("resnet_56, batch 2, 1 threads", 2)]


def test_a_network_is_built_as_the_stack_of_the_backend_has_it(pretended: Pretended) -> None:
    built = []

    def build(trace: BoundTrace, threads: int) -> Session:
        built.append(trace.name)
        return pretended(trace, threads)

    for stack in ("", stack_of("onnxruntime", "cpu"), stack_of("torch", "cpu"), stack_of("torch", "cuda", "pytorch-2")):
        (found,) = results(replace(PLAN, networks=("alexnet",), batches=(1,), stack=stack), build)
        assert {row["network"] for row in found.rows} == {"alexnet"}
    assert built == ["alexnet", "alexnet", "alexnet_owt", "alexnet_owt"]


def test_strict_refuses_a_disturbed_cell(pretended: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.measure.timing.cpu_share", lambda *_: 0.3)
    plan = MeasurementPlan(networks=("resnet_56",), batches=(1,), threads=(1,), hw="i7_6700k", rounds=1, seconds=0.0)
    strict = replace(plan, strict=True)
    (found,) = results(strict, pretended)
    assert found.refused
    assert found.rows == []
    assert "3 of 3 rounds" in found.said


def test_a_network_that_cannot_be_built_does_not_stop_the_others(pretended: Pretended) -> None:
    def build(trace: BoundTrace, threads: int) -> Session:
        if trace.inputs["data"][0] == 1:
            raise RuntimeError("it has loops\nand a long story")
        return pretended(trace, threads)

    first, second = results(PLAN, build)
    assert (first.refused, second.refused) == (True, False)
    assert first.said.endswith("refused, it has loops")


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    with pytest.raises(ArchsimError, match="whole numbers from 1"):
        whole_numbers("1,0", "--batch")
    with pytest.raises(Unsupported, match="may use 2"):
        check_threads((1, 4), 2)
    with pytest.raises(ArchsimError, match="nearest: torch"):
        opener("torsh", "cpu")
    with pytest.raises(Unsupported, match="--backend torch"):
        opener("onnxruntime", "cuda")
    with pytest.raises(Unsupported, match="relative"):
        check_networks(("/home/somebody/net.jsonl",), (1,), stack_of("onnxruntime", "cpu"))


def test_a_network_that_takes_more_memory_than_there_is_is_refused_before_it_is_built() -> None:
    from archsim.measure.run import check_memory, needed_bytes

    room, stack = Told(value=8 * 2**30, source="a test"), stack_of("onnxruntime", "cpu")
    check_memory(("resnet_50",), (1,), stack, room)
    check_memory(("llama_2_7b",), (1,), stack, None)  # nobody tells what there is
    with pytest.raises(Unsupported, match=r"llama_2_7b, batch 1: takes about .* GiB of memory, and there are 8 GiB \(a test\)"):
        check_memory(("resnet_50", "llama_2_7b"), (1,), stack, room)
    with pytest.raises(Unsupported, match="vgg_16, batch 4096: takes"):
        check_memory(("vgg_16",), (1, 4096), stack, room)
    assert needed_bytes("alexnet", 1, stack) > needed_bytes("alexnet", 1, stack_of("torch", "cpu"))  # held twice


def test_sequences_have_the_length_that_is_asked_for(pretended: Pretended) -> None:
    built: list[dict[str, int]] = []

    def open_session(trace: BoundTrace, threads: int) -> Any:
        built.append(dict(trace.symbols))
        raise Unsupported("enough is known")

    asked = replace(PLAN, networks=("bert_base",), batches=(2,), seq_len=48)
    assert [result.refused for result in results(asked, open_session)] == [True]
    assert built == [{"N": 2, "T": 48}]
    check_networks(("bert_base",), (1,), "onnxruntime-cpu", 48)
    with pytest.raises(ArgumentError, match="alexnet takes no sequences"):
        check_networks(("alexnet",), (1,), "onnxruntime-cpu", 48)
    assert op_rows(replace(CELL, seq_len=48), {("a",): 1.0})[0]["seq_len"] == "48"


OWN = """{"schema": "archsim-trace/1", "name": "own", "inputs": {"data": ["N", 3, "H", "W"]}, "dtype": "fp32", "source": "test", \
"symbols": {"N": "samples", "H": "height", "W": "width"}}
{"op": "conv2d", "name": "c", "in": ["data"], "out": ["N", 8, "H", "W"], "kernel": [3, 3], "pad": [1, 1]}
"""


def test_other_symbols_of_an_own_network_are_sized_and_written_into_the_rows(
    pretended: Pretended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.jsonl").write_text(OWN)
    built: list[dict[str, int]] = []

    def open_session(trace: BoundTrace, threads: int) -> Any:
        built.append(dict(trace.symbols))
        raise Unsupported("enough is known")

    sizes = (("W", 48), ("height", 64))
    assert list(results(replace(PLAN, networks=("own.jsonl",), batches=(2,), sizes=sizes), open_session))
    assert built == [{"N": 2, "H": 64, "W": 48}]
    with pytest.raises(ArgumentError, match="needs sizes for W"):
        check_networks(("own.jsonl",), (1,), "onnxruntime-cpu", sizes=(("height", 64),))
    with pytest.raises(ArchsimError, match="no symbol 'depth'"):
        check_networks(("own.jsonl",), (1,), "onnxruntime-cpu", sizes=(("depth", 64),))
    row = op_rows(replace(CELL, network="own.jsonl", sizes=sizes), {("c",): 1.0})[0]
    assert row["bind"] == "W=48 height=64"
    table = Path("mine.csv")
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(row | {"op": ""})
        writer.writerow(row | {"op": "", "bind": "W=48 height=0"})
        writer.writerow(row | {"op": "", "bind": ""})
    cases, skips = read_files([str(table)])
    assert [case.trace.symbols for case in cases] == [{"N": CELL.batch, "H": 64, "W": 48}]
    assert [skip.reason for skip in skips] == [
        "bind 'W=48 height=0' is not NAME=SIZE, such as height=320, with spaces between",
        "network 'own.jsonl' needs H, W, which the row does not give",
    ]
