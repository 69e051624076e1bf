"""What each answer says. A module an answer has `record` (plain values, as `--json` prints them), `sections` (blocks that every
renderer knows), and where rows make sense `csv`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from types import ModuleType
from typing import Any

from archsim.render.blocks import Block, Chart

MODULES = {  # class of an answer -> the module here that says it
    "AllReduces": "allreduce", "CacheReport": "caches", "Change": "whatif", "Comparison": "compare",
    "CurveComparison": "compare_curves", "Estimate": "estimate", "Explanation": "explain", "GenerationEstimate": "llm",
    "Held": "compare_within", "Listing": "listing", "NodeSpec": "node", "PowerEstimate": "power",
    "ProfileComparison": "profile", "Scoreboard": "scoreboard", "SearchResult": "search", "Sensitivity": "sensitivity",
    "Serving": "serving", "ShownConstants": "calibration", "ShownNetwork": "network", "SimulatedCores": "core",
    "SimulatedCurve": "curves", "SimulatedLayer": "simulated",
    "SimulatedSm": "sm", "Slowest": "slowest", "Spec": "device", "Sweep": "sweep",
    "SweptPoints": "sweep", "TargetWays": "target", "TextServing": "serving_llm", "Training": "training", "Tuning": "tune",
    "Validation": "validation",
}  # fmt: skip


def module_of(answer: Any) -> ModuleType:
    """What says an answer; imported when somebody looks."""
    return import_module(f"archsim.answers.{MODULES[type(answer).__name__]}")


def tagged(schema: str) -> Callable[[Any], dict[str, Any]]:
    """What makes plain values of an answer that JSON has field by field, after the name of their schema."""
    return lambda answer: {"schema": schema, **asdict(answer)}


def record_of(answer: Any) -> Any:
    """The answer as plain values, as they come out of JSON."""
    return json.loads(json.dumps(module_of(answer).record(answer), allow_nan=False))


def sections_of(answer: Any) -> Sequence[Block]:
    """The answer as blocks."""
    found: Sequence[Block] = module_of(answer).sections(answer)
    return found


def page_of(answer: Any) -> str:
    """The answer as a page of its own."""
    from archsim.render.html import page

    return page(sections_of(answer))


def figures_of(answer: Any) -> dict[str, Any]:
    """The charts of the answer over two axes as figures of plotly, by title."""
    from archsim.render.charts import figure_of

    charts = [block for block in sections_of(answer) if isinstance(block, Chart) and block.series]
    return {chart.title: figure_of(chart) for chart in charts}


def notebook_of(answer: Any) -> str:
    """The first screen of the answer for a notebook."""
    from archsim.render.html import notebook

    return notebook(sections_of(answer))
