"""The published JSON Schemas: up to date, valid, and what every command prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archsim.report.schemas import FOLDER, SCHEMAS, text_of

jsonschema = pytest.importorskip("jsonschema")
ONE = ("--net", "alexnet", "--hw", "gtx_1080")
OUTPUTS: dict[str, list[tuple[str, ...]]] = {
    "estimate": [("estimate", *ONE), ("estimate", "--net", "alexnet", "--hw", "i7_6700k", "--task", "training"),
                 ("estimate", "--net", "bert_base", "--hw", "rtx_4090", "--set", "sm.count=64", "--power-limit", "200W"),
                 ("estimate", *ONE, "--fidelity", "event"), ("estimate", *ONE, "--fidelity", "roofline")],
    "power": [("power", "--hw", "titan_xp", "--use", "fp32=0.8,dram=30%"),
              ("power", "--hw", "rtx_4090", "--use", "tensor=1,dram=0.5", "--set", "sm.count=160", "--power-limit", "100W")],
    "llm": [("llm", "--net", "gpt2_small", "--hw", "a100_sxm4_40gb", "--input", "64", "--output", "4"),
            ("llm", "--net", "mixtral_8x7b", "--hw", "h100_sxm5_80gb", "--input", "64", "--output", "4", "--tp", "2", "--ep", "2",
             "--weights", "fp8", "--speculative", "tokens=2,accept=0.5")],
    "compare": [("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k,tegra_x1"),
                ("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--where", "latency < 5ms"),
                ("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--stack", "caffe-cudnn5.1", "--samples", "1e6",
                 "--electricity", "0.25USD/kWh", "--price", "gtx_1080=2USD/h")],
    "curves": [("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--batch", "1,8", "--samples", "1e6"),
               ("compare", "--net", "alexnet,resnet_18", "--hw", "gtx_1080", "--batch", "1,4")],
    "whatif": [("whatif", *ONE, "--set", "sm.count=40", "--area"), ("whatif", *ONE, "--to", "hw=i7_6700k")],
    "sensitivity": [("sensitivity", *ONE, "--keys", "sm.count,memory.bandwidth,market.price,memory.bus")],
    "search": [("search", *ONE, "--minimise", "energy", "--vary", "sm.count=8:24:8"),
               ("search", "--net", "alexnet", "--hw", "i7_6700k", "--minimise", "latency", "--vary", "batch=1,2")],
    "tune": [("tune", *ONE, "--vary", "clock=1GHz:1.6GHz:100MHz"), ("tune", *ONE, "--where", "latency < 1us", "--clock", "1GHz"),
             ("tune", "--net", "alexnet", "--hw", "i7_6700k", "--vary", "batch=1,2")],
    "profile": [("profile", "tests/trace/profiles/torch_cpu_cnn.json", "--hw", "i7_6700k")],
    "target": [("search", *ONE, "--target", "throughput=1000/s"), ("search", *ONE, "--target", "latency=1us")],
    "serve": [("simulate", "serve", *ONE, "--rate", "50/s", "--requests", "500"),
              ("simulate", "serve", *ONE, "--scenario", "Offline", "--requests", "100"),
              ("simulate", "serve", *ONE, "--p99", "20ms", "--requests", "300", "--batching", "max=4,wait=1ms")],
    "serve_llm": [("simulate", "serve", "--llm", "--net", "gpt2_small", "--hw", "a100_sxm4_40gb", "--requests", "20",
                   "--rate", "9/s", "--output", "4", "--goodput", "ttft=1s"),
                  ("simulate", "serve", "--llm", "--net", "gpt2_small", "--hw", "a100_sxm4_40gb", "--requests", "3",
                   "--output", "1")],
    "train": [("simulate", "train", "--net", "resnet_50", "--hw", "tesla_k40", "--devices", "1,2",
               "--input", "disk,decode=4,pcie")],
    "allreduce": [("simulate", "allreduce", "--devices", "2,8", "--bytes", "16MB")],
    "cache": [("cache", "--hw", "i7_6700k", "--net", "resnet_20", "--layer", "conv1", "--plain"),
              ("cache", "--hw", "gtx_1080", "--net", "resnet_20", "--layer", "conv1", "--no-curve", "--plain")],
    "explain": [("explain", *ONE, "--layer", "conv2"), ("explain", "--net", "alexnet", "--hw", "i7_6700k", "--layer", "fc6")],
    "simulated": [("explain", "--net", "alexnet", "--hw", "gtx_1080", "--fidelity", "cycle", "--layer", "pool1"),
                  ("explain", "--net", "resnet_20", "--hw", "gtx_1080", "--fidelity", "cycle", "--layer", "fc")],
    "slowest": [("explain", *ONE)],
    "validate": [("validate", "--hw", "gtx_1080", "--limit", "60"), ("validate", "--metric", "power_w", "--limit", "40")],
    "scoreboard": [("validate", "--predictor", "published", "--source", "neusight", "--net", "opt_1_3b")],
    "hw": [("show", "hw", "gtx_1080"), ("show", "hw", "i7_6700k")],
    "node": [("show", "node", "dgx_1_v100")],
    "net": [("show", "net", "alexnet"), ("show", "net", "gpt2_small")],
    "calibration": [("show", "calibration"), ("show", "calibration", "energy.")],
    "names": [("list", what) for what in ("hw", "nodes", "nets", "models", "stacks", "parts", "fidelities", "ops", "keys")],
    "sm": [("simulate", "sm", "--hw", "gtx_1080", "--kernel", "gemm 64x64x8 threads=64", "--k", "16", "--plain")],
    "core": [("simulate", "core", "--hw", "i7_6700k", "--kernel", "gemm 6x16 avx2", "--plain")],
    "stack": [("show", "stack", "caffe-cudnn4"), ("show", "stack", "pytorch-2")],
    "sweep": [("sweep", *ONE, "--vary", "sm.count=8:24:8", "--vary", "precision=fp32,fp16")],
}  # fmt: skip


def closed(schema: Any) -> Any:
    """The schema without room for keys that it does not name."""
    if isinstance(schema, dict):
        more = {"additionalProperties": False} if "properties" in schema and "additionalProperties" not in schema else {}
        return {name: closed(value) for name, value in schema.items()} | more
    return [closed(value) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_what_the_records_give_now(name):
    assert (FOLDER / f"{name}.json").read_text("utf-8") == text_of(name), "run python -m archsim.report.schemas"


def test_there_is_no_schema_of_nothing():
    assert {path.stem for path in FOLDER.glob("*.json")} == {*SCHEMAS} == {*OUTPUTS}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, lines in OUTPUTS.items() for words in lines])
def test_what_a_command_prints_is_as_its_schema_says(cli, name, words):
    found = cli(*words, "--json")
    assert found.code in (0, 1), found.err  # 1: a search or a target found nothing
    schema = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    problems = jsonschema.Draft202012Validator(closed(schema)).iter_errors(json.loads(found.out))
    assert [(error.json_path, error.message[:200]) for error in problems] == []


def test_schemas_are_printed(cli):
    assert json.loads(cli("show", "schema", "estimate").out)["title"] == "`archsim estimate --json`"
    assert "curves" in cli("show", "schema").out
    assert "nearest: estimate" in cli("show", "schema", "estimat").err
