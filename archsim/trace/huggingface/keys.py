"""The keys of a `config.json`: every number is checked; and what a `model_type` implies beyond them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from archsim.trace.dims import short

WIDTH = ("hidden_size", "n_embd", "dim", "d_model", "n_embed")  # what files call a number, the usual name first
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("intermediate_size", "ffn_dim", "n_inner", "hidden_dim", "ffn_hidden_size", "d_ff", "ff_intermediate_size")
DENSE = "intermediate_size_mlp"  # of layers without experts, in files in which `intermediate_size` is that of an expert
SIZES = frozenset((*WIDTH, *HEADS, *KV_HEADS, *LAYERS, *HIDDEN, DENSE, "vocab_size"))


class ConfigKeys:
    """The keys of a file, read with their ranges; what is wrong is collected, and a number stands in for it."""

    def __init__(self, words: Mapping[str, Any], defaults: Mapping[str, int] | None = None, *, part: bool = False) -> None:
        self.words, self.defaults, self.part = words, defaults or {}, part
        self.problems: list[str] = []
        self.taken: list[str] = []

    def whole(self, names: str | Sequence[str], most: int, *, least: int = 1, default: int | None = None) -> int:
        """A whole number under the first of these names that the file has, else the family's default, else `default`.

        The size of a whole model has no default of its family: a file that does not say it is not complete.
        """
        names = (names,) if isinstance(names, str) else tuple(names)
        found = next((name for name in names if self.words.get(name) is not None), None)
        if found is not None:
            return self.checked(found, self.words[found], least, most)
        usual = next((name for name in names if name in self.defaults and (self.part or name not in SIZES)), None)
        if usual is not None and usual not in self.words:
            self.taken.append(usual)
            return self.defaults[usual]
        if default is None:
            self.problems.append(f"{names[0]}: is missing" + (f" (or {', '.join(names[1:])})" if names[1:] else ""))
        return least if default is None else default

    def checked(self, name: str, value: Any, least: int, most: int) -> int:
        """A value as a whole number in its range."""
        if isinstance(value, bool) or not isinstance(value, int):
            self.problems.append(f"{name}: must be a whole number, is {short(value)}")
        elif not least <= value <= most:
            self.problems.append(f"{name}: must lie in {least}..{most}, is {value}")
        else:
            return value
        return least

    def share(self, names: Sequence[str], default: float) -> float:
        """A number from 0 to below 1."""
        for name in names:
            value = self.words.get(name)
            if value is None:
                continue
            sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1
            if not sound:
                self.problems.append(f"{name}: must be a number from 0 to below 1, is {short(value)}")
                return default
            return float(value)
        return default

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self.words.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problems.append(f"{name}: must be true or false, is {short(value)}")
            return default
        return value

    def word(self, names: Sequence[str], choices: Sequence[str], default: str) -> str:
        """One of some words."""
        name = next((name for name in names if self.words.get(name) is not None), None)
        if name is None:
            return default
        value = self.words[name]
        if value not in choices:
            self.problems.append(f"{name}: {short(value)} is not one of {', '.join(choices)}")
            return default
        return str(value)

    def named(self, *names: str) -> str:
        """What this file calls a number."""
        return next((name for name in names if self.words.get(name) is not None), names[0])

    def divides(self, part: str, number: int, whole: str, of: int) -> None:
        """Say so where a number does not divide another, unless one of them is wrong by itself."""
        if number > 0 and of % number and not any(each.startswith((f"{part}:", f"{whole}:")) for each in self.problems):
            self.problems.append(f"{part}: {number} does not divide {whole} {of}")


# ------------------------------------------------------------------------------------------------------------- families

QKV = frozenset({"query", "key", "value"})
ALL = QKV | {"output", "mlp"}
OWN, MOE = "intermediate_size", "moe_intermediate_size"  # keys of files for the width inside an expert


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyTraits:
    """The parts of a graph that a family's module fixes, and the defaults of keys that its files may leave out.

    Fields are those of `TransformerModel`. `switches`: key of the file that says whether parts have biases -> these parts
    `orders`: key of the file, its default, and the order of norms and sums if it is true, the first of them; else `order`
    `qk_norm_key`: key of the file that says whether queries and keys are normalised, and its default
    `experts`: key of the file for the width inside an expert of families whose layers have some; `shared_experts`: how many all
        tokens go through where the file does not say; `router_bias`, `expert_bias`: whether projections have biases
    `offset`: rows of the table of positions that no token uses; `above`: whether they are on top of those that the file counts
    `every`: of so many layers the last has no window where windows alternate; `unturned_every`: and no rotary positions
    `multi_query`: whether all heads share one of keys and values where `multi_query` is not false
    `defaults`: what the family's configuration class takes for a key that a file omits; sizes of a model only where it is a part
        of a larger one, since files of those omit what equals the default
    """

    style: str = "decoder"
    norm: str = "rms"
    order: str = "pre"
    orders: tuple[tuple[str, bool, str], ...] = ()
    rotary: bool = True
    unturned_every: int = 0
    learned: bool = False
    offset: int = 0
    above: bool = False
    gated: bool = True
    packed: bool = False
    activation: str = "silu"
    bias: frozenset[str] = frozenset()
    switches: tuple[tuple[str, frozenset[str], bool], ...] = ()
    tied: bool = False
    qk_norm: str = ""
    qk_norm_key: tuple[str, bool] = ("", True)
    sinks: bool = False
    embedding_norm: bool = False
    scaled: frozenset[str] = frozenset()
    segments: int = 0
    pooler: bool = False
    dropout: float = 0.0
    embedding_dropout: bool = False
    attention_dropout: float = 0.0
    experts: str = ""
    shared_experts: int = 0
    router_bias: bool = False
    expert_bias: bool = False
    latent: bool = False
    multi_query: bool = False
    window: str = "always"  # when a window counts: always, asked (`use_sliding_window`), alternate, never
    every: int = 2
    context: int = 0
    defaults: Mapping[str, int] = field(default_factory=dict)
    note: str = ""  # what of the family is built in another form


def sizes(vocabulary: int, width: int, hidden: int, layers: int, heads: int, kv_heads: int = 0, **more: int) -> dict[str, int]:
    """Defaults of a configuration class under the names of its files."""
    found = {"vocab_size": vocabulary, "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": layers,
             "num_attention_heads": heads, **more}  # fmt: skip
    return found | ({"num_key_value_heads": kv_heads} if kv_heads else {})


ATTENTION_BIAS = (("attention_bias", QKV | {"output"}, False), ("mlp_bias", frozenset({"mlp"}), False))
BERT = FamilyTraits(style="encoder", norm="layer", order="post", rotary=False, learned=True, gated=False, activation="gelu",
                    bias=ALL, segments=2, pooler=True, dropout=0.1, attention_dropout=0.1, embedding_norm=True, tied=True,
                    window="never", context=512)  # fmt: skip
GPT2 = FamilyTraits(norm="layer", rotary=False, learned=True, gated=False, packed=True, activation="gelu_new", bias=ALL,
                    tied=True, dropout=0.1, embedding_dropout=True, attention_dropout=0.1, context=1024)  # fmt: skip
FALCON = FamilyTraits(norm="layer", gated=False, packed=True, activation="gelu", switches=(("bias", ALL, False),), tied=True,
                      orders=(("new_decoder_architecture", False, "parallel2"), ("parallel_attn", True, "parallel")),
                      multi_query=True, context=2048)  # fmt: skip
LLAMA = FamilyTraits(switches=ATTENTION_BIAS, window="never", context=2048, defaults=sizes(32000, 4096, 11008, 32, 32))
MISTRAL = FamilyTraits(context=131072, defaults=sizes(32000, 4096, 14336, 32, 32, 8))
QWEN2 = FamilyTraits(bias=QKV, window="asked", context=32768,
                     defaults=sizes(151936, 4096, 22016, 32, 32, 32, sliding_window=4096, max_window_layers=28))  # fmt: skip
QWEN3 = FamilyTraits(qk_norm="head", window="asked", switches=ATTENTION_BIAS[:1], context=32768,
                     defaults={"head_dim": 128, "sliding_window": 4096, "max_window_layers": 28})  # fmt: skip
QWEN2_MOE = replace(QWEN2, experts=MOE)
QWEN3_MOE = replace(QWEN3, experts=MOE, defaults={})
GEMMA = FamilyTraits(tied=True, scaled=frozenset({"embedding"}), activation="gelu_pytorch_tanh", switches=ATTENTION_BIAS[:1],
                     window="never", context=8192, defaults=sizes(256000, 3072, 24576, 28, 16, 16, head_dim=256))  # fmt: skip
GEMMA2 = replace(GEMMA, order="both", window="alternate",
                 defaults=sizes(256000, 2304, 9216, 26, 8, 4, head_dim=256, sliding_window=4096))  # fmt: skip
OLMO2 = FamilyTraits(order="after", qk_norm="whole", switches=ATTENTION_BIAS[:1], window="never", context=2048)
GRANITE = replace(LLAMA, scaled=frozenset({"embedding", "residual", "scores"}), defaults={})
COHERE = FamilyTraits(norm="scale", order="parallel", qk_norm="whole", qk_norm_key=("use_qk_norm", False), tied=True,
                      scaled=frozenset({"scores"}), switches=ATTENTION_BIAS[:1], window="never", context=8192)  # fmt: skip
DEEPSEEK = FamilyTraits(experts=MOE, latent=True, context=163840)
DEEPSEEK_V3 = replace(DEEPSEEK, router_bias=True)
GLM = FamilyTraits(packed=True, switches=(("attention_bias", QKV, True),), context=131072)


FAMILIES: dict[str, FamilyTraits] = {
    "bert": BERT,
    "roberta": replace(BERT, segments=1, offset=2),
    "xlm-roberta": replace(BERT, segments=1, offset=2),
    "camembert": replace(BERT, segments=1, offset=2),
    "distilbert": replace(BERT, segments=0, pooler=False),
    "gpt2": GPT2,
    "gpt_bigcode": replace(GPT2, multi_query=True, activation="gelu_pytorch_tanh"),
    "opt": FamilyTraits(norm="layer", order="post", orders=(("do_layer_norm_before", True, "pre"),), rotary=False, learned=True,
                        offset=2, above=True, gated=False, activation="relu", bias=ALL, tied=True, dropout=0.1, context=2048),
    "gptj": FamilyTraits(norm="layer", order="parallel", gated=False, activation="gelu_new",
                         bias=frozenset({"mlp", "head"}), context=2048),
    "gpt_neox": FamilyTraits(norm="layer", orders=(("use_parallel_residual", True, "parallel2"),), gated=False, packed=True,
                             activation="gelu", bias=ALL, context=2048),
    "bloom": FamilyTraits(norm="layer", rotary=False, gated=False, packed=True, activation="gelu_pytorch_tanh", bias=ALL,
                          tied=True, embedding_norm=True, context=2048),
    "mpt": FamilyTraits(norm="scale", rotary=False, gated=False, packed=True, activation="gelu", tied=True, context=2048),
    "falcon": FALCON,
    "RefinedWebModel": FALCON,
    "RefinedWeb": replace(FALCON, order="parallel2", orders=(), multi_query=False),
    "phi": FamilyTraits(norm="layer", order="parallel", gated=False, activation="gelu_new", bias=ALL | {"head"}, context=2048),
    "phi3": FamilyTraits(packed=True, context=4096),
    "phi3small": FamilyTraits(norm="layer", packed=True, activation="gelu", bias=ALL, tied=True, window="never", context=8192,
                              note="its block-sparse layers attend to all earlier tokens, which they do up to 1024 of them"),
    "stablelm": FamilyTraits(norm="layer", orders=(("use_parallel_residual", False, "parallel"),),
                             switches=(("use_qkv_bias", QKV, False),), qk_norm="whole", qk_norm_key=("qk_layernorm", False),
                             context=4096),
    "llama": LLAMA,
    "aquila": LLAMA,
    "baichuan": replace(LLAMA, packed=True, context=4096),
    "exaone": LLAMA,
    "ernie4_5": replace(LLAMA, switches=(("use_bias", ALL, False),), tied=True, context=131072),
    "seed_oss": replace(LLAMA, switches=(("attention_bias", QKV, True), ("attention_out_bias", frozenset({"output"}), False))),
    "smollm3": replace(LLAMA, unturned_every=4, tied=True, context=32768),
    "granite": GRANITE,
    "granitemoe": replace(GRANITE, experts=OWN),
    "granitemoeshared": replace(GRANITE, experts=OWN),
    "mistral": MISTRAL,
    "deci": replace(LLAMA, context=8192),
    "internlm2": replace(LLAMA, switches=(("bias", ALL, False),)),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, window="alternate", every=4, defaults={"sliding_window": 4096}),
    "olmoe": replace(OLMO2, order="pre", experts=OWN),
    "exaone4": FamilyTraits(order="after", qk_norm="head", window="alternate", every=4, context=2048,
                            defaults={"sliding_window": 4096}),
    "qwen2": QWEN2,
    "qwen2_vl": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen2_5_omni_text": QWEN2,
    "qwen3": QWEN3,
    "qwen3_vl_text": QWEN3,
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, qk_norm="head", every=6, context=131072,
                           defaults=sizes(262208, 2304, 9216, 26, 8, 4, head_dim=256, sliding_window=4096)),
    "cohere": COHERE,
    "cohere2": replace(COHERE, qk_norm="", window="alternate", every=4, unturned_every=4, defaults={"sliding_window": 4096}),
    "glm": GLM,
    "glm4": replace(GLM, order="both", switches=(("attention_bias", QKV, False),)),
    "chatglm": replace(GLM, switches=(("add_qkv_bias", QKV, False),)),
    "starcoder2": FamilyTraits(norm="layer", gated=False, activation="gelu_pytorch_tanh", tied=True,
                               switches=(("use_bias", ALL, True),), context=4096),
    "gpt_oss": FamilyTraits(switches=(("attention_bias", QKV | {"output"}, True),), sinks=True, experts=OWN, router_bias=True,
                            expert_bias=True, window="alternate", context=131072,
                            defaults={"head_dim": 64, "sliding_window": 128}),
    "mixtral": FamilyTraits(experts=OWN, context=32768),
    "minimax_m2": FamilyTraits(qk_norm="whole", qk_norm_key=("use_qk_norm", True), experts=OWN, router_bias=True, context=196608),
    "qwen2_moe": QWEN2_MOE,
    "qwen3_moe": QWEN3_MOE,
    "qwen3_vl_moe_text": QWEN3_MOE,
    "glm4_moe": FamilyTraits(qk_norm="head", qk_norm_key=("use_qk_norm", False), switches=(("attention_bias", QKV, False),),
                             experts=MOE, router_bias=True, context=131072),
    "llama4_text": FamilyTraits(switches=ATTENTION_BIAS[:1], experts=OWN, shared_experts=1, unturned_every=4,
                                window="alternate", every=4, context=131072,
                                defaults=sizes(202048, 5120, 8192, 48, 40, 8, head_dim=128, intermediate_size_mlp=16384,
                                               num_local_experts=16, num_experts_per_tok=1, attention_chunk_size=8192),
                                note="attention in chunks is built as a sliding window of as many tokens"),
    "deepseek": FamilyTraits(experts=MOE, context=4096),
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "vit": FamilyTraits(style="image", norm="layer", rotary=False, learned=True, gated=False, activation="gelu", bias=ALL,
                        switches=(("qkv_bias", QKV, True),)),
    "whisper": FamilyTraits(style="speech", norm="layer", rotary=False, learned=True, gated=False, activation="gelu",
                            bias=frozenset({"query", "value", "output", "mlp"}), tied=True, context=448),
}  # fmt: skip

# Families whose graphs have a part that is not built, and which.
STATE = "layers that carry a state from token to token (state-space models, linear attention)"
CROSS = "layers that attend to the result of an encoder"
RELATIVE = "attention whose scores depend on learned distances"
NOT_BUILT: dict[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "falcon_h1", "jamba", "rwkv", "bamba", "nemotron_h", "zamba", "zamba2",
                     "granitemoehybrid", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "recurrent_gemma", "lfm2", "lfm2_moe",
                     "kimi_linear", "minimax", "minimax_text_01", "plamo2", "olmo_hybrid"), STATE),
    **dict.fromkeys(("mllama_text_model", "bart", "mbart", "pegasus", "m2m_100", "marian", "encoder-decoder"), CROSS),
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "t5gemma", "switch_transformers"), f"{CROSS}, and {RELATIVE}"),
    **dict.fromkeys(("deberta", "deberta-v2", "mpnet", "xlnet"), RELATIVE),
    "albert": "layers that share their weights",
    "modernbert": "windows to both sides of a token",
    "gemma3n_text": "tables of words in every layer",
    "deepseek_v32": "an indexer that chooses the tokens to attend to",
}  # fmt: skip
