"""`archsim llm`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.arguments import SERVED
from archsim.cli.output import AnswerForm, answer_forms
from archsim.cli.vocabulary import HW, MODEL, choices, option, options


@click.command("llm")
@MODEL
@HW
@option(SERVED["input"], required=True, show_default=False)
@option(SERVED["output"], required=True, show_default=False)
@options(row for row in SERVED.values() if row.name not in ("input", "output"))
@answer_forms(all="Print all that is known of the run.", page=True)
def command(net: str, hw: str, form: AnswerForm, **given: Any) -> None:
    """Predict a language model that an engine serves: prefill and decode of a batch of requests that arrive at once.

    Time to first token, time per output token, tokens per second, joules per token, memory by part, the largest batch and context
    that fit, what limits each phase, what the numbers rest on, and the engine's command that measures the same.

    \b
    Examples:
      archsim llm --net llama_3_8b --hw h100_sxm5_80gb --input 2048 --output 256 --batch 16
      archsim llm --net llama_3_1_70b --hw a100_sxm4_80gb --input 1024 --output 512 --batch 32 --tp 4 --engine vllm
      archsim llm --net llama_3_8b --hw l40s --input 1024 --output 256 --weights int4 --kv fp8 --json
      archsim llm --net path/to/config.json --hw h100 --input 512 --output 128
    """
    from archsim.generation.estimate import llm

    form.show(llm(net, hw, **choices(given, SERVED)))
