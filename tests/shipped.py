"""What ships, ready for tests: networks, each read once for a process, and devices of a kind.

Where a test asks for no device it has one that equations are easily worked out for.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from typing import Any

import archsim.trace
from archsim.base.files import data_folder
from archsim.device import catalog
from archsim.device.device import Cpu, Gpu

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
