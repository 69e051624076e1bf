"""`archsim llm`: forms of the answer, rows of measurements, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.base.files import data_folder

ASKED = ("llm", "--net", "llama_3_8b", "--hw", "h100_sxm5_80gb", "--input", "256", "--output", "16", "--batch", "4")
HEAD = ("source,model,hardware,devices,tp,pp,engine,precision,batch,input_len,output_len,arrival,metric,value,split,"
        "source_ref,notes")  # fmt: skip
ROWS = (
    "me,llama_3_8b,h100_sxm5_80gb,1,1,1,vllm,fp16,16,1024,1024,static,decode_s_per_token,0.01036,test,x,",
    "me,llama_3_8b,h100_sxm5_80gb,1,1,1,vllm,fp16,16,1024,1,static,ttft_s,0.4257,test,x,",
    "me,llama_3_8b,h100_sxm5_80gb,1,1,1,vllm,fp16,16,1024,1024,static,e2e_s,11.02,test,x,",
    "me,llama_3_1_8b_instruct,a100_sxm4_40gb,1,1,1,vllm-0.5.4,bf16,31.9,,486,concurrency=32,tpot_s,0.0338,test,x,chat",
    "me,llama_3_1_8b_instruct,a100_sxm4_40gb,1,1,1,vllm-0.5.4,bf16,31.9,,486,concurrency=32,energy_j_per_token,0.223,test,x,chat",
    "me,llama_3_1_8b_instruct,a100_sxm4_40gb,1,1,1,vllm-0.5.4,bf16,31.9,,486,concurrency=32,e2e_s,9,test,x,chat",
    "me,llama_3_1_8b_instruct,a100_sxm4_40gb,1,1,1,vllm-0.5.4,bf16,31.9,,486,concurrency=32,tokens_per_s,900,test,x,",
    "me,llama_9,h100_sxm5_80gb,1,1,1,vllm,fp16,16,1024,1,static,ttft_s,0.4,test,x,",
    "me,llama_3_8b,h100_sxm5_80gb,1,1,1,vllm,fp16,16,1024,1,poisson,ttft_s,0.4,test,x,",
    "me,llama_3_8b,h100_sxm5_80gb,1,1,1,mlc,fp16,16,1024,1,static,ttft_s,0.4,test,x,",
)


def test_the_first_screen_says_what_decides_a_token_and_the_rest_what_that_stands_on(cli: Any) -> None:
    first, every = cli(*ASKED).out, cli(*ASKED, "--all").out
    for words in ("to first token", "mJ per token", "are keys and values; contexts up to", "Decode waits for memory (",
                  "reads the same weights once: up to", "the nearest run"):  # fmt: skip
        assert words in first, words
    assert len(first.splitlines()) <= 24
    for words in ("Memory of a device", "nearest evidence", "--model meta-llama/Meta-Llama-3-8B --input-len 256"):
        assert words in every, words
        assert words not in first, words


def test_json_has_the_keys_of_the_python_answer(cli: Any) -> None:
    found = cli(*ASKED, "--json").json
    assert found["schema"] == "archsim-llm/1"
    answer = archsim.llm("llama_3_8b", "h100_sxm5_80gb", input=256, output=16, batch=4)
    assert found == json.loads(json.dumps(answer.to_dict()))
    assert {"ttft_s", "tpot_s", "tokens_per_s", "energy_per_token_j", "memory_bytes", "max_batch", "max_context"} <= found.keys()
    assert set(found["limited_by"]) == {"prefill", "decode"}


def test_a_config_of_a_strangers_model_is_served(cli: Any, tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    words = {"model_type": "qwen2", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24,
             "num_attention_heads": 16, "vocab_size": 151936}  # fmt: skip
    place.write_text(json.dumps(words))
    found = cli("llm", "--net", str(place), *ASKED[3:], "--weights", "int4", "--json").json
    assert found["weights"] == "int4"
    words["hidden_size"] = "wide"
    place.write_text(json.dumps(words))
    bad = cli("llm", "--net", str(place), *ASKED[3:])
    assert bad.code == 65
    assert "hidden_size: must be a whole number, is 'wide'" in bad.err


@pytest.mark.parametrize(("words", "code"), [(("--tp", "3"), 2), (("--weights", "int3"), 2), (("--engine", "x"), 2)])
def test_what_cannot_be_ends_in_one_line(cli: Any, words: tuple[str, ...], code: int) -> None:
    found = cli(*ASKED, *words)
    assert found.code == code
    assert found.out == ""


def test_rows_of_served_models_are_read_and_others_skipped(cli: Any, tmp_path: Path) -> None:
    place = tmp_path / "mine.csv"
    place.write_text("\n".join([HEAD, *ROWS]) + "\n")
    found = cli("validate", "--measurements", str(place), "--baseline", "none", "--json").json
    errors = {row["metric"]: abs(row["error"]) for row in found["rows"]}
    assert set(errors) == {"decode_s_per_token", "ttft_s", "e2e_s", "tpot_s", "energy_j_per_token"}
    assert max(errors.values()) < 0.35
    reasons = " ".join(skip["reason"] for skip in found["skipped"])
    for words in ("lengths of prompts or answers are not given", "has no end of a batch",
                  "model 'llama_9' is not described", "arrival 'poisson' is not static",
                  "engine 'mlc' is not described"):  # fmt: skip
        assert words in reasons


def test_lists_have_the_words_of_others_too(cli: Any) -> None:
    assert cli("list", "devices").out == cli("list", "hw").out != ""
    assert cli("list", "networks", "--json").out == cli("list", "nets", "--json").out


def test_models_are_listed(cli: Any) -> None:
    found = cli("list", "models", "--csv").out
    assert any(line.startswith("mixtral_8x7b,mixtral") for line in found.splitlines())


def test_the_command_of_the_engine_has_the_name_of_the_model_that_engines_know(cli: Any, tmp_path: Path):
    assert "--model meta-llama/Meta-Llama-3-8B " in cli(*ASKED, "--all").out
    assert "-m llama_3_8b.gguf" in cli(*ASKED[:-2], "--batch", "1", "--engine", "llama.cpp-cuda", "--all").out
    words = json.loads((data_folder("traces/models") / "llama_3_8b.json").read_text())["config"]
    own = tmp_path / "config.json"
    own.write_text(json.dumps(words | {"_name_or_path": "me/mine"}))
    assert "--model me/mine " in cli("llm", "--net", str(own), *ASKED[3:], "--all").out


def test_the_interval_says_which_served_models_stand_behind_it(cli: Any):
    found = cli(*ASKED, "--json").json
    assert "to none of which a constant was fitted" in found["interval_basis"]
    assert f"class {found['interval_class']}" in found["interval_basis"]
    intervals = {"tokens_per_s": "tokens_per_s_interval", "power_w": "power_interval_w", "e2e_s": "e2e_interval_s"}
    for name, interval in intervals.items():
        assert found[interval][0] < found[name] <= found[interval][1], name
    wide = [found[name][1] / found[name][0] for name in ("e2e_interval_s", "energy_per_token_interval_j")]
    assert wide[1] > wide[0]  # 1.5 times that of single runs
