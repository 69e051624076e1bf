"""The frozen result of served language models: scores by hand, where it is shown, and never out of date."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import archsim.validation.served as served
from archsim.answers.corpus import sections
from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.generation.measured import serving_value
from archsim.render.html import page as page_of
from archsim.site import accuracy

Run = Callable[..., tuple[int, str, str]]

FOLDER = Path(__file__).parents[2] / "reports" / "validation"
AGAIN = "run `archsim validate --served reports/validation`"
SHIPPED = json.loads((FOLDER / "served.json").read_text("utf-8"))
CORPUS = json.loads((FOLDER / "validation.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def every() -> list[Case]:
    return served.served_cases()[0]


@pytest.fixture(scope="module")
def four(every: list[Case]) -> list[Case]:
    """Two times and two powers of small models, measured as predicted, but for one time, which was half as long."""
    own = [case for case in every if case.label == "llama_2_7b" and case.hardware == "a100_sxm4_40gb"]
    chosen = [*[case for case in own if case.metric == "e2e_s"][:2], *[case for case in own if case.metric == "power_w"][:2]]
    exact = [replace(case, measured=serving_value(case, default())) for case in chosen]
    return [replace(exact[0], measured=exact[0].measured / 2), *exact[1:]]


@pytest.fixture(scope="module")
def summary(four: list[Case]) -> dict[str, Any]:
    return served.served_summary(four, [], default(), {"version": "v", "calibration": "c", "data": "d"})


def test_scores_are_of_the_rows_of_each_group(summary: dict[str, Any]) -> None:
    time, power = summary["overall"]
    assert (time["quantity"], time["n"], time["median"], time["bias"], time["coverage"]) == ("end to end", 2, 0.5, 0.5, 0.5)
    assert (power["quantity"], power["n"], power["median"], power["coverage"]) == ("power", 2, 0.0, 1.0)
    assert sum(one["n"] for one in summary["groups"]) == sum(one["n"] for one in summary["cards"]) == 4
    assert {one["model"] for one in summary["groups"]} == {"llama_2_7b"}


def test_the_size_of_a_prompt_step_is_no_engine_of_its_own() -> None:
    assert {one["engine"] for one in SHIPPED["groups"] if one["engine"].startswith("llama.cpp")} == {"llama.cpp"}


def test_both_pages_show_each_group(summary: dict[str, Any]) -> None:
    page, manual = page_of(sections(CORPUS, summary)), accuracy.page(CORPUS, summary)
    assert "Served language models" in page
    assert "50.0 %" in page
    manual = manual.replace("\u00a0", " ")
    assert "## Served language models" in manual
    assert "| end to end | 2 | 50.0 % |" in manual
    assert "| llama\\_2\\_7b | power |" in manual
    assert "| time per output token |" in accuracy.page(CORPUS, SHIPPED).replace("\u00a0", " ")
    assert "#### vllm on h100\\_sxm5\\_80gb" in accuracy.page(CORPUS, SHIPPED)
    assert "Served language models" not in page_of(sections(CORPUS)) + accuracy.page(CORPUS)


def test_the_command_writes_the_numbers_and_the_page_beside_a_summary(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, four: list[Case]
) -> None:
    monkeypatch.setattr(served, "served_cases", lambda: (four[:1], []))
    folder = tmp_path / "out"
    assert run("validate", "--served", str(folder))[0] == 0
    assert [place.name for place in folder.iterdir()] == ["served.json"]
    first = (folder / "served.json").read_bytes()
    (folder / "validation.json").write_text(json.dumps(CORPUS), "utf-8")
    assert run("validate", "--served", str(folder))[0] == 0
    assert (folder / "served.json").read_bytes() == first
    assert "Served language models" in (folder / "index.html").read_text("utf-8")


@pytest.mark.parametrize("words", [("--limit", "3"), ("--json",), ("--folds", "hardware"), ("--freeze", "x")])
def test_nothing_may_choose_rows_beside_served(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, _, error = run("validate", "--served", str(tmp_path / "out"), *words)
    assert code == 2
    assert "--freeze" in error or words[0] in error
    assert not (tmp_path / "out").exists()


def test_a_broken_summary_beside_it_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, four: list[Case]) -> None:
    monkeypatch.setattr(served, "served_cases", lambda: (four[:1], []))
    (tmp_path / "validation.json").write_text("{", "utf-8")
    code, _, error = run("validate", "--served", str(tmp_path))
    assert code == 65
    assert "validation.json" in error
