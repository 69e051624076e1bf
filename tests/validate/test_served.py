"""The frozen result of served language models: scores by hand, where it is shown, and never out of date."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.generation.measured import serving_value
from archsim.site.pages import accuracy
from archsim.validation.frozen import served_cases, served_summary

FOLDER = Path(__file__).parents[2] / "reports" / "validation"
AGAIN = "run `archsim validate --freeze reports/validation`"
SHIPPED = json.loads((FOLDER / "served.json").read_text("utf-8"))
CORPUS = json.loads((FOLDER / "validation.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def every() -> list[Case]:
    return served_cases()[0]


@pytest.fixture(scope="module")
def four(every: list[Case]) -> list[Case]:
    """Two times and two powers of small models, measured as predicted, but for one time, which was half as long."""
    own = [case for case in every if case.label == "llama_2_7b" and case.hardware == "a100_sxm4_40gb"]
    chosen = [*[case for case in own if case.metric == "e2e_s"][:2], *[case for case in own if case.metric == "power_w"][:2]]
    exact = [replace(case, measured=serving_value(case, default())) for case in chosen]
    return [replace(exact[0], measured=exact[0].measured / 2), *exact[1:]]


@pytest.fixture(scope="module")
def summary(four: list[Case]) -> dict[str, Any]:
    return served_summary(four, [], default(), version="v", data="d")


def test_scores_are_of_the_rows_of_each_group(summary: dict[str, Any]) -> None:
    time, power = summary["overall"]
    assert (time["quantity"], time["n"], time["median"], time["bias"], time["coverage"]) == ("end to end", 2, 0.5, 0.5, 0.5)
    assert (power["quantity"], power["n"], power["median"], power["coverage"]) == ("power", 2, 0.0, 1.0)
    assert sum(one["n"] for one in summary["groups"]) == sum(one["n"] for one in summary["cards"]) == 4
    assert {one["model"] for one in summary["groups"]} == {"llama_2_7b"}


def test_the_size_of_a_prompt_step_is_no_engine_of_its_own() -> None:
    found = {one["engine"] for one in SHIPPED["groups"] if one["engine"].startswith("llama.cpp")}
    assert found == {"llama.cpp", "llama.cpp-metal"}


def test_the_manual_shows_each_group(summary: dict[str, Any]) -> None:
    found, shipped = (accuracy(CORPUS, one).replace("\u00a0", " ") for one in (summary, SHIPPED))
    for text in ("## Served language models", "| end to end | 2 | 50.0 % |", "| llama\\_2\\_7b | power |"):
        assert text in found
    assert "| time per output token |" in shipped
    assert "| vllm | h100\\_sxm5\\_80gb |" in shipped
    assert "Served language models" not in accuracy(CORPUS)
