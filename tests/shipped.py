"""Networks and devices, ready for tests: those that ship, read once for a process, devices of a kind, and small networks.

Where a test asks for no device it has one that equations are easily worked out for.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from functools import cache
from typing import Any

import archsim.trace
from archsim.base.files import data_folder
from archsim.device import catalog
from archsim.device.device import Cpu, Gpu
from archsim.trace import BoundTrace, loads, task_trace

load = cache(archsim.trace.load)


def gpu(name: str = "gtx_980", **parts: dict[str, Any]) -> Gpu:
    """By default 16 SMs of 128 lanes, 2 MiB of L2, 224 GB/s; some words of its parts replaced."""
    device = catalog.find(name).device
    assert isinstance(device, Gpu)
    return replace(device, **{part: replace(getattr(device, part), **words) for part, words in parts.items()})


def cpu(name: str = "i7_6700k", **parts: dict[str, Any]) -> Cpu:
    """By default 4 cores, 8 MiB of L3; some words of its parts replaced."""
    device = catalog.find(name).device
    assert isinstance(device, Cpu)
    return replace(device, **{part: replace(getattr(device, part), **words) for part, words in parts.items()})


def kind_of(name: str) -> str:
    """The kind a spec file declares or inherits, read without checking the rest of it."""
    document = tomllib.loads(data_folder(catalog.FOLDER).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return document["kind"] if "kind" in document else kind_of(document["inherits"])


def line(kind: str, name: str, reads: str, out: list[Any], **words: Any) -> dict[str, Any]:
    """A line of a trace; `reads` are names with a space between them."""
    return {"op": kind, "name": name, "in": reads.split(), "out": out, **words}


def written(*ops: dict[str, Any], **inputs: list[Any]) -> str:
    """A trace of these ops."""
    head = {"schema": "archsim-trace/1", "name": "t", "inputs": inputs, "dtype": "fp32", "source": "test"}
    return "".join(json.dumps(record) + "\n" for record in (head, *ops))


def network(*ops: dict[str, Any], task: str = "inference", batch: int = 2, **inputs: list[Any]) -> BoundTrace:
    """What a task does with these ops."""
    trace = task_trace(loads(written(*ops, **inputs), "t.jsonl"), task)
    return trace.bind(**dict.fromkeys(trace.free_symbols, batch))
