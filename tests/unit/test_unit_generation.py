"""Language models as engines serve them: steps, phases, memory and plans, each against what must hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.generation.estimate import GenerationEstimate, llm
from archsim.generation.memory import cache_of, largest_batch, largest_context, memory_of, room, weights_of
from archsim.generation.plan import CACHE_BYTES, WEIGHTS, Speculation, serving_plan
from archsim.generation.step import ENGINE_HOST, LINKS, decode, prefill, step_cost, token_cost
from archsim.stack import catalog as stacks

from ..each import each

ASKED = {"input": 512, "output": 64, "batch": 4}
HW = "h100_sxm5_80gb"


def asked(**more: object) -> GenerationEstimate:
    return llm("llama_3_8b", HW, **{**ASKED, **more})


def test_the_sum_over_contexts_is_that_of_every_step():
    plan = serving_plan("llama_3_8b", HW, **{**ASKED, "output": 400})
    whole = sum(step_cost(plan, 4, 1, context, decode=True).time_s for context in range(513, 513 + 399, 7)) * 7
    assert decode(plan, 4, 513, 399).time_s == pytest.approx(whole, rel=0.01)
    assert decode(plan, 4, 513, 3).time_s == pytest.approx(sum(token_cost(plan, 4, 513 + i).time_s for i in range(3)))
    assert decode(plan, 4, 513, 0).time_s == 0.0


def test_more_work_is_never_faster_and_totals_add_up():
    one, longer, more = asked(), asked(input=1024), asked(batch=16)
    assert longer.ttft_s > one.ttft_s
    assert longer.tpot_s > one.tpot_s
    assert more.tpot_s > one.tpot_s
    assert more.tokens_per_s > one.tokens_per_s
    assert one.e2e_s == pytest.approx(one.ttft_s + 63 * one.tpot_s)
    assert one.energy_per_token_j * 4 * 64 == pytest.approx(one.energy_j)
    assert one.energy_j == pytest.approx(one.power_w * one.e2e_s)
    for phase in one.phases.values():
        assert sum(phase.breakdown_s.values()) == pytest.approx(phase.time_s)
    assert one.ttft_interval_s[0] < one.ttft_s < one.ttft_interval_s[1]


@each("seed", range(12))
def test_decode_reads_weights_and_cache_once_and_no_faster_than_the_memory_delivers_them(seed: int):
    """Whatever the engine, and however weights, keys and values are stored; results stay in the L2."""
    random = np.random.default_rng(seed)
    engine, weights, kv, net, hw = (str(random.choice(names)) for names in (
        ("vllm", "vllm-0.5", "sglang", "tensorrt-llm", "llama.cpp"), list(WEIGHTS), list(CACHE_BYTES),
        ("llama_3_8b", "llama_2_7b", "mistral_7b", "gemma_2_2b", "qwen2_7b"), (HW, "l40s", "h200_sxm_141gb")))  # fmt: skip
    plan = serving_plan(net, hw, input=64, output=64, engine=engine, weights=weights, kv=kv)
    sequences, context = int(random.integers(1, 64)), 256 * int(random.integers(1, 28))
    table = 0.0 if plan.model.tied else WEIGHTS[weights].table * plan.model.vocabulary * plan.model.width  # few rows are read
    least = weights_of(plan) - table + sequences * cache_of(plan, context)
    cost = step_cost(plan, sequences, 1, context, decode=True)
    assert 0.999 * least < cost.dram_bytes < 1.2 * least  # where heads are not packed, some keys are read again
    assert cost.time_s > least / float(plan.spec.device.memory.bandwidth)


def test_the_last_token_of_an_answer_is_not_kept():
    assert serving_plan("llama_3_8b", HW, input=8192, output=1).output == 1
    with pytest.raises(ArgumentError, match="at most 8192 tokens"):
        serving_plan("llama_3_8b", HW, input=8192, output=2)


def test_memory_is_counted_and_bounds_batch_and_context():
    plan = serving_plan("llama_3_8b", HW, **ASKED)
    memory = memory_of(plan, 4, 576)
    assert memory.weights == 8030261248 * 2
    assert memory.kv_cache == 4 * 576 * 131072
    assert memory.kv_per_layer * 32 == memory.kv_cache
    assert sum(value for name, value in memory.parts.items() if name not in ("kv_per_layer", "total")) == memory.total
    most = largest_batch(plan, 8192)
    assert memory_of(plan, most, 8192).total <= room(plan) < memory_of(plan, most + 1, 8192).total
    longest = largest_context(plan, 200)
    assert memory_of(plan, 200, longest).total <= room(plan) < memory_of(plan, 200, longest + 16).total


def test_requests_whose_cache_does_not_fit_wait():
    few = llm("llama_2_7b", "a100_sxm4_40gb", input=2048, output=16, batch=32, engine="vllm-0.5")
    assert few.waves > 1
    assert not few.fits
    assert "run at once" in few.warnings[0]
    alone = llm("llama_2_7b", "a100_sxm4_40gb", input=2048, output=16, batch=few.max_batch, engine="vllm-0.5")
    assert few.e2e_s > alone.e2e_s
    with pytest.raises(ArgumentError, match=r"takes .* GB on each device"):
        llm("llama_3_1_70b", "a100_sxm4_40gb", input=16, output=16)


def test_devices_that_share_layers_read_less_and_wait_for_links():
    one, four = asked(batch=1), asked(batch=1, tp=4)
    assert four.node == "dgx_h100"
    assert four.memory_bytes["weights"] == pytest.approx(one.memory_bytes["weights"] / 4)
    assert one.tpot_s / 4 < four.tpot_s < one.tpot_s
    assert four.phases["decode"].breakdown_s[LINKS] > 0
    stages = asked(batch=1, pp=2)
    assert stages.tpot_s == pytest.approx(one.tpot_s, rel=0.1)
    assert stages.memory_bytes["weights"] == pytest.approx(one.memory_bytes["weights"] / 2)


def test_experts_are_read_as_they_are_chosen():
    few, many = (llm("mixtral_8x7b", HW, input=64, output=8, batch=batch, tp=2) for batch in (1, 64))
    assert few.active_parameters == pytest.approx(12.9e9, rel=0.01)
    assert few.phases["decode"].dram_bytes < 0.45 * many.phases["decode"].dram_bytes
    spread = llm("mixtral_8x7b", HW, input=64, output=8, batch=64, tp=2, ep=2)
    assert spread.expert_parallel == 2
    assert spread.memory_bytes["weights"] == pytest.approx(many.memory_bytes["weights"], rel=0.01)


def test_latent_keys_make_a_small_cache():
    plan = serving_plan("deepseek_v2_lite", HW, **ASKED)
    assert memory_of(plan, 1, 1024).kv_cache == 27 * 1024 * (512 + 64) * 2
    wide, narrow = (step_cost(replace(plan, cache=kv), 64, 1, 4096, decode=True).dram_bytes for kv in ("bf16", "fp8"))
    assert wide - narrow == pytest.approx(64 * 4096 * 27 * (512 + 64))


def test_guesses_ahead_pay_where_they_are_taken():
    assert Speculation(tokens=3, accepted=1.0).yielded == 4.0
    none, good, bad = (asked(batch=1), asked(batch=1, speculative="tokens=4,accept=0.8"),
                       asked(batch=1, speculative="tokens=4,accept=0"))  # fmt: skip
    assert good.tpot_s < none.tpot_s < bad.tpot_s * 1.001
    assert asked(batch=1, speculative="tokens=4,accept=0.8", draft="qwen2_1_5b").tpot_s > good.tpot_s


def test_an_engine_that_compiles_rounds_activations_in_one_kernel():
    """Prompts in fp8 take less than three quarters as long as in bf16; with the four kernels of a single call about as long."""
    asked = {"input": 2048, "output": 16, "batch": 16}
    wide, plan = serving_plan("llama_3_8b", HW, **asked), serving_plan("llama_3_8b", HW, weights="fp8", kv="fp8", **asked)
    called = replace(plan, stack=stacks.find("vllm-0.14"))
    bf16, fp8, apart = (step_cost(one, 4, 2048, 2048, decode=False).time_s for one in (wide, plan, called))
    assert 0.5 * bf16 < fp8 < 0.75 * bf16 < 0.8 * bf16 < apart < 1.1 * bf16


def test_weights_of_four_bits_are_worth_their_bytes_up_to_sixteen_sequences():
    """MARLIN (PPoPP 2025) on an A10: close to four times as fast at 16 tokens; tiles of 32 and more are padded, which a card with
    slow tensor cores pays for."""
    for hw, most in (("a10", 0.45), ("rtx_3090", 0.5), ("l40s", 0.45), ("a100_sxm4_80gb", 0.6)):
        time = {weights: step_cost(serving_plan("llama_3_8b", hw, input=64, output=64, batch=16, weights=weights), 16, 1, 128,
                                   decode=True).time_s for weights in ("bf16", "int8", "int4")}  # fmt: skip
        assert time["int4"] < most * time["bf16"], hw
        assert time["int4"] < time["int8"] < time["bf16"], hw


def test_a_host_that_prepares_ahead_adds_nothing_to_a_long_step():
    plan = serving_plan("llama_3_8b", HW, **ASKED, engine="vllm-0.5")
    slow = step_cost(plan, 4, 1, 512, decode=True)
    assert slow.bound_s[ENGINE_HOST] > 1e-3
    serving = replace(plan.stack.serving, overlapped=True)
    ahead = step_cost(replace(plan, stack=replace(plan.stack, serving=serving)), 4, 1, 512, decode=True)
    assert ahead.bound_s.get(ENGINE_HOST, 0.0) == 0.0
    assert ahead.time_s == pytest.approx(slow.time_s - slow.bound_s[ENGINE_HOST])


def test_experts_in_fp8_read_prompts_no_slower():
    """Tokens are rounded once, before each goes to its experts."""
    many = {"input": 1024, "output": 8, "batch": 16, "tp": 2}
    wide, narrow = (llm("mixtral_8x7b", HW, **many, weights=weights) for weights in ("bf16", "fp8"))
    assert narrow.ttft_s < 0.9 * wide.ttft_s


def test_cards_in_slots_add_up_through_their_processors():
    base = {"input": 512, "output": 64, "batch": 8}
    two, four = (serving_plan("llama_3_8b", "l40s", tp=tp, **base) for tp in (2, 4))
    assert two.node is not None
    assert two.node.id == "server_8gpu_pcie4"
    pair, all_four = (step_cost(plan, 8, 1, 512, decode=True).bound_s[LINKS] for plan in (two, four))
    assert all_four > pair
    assert serving_plan("llama_3_8b", "mi300x", tp=8, **base).node.id == "mi300x_8gpu"  # type: ignore[union-attr]


@each(("engine", "words", "ends"), [
    ("vllm", {"kv": "fp8", "weights": "fp8", "graph": False}, "--kv-cache-dtype fp8 --quantization fp8 --enforce-eager"),
    ("sglang", {"tp": 2, "pp": 2}, "--tp 2 --pp-size 2"),
    ("vllm", {}, "--batch-size 4 --tensor-parallel-size 1"),
    ("vllm-0.5-server", {"kv": "fp8"}, "--max-concurrency 4"),
    ("llama.cpp-cuda", {"batch": 1, "kv": "int8"}, "-ctk q8_0 -ctv q8_0"),
])  # fmt: skip
def test_the_engines_command_has_what_was_asked(engine: str, words: dict[str, object], ends: str):
    assert asked(engine=engine, **words).benchmark.endswith(ends)


def test_graphs_save_the_gaps_between_kernels():
    assert asked(batch=1, graph=True).tpot_s < asked(batch=1, graph=False).tpot_s


def test_a_long_prompt_is_read_in_chunks():
    plan = serving_plan("llama_3_1_8b", HW, input=65536, output=2)
    many = prefill(plan, 1, 65536)
    assert many.steps == 8
    exact = sum(step_cost(plan, 1, 8192, 8192 * (i + 1), decode=False).time_s for i in range(8))
    assert many.cost.time_s == pytest.approx(exact, rel=0.01)


def test_what_generates_nothing_is_refused():
    with pytest.raises(Unsupported, match="does not make text"):
        llm("bert_base", HW, **ASKED)
    with pytest.raises(Unsupported, match="GPUs only"):
        llm("gpt2", "i7_6700k", **ASKED)
    with pytest.raises(UnknownName, match="nearest: llama_3_8b"):
        llm("llama_3_8", HW, **ASKED)
