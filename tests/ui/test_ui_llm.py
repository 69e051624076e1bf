"""The page of language models, asked in this process."""

from __future__ import annotations

import json
import shlex
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from archsim.cli.main import group
from archsim.ui.estimates import generated
from archsim.ui.export import llm_command
from archsim.ui.state import MODELS, read_state

from ..each import each
from .asked import get

LLAMA = {"net": "llama_3_8b", "hw": "h100_sxm5_80gb", "input": "512", "output": "64", "batch": "8", "weights": "fp8"}
MARKUP = "<img src=x onerror=alert(1)>"
FASTER = {**LLAMA, "memory.bandwidth": "5 TB/s", "clock": "1.5 GHz"}


def test_the_page_shows_prefill_and_decode_before_and_after() -> None:
    status, _, body = get("/llm", FASTER)
    assert status == 200
    for part in ("time to first token", "energy per token", "Prefill and decode", "decode is limited by", "Memory of a device",
                 "Pin this variant", "What the numbers rest on"):  # fmt: skip
        assert part in body
    state = read_state(urlencode(FASTER), MODELS)
    assert generated(state).tpot_s < generated(state, changed=False).tpot_s
    assert get("/llm")[0] == 200


def test_the_exported_command_gives_the_numbers_of_the_page() -> None:
    state = read_state(urlencode(FASTER), MODELS)
    outcome = CliRunner().invoke(group, [*shlex.split(llm_command(state))[1:], "--json"])
    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.stdout)
    assert found["tpot_s"] == pytest.approx(generated(state).tpot_s)
    assert found["energy_per_token_j"] == pytest.approx(generated(state).energy_per_token_j)


@each("words", (
    {"hw": "i7_6700k"}, {"net": "resnet_50"}, {"net": "/etc/passwd"}, {"engine": "/etc/passwd"}, {"engine": "x.toml"},
    {"batch": "0"}, {"input": "1e9"}, {"input": "x"}, {"tp": "3"}, {"weights": MARKUP}, {"kv": "fp3"}, {"stack": "caffe-native"},
    {"node": "/etc/x"}, {"threads": "4"},
))  # fmt: skip
def test_what_is_no_state_gets_a_message(words: dict[str, str]) -> None:
    for path in ("/llm", "/llm/result"):
        status, _, body = get(path, {**LLAMA, **words})
        assert status == 400, (path, words)
        assert "Not possible:" in body
        assert MARKUP not in body
