"""A language model under requests: what one request alone takes, what never happens, and files of requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import ArgumentError, InputError
from archsim.generation.estimate import llm
from archsim.generation.plan import ServingPlan, serving_plan
from archsim.simulate.engine import Conversation, cache_room, decode_cost, mixed_cost, read_cost
from archsim.simulate.requests import TextRequests, drawn, lengths_of, recorded
from archsim.simulate.serve_llm import TextServing, serve_llm

from ..each import each

HW = "h100_sxm5_80gb"


def plan(net: str = "llama_3_8b", hw: str = HW, **more: object) -> ServingPlan:
    return serving_plan(net, hw, input=1, output=1, **more)  # type: ignore[arg-type]


def requests(count: int, rate: float = np.inf, prompt: str = "256", answer: str = "32", context: int = 8192) -> TextRequests:
    return drawn(rate, count, lengths_of(prompt, "--input"), lengths_of(answer, "--output"), context, 1)


def served(*args: Any, **more: Any) -> TextServing:
    return serve_llm(*args, **more)


@pytest.mark.parametrize("engine", ["vllm-0.14", "vllm-0.5"])
def test_a_request_alone_takes_what_its_estimate_says(engine: str):
    found = served(plan(engine=engine), requests(1))
    alone = llm("llama_3_8b", HW, input=256, output=32, engine=engine)
    assert found.ttft_s.mean == pytest.approx(alone.ttft_s, rel=0.01)
    assert found.tpot_s is not None
    assert found.tpot_s.mean == pytest.approx(alone.tpot_s, rel=0.01)
    assert found.e2e_s.mean == pytest.approx(alone.e2e_s, rel=0.01)
    assert found.energy_per_token_j == pytest.approx(alone.energy_per_token_j, rel=0.02)


def test_a_batch_at_once_is_near_the_estimate_of_the_batch():
    found = served(plan(engine="vllm-0.5"), requests(16))
    alone = llm("llama_3_8b", HW, input=256, output=32, batch=16, engine="vllm-0.5")
    assert found.duration_s == pytest.approx(alone.e2e_s, rel=0.1)
    assert found.running == 16


def test_every_token_is_made_once_and_in_order():
    found = served(plan(), requests(40, rate=20.0, prompt="uniform:10:900", answer="exponential:60"))
    assert found.requests == 40
    assert found.itl_s is not None
    assert found.itl_s.p50 > 0
    assert found.tokens_per_s == pytest.approx(found.output_tokens / found.duration_s)
    assert found.ttft_s.p50 <= found.ttft_s.p90 <= found.ttft_s.p99
    assert 0 < found.utilisation[0] <= 1
    assert found == served(plan(), requests(40, rate=20.0, prompt="uniform:10:900", answer="exponential:60"))


def test_more_requests_wait_longer():
    slow, fast = (served(plan(), requests(60, rate=rate, prompt="1024", answer="64")) for rate in (2.0, 60.0))
    assert fast.ttft_s.p90 > slow.ttft_s.p90
    assert fast.tokens_per_s > slow.tokens_per_s


def test_requests_without_blocks_are_put_back_and_end_all_the_same():
    small = plan("llama_2_7b", "a100_sxm4_40gb", engine="vllm-0.5")
    found = served(small, requests(60, prompt="800", answer="400", context=4096))
    assert found.preemptions > 0
    assert found.requests == 60
    assert found.output_tokens == 60 * 400
    assert found.cache_tokens == cache_room(small) // (16 * 524288) * 16


def test_a_request_that_never_fits_is_refused():
    with pytest.raises(ArgumentError, match="never fits the cache"):
        served(plan("llama_3_1_70b", "a100_sxm4_40gb", tp=2, weights="fp8"), TextRequests(
            arrival_s=np.zeros(1), input=np.array([100_000]), output=np.array([30_000])))


def test_goodput_counts_requests_that_keep_every_limit():
    all_of, none = (served(plan(), requests(20, rate=5.0), limits={"ttft": limit}) for limit in (10.0, 1e-6))
    assert (all_of.kept, none.kept) == (1.0, 0.0)
    assert all_of.goodput_per_s == pytest.approx(all_of.requests_per_s)
    assert served(plan(), requests(20, rate=5.0), limits={"itl": 1e-4}).kept == 0.0


def test_a_split_reads_here_and_generates_there():
    both, split = (served(plan(), requests(60, rate=20.0, prompt="2048", answer="64"), split=way) for way in (False, True))
    assert (split.servers, split.devices) == (2, 2)
    assert split.itl_s is not None
    assert both.itl_s is not None
    assert split.itl_s.p99 < both.itl_s.p99
    single = served(plan(), requests(3, answer="1"), split=True)
    assert single.tpot_s is None


@each("seed", range(10))
def test_a_step_that_does_both_is_no_shorter_than_each_and_a_run_of_such_steps_ends(seed: int):
    random = np.random.default_rng(seed)
    engine, weights, kv, net = (str(random.choice(names)) for names in (
        ("vllm", "vllm-0.5", "sglang", "tensorrt-llm", "llama.cpp"), ("bf16", "fp8", "int8", "q4_k_m"), ("bf16", "fp8", "int8"),
        ("llama_3_8b", "gemma_2_2b", "gpt2_small")))  # fmt: skip
    small = plan(net, engine=engine, weights=weights, kv=kv)
    sequences, tokens, context = int(random.integers(1, 500)), int(random.integers(1, 2000)), float(random.integers(2, 1000))
    reads, decodes = read_cost(small, tokens, tokens), decode_cost(small, sequences, context)
    both = mixed_cost(small, sequences, context, tokens, tokens)
    assert max(reads.time_s, decodes.time_s) <= both.time_s < 1.05 * (reads.time_s + decodes.time_s)
    prompt, answer = (f"exponential:{random.integers(1, 300)}" for _ in "io")
    rate = float(random.choice([2.0, 50.0, np.inf]))
    assert served(small, requests(20, rate, prompt=prompt, answer=answer, context=1024)).requests == 20


def test_a_request_that_was_put_back_is_read_again_with_its_answer():
    one = Conversation(arrival_s=0.0, input=5, output=3)
    assert one.to_read == 5
    assert replace(one, read=5, answered=1).to_read == 0
    assert replace(one, read=0, answered=2).to_read == 7


@each(("text", "message"), [
    ("uniform:9", "is not a number"), ("weird:1:2", "is not a number"), ("normal:a:b", "are not numbers"), ("0", "lie between 1"),
    ("uniform:9:3", "the second number is the larger"), ("lognormal:9:9", "sigma above 5"), ("nan", "is not a number"),
    ("normal:nan:1", "lie between"), ("exponential:1e99", "lie between"), ("-5", "is not a number"),
])  # fmt: skip
def test_what_is_no_distribution_is_refused(text: str, message: str):
    with pytest.raises(ArgumentError) as caught:
        lengths_of(text, "--input")
    assert message in str(caught.value)


def test_distributions_have_their_means():
    random = np.random.default_rng(1)
    for text, expected in (("300", 300), ("uniform:100:300", 200), ("normal:200:10", 200), ("exponential:200", 200),
                           ("lognormal:200:0.1", 201)):  # fmt: skip
        values = lengths_of(text, "--input").drawn(random, 4000, 10_000)
        assert values.mean() == pytest.approx(expected, rel=0.05), text
        assert values.min() >= 1


@each(("text", "message"), [
    ("arrival_s,input\n0,1\n", "no column 'output'"),
    ("arrival_s,input,output\n0,1,x\n", "line 2: needs three numbers"),
    ("arrival_s,input,output\n1,1,1\n0,1,1\n", "line 3: arrival_s 0 lies before"),
    ("arrival_s,input,output\n0,1.5,1\n", "whole numbers from 1"),
    ("arrival_s,input,output\n0,9000,1\n", "more than the 8192"),
    ("arrival_s,input,output\nnan,1,1\n", "is no time"),
    ("arrival_s,input,output\n", "holds no requests"),
])  # fmt: skip
def test_a_file_of_requests_is_read_line_by_line(tmp_path: Path, text: str, message: str):
    place = tmp_path / "r.csv"
    place.write_text(text)
    with pytest.raises(InputError) as caught:
        recorded(place, 8192)
    assert message in str(caught.value)

