"""Transformers, encoders and language models; and convolutional networks with parts of them, ConvNeXt and MobileViT.

They are rows of numbers, built as the model of a `config.json` is. Dropout of attention weights is left out: the kernel that
computes attention applies it on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from archsim.trace.huggingface.catalog import find
from archsim.trace.huggingface.graph import graph_of
from archsim.trace.huggingface.model import PatchInput, TransformerModel
from archsim.trace.kinds.dense import Linear
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Gelu, Scale, Silu
from archsim.trace.kinds.sequence import Attention
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Inverted, images, inverted_residual

VIT = "A. Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv:2010.11929, table 1; torchvision vision_transformer.py"
DEIT = "H. Touvron et al., Training data-efficient image transformers, arXiv:2012.12877, table 1; timm vision_transformer.py"
BERT = "J. Devlin et al., BERT, arXiv:1810.04805, section 3; google-bert bert_config.json"
ROBERTA = "Y. Liu et al., RoBERTa, arXiv:1907.11692, section 4; FacebookAI/roberta-base config.json"
DISTILBERT = "V. Sanh et al., DistilBERT, arXiv:1910.01108, section 3; distilbert-base-uncased config.json"
GPT2 = "A. Radford et al., Language Models are Unsupervised Multitask Learners (2019), table 2; openai-community config.json"
GPT3 = "T. Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1"
OPT = "S. Zhang et al., OPT: Open Pre-trained Transformer Language Models, arXiv:2205.01068, table 1; facebook config.json"
LLAMA2 = "H. Touvron et al., Llama 2, arXiv:2307.09288, section 2.2 and appendix A.2.1; meta-llama config.json"
QWEN2 = "A. Yang et al., Qwen2 Technical Report, arXiv:2407.10671, table 1; Qwen config.json"
LLAMA3 = "A. Grattafiori et al., The Llama 3 Herd of Models, arXiv:2407.21783, table 3; meta-llama config.json"

READ = "T tokens read at once (prefill), without cached keys"
PROMPT = f"{READ}; logits for every token, and a softmax over them"
BODY = "_body"  # how the name of a language model without the scores for every word ends
HEADLESS = "without the head that scores every word"

VIT_NOTES = "class token and positions are tables of which every row is read"
BERT_NOTES = "encoder and pooler without a task's head; T tokens, usually the 128 of nine tenths of its training (appendix A.2)"
DISTIL_NOTES = "encoder without segments, pooler and task's head"
ROBERTA_NOTES = "encoder and pooler without a task's head; one segment, positions counted from 2"
XL_NOTES = "16 heads: the 24 of the paper's table, of 128 features each, do not make its 2048"
DENSE = "every layer attends to all tokens before; the paper's sparse layers are not published"
NEUSIGHT = "width 3072 and 24 heads: what NeuSight (ASPLOS 2025) calls GPT-3 XL"


def _like(name: str, source: str, *notes: str, of: str = "", **changes: Any) -> TransformerModel:
    """A shipped model under its own name, or with other numbers than the shipped one `of` another name."""
    model = replace(find(of or name), **changes)
    if of:
        model = replace(model, head_size=model.width // model.heads, kv_heads=model.heads, hidden=4 * model.width)
    return replace(model, name=name, source=source, notes=((PROMPT,) if model.generates else ()) + notes)


def _patches(size: int, patch: int) -> dict[str, Any]:
    """An image in patches, each with a row of positions, and one for the class token."""
    image = PatchInput(size=size, patch=patch, channels=3, classes=1000, pooler=False)
    return {"image": image, "positions": image.tokens + 1, "context": image.tokens + 1}


MODELS: dict[str, TransformerModel] = {model.name: model for model in (
    _like("vit_base_16", VIT, VIT_NOTES),
    _like("vit_tiny_16", DEIT, VIT_NOTES, of="vit_base_16", width=192, heads=3),
    _like("vit_small_16", DEIT, VIT_NOTES, of="vit_base_16", width=384, heads=6),
    _like("vit_base_32", VIT, VIT_NOTES, of="vit_base_16", **_patches(224, 32)),
    _like("vit_base_32_384", VIT, VIT_NOTES, of="vit_base_16", **_patches(384, 32)),
    _like("vit_large_16", VIT, VIT_NOTES, of="vit_base_16", layers=24, width=1024, heads=16),
    _like("bert_base", BERT, BERT_NOTES),
    _like("bert_large", BERT, BERT_NOTES),
    _like("distilbert", DISTILBERT, DISTIL_NOTES),
    _like("roberta_base", ROBERTA, ROBERTA_NOTES),
    _like("gpt2_small", GPT2),
    _like("gpt2_large", GPT2),
    _like("gpt3_xl", GPT3, XL_NOTES, DENSE, of="gpt2_small", layers=24, width=2048, heads=16, positions=2048, context=2048),
    _like("gpt3_xl_3072", GPT3, NEUSIGHT, of="gpt2_small", layers=24, width=3072, heads=24, positions=2048, context=2048),
    _like("gpt3_2_7b", GPT3, DENSE, of="gpt2_small", layers=32, width=2560, heads=32, positions=2048, context=2048),
    _like("opt_1_3b", OPT),
    _like("opt_13b", OPT),
    _like("llama_2_7b", LLAMA2),
    _like("llama_2_13b", LLAMA2),
    _like("llama_3_8b", LLAMA3),
    _like("qwen2_1_5b", QWEN2),
)}  # fmt: skip
MODELS |= {
    f"{name}{BODY}": replace(model, name=f"{name}{BODY}", notes=(READ, *model.notes[1:], HEADLESS))
    for name, model in MODELS.items()
    if model.generates
}
ALIASES: Mapping[str, tuple[str, ...]] = {
    "vit_base_16": ("ViT-B/16", "vit_b_16"), "vit_base_32_384": ("ViT-B/32 at 384",), "vit_large_16": ("ViT-L/16", "vit_l_16"),
    "bert_base": ("bert_base_uncased", "bert_base_body"), "bert_large": ("bert_large_uncased", "bert_large_body"),
}  # fmt: skip


def build(name: str) -> Trace:
    """The network of one row of `MODELS`; a body ends before the scores of words."""
    trace = replace(graph_of(MODELS[name]), aliases=ALIASES.get(name, ()))
    if not name.endswith(BODY):
        return trace
    return replace(trace, ops=trace.ops[:-2], outputs=(trace.ops[-3].name,))


# -------------------------------------------------------------------- convolutional networks with parts of transformers

LIU = "Z. Liu et al., A ConvNet for the 2020s, arXiv:2201.03545, table 9; torchvision convnext.py"
# name -> channels of the first stage, which each other doubles; blocks of the third one, where the others have three
CONVNEXTS = {"convnext_tiny": (96, 9), "convnext_base": (128, 27)}


def convnext(name: str) -> Trace:
    """Channels stand last for norms and linear layers, first for convolutions; copies lead from one to the other."""
    width, most = CONVNEXTS[name]
    net = images(name, LIU, notes="no block is skipped at random in training")
    x = _channel_norm(net, net.conv("data", width, 4, 4, name="stem"), "stem.norm")
    for stage, count in enumerate((3, 3, most, 3), 1):
        if stage > 1:
            x = net.conv(_channel_norm(net, x, f"down{stage}.norm"), width << stage - 1, 2, 2, name=f"down{stage}")
        for number in range(count):
            x = _block(net, x, f"stage{stage}.{number}")
    x = net.flatten(_channel_norm(net, net.global_avg_pool(x, name="pool"), "norm"))
    return net.classified(x, name="head")


def _block(net: Builder, x: str, name: str) -> str:
    width = net.channels(x)
    y = net.conv(x, width, 7, pad=3, groups=width, name=f"{name}.depthwise")
    y = net.add(LayerNorm(), net.transpose(y, 0, 2, 3, 1, name=f"{name}.last"), name=f"{name}.norm")
    y = net.add(Linear(), y, name=f"{name}.mlp1", recorded=(4 * width,))
    y = net.add(Linear(), net.activate(y, Gelu(), name=f"{name}.mlp1"), name=f"{name}.mlp2", recorded=(width,))
    y = net.transpose(y, 0, 3, 1, 2, name=f"{name}.first")
    return net.sum(x, net.add(Scale(axis=1), y, name=f"{name}.scale"), name=f"{name}.add")


def _channel_norm(net: Builder, x: str, name: str) -> str:
    y = net.add(LayerNorm(), net.transpose(x, 0, 2, 3, 1, name=f"{name}.last"), name=name)
    return net.transpose(y, 0, 3, 1, 2, name=f"{name}.first")


MEHTA = "S. Mehta and M. Rastegari, MobileViT, arXiv:2110.02178, table 4 (S); apple/ml-cvnets, mobilevit.py"
EXPANSION, HEADS, PATCH = 4, 4, 2

# (channels of the halving block, width, hidden units and number of transformers behind it)
MOBILEVIT_S = (96, 144, 288, 2), (128, 192, 384, 4), (160, 240, 480, 3)


def mobilevit_s() -> Trace:
    """Images of 256 x 256 as the paper has them; three stages of convolutions, three with transformers."""
    net = images("mobilevit_s", MEHTA, 256)
    x = _conv(net, "data", 16, 3, 2, 1, name="stem")
    for number, (channels, stride) in enumerate(((32, 1), (64, 2), (64, 1), (64, 1)), 1):
        x = _inverted(net, x, channels, stride, f"block{number}")
    for stage, (channels, width, hidden, count) in enumerate(MOBILEVIT_S, 3):
        x = _inverted(net, x, channels, 2, f"stage{stage}.half")
        x = _transformers(net, x, width, hidden, count, f"stage{stage}")
    x = net.global_avg_pool(_conv(net, x, 4 * net.channels(x), 1, name="last"), name="pool")
    return net.classified(net.dropout(x, 0.1, name="drop"), aliases=("mobilevit_small",))


def _conv(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, pad: int = 0, *, name: str) -> str:
    return net.activate(net.conv_bn(x, channels, kernel, stride, pad, name=name), Silu(), name=name)


def _inverted(net: Builder, x: str, channels: int, stride: int, name: str) -> str:
    block = Inverted(kernel=3, wide=EXPANSION * net.channels(x), channels=channels, stride=stride, active=Silu())
    return inverted_residual(net, x, block, name)


def _transformers(net: Builder, x: str, width: int, hidden: int, count: int, name: str) -> str:
    """Figure 1b: a convolution, transformers over patches, and a convolution over what came in and what comes out."""
    _, channels, height, side = net.shape(x)
    rows, columns = height // PATCH, side // PATCH
    y = net.conv(_conv(net, x, channels, 3, 1, 1, name=f"{name}.local"), width, 1, bias=False, name=f"{name}.widen")
    y = net.reshape(y, ("N", width, rows, PATCH, columns, PATCH), name=f"{name}.patches")
    y = net.transpose(y, 0, 3, 5, 2, 4, 1, name=f"{name}.unfold")
    y = net.reshape(y, (f"{PATCH**2}*N", rows * columns, width), name=f"{name}.tokens")
    for number in range(1, count + 1):
        y = _transformer(net, y, width, hidden, f"{name}.{number}")
    y = net.reshape(
        net.add(LayerNorm(), y, name=f"{name}.norm"), ("N", PATCH, PATCH, rows, columns, width), name=f"{name}.places"
    )
    y = net.reshape(net.transpose(y, 0, 5, 3, 1, 4, 2, name=f"{name}.fold"), ("N", width, height, side), name=f"{name}.image")
    y = net.concat(x, _conv(net, y, channels, 1, name=f"{name}.narrow"), name=f"{name}.concat")
    return _conv(net, y, channels, 3, 1, 1, name=f"{name}.fuse")


def _transformer(net: Builder, x: str, width: int, hidden: int, at: str) -> str:
    """Attention and two linear layers, each on the normalised input and added to it."""
    packed = net.linear(net.add(LayerNorm(), x, name=f"{at}.norm1"), 3 * width, name=f"{at}.qkv")
    attended = net.linear(net.add(Attention(heads=HEADS), packed, name=f"{at}.attention"), width, name=f"{at}.output")
    x = net.sum(x, attended, name=f"{at}.add1")
    wide = net.linear(net.add(LayerNorm(), x, name=f"{at}.norm2"), hidden, name=f"{at}.mlp1")
    return net.sum(x, net.linear(net.activate(wide, Silu(), name=wide), width, name=f"{at}.mlp2"), name=f"{at}.add2")
