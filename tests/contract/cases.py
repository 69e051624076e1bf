"""Small questions of every command, and the answers that they get, each computed once.

A command that gives its answer to `AnswerForm.show` is held to all of the contract, those of `OLD` to their JSON alone. A list
need not begin with a verdict, nor be short.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO, StringIO, TextIOWrapper
from types import ModuleType
from typing import Any
from unittest.mock import patch

import click

from archsim.answers import module_of
from archsim.cli.main import group
from archsim.cli.output import AnswerForm
from archsim.render.blocks import Block

ONE = "--net alexnet --hw gtx_1080"
LARGE = "estimate --net resnet_152 --hw h100_sxm5_80gb --batch 8 --precision fp16"
COMMANDS = {  # name of a schema -> commands whose JSON it describes
    "estimate": [f"estimate {ONE}", f"estimate {ONE} --task training_step", f"estimate {ONE} --fidelity event",
                 f"estimate {ONE} --fidelity roofline", "estimate --net alexnet --hw i7_6700k --task training --batch 2",
                 "estimate --net bert_base --hw rtx_4090 --set sm.count=64 --power-limit 200W",
                 "estimate --net resnet_50 --hw tpu_v3 --batch 8", "estimate --net mobilenet_v2 --hw rtx_4090", LARGE],
    "power": ["power --hw titan_xp --use fp32=0.8,dram=30%",
              "power --hw rtx_4090 --use tensor=1,dram=0.5 --set sm.count=160 --power-limit 100W"],
    "llm": ["llm --net gpt2_small --hw a100_sxm4_40gb --input 64 --output 4",
            "llm --net mixtral_8x7b --hw h100_sxm5_80gb --input 64 --output 4 --tp 2 --ep 2 --weights fp8 "
            "--speculative tokens=2,accept=0.5"],
    "compare": ["compare --net alexnet --hw gtx_1080,i7_6700k,tegra_x1",
                "compare --net alexnet --hw gtx_1080,i7_6700k --stack caffe-cudnn5.1 --samples 1e6 --electricity 0.25USD/kWh "
                "--price gtx_1080=2USD/h",
                "compare --net resnet_50 --hw gtx_1080,rtx_4090,l4,i9_13900k,tesla_v100_sxm2 --batch 16",
                "compare --net resnet_50 --hw rtx_4090,l4,gtx_480 --where 'latency < 10ms'",
                "compare --net vgg_16 --hw gtx_480 --batch 64",
                "compare --net resnet_18 --hw a100_sxm4_40gb --batch 8 --stack pytorch-2,pytorch-2-inductor"],
    "curves": ["compare --net alexnet --hw gtx_1080,i7_6700k --batch 1,8 --samples 1e6",
               "compare --net alexnet,resnet_18 --hw gtx_1080 --batch 1,4"],
    "whatif": [f"whatif {ONE} --set sm.count=40 --area", f"whatif {ONE} --to hw=i7_6700k"],
    "sensitivity": [f"sensitivity {ONE} --keys sm.count,memory.bandwidth,market.price,memory.bus"],
    "search": [f"search {ONE} --minimise energy --vary sm.count=8:24:8",
               "search --net alexnet --hw i7_6700k --minimise latency --vary batch=1,2"],
    "target": [f"search {ONE} --target throughput=1000/s", f"search {ONE} --target latency=1us"],
    "sweep": [f"sweep {ONE} --vary sm.count=8:24:8 --vary precision=fp32,fp16"],
    "tune": [f"tune {ONE} --vary clock=1GHz:1.6GHz:100MHz", f"tune {ONE} --where 'latency < 1us' --clock 1GHz",
             "tune --net alexnet --hw i7_6700k --vary batch=1,2"],
    "serve": [f"simulate serve {ONE} --rate 50/s --requests 500", f"simulate serve {ONE} --scenario Offline --requests 100",
              f"simulate serve {ONE} --p99 20ms --requests 300 --batching max=4,wait=1ms"],
    "serve_llm": ["simulate serve --llm --net gpt2_small --hw a100_sxm4_40gb --requests 20 --rate 9/s --output 4 "
                  "--goodput ttft=1s",
                  "simulate serve --llm --net gpt2_small --hw a100_sxm4_40gb --requests 3 --output 1"],
    "train": ["simulate train --net resnet_50 --hw tesla_k40 --devices 1,2 --input disk,decode=4,pcie"],
    "allreduce": ["simulate allreduce --devices 2,8 --bytes 16MB"],
    "cache": ["cache --hw i7_6700k --trace tests/cache/valgrind/program.lackey.gz --sets --plain",
              "cache --hw i7_6700k --net resnet_20 --layer conv1 --plain",
              "cache --hw gtx_1080 --net resnet_20 --layer conv1 --no-curve --plain"],
    "explain": [f"explain {ONE} --layer conv2", "explain --net alexnet --hw i7_6700k --layer fc6"],
    "simulated": ["explain --net alexnet --hw gtx_1080 --fidelity cycle --layer pool1",
                  "explain --net resnet_20 --hw gtx_1080 --fidelity cycle --layer fc"],
    "slowest": [f"explain {ONE}"],
    "sm": ["simulate sm --hw gtx_1080 --kernel 'gemm 64x64x8 threads=64' --k 16 --plain"],
    "curve": ["simulate sm --hw tesla_v100_sxm2 --curve warps", "simulate sm --hw gtx_1080 --curve 'occupancy threads=256'",
              "simulate core --hw i7_6700k --curve 'chains level=3'"],
    "core": ["simulate core --hw i7_6700k --kernel 'gemm 6x16 avx2' --plain"],
    "profile": ["profile tests/trace/profiles/torch_cpu_cnn.json --hw i7_6700k"],
    "validate": ["validate --hw gtx_1080 --limit 60", "validate --metric power_w --limit 40"],
    "scoreboard": ["validate --predictor published --source neusight --net opt_1_3b"],
    "hw": ["show hw gtx_1080", "show hw i7_6700k"],
    "node": ["show node dgx_1_v100"],
    "net": ["show net alexnet", "show net gpt2_small"],
    "stack": ["show stack caffe-cudnn4", "show stack pytorch-2"],
    "calibration": ["show calibration", "show calibration energy."],
    "names": [f"list {what}" for what in ("hw", "nodes", "nets", "models", "stacks", "parts", "fidelities", "ops", "keys")],
}  # fmt: skip
OLD = {"sweep"}
LISTS = {"hw", "node", "net", "stack", "calibration", "names"}
ASKED = [(name, line) for name, lines in COMMANDS.items() for line in lines]
SAID = [(name, line) for name, line in ASKED if name not in OLD]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a command gave to be shown: its answer, the module that says it, and its blocks."""

    module: ModuleType
    answer: Any
    blocks: Sequence[Block]


@cache
def told(line: str) -> Told | None:
    """What a command answers; None where it prints without `AnswerForm.show`."""
    found: list[Told] = []

    def keep(form: AnswerForm, answer: Any, module: ModuleType | None = None, **more: Any) -> None:
        of = module or module_of(answer)
        found.append(Told(module=of, answer=answer, blocks=of.sections(answer, **more)))

    with patch.object(AnswerForm, "show", keep):
        printed(line)
    return found[0] if found else None


def printed(line: str) -> str:
    """What a command prints, whether it finds something or not."""
    with TextIOWrapper(BytesIO(), "utf-8", newline="\n") as out:
        with redirect_stdout(out), redirect_stderr(StringIO()), suppress(click.exceptions.Exit):
            group.main(shlex.split(line), prog_name="archsim", standalone_mode=False)
        out.seek(0)
        return out.read()


def record_of(name: str, line: str) -> Any:
    """The JSON of a command."""
    if name in OLD:
        return json.loads(printed(f"{line} --json"))
    one = told(line)
    assert one is not None
    return json.loads(json.dumps(one.module.record(one.answer), allow_nan=False))
