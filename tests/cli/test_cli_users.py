"""Five people with a question each: their commands in order, and the lines that answer them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

STUDENT = [  # why do fully connected layers wait for memory, and what does a batch change?
    ("", r"estimate --net \w+ --hw host"),
    ("estimate --net alexnet --hw tegra_x1",
     r"Memory decides: fc6 fc7 fc8 move \d+ MB for one image \(0\.5 FLOP per byte; this chip balances at [\d.]+\)"),
    ("estimate --net alexnet --hw tegra_x1", r"fc6 fc7 fc8 .* memory +[\d.]+ of 25\.6 GB/s \(\d+ %\)"),
    ("estimate --net alexnet --hw tegra_x1 --batch 1,128", r"Batch 128 does [\d.]+ times the img/s of batch 1"),
    ("estimate --net alexnet --hw tegra_x1 --layers", r"FLOP/B +of peak"),
    ("explain --net alexnet --hw tegra_x1 --layer fc6", r"Memory decides: .*\n(.*\n)*.*--equations prints how"),
    ("estimate --net alexnet --hw i7_6700k --batch 128", r"nearest +242 img/s .* batch 48 samples, not 128"),
]
BUYER = [  # which card serves ResNet-50 within 10 ms for the least money?
    ("compare --net resnet_50 --hw rtx_4090,l4,gtx_1080 --where 'latency < 10ms'",
     r"RTX 4090: [\d.]+ times as fast with --stack"),
    ("compare --net resnet_50 --hw rtx_4090,l4,gtx_1080 --batch 16 --by cost", r"% sure|toss-up"),
    ("simulate serve --net resnet_50 --hw l4 --p99 10ms --batching max=16",
     r"requests/s within 10 ms at p99, because a request that meets a batch under way waits"),
]
ARCHITECT = [  # what would a GTX 1080 with twice the SMs do?
    ("estimate --net alexnet --hw naive.toml", r"(?s)problems.*schema.*sm\.count.*clock\.sustained.*`archsim new hw"),
    ("estimate --net alexnet --hw gtx_1080 --set bandwidth=51GB/s", r"nearest: memory\.bandwidth"),
    ("new hw --from gtx_1080 --set sm.count=40 --out my.toml", r"archsim estimate --net alexnet --hw my\.toml"),
    ("estimate --net alexnet --hw my.toml", r" ms per image"),
    ("whatif --net resnet_50 --hw gtx_1080 --batch 16 --set sm.count=40", r"[\d.]+ times as fast +80 %: [\d.]+ to [\d.]+"),
    ("search --net alexnet --hw gtx_1080 --vary sm.count=10:40:10 --minimise latency", r"sm\.count"),
]
DEVELOPER = [  # how long does my network take here, and on a card that I may buy?
    ("estimate --net meta-llama/Llama-2-7b-hf --hw h100", r"llama_2_7b on NVIDIA H100"),
    ("estimate --net alexnet --hw 'gtx 1080 laptop'", r"laptop: --hw gtx_1080 --power-limit 80W"),
    ("estimate --net mycnn.pt --hw gtx_1080", r"export it to ONNX"),
    ("estimate alexnet tegra_x1", r"write --net alexnet --hw tegra_x1"),
    ("estimate --net alexnet --hw tegra_x1,i7_6700k", r"archsim compare"),
    ("detect", r"this computer: .*\n\n.*FLOP/s"),
]
ENGINEER = [  # do the predictions agree with what I measured?
    ("validate --template", r"source,network,hardware,stack,task,batch,precision,metric,value"),
    ("validate --measurements own.csv", r"2 measured values beside their predictions"),
    ("validate --measurements own.csv", r"a100_sxm4_80gb, pytorch-2, batch 1, fp16 .* too slow"),
    ("validate --measurements none.csv", r"resnet_999"),
]
FILES = {
    "naive.toml": 'inherits = "gtx_1080"\n[sm]\ncount = 40\n', "mycnn.pt": "",
    "own.csv": "gpu,model,batch,precision,latency_ms\nA100-SXM4-80GB,resnet50,1,fp16,1.9\nV100,resnet50,32,fp32,81\n",
    "none.csv": "gpu,model,batch,precision,latency_ms\nV100,resnet_999,32,fp32,81\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("asked", [STUDENT, BUYER, ARCHITECT, DEVELOPER, ENGINEER],
                         ids=["student", "buyer", "architect", "developer", "engineer"])  # fmt: skip
def test_their_commands_answer_them(cli: Any, folder: Path, asked: list[tuple[str, str]]) -> None:
    for line, answer in asked:
        found = cli(*shlex.split(line))
        said = found.out + found.err
        assert re.search(answer, said), f"$ archsim {line}\n{said}"
    assert cli("validate", "--measurements", "none.csv").code == 1  # nothing was compared
