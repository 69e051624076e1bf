"""Transformers: encoders of images and text, and language models that read a whole prompt at once (prefill).

Dropout of attention weights is left out: the kernel that computes attention applies it on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from archsim.trace.dims import Extent
from archsim.trace.kinds.activation import Gelu, Silu, Tanh
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.normalise import LayerNorm, RmsNorm
from archsim.trace.kinds.pointwise import Mul, Rotary
from archsim.trace.kinds.shaping import Concat, Slice, Transpose
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

VIT = "A. Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv:2010.11929, table 1; torchvision vision_transformer.py"
BERT = "J. Devlin et al., BERT, arXiv:1810.04805, section 3; google-bert bert_config.json"
ROBERTA = "Y. Liu et al., RoBERTa, arXiv:1907.11692, section 4; FacebookAI/roberta-base config.json"
DISTILBERT = "V. Sanh et al., DistilBERT, arXiv:1910.01108, section 3; distilbert-base-uncased config.json"
GPT2 = "A. Radford et al., Language Models are Unsupervised Multitask Learners (2019), table 2; openai-community config.json"
GPT3 = "T. Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1"
OPT = "S. Zhang et al., OPT: Open Pre-trained Transformer Language Models, arXiv:2205.01068, table 1; facebook config.json"
LLAMA2 = "H. Touvron et al., Llama 2, arXiv:2307.09288, section 2.2 and appendix A.2.1; meta-llama config.json"
LLAMA3 = "A. Grattafiori et al., The Llama 3 Herd of Models, arXiv:2407.21783, table 3; meta-llama config.json"

READ = "T tokens read at once (prefill), without cached keys"
PROMPT = f"{READ}; logits for every token, and a softmax over them"
BODY = "_body"  # how the name of a language model without the scores for every word ends
HEADLESS = "without the head that scores every word"
DROPOUT = 0.1  # BERT appendix A.2, GPT-2 and OPT configurations


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What tells one model of a family from another. `usual` and `context` are tokens, 0 where an image fixes them."""

    family: Callable[[str, Model], Trace]
    source: str
    layers: int
    width: int
    heads: int
    kv_heads: int = 0  # as many as heads
    hidden: int = 0  # 4 x width
    vocabulary: int = 0
    usual: int = 0
    context: int = 0
    segments: int = 0  # rows of the table of segments, and with them a pooler, in encoders of text
    positions: int = 0  # rows in the table of positions, where they are not as many as the context
    image: int = 224  # side of an image
    patch: int = 16  # side of its patches
    notes: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def tokens(self) -> Extent:
        """The length of a sequence."""
        return Extent(usual=self.usual, most=self.context)


def build(name: str) -> Trace:
    """The network of one row of `MODELS`."""
    model = MODELS[name]
    return model.family(name, model)


def _vit(name: str, model: Model) -> Trace:
    """Square images in square patches; the class token goes to the classifier."""
    size = model.patch
    side = model.image // size
    inputs = {"data": ("N", 3, side * size, side * size), "class": ("N", 1), "positions": (1, side * side + 1)}
    net = Builder(name, model.source, inputs, notes=model.notes)
    x = net.conv("data", model.width, size, size, name="patches")
    x = net.reshape(x, ("N", model.width, side * side), name="patches.flat")
    x = net.add(Transpose(order=(0, 2, 1)), x, name="patches.tokens")
    x = net.add(Concat(axis=1), net.embedding("class", 1, model.width, name="class.token"), x, name="tokens")
    x = net.sum(x, net.embedding("positions", side * side + 1, model.width, name="positions.embedding"), name="embeddings")
    for number in range(1, model.layers + 1):
        x = _pre_norm_block(net, x, model, f"block{number}", dropout=False)
    x = _first(net, net.add(LayerNorm(), x, name="norm"), model.width)
    net.softmax(net.linear(x, 1000, name="head"))
    return net.trace(aliases=model.aliases)


def _bert(name: str, model: Model) -> Trace:
    """Encoder, and a pooler if there are segments; each sum is normalised after it."""
    tables = [("tokens", model.vocabulary), ("segments", model.segments), ("positions", model.positions or model.context)]
    tables = [(what, rows) for what, rows in tables if rows]
    inputs = {what: (1 if what == "positions" else "N", "T") for what, _ in tables}
    net = Builder(name, model.source, inputs, model.notes, model.tokens)
    x = net.sum(*[net.embedding(what, rows, model.width, name=f"{what}.embedding") for what, rows in tables], name="embeddings")
    x = net.dropout(net.add(LayerNorm(), x, name="embeddings.norm"), DROPOUT, name="embeddings.dropout")
    for number in range(1, model.layers + 1):
        at = f"block{number}"
        attended = _dropped(net, _attention(net, x, model, at, packed=False, causal=False))
        x = net.add(LayerNorm(), net.sum(x, attended, name=f"{at}.add1"), name=f"{at}.norm1")
        x = net.add(LayerNorm(), net.sum(x, _dropped(net, _mlp(net, x, model, at)), name=f"{at}.add2"), name=f"{at}.norm2")
    if model.segments:
        net.add(Tanh(), net.linear(_first(net, x, model.width), model.width, name="pooler"), name="pooler.tanh")
    return net.trace(aliases=model.aliases)


def _gpt(name: str, model: Model) -> Trace:
    """Decoder with learned positions, one projection for queries, keys and values, GELU."""
    net = _language_model(name, model)
    x = net.dropout(_with_positions(net, model), DROPOUT, name="embeddings.dropout")
    for number in range(1, model.layers + 1):
        x = _pre_norm_block(net, x, model, f"block{number}", causal=True)
    return _logits(net, net.add(LayerNorm(), x, name="norm"), model, tied=True)


def _opt(name: str, model: Model) -> Trace:
    """Decoder with learned positions, three projections, ReLU."""
    net = _language_model(name, model)
    x = _with_positions(net, model)
    for number in range(1, model.layers + 1):
        x = _pre_norm_block(net, x, model, f"block{number}", causal=True, packed=False, relu=True)
    return _logits(net, net.add(LayerNorm(), x, name="norm"), model, tied=True)


def _llama(name: str, model: Model) -> Trace:
    """Decoder with rotary positions, RMS norms, gated units and no biases."""
    net = _language_model(name, model, positions=False)
    x = net.embedding("tokens", model.vocabulary, model.width, name="tokens.embedding")
    for number in range(1, model.layers + 1):
        at = f"block{number}"
        attended = _rotary_attention(net, net.add(RmsNorm(), x, name=f"{at}.norm1"), model, at)
        x = net.sum(x, attended, name=f"{at}.add1")
        x = net.sum(x, _gated_mlp(net, net.add(RmsNorm(), x, name=f"{at}.norm2"), model, at), name=f"{at}.add2")
    return _logits(net, net.add(RmsNorm(), x, name="norm"), model, tied=False)


def _language_model(name: str, model: Model, positions: bool = True) -> Builder:
    inputs: dict[str, tuple[int | str, ...]] = {"tokens": ("N", "T")} | ({"positions": (1, "T")} if positions else {})
    read = READ if name_of_body(name) else PROMPT
    notes = f"{read}; {model.notes}" if model.notes else read
    return Builder(name, model.source, inputs, notes, model.tokens)


def _with_positions(net: Builder, model: Model) -> str:
    tokens = net.embedding("tokens", model.vocabulary, model.width, name="tokens.embedding")
    rows = model.positions or model.context
    return net.sum(tokens, net.embedding("positions", rows, model.width, name="positions.embedding"), name="embeddings")


def _logits(net: Builder, x: str, model: Model, tied: bool) -> Trace:
    """A score for every word; with `tied` the weights are the table of the words. A body ends before it."""
    if name_of_body(net.name):
        return net.trace(aliases=model.aliases)
    net.softmax(net.linear(x, model.vocabulary, bias=False, tied=tied, name="head"))
    return net.trace(aliases=model.aliases)


def name_of_body(name: str) -> bool:
    """Whether a language model is named without its head.

    >>> name_of_body("gpt3_xl_body"), name_of_body("gpt3_xl")
    (True, False)
    """
    return name.endswith(BODY)


def _pre_norm_block(
    net: Builder, x: str, model: Model, at: str, *, causal: bool = False, packed: bool = True, relu: bool = False,
    dropout: bool = True,
) -> str:  # fmt: skip
    """Attention and two linear layers, each on the normalised input and added to it."""
    attended = _attention(net, net.add(LayerNorm(), x, name=f"{at}.norm1"), model, at, packed=packed, causal=causal)
    x = net.sum(x, _dropped(net, attended) if dropout else attended, name=f"{at}.add1")
    mixed = _mlp(net, net.add(LayerNorm(), x, name=f"{at}.norm2"), model, at, relu=relu)
    return net.sum(x, _dropped(net, mixed) if dropout else mixed, name=f"{at}.add2")


def _attention(net: Builder, x: str, model: Model, at: str, *, packed: bool, causal: bool) -> str:
    """Projections, attention, and the projection of its result."""
    kind = Attention(heads=model.heads, causal=causal)
    if packed:
        parts = [net.linear(x, 3 * model.width, name=f"{at}.qkv")]
    else:
        parts = [net.linear(x, model.width, name=f"{at}.{part}") for part in ("query", "key", "value")]
    return net.linear(net.add(kind, *parts, name=f"{at}.attention"), model.width, name=f"{at}.output")


def _rotary_attention(net: Builder, x: str, model: Model, at: str) -> str:
    """As above without biases; queries and keys are turned, and heads may share keys."""
    size, shared = model.width // model.heads, model.kv_heads or model.heads
    widths = {"query": model.width, "key": shared * size, "value": shared * size}
    query, key, value = (net.linear(x, width, bias=False, name=f"{at}.{part}") for part, width in widths.items())
    query, key = (net.add(Rotary(width=size), part, name=f"{part}.rotary") for part in (query, key))
    kind = Attention(heads=model.heads, kv_heads=model.kv_heads, causal=True)
    return net.linear(net.add(kind, query, key, value, name=f"{at}.attention"), model.width, bias=False, name=f"{at}.output")


def _mlp(net: Builder, x: str, model: Model, at: str, relu: bool = False) -> str:
    wide = net.linear(x, 4 * model.width, name=f"{at}.mlp1")
    active = net.relu(wide) if relu else net.add(Gelu(), wide, name=f"{wide}.gelu")
    return net.linear(active, model.width, name=f"{at}.mlp2")


def _gated_mlp(net: Builder, x: str, model: Model, at: str) -> str:
    """SwiGLU (Shazeer 2020, equation 6)."""
    gate, up = (net.linear(x, model.hidden, bias=False, name=f"{at}.{part}") for part in ("gate", "up"))
    gated = net.add(Mul(), net.add(Silu(), gate, name=f"{gate}.silu"), up, name=f"{at}.gated")
    return net.linear(gated, model.width, bias=False, name=f"{at}.down")


def _dropped(net: Builder, x: str) -> str:
    return net.dropout(x, DROPOUT, name=f"{x}.dropout")


def _first(net: Builder, x: str, width: int) -> str:
    """The first token of each sequence."""
    return net.reshape(net.add(Slice(axis=1, stop=1), x, name=f"{x}.first"), ("N", width), name=f"{x}.first.flat")


VIT_NOTES = "class token and positions are tables of which every row is read"
BERT_NOTES = "encoder and pooler without a task's head; T tokens, usually the 128 of nine tenths of its training (appendix A.2)"
DISTIL_NOTES = "encoder without segments, pooler and task's head"
ROBERTA_NOTES = "encoder and pooler without a task's head; one segment, positions counted from 2"
XL_NOTES = "16 heads: the 24 of the paper's table, of 128 features each, do not make its 2048"
DENSE = "every layer attends to all tokens before; the paper's sparse layers are not published"

MODELS: dict[str, Model] = {
    "vit_base_16": Model(family=_vit, source=VIT, layers=12, width=768, heads=12, notes=VIT_NOTES,
                         aliases=("ViT-B/16", "vit_b_16")),
    "vit_base_32_384": Model(family=_vit, source=VIT, layers=12, width=768, heads=12, image=384, patch=32, notes=VIT_NOTES,
                             aliases=("ViT-B/32 at 384",)),
    "vit_large_16": Model(family=_vit, source=VIT, layers=24, width=1024, heads=16, notes=VIT_NOTES,
                          aliases=("ViT-L/16", "vit_l_16")),
    "bert_base": Model(family=_bert, source=BERT, layers=12, width=768, heads=12, vocabulary=30522, segments=2, usual=128,
                       context=512, notes=BERT_NOTES, aliases=("bert_base_uncased", "bert_base_body")),
    "bert_large": Model(family=_bert, source=BERT, layers=24, width=1024, heads=16, vocabulary=30522, segments=2, usual=128,
                        context=512, notes=BERT_NOTES, aliases=("bert_large_uncased", "bert_large_body")),
    "distilbert": Model(family=_bert, source=DISTILBERT, layers=6, width=768, heads=12, vocabulary=30522, usual=128, context=512,
                        notes=DISTIL_NOTES),
    "roberta_base": Model(family=_bert, source=ROBERTA, layers=12, width=768, heads=12, vocabulary=50265, segments=1, usual=128,
                          context=512, positions=514, notes=ROBERTA_NOTES),
    "gpt2_small": Model(family=_gpt, source=GPT2, layers=12, width=768, heads=12, vocabulary=50257, usual=512, context=1024),
    "gpt2_large": Model(family=_gpt, source=GPT2, layers=36, width=1280, heads=20, vocabulary=50257, usual=512, context=1024),
    "gpt3_xl": Model(family=_gpt, source=GPT3, layers=24, width=2048, heads=16, vocabulary=50257, usual=512, context=2048,
                     notes=f"{XL_NOTES}; {DENSE}"),
    "gpt3_xl_3072": Model(family=_gpt, source=GPT3, layers=24, width=3072, heads=24, vocabulary=50257, usual=512, context=2048,
                          notes="width 3072 and 24 heads: what NeuSight (ASPLOS 2025) calls GPT-3 XL"),
    "gpt3_2_7b": Model(family=_gpt, source=GPT3, layers=32, width=2560, heads=32, vocabulary=50257, usual=512, context=2048,
                       notes=DENSE),
    "opt_1_3b": Model(family=_opt, source=OPT, layers=24, width=2048, heads=32, vocabulary=50272, usual=512, context=2048,
                      positions=2050),
    "opt_13b": Model(family=_opt, source=OPT, layers=40, width=5120, heads=40, vocabulary=50272, usual=512, context=2048,
                     positions=2050),
    "llama_2_7b": Model(family=_llama, source=LLAMA2, layers=32, width=4096, heads=32, hidden=11008, vocabulary=32000, usual=512,
                        context=4096),
    "llama_2_13b": Model(family=_llama, source=LLAMA2, layers=40, width=5120, heads=40, hidden=13824, vocabulary=32000, usual=512,
                         context=4096),
    "llama_3_8b": Model(family=_llama, source=LLAMA3, layers=32, width=4096, heads=32, kv_heads=8, hidden=14336,
                        vocabulary=128256, usual=512, context=8192),
}  # fmt: skip

DECODERS = [name for name, model in MODELS.items() if model.family in (_gpt, _opt, _llama)]
MODELS |= {
    f"{name}{BODY}": replace(MODELS[name], aliases=(), notes="; ".join(filter(None, (MODELS[name].notes, HEADLESS))))
    for name in DECODERS
}
