"""How a stack runs its element-wise ops: what each moves, and how CTAs share the rows of those that sum them up."""

from __future__ import annotations

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
        "most threads of a CTA that reads its row more than once, through the caches; 0: from memory each time", low=0, default=0
    )
    value_slots: float = key("GPU: issue slots of a lane for each value of the output; 0: those of its arithmetic", low=0,
                             default=0.0)  # fmt: skip
    window_slots: float = key("GPU: issue slots of a lane for each value of a window, besides those of its result; 0: by the "
                              "stack's `window_loop`", low=0, default=0.0)  # fmt: skip
    row_slots: float = key("GPU: issue slots of a lane of a CTA for each row, besides those of its values", low=0, default=0.0)
    row_least: int = key("fewest threads of such a CTA, however short its row", low=1, default=1)
    row_updates: int = key("kernels in which each such CTA ends with an atomic update of one address for all", low=0, default=0)
    grid: int = key("CTAs of the first kernel, which finds the largest value, however few these are; 0: as many as it needs",
                    low=0, default=0)  # fmt: skip
    grid_threads: int = key("threads of each of them", low=1, default=1)
