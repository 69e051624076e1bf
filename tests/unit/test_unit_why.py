"""The sentences that say why: what decides a token, the rate of a server, a step of training."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from archsim.estimation.request import make_request
from archsim.generation.estimate import llm, read_per_token, why
from archsim.node.spec import find
from archsim.schedule.serving import Batching
from archsim.simulate.serve import Load, Serving, better_batch, simulate_serving, why_rate
from archsim.simulate.train import Training, simulate_training, why_training

from ..each import each


@cache
def served(bound: float | None = None, rate: float | None = None, most: int = 8) -> Serving:
    request = make_request("resnet_50", "tesla_t4")
    return simulate_serving(request, Load(bound_s=bound, rate=rate, requests=3000), Batching(most=most))


@cache
def trained(net: str = "vgg_16", devices: int = 4, **words: object) -> Training:
    request = make_request(net, "gtx_1080", batch=16, task="training_step")
    return simulate_training(request, find("deepbench_8gpu"), [1, devices], **words)  # type: ignore[arg-type]


@each(("bound", "said"), [
    (0.001, "a request alone takes 9.9"),
    (0.015, "a request that meets a batch under way waits up to 9.9 ms and then takes 9.9 ms"),
    (0.03, "a request that just misses one waits for it"), (2.0, "and the queue grows beyond"),
])  # fmt: skip
def test_the_reason_of_a_rate_follows_from_batches_and_the_limit(bound: float, said: str) -> None:
    assert said in why_rate(served(bound=bound))


def test_at_the_rate_where_two_batches_fit_the_limit_the_reason_changes() -> None:
    low = served(bound=0.015)
    alone = low.batch_latency_s[1]
    assert "waits up to" in why_rate(replace(low, bound_s=1.99 * alone))
    assert "waits up to" not in why_rate(replace(low, bound_s=2.01 * alone))


def test_a_rate_that_was_asked_for_says_the_wait_and_one_that_is_too_high_that_the_queue_grows() -> None:
    assert "a request waits" in why_rate(served(rate=150.0))
    assert "so the queue grows without end" in why_rate(served(rate=1e5))
    assert why_rate(replace(served(rate=150.0), scenario="SingleStream")) == ""


def test_a_smaller_batch_that_serves_more_is_named_where_batches_are_full() -> None:
    full = replace(served(rate=150.0), scenario="Offline", batch_latency_s={1: 0.01, 4: 0.02, 8: 0.05}, capacity_per_s=160.0)
    assert better_batch(full) == ["Batches of 4 serve more, 200/s on a device: try --batching max=4."]
    assert better_batch(replace(full, capacity_per_s=200.0)) == []
    assert better_batch(replace(full, scenario="Server", rate_per_s=10.0)) == []


def test_an_exchange_hides_or_costs_what_the_step_shows() -> None:
    hidden, after = trained(), trained(overlap=False)
    point = hidden.points[-1]
    assert f"on 4 devices hides behind the backward pass but for {1e3 * point.exchange_s:.3g} ms" in why_training(hidden)[0]
    assert "comes after the backward pass and takes" in why_training(after)[0]
    none = replace(hidden, points=(replace(point, exchange_s=0.0),))
    assert why_training(none) == ["The all-reduce of 553 MB on 4 devices hides behind the backward pass."]
    assert why_training(replace(hidden, points=hidden.points[:1])) == ["One device exchanges no gradients."]


def test_inputs_that_are_late_are_named_with_what_is_busy() -> None:
    found = trained("resnet_50")
    late = replace(found.points[-1], input_s=0.5 * found.points[-1].step_s, busy={"device": 0.5, "decode": 0.99, "disk": 0.2})
    assert why_training(replace(found, points=(late,)))[1].endswith("the decode workers are busy 99 % of the time.")


def test_what_decides_a_token_is_what_its_time_shows() -> None:
    few = llm("llama_3_8b", "h100_sxm5_80gb", input=256, output=16, batch=4)
    assert why(few)[0].startswith("Decode waits for memory (")
    assert read_per_token(few) == pytest.approx(few.memory_bytes["weights"], rel=0.15)
    assert why(few)[1] == f"A larger batch reads the same weights once: up to {few.max_batch:,} requests fit."
    assert "larger batch" not in " ".join(why(replace(few, max_batch=4)))
    linked = replace(few.phases["decode"], limited_by="links", breakdown_s={"links": few.phases["decode"].time_s})
    assert why(replace(few, phases={**few.phases, "decode": linked}))[0] == (
        "Decode is limited by links between devices (100 % of the time); fewer devices or faster links shorten it.")  # fmt: skip
    single = llm("llama_3_8b", "h100_sxm5_80gb", input=256, output=1)
    assert [line.partition(" ")[0] for line in why(single)] == ["Prompts"]
