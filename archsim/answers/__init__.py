"""What each answer says. A module an answer has `record` (plain values, as `--json` prints them), `sections` (blocks that every
renderer knows), and where rows make sense `csv`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from archsim.render.blocks import Block

MODULES = {  # class of an answer -> the module here that says it
    "Estimate": "estimate", "Explanation": "explain", "Listing": "listing", "NodeSpec": "node", "ShownConstants": "calibration",
    "ShownNetwork": "network", "SimulatedCores": "core", "SimulatedLayer": "simulated", "SimulatedSm": "sm", "Slowest": "slowest",
    "Spec": "device",
}  # fmt: skip


def module_of(answer: Any) -> ModuleType:
    """What says an answer; imported when somebody looks."""
    return import_module(f"archsim.answers.{MODULES[type(answer).__name__]}")


def record_of(answer: Any) -> Any:
    """The answer as plain values."""
    return module_of(answer).record(answer)


def sections_of(answer: Any) -> Sequence[Block]:
    """The answer as blocks."""
    found: Sequence[Block] = module_of(answer).sections(answer)
    return found


def page_of(answer: Any) -> str:
    """The answer as a page of its own."""
    from archsim.render.html import page

    return page(sections_of(answer))


def notebook_of(answer: Any) -> str:
    """The first screen of the answer for a notebook."""
    from archsim.render.html import notebook

    return notebook(sections_of(answer))
