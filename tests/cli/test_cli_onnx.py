"""ONNX models on the command line: unknown operators, what became of a model's operators, the package that is not there."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.base.errors import EXIT, ArgumentError
from archsim.trace.kinds import general

from ..trace.onnx_models import hollow, number, onnx_model, small_cnn, written
from .conftest import Cli

ON = ("--hw", "gtx_1080")


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general, "OWN", {})


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A model with an operator that nobody knows."""
    nodes = [("Conv", "x w", "c"), ("my.Odd", "c", "o"), ("Relu", "o", "y")]
    stated = {"o": ["batch", 8, 6, 6]}
    model = onnx_model(nodes, {"x": ["batch", 3, 8, 8]}, ["y"], [hollow("w", 8, 3, 3, 3)], shapes=stated)
    return written(model, tmp_path, "odd.onnx")


@pytest.fixture
def cnn(tmp_path: Path) -> str:
    return written(small_cnn(), tmp_path, "cnn.onnx")


def answer(cli: Cli, *words: str) -> dict[str, Any]:
    result = cli(*words, "--json")
    assert result.code == 0, result.err
    found: dict[str, Any] = result.json
    return found


def test_an_unknown_operator_is_bounded_by_its_traffic_and_said_so(cli: Cli, odd: str):
    found = answer(cli, "estimate", "--net", odd, *ON)
    said = [text for text in found["warnings"] if "memory traffic" in text]
    what = "1 op is not known here and counts as its memory traffic: my.Odd x 1"
    assert said == [f"{what}; archsim.register_op says what one costs, --strict refuses them"]
    assert next(op for op in found["ops"] if op["kind"] == "traffic")["time_s"] > 0


def test_strict_refuses_what_is_approximated(cli: Cli, odd: str, cnn: str):
    result = cli("estimate", "--net", odd, *ON, "--strict")
    assert result.code == EXIT["usage"]
    assert "strict: 1 op is not known here" in result.err
    assert cli("estimate", "--net", cnn, *ON, "--strict").code == 0


def test_a_registered_function_says_the_work_of_an_operator(cli: Cli, odd: str):
    before = archsim.estimate(net=odd, hw="gtx_1080")
    archsim.register_op("my.Odd", lambda inputs, output, element: (1e9 * output[0], 4.0 * element * output[1]))
    after = archsim.estimate(net=odd, hw="gtx_1080", strict=True)
    assert after.flop - before.flop == pytest.approx(1e9)
    assert not [text for text in after.warnings if "memory traffic" in text]
    twice = archsim.estimate(net=odd, hw="gtx_1080", batch=2)
    assert twice.flop == pytest.approx(2 * after.flop)
    assert "registered" in cli("show", "net", odd).out


def test_a_registered_function_must_return_numbers(odd: str):
    archsim.register_op("my.Odd", lambda inputs, output, element: (float("nan"), 1))
    with pytest.raises(ArgumentError, match=r"the function of my.Odd returned \(nan, 1\)"):
        archsim.estimate(net=odd, hw="gtx_1080")
    with pytest.raises(ArgumentError, match="register_op: my: work and shape must be functions"):
        archsim.register_op("my", 3)  # type: ignore[arg-type]


def test_show_lists_what_became_of_each_operator(cli: Cli, odd: str):
    shown = cli("show", "net", odd).out
    assert [line.split()[:3] for line in shown.splitlines()[-3:]] == [
        ["Conv", "1", "mapped"], ["my.Odd", "1", "memory"], ["Relu", "1", "mapped"],
    ]  # fmt: skip
    found = cli("show", "net", odd, "--json").json
    assert [row["status"] for row in found["operators"]] == ["mapped", "memory traffic", "mapped"]


def test_show_lists_the_operators_of_a_model_that_is_refused(cli: Cli, tmp_path: Path):
    nodes = [("Relu", "x", "a"), ("SplitToSequence", "a", "y")]
    path = written(onnx_model(nodes, {"x": [1]}, ["y"]), tmp_path)
    result = cli("show", "net", path)
    assert result.code == EXIT["bad input"]
    assert "refused  works on lists of tensors" in result.out
    assert "has operators that are not read: SplitToSequence" in result.err
    found = cli("show", "net", path, "--json").json
    assert (found["macs"], [row["status"] for row in found["operators"]]) == (None, ["mapped", "refused"])


def test_show_binds_the_sizes_of_a_model(cli: Cli, cnn: str):
    assert "at batch 8" in cli("show", "net", cnn, "--bind", "batch=8").out
    assert cli("show", "hw", "gtx_1080", "--bind", "batch=8").code == EXIT["usage"]


def test_every_command_that_takes_a_network_takes_a_model(cli: Cli, cnn: str):
    words = {
        "compare": ("--hw", "gtx_1080,i7_6700k", "--batch", "4"), "sweep": (*ON, "--vary", "batch=1,2"), "explain": ON,
        "whatif": (*ON, "--to", "batch=2"), "sensitivity": ON,
    }  # fmt: skip
    for command, more in words.items():
        result = cli(command, "--net", cnn, *more)
        assert result.code == 0, (command, result.err)


def test_without_the_package_the_way_to_it_is_said(cli: Cli, cnn: str, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def none(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", none)
    result = cli("estimate", "--net", cnn, *ON)
    assert result.code == EXIT["missing extra"]
    assert 'pip install "archsim[onnx]"' in result.err


def test_the_precision_of_a_model_is_that_of_its_values(tmp_path: Path):
    half = onnx_model([("MatMul", "x w", "y")], {"x": ["N", 64]}, ["y"], [hollow("w", 64, 32, dtype=10)])
    path = written(half, tmp_path, "half.onnx")
    assert archsim.estimate(net=path, hw="tesla_v100_sxm2").precision == "fp16"
    assert archsim.estimate(net=path, hw="tesla_v100_sxm2", precision="fp32").precision == "fp32"


def test_a_quantised_model_runs_in_whole_numbers(tmp_path: Path):
    nodes = [
        ("QuantizeLinear", "x s z", "q"), ("DequantizeLinear", "q s z", "d"), ("DequantizeLinear", "w s z", "dw"),
        ("Conv", "d dw", "c"), ("Relu", "c", "r"), ("QuantizeLinear", "r s z", "q1"), ("DequantizeLinear", "q1 s z", "d1"),
        ("DequantizeLinear", "w1 s z", "dw1"), ("Conv", "d1 dw1", "y"),
    ]  # fmt: skip
    tensors = [hollow("w", 8, 3, 3, 3, dtype=3), hollow("w1", 8, 8, 3, 3, dtype=3), number("s", 0.1), number("z", 0.0)]
    path = written(onnx_model(nodes, {"x": ["N", 3, 16, 16]}, ["y"], tensors), tmp_path, "quantised.onnx")
    found = archsim.estimate(net=path, hw="tesla_t4", stack="tensorrt-8")
    assert found.precision == "int8"
    assert [op.kind for op in found.ops] == ["quantise", "conv2d", "relu", "conv2d"]


def test_a_comparison_takes_the_batch_by_the_name_that_the_model_has_or_that_it_fixes(cli: Cli, cnn: str, tmp_path: Path):
    words = ("--hw", "gtx_1080,i7_6700k", "--json")
    by_name, by_number = (cli("compare", "--net", cnn, *words, *more).json
                          for more in (("--bind", "batch=8"), ("--batch", "8")))  # fmt: skip
    assert [row["latency_s"] for row in by_name] == [row["latency_s"] for row in by_number]
    fixed = written(small_cnn(2), tmp_path, "fixed.onnx")
    assert {row["batch"] for row in cli("compare", "--net", fixed, *words).json} == {2}
    assert archsim.compare(fixed, "gtx_1080,i7_6700k").contenders[0].estimate.batch == 2
    result = cli("compare", "--net", cnn, *words, "--bind", "batch=8", "--batch", "1,4")
    assert result.code == EXIT["bad input"] or "--batch says 1" in result.err


def test_every_command_says_what_is_only_a_bound(cli: Cli, odd: str):
    words = {
        "compare": ("--hw", "gtx_1080,i7_6700k"), "sweep": (*ON, "--vary", "batch=1,2"), "explain": ON, "tune": ON,
        "sensitivity": (*ON, "--keys", "sm.count"), "search": (*ON, "--vary", "sm.count=10,20", "--minimise", "latency"),
        "whatif": (*ON, "--to", "batch=2"), "estimate": ON,
    }  # fmt: skip
    for command, more in words.items():
        result = cli(command, "--net", odd, *more)
        assert result.code == 0, (command, result.err)
        assert "1 op is not known here and counts as its memory traffic: my.Odd x 1" in result.err + result.out, command
        assert cli(command, "--net", odd, *more, "--strict").code == EXIT["usage"], command
