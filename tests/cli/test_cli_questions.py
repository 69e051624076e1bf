"""Questions that people ask: each command gives its answer, and each mistake says the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archsim.study.condition import BadCondition
from archsim.study.within import conditions_of

WORDS = ("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--where")


def test_who_reaches_it_and_who_does_not_is_printed(cli: Any) -> None:
    out = cli(*WORDS, "latency < 5ms").out
    for text in ("alexnet: inference, the largest batch with latency < 5ms", "USD/M img", "closest of those that do not reach it",
                 "i7_6700k: batch 1: latency", "times as fast", "tried: every power of two"):  # fmt: skip
        assert text in out, text
    rows = json.loads(cli(*WORDS, "latency < 5ms", "--json").out)
    assert [(row["hardware"], row["missed"] is None, row["where"]) for row in rows] == [
        ("gtx_1080", True, ["latency < 5ms"]), ("i7_6700k", False, ["latency < 5ms"])]  # fmt: skip
    assert rows[0]["latency_s"] < 5e-3 <= rows[1]["latency_s"]


def test_what_nobody_reaches_leaves_with_1(cli: Any) -> None:
    result = cli(*WORDS, "latency < 1us")
    assert result.code == 1
    assert "no device reaches latency < 1us" in result.out


def test_a_condition_and_a_batch_are_refused(cli: Any) -> None:
    assert "leave out --batch" in cli(*WORDS, "latency < 5ms", "--batch", "4").err
    assert "one of latency, throughput" in cli(*WORDS, "speed < 5ms").err
    with pytest.raises(BadCondition, match="lacks its unit"):
        conditions_of("latency < 5")
