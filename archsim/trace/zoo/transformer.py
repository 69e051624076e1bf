"""Transformers: encoders of images and text, and language models that read a whole prompt at once (prefill).

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
from archsim.trace.trace import Trace

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
