"""`archsim simulate serve --llm`: the forms of the answer, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SERVE = ("simulate", "serve", "--llm", "--net", "llama_3_8b", "--hw", "h100_sxm5_80gb", "--requests", "30")


def test_the_command_prints_latencies_and_json(cli: Any, tmp_path: Path):
    found = cli(*SERVE, "--rate", "5/s", "--output", "8", "--goodput", "ttft=1s,tpot=50ms")
    assert found.code == 0
    for words in ("time to first token", "between tokens", "within ttft 1 s, tpot 50 ms", "100.0 % of all", "the cache holds"):
        assert words in found.out, words
    place = tmp_path / "r.csv"
    place.write_text("arrival_s,input,output\n0,100,5\n0.5,200,5\n")
    words = cli(*SERVE[:-2], "--trace", str(place), "--json").json
    assert (words["schema"], words["requests"], words["output_tokens"]) == ("archsim-serve-llm/1", 2, 10)
    for bad in (("--rate", "0/s"), ("--requests", "0"), ("--goodput", "x=1s"), ("--trace", str(place), "--rate", "1/s")):
        assert cli(*SERVE, *bad).code == 2
    assert "--llm" in cli("simulate", "serve", "--help").out
