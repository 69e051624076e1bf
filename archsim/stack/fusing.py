"""Which ops share a kernel: chains, by a rule that a stack has or that `--fusion` names in its place, and attention."""

from dataclasses import dataclass

from archsim.stack.key import key

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
    training: bool = key("whether the chains of a training step are fused too", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """How the stack attends: in one kernel, or by two products around a softmax that keep the scores in memory."""

    fused: bool = key("one kernel for attention; else two products around a softmax, with the scores in memory", default=False)
    cache_kernels_prefill: int = key("kernels that store keys and values before attention over a prompt", low=0, default=0)
    cache_kernels_decode: int = key("kernels that store keys and values before one query reads the cache", low=0, default=0)
    packed_heads: str = key(
        "heads that share keys are rows of one product: always, or only over cached keys",
        choices=("always", "cached"), default="always",
    )  # fmt: skip
    packed_narrow: bool = key("heads that share keys are rows of one product over cached keys of one byte too", default=True)
    widen_slots: float = key("issue slots of a lane for each cached value of one byte that is widened", low=0, default=0)
    emulated_slots: int = key(
        "slots beside these where the GPU has no instruction that widens fp8, whose bits are moved one by one", low=0, default=0
    )
    max_packed_heads: int = key("most heads in one product; where more share keys, each is a product", low=1, default=65536)
