"""`archsim llm`."""

from __future__ import annotations

from typing import Any

import click

from archsim.base.writer import OutputFile
from archsim.cli.completed import Known
from archsim.cli.options import only_options
from archsim.cli.output import write_page
from archsim.cli.types import together
from archsim.cli.vocabulary import HW, AnswerForm, answer_forms, html_option

SHARED = ("clock", "power_limit", "host_cpu", "settings", "scales", "calibration")  # with the commands of networks


# The engine, the devices that it shares a model over, and the formats of what it multiplies and stores.
served_options = together(
    click.option("--tp", type=int, default=1, show_default=True, help="Devices that share each layer (tensor parallel)."),
    click.option("--ep", type=int, default=1, show_default=True,
                 help="Devices over which experts are spread, with all-to-alls; as many as --tp."),
    click.option("--engine", type=Known("engine"), default=None,
                 help="The engine: vllm, sglang, tensorrt-llm, llama.cpp, or with a version."),
    click.option("--precision", default=None, metavar="FORMAT", help="Of activations: bf16 (the default) or fp16."),
    click.option("--weights", default=None, metavar="FORMAT",
                 help="Weights in bf16, fp16, fp32, fp8, int8, int4 (also awq, gptq), nvfp4, or those of GGUF files: q8_0, "
                      "q6_k, q5_k_m, q5_k_s, q5_0, q4_k_m, q4_k_s, q4_0, q3_k_l, q3_k_m, q3_k_s, q2_k."),
    click.option("--kv", default=None, metavar="FORMAT", help="How keys and values are stored: bf16, fp16, fp8, int8."),
    click.option("--node", type=Known("node"), default=None,
                 help="The node that joins several devices; if not given, one that is sold with them."),
)  # fmt: skip


@click.command("llm")
@click.option("--net", type=Known("model"), required=True,
              help="A shipped model (`archsim list models`), its Hugging Face id, or the path of a config.json.")  # fmt: skip
@HW
@click.option("--input", "prompt", type=int, required=True, metavar="TOKENS", help="Tokens of each prompt.")
@click.option("--output", "answer", type=int, required=True, metavar="TOKENS", help="Tokens of each answer.")
@click.option("--batch", type=int, default=1, show_default=True, help="Requests that arrive at once.")
@click.option("--pp", type=int, default=1, show_default=True, help="Groups of layers, one behind the other (pipeline parallel).")
@served_options
@click.option("--graph/--no-graph", default=None, help="Replay decode steps as CUDA graphs; as the engine does if not given.")
@click.option("--speculative", default=None, metavar="tokens=N,accept=SHARE",
              help="Guess N tokens ahead, of which this share is taken, and check them in one step.")  # fmt: skip
@click.option("--draft", type=Known("model"), default=None, help="The model that guesses; without one guesses take no time.")
@only_options(*SHARED)
@answer_forms(all="Print all that is known of the run.")
@html_option()
def command(
    net: str, hw: str, prompt: int, answer: int, form: AnswerForm, html: OutputFile | None, settings: tuple[str, ...],
    scales: tuple[str, ...], calibration: str | None, **given: Any,
) -> None:  # fmt: skip
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
    from archsim.cli.options import choices
    from archsim.generation.estimate import llm

    shared = choices(settings=settings, scales=scales, calibration=calibration)
    found = llm(net, hw, input=prompt, output=answer, **{**shared, **{name: v for name, v in given.items() if v is not None}})
    if html is not None:
        from archsim.answers.llm import sections

        write_page(html, sections(found))
    form.show(found)
