"""Published runs of served models beside an answer: the same run, the nearest, none."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.evidence.family import serving_files
from archsim.generation.estimate import llm
from archsim.generation.measured import references_of
from archsim.generation.plan import serving_plan

ASKED = {"input": 1024, "output": 1024, "batch": 16, "engine": "tensorrt-llm-0.11", "precision": "fp16"}


def plan(hw: str = "a100_sxm4_40gb", **words: Any) -> Any:
    return serving_plan("llama_3_8b", hw, **{**ASKED, **words})


def test_the_corpus_of_served_models_is_shipped() -> None:
    assert [file.name for file in serving_files()] == ["llm_serving.csv.gz", "more_llm.csv.gz", "served.csv"]


def test_the_run_that_was_asked_for_stands_beside_its_prediction() -> None:
    found = references_of(plan())
    assert {one.metric for one in found} == {"e2e_s", "decode_s_per_token", "power_w"}
    assert all(one.same for one in found)
    assert {(one.batch, one.input, one.output, one.engine, one.precision) for one in found} == {
        (16, 1024, 1024, "tensorrt-llm-0.11", "fp16")}  # fmt: skip
    for one in found:
        assert one.error == pytest.approx(one.predicted / one.measured - 1)
        assert abs(one.error) < 0.3
        assert one.source == "LLM-Inference-Bench, 2024"


def test_runs_that_other_tools_predicted_are_shown_too() -> None:
    words = {"input": 3496, "output": 122, "batch": 8, "engine": "sglang"}
    found = references_of(serving_plan("qwen2_5_14b", "a40", **words))
    assert {one.metric for one in found} == {"ttft_s", "decode_s_per_token", "e2e_s"}
    assert all(one.same and one.source == "PipeWeave, 2026" for one in found)


def test_the_prediction_of_the_same_run_is_the_answer() -> None:
    answer = llm("llama_3_8b", "a100_sxm4_40gb", **ASKED)
    by_metric = {one.metric: one.predicted for one in answer.references}
    assert by_metric["e2e_s"] == pytest.approx(answer.e2e_s)
    assert by_metric["decode_s_per_token"] == pytest.approx(answer.tpot_s)
    assert by_metric["power_w"] == pytest.approx(answer.power_w)


@pytest.mark.parametrize(("words", "run"), [
    ({"batch": 17}, (16, 1024, 1024, "tensorrt-llm-0.11")),
    ({"input": 900, "output": 140}, (16, 1024, 128, "tensorrt-llm-0.11")),
    ({"engine": "vllm-0.14", "precision": "bf16"}, (16, 1024, 1024, "vllm")),
])  # fmt: skip
def test_otherwise_the_nearest_run_is_shown_as_such(words: dict[str, Any], run: tuple[object, ...]) -> None:
    found = references_of(plan(**words))
    assert found
    assert not any(one.same for one in found)
    assert {one.engine for one in found} == {run[-1]}
    one = found[0]
    assert abs(one.batch - run[0]) <= 16  # type: ignore[operator]


def test_a_changed_device_another_card_and_shared_layers_have_none() -> None:
    assert references_of(plan(scales={"memory.bandwidth": 2.0})) == ()
    assert references_of(plan(hw="l40s")) == ()
