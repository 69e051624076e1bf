"""What the commands print when all is well."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.device import catalog as devices
from archsim.stack import catalog as stacks
from archsim.trace import names as networks

# The documented keys, in the documented order; others may stand between and after them.
ESTIMATE_KEYS = (
    "schema", "network", "hardware", "stack", "task", "batch", "precision", "threads", "devices", "fidelity", "clock_hz",
    "latency_s", "latency_interval_s", "interval_level", "throughput_per_s", "power_w", "energy_j", "throughput_per_w",
    "memory_bytes", "fits", "flop", "dram_bytes", "breakdown_s", "ops", "references", "warnings", "provenance",
)  # fmt: skip
OP_KEYS = {"name", "kind", "time_s", "bound", "flop", "dram_bytes", "energy_j", "kernels"}
KERNEL_KEYS = {"name", "role", "algorithm", "time_s", "bound"}
REFERENCE_KEYS = {"metric", "measured", "predicted", "error", "source", "stack", "clock_hz", "boundary", "conditions"}
PROVENANCE_KEYS = {"version", "spec_hash", "trace_hash", "calibration"}


def record(cli: Any, *words: str) -> dict[str, Any]:
    result = cli("estimate", *words, "--json")
    assert result.code == 0
    assert result.err == ""
    parsed: dict[str, Any] = result.json
    return parsed


def test_json_has_every_documented_key_in_order(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1")
    assert [key for key in found if key in ESTIMATE_KEYS] == list(ESTIMATE_KEYS)
    assert found["schema"] == "archsim-estimate/1"
    assert all(set(op) >= OP_KEYS for op in found["ops"])
    assert all(set(kernel) >= KERNEL_KEYS for op in found["ops"] for kernel in op["kernels"])
    assert all(set(row) >= REFERENCE_KEYS for row in found["references"])
    assert set(found["provenance"]) >= PROVENANCE_KEYS
    assert found["provenance"]["version"] == archsim.__version__


def test_json_agrees_with_itself(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1", "--batch", "4")
    assert math.isclose(sum(op["time_s"] for op in found["ops"]), found["latency_s"], rel_tol=1e-9)
    assert math.isclose(sum(found["breakdown_s"].values()), found["latency_s"], rel_tol=1e-9)
    assert math.isclose(found["energy_j"], found["power_w"] * found["latency_s"], rel_tol=1e-12)
    assert math.isclose(found["throughput_per_s"], 4 / found["latency_s"], rel_tol=1e-12)
    low, high = found["latency_interval_s"]
    assert low < found["latency_s"] < high
    assert [op["name"] for op in found["ops"]][:2] == ["conv1", "relu1"]


@pytest.mark.parametrize(
    ("precision", "batch", "measured"),
    [("fp32", "1", (47.0, 5.5)), ("fp16", "1", (67.0, 5.1)), ("fp32", "128", (155.0, 6.0)), ("fp16", "128", (258.0, 5.7))],
)
def test_references_hold_the_whitepaper_cells(cli: Any, precision: str, batch: str, measured: tuple[float, float]) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1", "--precision", precision, "--batch", batch)
    cells = {(row["metric"], row["measured"]): row for row in found["references"] if "whitepaper" in row["source"]}
    assert {("throughput_per_s", measured[0]), ("power_w", measured[1])} <= set(cells)
    for row in cells.values():
        ratio = row["predicted"] / row["measured"]  # of a rate the error is that of the time
        assert math.isclose(row["error"], (ratio if row["metric"] == "power_w" else 1 / ratio) - 1, rel_tol=1e-9)
        # The device's default clock and stack are those of the whitepaper, so the two predictions are one.
        assert row["predicted"] == pytest.approx(found[row["metric"]], rel=1e-9)


def test_a_reference_keeps_its_own_clock_and_stack(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1", "--clock", "998.4MHz", "--stack", "ideal")
    row = found["references"][0]
    assert (row["stack"], row["clock_hz"]) == ("caffe-cudnn4", 690e6)
    assert row["conditions"] == ["stack caffe-cudnn4, not ideal", "core clock 690 MHz, not 998 MHz"]
    assert 900e6 < found["clock_hz"] <= 998.4e6  # less for kernels that would draw more than the module may
    assert row["predicted"] < found["throughput_per_s"]


def test_a_what_if_has_no_measured_reference(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1", "--set", "memory.bandwidth=51.2GB/s")
    assert found["references"] == []


def test_json_of_every_option(cli: Any) -> None:
    found = record(
        cli, "--net", "resnet_18", "--hw", "i7_6700k", "--batch", "2", "--task", "training_step", "--stack", "caffe-openblas",
        "--threads", "2", "--clock", "3GHz", "--fidelity", "roofline", "--precision", "fp16", "--devices", "1",
    )  # fmt: skip
    expected = {"network": "resnet_18", "hardware": "i7_6700k", "batch": 2, "task": "training_step", "stack": "caffe-openblas",
                "threads": 2, "fidelity": "roofline", "precision": "fp16", "devices": 1}  # fmt: skip
    assert found["clock_hz"] == pytest.approx(3e9)
    assert {key: found[key] for key in expected} == expected
    assert {op["phase"] for op in found["ops"]} >= {"forward", "backward_data", "backward_filter", "update"}


def test_a_graph_is_asked_for_by_name(cli: Any) -> None:
    words = ("--net", "resnet_18", "--hw", "tesla_v100_sxm2", "--stack", "pytorch-2")
    issued, replayed = record(cli, *words), record(cli, *words, "--graph")
    assert (issued["graph"], replayed["graph"]) == (False, True)
    assert replayed["latency_s"] < issued["latency_s"]
    assert "replayed graph" in cli("estimate", *words, "--graph").out
    refusal = cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--graph")
    assert (refusal.code, refusal.out) == (2, "")
    assert "does not replay CUDA graphs; these do: flashinfer, jax-xla" in refusal.err


def test_the_largest_batch_is_told(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1")
    assert isinstance(found["max_batch"], int)
    assert cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "max_batch < 1").code == 0


def test_csv_has_one_row_per_op(cli: Any) -> None:
    result = cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--csv")
    rows = result.rows
    assert [row["name"] for row in rows] == [op.name for op in archsim.estimate(net="alexnet", hw="tegra_x1").ops]
    assert set(rows[0]) >= {"network", "hardware", "name", "kind", "time_s", "bound", "flop", "dram_bytes", "energy_j"}
    total = sum(float(row["time_s"]) for row in rows)
    assert math.isclose(total, archsim.estimate(net="alexnet", hw="tegra_x1").latency_s, rel_tol=1e-9)


def test_the_api_gives_what_json_prints(cli: Any) -> None:
    found = record(cli, "--net", "alexnet", "--hw", "tegra_x1", "--batch", "128", "--precision", "fp16")
    estimate = archsim.estimate(net="alexnet", hw="tegra_x1", batch=128, precision="fp16")
    for key in ESTIMATE_KEYS[1:22]:
        value = getattr(estimate, key)
        assert found[key] == (list(value) if isinstance(value, tuple) else value), key


def test_compare_is_sorted_and_agrees_with_estimate(cli: Any) -> None:
    result = cli("compare", "--net", "alexnet", "--hw", "i7_6700k,tegra_x1,gtx_1080,tegra_x1", "--batch", "16", "--json")
    found = result.json
    assert sorted(row["hardware"] for row in found) == ["gtx_1080", "i7_6700k", "tegra_x1"]
    assert [row["latency_s"] for row in found] == sorted(row["latency_s"] for row in found)
    for row in found:
        assert row["latency_s"] == archsim.estimate(net="alexnet", hw=row["hardware"], batch=16).latency_s


def test_compare_as_table_and_csv(cli: Any) -> None:
    table = cli("compare", "--net", "alexnet", "--hw", "tegra_x1,i7_6700k", "--threads", "2")
    assert table.code == 0
    assert "Tegra X1" in table.out
    rows = cli("compare", "--net", "alexnet", "--hw", "tegra_x1,i7_6700k", "--csv").rows
    assert {row["hardware"] for row in rows} == {"tegra_x1", "i7_6700k"}


@pytest.mark.parametrize(
    ("what", "expected"),
    [("hw", devices.names()), ("nets", networks()), ("stacks", stacks.names()), ("fidelities", ["roofline", "analytical"]),
     ("parts", ["framework", "library", "blas", "engine"]), ("ops", ["conv2d", "linear", "lstm", "lrn"])],
)  # fmt: skip
def test_list_names_everything(cli: Any, what: str, expected: list[str]) -> None:
    result = cli("list", what)
    assert result.code == 0
    first = {line.split()[0] for line in result.out.splitlines() if line.strip()}
    assert set(expected) <= first


def test_the_keys_say_what_they_move(cli: Any) -> None:
    rows = {(row["device"], row["key"]): row["moves"] for row in cli("list", "keys", "--json").json}
    assert rows["gpu", "sm.alu_latency"] == "cycle"
    assert rows["gpu", "l1.size"] == "cycle, archsim cache"
    assert rows["gpu", "market.price"] == rows["cpu", "clock.base"] == "nothing"
    assert rows["cpu", "memory.bandwidth"] == rows["cpu", "l2.latency"] == "analytical, event, cycle"
    assert rows["cpu", "l1.latency"] == rows["cpu", "pipeline.window"] == "cycle"


def test_show_prints_every_number_with_its_source(cli: Any) -> None:
    result = cli("show", "hw", "tegra_x1")
    spec = devices.find("tegra_x1")
    assert result.code == 0
    lines = [line.strip() for line in result.out.splitlines()]
    for key, entry in spec.entries.items():
        (line,) = [line for line in lines if line.startswith(f"{key} ")]
        assert entry.kind in line, key
        assert any(other.startswith(line.split()[-1]) and entry.source in other for other in lines), key


def test_show_as_json(cli: Any) -> None:
    found = cli("show", "hw", "tegra_x1", "--json").json
    assert found["values"]["memory.bandwidth"]["value"] == 25.6e9
    assert found["values"]["memory.bandwidth"]["source"]
    assert found["values"]["memory.bandwidth"]["file"] == "tegra_x1"
    assert not found["keys"]["clock.sustained"]["inherited"]


def test_show_says_which_file_has_a_value(cli: Any) -> None:
    keys = cli("show", "hw", "rtx_2080_ti", "--all").out.partition("Keys")[2]
    lines = {line.split()[0]: line for line in keys.splitlines() if "." in line}
    assert "rtx_2080_ti" in lines["sm.count"]
    assert "titan_rtx" in lines["sm.warps"]


def test_a_device_is_printed_as_a_file_that_other_commands_take(cli: Any, tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    place.write_text(cli("show", "hw", "rtx_2080_ti", "--toml").out)
    words = ("estimate", "--net", "alexnet", "--json", "--hw")
    whole, shipped = (cli(*words, name).json for name in (str(place), "rtx_2080_ti"))
    assert whole["latency_s"] == shipped["latency_s"]
    assert whole["provenance"]["spec_hash"] == shipped["provenance"]["spec_hash"]
    assert cli("show", "net", "alexnet", "--toml").code == 2


@pytest.mark.parametrize("words", [("net", "alexnet"), ("stack", "caffe-cudnn4"), ("calibration",)])
def test_show_the_rest(cli: Any, words: tuple[str, ...]) -> None:
    result = cli("show", *words)
    assert result.code == 0
    assert len(result.out.splitlines()) > 5


def test_doctor_is_content(cli: Any) -> None:
    result = cli("doctor")
    assert result.code == 0
    assert "All well." in result.out


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("estimate", "--help"), ("compare", "-h"), ("list", "-h"), ("show", "-h"), ("--version",)]
)
def test_help(cli: Any, words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert result.code in (0, 2) if not words else result.code == 0
    assert "archsim" in result.out + result.err


def test_text_of_strangers_moves_no_cursor(cli: Any, tmp_path: Any) -> None:
    from archsim.trace import dumps, load

    path = tmp_path / "x.jsonl"
    path.write_text(dumps(load("alexnet_r")).replace('"name": "alexnet_r"', '"name": "a\\u001b[31mred\\nline"', 1))
    spec = tmp_path / "x.toml"
    text = devices.data_folder("hwspecs").joinpath("tegra_x1.toml").read_text("utf-8")
    spec.write_text(
        text.replace('name = "NVIDIA', 'name = "\\u001b[31mNVIDIA', 1).replace('"LPDDR4 (', '"LPDDR4 \\u001b[31m(', 1)
    )
    for words in (("estimate", "--net", str(path), "--hw", str(spec)), ("show", "net", str(path)), ("show", "hw", str(spec)),
                  ("compare", "--net", str(path), "--hw", str(spec))):  # fmt: skip
        result = cli(*words)
        assert "\x1b" not in result.out + result.err, words


def test_devices_like_a_text(cli: Any) -> None:
    rows = cli("list", "hw", "--like", "ada 24GB", "--json").json
    assert len(rows) == 10
    assert {rows[0]["device"], rows[1]["device"]} < {"rtx_4090", "l4", "rtx_4500_ada"}
    assert [float(row["match"]) for row in rows] == sorted((float(row["match"]) for row in rows), reverse=True)
    assert rows[0]["capacity"] == "24 GiB"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "hw", "--like", "xyzzy"), "no shipped device has all of these words"),
        (("list", "nets", "--like", "ada"), "--like is of hw"),
    ],
)  # fmt: skip
def test_devices_like_nothing_are_refused(cli: Any, words: tuple[str, ...], said: str) -> None:
    result = cli(*words)
    assert (result.code, result.out) == (2, "")
    assert said in " ".join(result.err.split())
