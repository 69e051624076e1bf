"""Records of a stack: passes of element-wise kernels, a reader of samples, a serving engine, rules of fusion and attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.stack.key import key


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePasses:
    """How often the update of an optimiser touches memory, in units of the size of the parameters."""

    inputs: float = key("times that a tensor of their size is read", low=0)
    outputs: float = key("times that one is written", low=0)
    launches: int = key("kernels of an update", low=1, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """How often an element-wise or two-pass op touches memory, in units of the size of its input and of its output."""

    inputs: float = key("times that a tensor of the input's size is read or written", low=0)
    outputs: float = key("times that a tensor of the output's size is read or written", low=0)
    launches: int = key("kernels; 0: the op is part of another kernel", low=0, default=1)
    row_threads: int = key(
        "most threads of a CTA that has a row to itself; 0: 512 where it sums up a row, else none has", low=0, default=0
    )
    value_slots: float = key("GPU: issue slots of a lane for each value of the output; 0: those of its arithmetic", low=0,
                             default=0.0)  # fmt: skip
    row_least: int = key("fewest threads of such a CTA, however short its row", low=1, default=1)
    row_updates: int = key("kernels in which each such CTA ends with an atomic update of one address for all", low=0, default=0)
    grid: tuple[int, int] = key("CTAs, and threads of each, of a first kernel that finds the largest value, however small the "
                                "tensor; 0: it has as many as it needs", low=0, default=(0, 0))  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- samples


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReader:
    """How the stack's usual loader prepares the samples of a batch, where `inputs` are decoded."""

    stored: str = key("how a sample is stored: a JPEG image, or an array of bytes", choices=("jpeg", "array"), default="jpeg")
    pixels: int = key("pixels of a stored image; 0: as many as the network's input has", low=0, default=0)
    workers: int = key("threads of the host that decode", low=1, default=1)
    ahead: str = key(
        "what is ready when a step begins, made while the step before ran: nothing, the samples in the host's memory, or the "
        "batch in the device's", choices=("nothing", "samples", "batch"), default="samples",
    )  # fmt: skip

    @property
    def words(self) -> str:
        """How samples are decoded, as a reader says it.

        >>> SampleReader(workers=4, pixels=140_000).words
        'JPEG images of 140,000 pixels, decoded by 4 threads of the host beside the step'
        """
        size = f" of {self.pixels:,} pixels" if self.pixels else ""
        what = f"JPEG images{size}" if self.stored == "jpeg" else "arrays of bytes"
        threads = f"{self.workers} thread{'s' * (self.workers > 1)} of the host"
        when = {"nothing": "before each step", "samples": "beside the step", "batch": "and copied beside the step"}[self.ahead]
        return f"{what}, decoded by {threads} {when}"


# -------------------------------------------------------------------------------------------------------------- serving


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEngine:
    """Facts about an engine's scheduler and its memory. Clocks are those of a Haswell core, as the constants `dispatch.*` are."""

    step_clocks: float = key(
        "clocks of the host between two steps, in which the device waits: schedule, inputs, sampling, results", low=0, default=0.0
    )
    sequence_clocks: float = key("the same for each sequence of a step", low=0, default=0.0)
    overlapped: bool = key("the host prepares a step while the device runs the one before", default=False)
    graph_sequences: int = key("most sequences of a decode step that is replayed as a CUDA graph; 0: none is", low=0, default=0)
    step_tokens: int = key("most tokens of a step that reads prompts; 0: those of the longest context", low=0, default=0)
    cuts_prompts: bool = key("prompts are cut over steps that also decode (chunked prefill); else whole prompts come first",
                             default=False)  # fmt: skip
    sequences: int = key("most sequences that run at once", low=1, default=256)
    block: int = key("tokens of a block of the paged cache of keys and values", low=1, default=1)
    memory_share: float = key("share of the device's memory that the engine takes", low=0, default=0.9)
    benchmark: str = key("the engine's command that measures the same, with {model}, {file}, {input}, {output}, {batch}, {tp}",
                         default="")  # fmt: skip
    options: Mapping[str, str] = key(
        "what the command takes besides: cache, weights (in fp8), stages, experts or eager = its option, with {kv}, {pp}, {ep}",
        default={},
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- fusion and attention

LEVELS = ("none", "pointwise", "attention", "aggressive")  # each fuses what the one before it does, and more


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionRule:
    """The chains of one rule, by the kinds of their ops. Without a rule `fused` and `passes` of the stack say what is fused."""

    rule: str = key("what `--fusion` calls the rule; own: `fused` and `passes` say what is fused", choices=("own", *LEVELS),
                    default="own")  # fmt: skip
    pointwise: tuple[str, ...] = key(
        "op kinds computed value by value: they join the kernel that makes their values, which others may read, too", default=()
    )
    sums: tuple[str, ...] = key(
        "op kinds that sum up rows: a kernel has one of them, with the values that it sums and what is made of its result",
        default=(),
    )  # fmt: skip
    products: tuple[str, ...] = key(
        "op kinds whose product's kernel computes the chain behind it before it stores, where nothing else reads the product",
        default=(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """How the stack attends: in one kernel, or by two products around a softmax that keep the scores in memory."""

    fused: bool = key("one kernel for attention; else two products around a softmax, with the scores in memory", default=False)
    cache_kernels: tuple[int, int] = key(
        "kernels that store keys and values: before attention over a prompt, and before one query reads the cache", low=0,
        default=(0, 0),
    )  # fmt: skip
