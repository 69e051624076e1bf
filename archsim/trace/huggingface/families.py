"""What a `model_type` of Hugging Face implies beyond the numbers of its `config.json`."""

from __future__ import annotations

from dataclasses import dataclass, replace

QKV = frozenset({"query", "key", "value"})
ALL = QKV | {"output", "mlp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyTraits:
    """The parts of a graph that a family's module fixes, and the defaults of keys that its files may leave out.

    Fields are those of `TransformerModel`. `switches`: key of the file that says whether parts have biases -> these parts
    `experts`: how the family writes its experts: "" (none), "mixtral", "qwen", "deepseek"
    `offset`: rows of the table of positions that no token uses
    """

    style: str = "decoder"
    norm: str = "rms"
    order: str = "pre"
    rotary: bool = True
    learned: bool = False
    offset: int = 0
    gated: bool = True
    packed: bool = False
    activation: str = "silu"
    bias: frozenset[str] = frozenset()
    switches: tuple[tuple[str, frozenset[str], bool], ...] = ()
    tied: bool = False
    head_norms: bool = False
    embedding_norm: bool = False
    embedding_scaled: bool = False
    segments: int = 0
    pooler: bool = False
    dropout: float = 0.0
    embedding_dropout: bool = False
    experts: str = ""
    latent: bool = False
    window: str = "always"  # when `sliding_window` counts: always, asked (`use_sliding_window`), alternate, never
    context: int = 0
    note: str = ""  # what of the family is built in another form


ATTENTION_BIAS = (("attention_bias", QKV | {"output"}, False), ("mlp_bias", frozenset({"mlp"}), False))
BERT = FamilyTraits(style="encoder", norm="layer", order="post", rotary=False, learned=True, gated=False, activation="gelu",
                    bias=ALL, segments=2, pooler=True, dropout=0.1, embedding_norm=True, context=512)  # fmt: skip
LLAMA = FamilyTraits(switches=ATTENTION_BIAS, window="never", context=2048)
GEMMA = FamilyTraits(tied=True, embedding_scaled=True, activation="gelu_pytorch_tanh", switches=ATTENTION_BIAS[:1],
                     window="alternate", context=8192)  # fmt: skip


FAMILIES: dict[str, FamilyTraits] = {
    "bert": BERT,
    "roberta": replace(BERT, segments=1, offset=2),
    "xlm-roberta": replace(BERT, segments=1, offset=2),
    "camembert": replace(BERT, segments=1, offset=2),
    "distilbert": replace(BERT, segments=0, pooler=False),
    "gpt2": FamilyTraits(norm="layer", rotary=False, learned=True, gated=False, packed=True, activation="gelu_new", bias=ALL,
                         tied=True, dropout=0.1, embedding_dropout=True, context=1024),
    "opt": FamilyTraits(norm="layer", rotary=False, learned=True, offset=2, gated=False, activation="relu", bias=ALL, tied=True,
                        dropout=0.1, context=2048),
    "gptj": FamilyTraits(norm="layer", order="parallel", gated=False, activation="gelu_new",
                         bias=frozenset({"mlp", "head"}), context=2048),
    "gpt_neox": FamilyTraits(norm="layer", order="parallel2", gated=False, packed=True, activation="gelu", bias=ALL,
                             context=2048),
    "bloom": FamilyTraits(norm="layer", rotary=False, gated=False, packed=True, activation="gelu_pytorch_tanh", bias=ALL,
                          tied=True, embedding_norm=True, context=2048),
    "falcon": FamilyTraits(norm="layer", order="parallel", gated=False, packed=True, activation="gelu",
                           switches=(("bias", ALL, False),), tied=True, context=2048),
    "phi": FamilyTraits(norm="layer", order="parallel", gated=False, activation="gelu_new", bias=ALL | {"head"}, context=2048),
    "phi3": FamilyTraits(packed=True, context=4096),
    "phi3small": FamilyTraits(norm="layer", packed=True, activation="gelu", bias=ALL, tied=True, window="never", context=8192,
                              note="its block-sparse layers attend to all earlier tokens, which they do up to 1024 of them"),
    "llama": LLAMA,
    "aquila": LLAMA,
    "mistral": FamilyTraits(context=32768),
    "deci": replace(LLAMA, context=8192),
    "internlm2": replace(LLAMA, switches=(("bias", ALL, False),)),
    "qwen2": FamilyTraits(bias=QKV, window="asked", context=32768),
    "qwen3": FamilyTraits(head_norms=True, window="asked", switches=ATTENTION_BIAS[:1], context=32768),
    "gemma": replace(GEMMA, window="never"),
    "gemma2": replace(GEMMA, order="both"),
    "gemma3_text": replace(GEMMA, order="both", head_norms=True),
    "starcoder2": FamilyTraits(norm="layer", gated=False, activation="gelu_pytorch_tanh", tied=True,
                               switches=(("use_bias", ALL, True),), context=4096),
    "mixtral": FamilyTraits(experts="mixtral", context=32768),
    "qwen2_moe": FamilyTraits(bias=QKV, experts="qwen", window="asked", context=32768),
    "qwen3_moe": FamilyTraits(head_norms=True, experts="qwen", window="asked", switches=ATTENTION_BIAS[:1], context=32768),
    "deepseek_v2": FamilyTraits(experts="deepseek", latent=True, context=163840),
    "deepseek_v3": FamilyTraits(experts="deepseek", latent=True, context=163840),
    "vit": FamilyTraits(style="image", norm="layer", rotary=False, learned=True, gated=False, activation="gelu", bias=ALL,
                        switches=(("qkv_bias", QKV, True),)),
    "whisper": FamilyTraits(style="speech", norm="layer", rotary=False, learned=True, gated=False, activation="gelu",
                            bias=frozenset({"query", "value", "output", "mlp"}), tied=True, context=448),
}  # fmt: skip
