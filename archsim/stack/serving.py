"""How an engine serves language models: what a step holds, what the host does for it, how memory is shared out."""

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.stack.key import key


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEngine:
    """Facts about an engine's scheduler and its memory. Clocks are those of a Haswell core, as the constants `dispatch.*` are."""

    step_clocks: float = key(
        "clocks of the host between two steps, in which the device waits: schedule, inputs, sampling, results", low=0, default=0.0
    )
    sequence_clocks: float = key("the same for each sequence of a step", low=0, default=0.0)
    device_clocks: float = key("the same for each device beside the first, whose process is told what to do", low=0, default=0.0)
    overlapped: bool = key("the host prepares a step while the device runs the one before", default=False)
    graph_sequences: int = key("most sequences of a decode step that is replayed as a CUDA graph; 0: none is", low=0, default=0)
    graph_multiple: int = key("sequences of a replayed step are padded to a multiple of so many, from as many on", low=1,
                              default=1)  # fmt: skip
    graph_memory: float = key("memory of all CUDA graphs", unit="B", default=0.0)
    step_tokens: int = key("most tokens of a step that reads prompts; 0: those of the longest context", low=0, default=0)
    cuts_prompts: bool = key("prompts are cut over steps that also decode (chunked prefill); else whole prompts come first",
                             default=False)  # fmt: skip
    compiled: bool = key(
        "what it leaves to its framework is compiled: one kernel rounds activations in one pass, where a single call takes what "
        "`passes.quantise` says", default=False,
    )  # fmt: skip
    sequences: int = key("most sequences that run at once", low=1, default=256)
    block: int = key("tokens of a block of the paged cache of keys and values", low=1, default=1)
    memory_share: float = key("share of the device's memory that the engine takes", low=0, default=0.9)
    all_reduce_start: float = key(
        "time of a call of the engine's own all-reduce beside its bytes; 0 s: it calls the node's library", unit="s", default=0.0
    )
    all_reduce_most: float = key("largest buffer of the engine's own all-reduce", unit="B", default=0.0)
    basis: str = key("the measured runs from which the host's clocks of a step follow", default="")
    benchmark: str = key("the engine's command that measures the same, with {model}, {file}, {input}, {output}, {batch}, {tp}",
                         default="")  # fmt: skip
    options: Mapping[str, str] = key(
        "what the command takes besides: cache, weights (in fp8), stages, experts or eager = its option, with {kv}, {pp}, {ep}",
        default={},
    )  # fmt: skip
