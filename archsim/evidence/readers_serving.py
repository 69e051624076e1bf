"""Rows of language models that an engine served: static batches, or requests that keep a number of sequences busy."""

from __future__ import annotations

import re
from collections.abc import Mapping

from archsim.base.errors import ArchsimError
from archsim.evidence.beginning import longest
from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.pattern import ServingPattern
from archsim.evidence.resolve import Refused, Setting, gpu_spec
from archsim.evidence.table import Row
from archsim.stack import catalog as stacks
from archsim.trace.huggingface import catalog as models

METRICS = ("ttft_s", "decode_s_per_token", "tpot_s", "e2e_s", "tokens_per_s", "energy_j_per_token", "power_w")
# engine of a row, as its source calls it -> the stack that runs as it did; the longest beginning counts
ENGINES = {
    "vllm": "vllm-0.5", "vllm-0.5": "vllm-0.5", "tensorrt-llm-0.11": "tensorrt-llm-0.11", "llama.cpp": "llama.cpp-cuda",
    "vllm-0.14": "vllm-0.14", "vllm-0.1": "vllm-0.14", "tensorrt-llm": "tensorrt-llm", "sglang": "sglang",
}  # fmt: skip
SERVER = {"vllm-0.5": "vllm-0.5-server"}  # where an engine streams tokens over HTTP
# Tokens of the prompts of ML.ENERGY, which publishes 350 characters for a chat and nothing for code: with the words that a chat
# wraps them in, and as times and energies of models without much else to do (StarCoder 2) tell.
PROMPTS = {"chat": 160, "code": 300}
_FED = re.compile(r"-nb(\d{1,6})\Z")
_STEADY = re.compile(r"concurrency=(\d{1,7})\Z")


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row; Refused where its model, device, engine or conditions are not described."""
    cells, metric = row.cells, row.cells["metric"]
    if metric not in METRICS:
        raise Refused(f"metric {metric!r} is not one of {', '.join(METRICS)}")
    spec, steady = gpu_spec(cells["hardware"]), _STEADY.match(cells["arrival"])
    if not steady and cells["arrival"] != "static":
        raise Refused(f"arrival {cells['arrival']!r} is not static or concurrency=N; `archsim simulate serve --llm` has arrivals")
    engine = longest(ENGINES, cells["engine"])
    if engine is None:
        raise Refused(f"engine {cells['engine']!r} is not described")
    engine = SERVER.get(engine, engine) if steady else engine
    prompt = int(float(cells["input_len"])) if cells["input_len"] else PROMPTS.get(cells.get("notes", "")[:4], 0)
    if not prompt or not cells["output_len"]:
        raise Refused("lengths of prompts or answers are not given")
    fed = _FED.search(cells["engine"])
    pattern = ServingPattern(
        model=_model(cells["model"]), engine=engine, input=prompt, output=float(cells["output_len"]), batch=float(cells["batch"]),
        steady=steady is not None, fed=int(fed[1]) if fed else 0, arguments=_arguments(cells),
    )  # fmt: skip
    ran = Setting(spec=spec, stack=stacks.find(engine, spec.identity.kernels_of), precision=cells["precision"])
    return [case_of(row, file, ran, cells["model"], metric, float(cells["value"]),
                    batch=max(1, round(float(cells["batch"]))), pattern=pattern)]  # fmt: skip


def engine_of(written: str) -> str:
    """An engine of a row without the size of its prompt steps, which llama.cpp's rows state with it.

    >>> engine_of("llama.cpp-nb16"), engine_of("vllm-0.5.4")
    ('llama.cpp', 'vllm-0.5.4')
    """
    return _FED.sub("", written)


def _model(name: str) -> str:
    try:
        return models.canonical(name)
    except ArchsimError:
        raise Refused(f"model {name!r} is not described") from None


def _arguments(cells: Mapping[str, str]) -> dict[str, object]:
    """`fp8/kv_fp8` as formats of weights and cache, and the devices that share layers."""
    weights, _, kv = cells["precision"].partition("/kv_")
    base = weights if weights in ("bf16", "fp16") else "fp16"
    tp, pp = int(float(cells.get("tp") or 1)), int(float(cells.get("pp") or 1))
    return {"precision": base, "weights": weights, "kv": kv or base, "tp": tp, "pp": pp}


FAMILY = Family(
    name="serving",
    columns=("source", "model", "hardware", "engine", "precision", "batch", "input_len", "output_len", "arrival", "metric",
             "value"),
    words=("source", "model", "hardware", "engine", "precision", "batch", "arrival", "metric"),
    numbers=("value", "batch", "input_len", "output_len"),
    whole=("devices", "tp", "pp"),
    measured=("value",),
    read=read,
)
