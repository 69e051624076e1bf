"""Reading a `config.json`: the model that its keys and its family make."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, nearest
from archsim.base.files import LIMITS, read_text
from archsim.trace.dims import short
from archsim.trace.huggingface.keys import (
    DENSE,
    FAMILIES,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    NOT_BUILT,
    WIDTH,
    ConfigKeys,
    FamilyTraits,
)
from archsim.trace.huggingface.model import AudioInput, ExpertLayers, LatentKeys, PatchInput, TransformerModel, stored_weights
from archsim.trace.jsonlines import strict_json

ACTIVATIONS = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "swish")
# Where a model of several parts keeps its language model, and what else it may have.
INNER = ("text_config", "llm_config", "language_config", "thinker_config")
OTHER = ("vision_config", "audio_config", "visual")
MOST = {"layers": LIMITS["config"].entries, "width": 1 << 20, "heads": 1 << 16, "vocabulary": 1 << 24, "tokens": 1 << 24,
        "experts": 1 << 16}  # fmt: skip
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len", "model_max_length")
ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attn_pdrop", "attention_dropout")
WINDOW, WINDOWED = ("sliding_window", "attention_chunk_size"), ("sliding_attention", "chunked_attention")
IMAGENET = 1000  # classes, where a file names none


def load_model(path: str | Path) -> TransformerModel:
    """The model of a `config.json`. Raises MissingFile, or InputError with every problem."""
    return model_of_text(read_text(Path(path), LIMITS["config"].size), str(path))


def model_of_text(text: str, path: str) -> TransformerModel:
    """The model in the text of a `config.json`; errors call it `path`."""
    return model_of(_parsed(text, path), path)


def _parsed(text: str, path: str) -> Any:
    try:
        return strict_json(text)
    except json.JSONDecodeError as error:
        raise InputError(path, f"line {error.lineno}: is not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise InputError(path, "is nested too deeply") from None
    except ValueError as error:
        raise InputError(path, str(error)) from None


def model_of(words: Any, path: str) -> TransformerModel:
    """The model of the parsed words of a configuration. What wraps one under `config` may add an `id` and a `source`."""
    if not isinstance(words, dict):
        raise InputError(path, "is no JSON object")
    wrapper: Mapping[str, Any] = {}
    if "model_type" not in words and isinstance(words.get("config"), dict):
        wrapper, words = words, words["config"]
    whole, words, family, notes = words, *_language_part(words)
    if not family:
        raise InputError(path, f"model_type: is missing; it names the family, one of {', '.join(FAMILIES)}")
    if family not in FAMILIES:
        raise InputError(path, f"model_type: {_why_not(family)}")
    traits = FAMILIES[family]
    keys = ConfigKeys(words, traits.defaults, part=words is not whole)
    notes += [f"{family}: {traits.note}"] if traits.note else []
    model = _STYLES[traits.style](keys, family, traits)
    if keys.problems:
        raise InputError(path, list(dict.fromkeys(keys.problems)))
    if keys.taken:
        notes.append(f"the file omits {', '.join(keys.taken)}: as the configuration of {family} has them by default")
    named = wrapper.get("id") or words.get("_name_or_path") or Path(path).parent.name or model.model_type
    source = wrapper.get("source") or f"config.json of {named}"
    return replace(model, name=str(named)[:100], source=str(source)[:500], notes=(*model.notes, *notes),
                   stored=stored_weights({**words, **whole}, model.layers))  # fmt: skip


def _language_part(words: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, list[str]]:
    """The keys of the language model in a file, its family, and what is said of the rest."""
    family, inside, left = _family(words), "", [key for key in OTHER if isinstance(words.get(key), dict)]
    outer = family
    while inner := next((key for key in INNER if isinstance(words.get(key), dict)), None):
        if family in FAMILIES and any(key in words for key in WIDTH):
            break
        tied = {key: words[key] for key in ("tie_word_embeddings",) if key in words}
        words, inside = {**tied, **words[inner]}, inner
        family = _family(words) or (f"{family}_text" if f"{family}_text" in FAMILIES else "")
    if inside:
        return words, family, [f"{outer}: only its {inside}, the language model, is built"]
    return words, family, [f"{outer}: only the language model is built, without {' and '.join(left)}"] if left else []


def _family(words: Mapping[str, Any]) -> str:
    """The family that a file names, by `model_type` or by the class of its module (LlamaForCausalLM)."""
    stated = words.get("model_type")
    if isinstance(stated, str) and stated:
        return stated
    classes = words.get("architectures")
    first = str(classes[0]) if isinstance(classes, list) and classes else ""
    stem = re.split(r"For[A-Z]|Model$|LMHead", first)[0].lower()
    return next((name for name in FAMILIES if stem and re.sub(r"[_-]", "", name) == stem), "")


def _why_not(family: str) -> str:
    """Why a family is not built, or which one may be meant."""
    if family in NOT_BUILT:
        return f"{short(family)} has {NOT_BUILT[family]}: not built here"
    near = [name for name in nearest(family, FAMILIES) if abs(len(name) - len(family)) <= 1]
    return (f"{short(family)} is no family that is built here; "
            + (f"nearest: {', '.join(near)}" if near else f"these are: {', '.join(FAMILIES)}")
            + "; where its module is that of one of them, name that in its place")  # fmt: skip


def _text(keys: ConfigKeys, family: str, traits: FamilyTraits) -> TransformerModel:
    """Encoders and decoders of text."""
    latent = _latent(keys) if traits.latent else None
    sizes = _sizes(keys, traits, latent)
    usual = traits.context + traits.offset * (traits.style == "encoder")
    context = keys.whole(CONTEXT, MOST["tokens"], least=1 + traits.offset, default=usual)
    positions = 0
    if traits.learned:
        positions = context + traits.offset * traits.above
        context -= traits.offset * (not traits.above)
    projected = keys.whole("word_embed_proj_dim", MOST["width"], default=sizes["width"])
    order = next((order for key, default, order in traits.orders if keys.flag(key, default)), traits.order)
    dropout = keys.share(("hidden_dropout_prob", "resid_pdrop", "dropout"), traits.dropout) if traits.dropout else 0.0
    return TransformerModel(
        model_type=family, style=traits.style, **sizes, context=context, positions=positions,
        vocabulary=keys.whole(("vocab_size", "padded_vocab_size"), MOST["vocabulary"]),
        segments=keys.whole("type_vocab_size", 1 << 16, least=0, default=traits.segments) if traits.segments else 0,
        pooler=traits.pooler, projected=0 if projected == sizes["width"] else projected, embedding_norm=traits.embedding_norm,
        scaled=traits.scaled, norm=traits.norm, final_norm=order != "post", order=order, rotary=traits.rotary,
        unturned=_unturned(keys, traits, sizes["layers"]), gated=traits.gated, activation=_activation(keys, traits),
        packed=traits.packed, bias=_biases(keys, traits), qk_norm=traits.qk_norm if keys.flag(*traits.qk_norm_key) else "",
        sinks=traits.sinks, tied=keys.flag("tie_word_embeddings", traits.tied), windows=_windows(keys, traits, sizes["layers"]),
        kv_heads_of=_kv_heads_of(keys, sizes), experts=_experts(keys, traits) if traits.experts else None, latent=latent,
        dropout=dropout, embedding_dropout=keys.share(("embd_pdrop", "hidden_dropout_prob"), traits.dropout)
        if traits.embedding_dropout or traits.style == "encoder" else 0.0,
        attention_dropout=keys.share(ATTENTION_DROPOUT, traits.attention_dropout),
    )  # fmt: skip


def _sizes(keys: ConfigKeys, traits: FamilyTraits, latent: LatentKeys | None = None) -> dict[str, Any]:
    """Layers, width, heads and the width inside the feed-forward part."""
    width, heads = keys.whole(WIDTH, MOST["width"]), keys.whole(HEADS, MOST["heads"])
    kv_heads, size = heads, latent.plain + latent.turned if latent else 0
    if not latent:
        size = keys.whole("head_dim", MOST["width"], default=0)
        if traits.multi_query and keys.flag("multi_query", True) and not keys.flag("new_decoder_architecture", False):
            kv_heads = 1
        elif keys.flag("multi_query_attention", True):
            kv_heads = keys.whole(KV_HEADS, MOST["heads"], default=heads)
    if not size:
        keys.divides(keys.named(*HEADS), heads, keys.named(*WIDTH), width)
        size = max(1, width // heads)
    if traits.rotary and size % 2 and not keys.problems:
        keys.problems.append(f"head_dim: {size} features of a head are no pairs, which positions turn")
    if not isinstance(keys.words.get("num_key_value_heads_per_layer"), list):
        keys.divides(keys.named(*KV_HEADS), kv_heads, keys.named(*HEADS), heads)
    times = keys.whole("expansion_ratio", 1 << 10, default=4)
    names = (DENSE, *HIDDEN) if DENSE in keys.words or DENSE in keys.defaults else HIDDEN
    hidden = keys.whole(names, 1 << 24, default=None if traits.gated else times * width)
    return {"layers": keys.whole(LAYERS, MOST["layers"]), "width": width, "heads": heads, "kv_heads": kv_heads, "head_size": size,
            "hidden": hidden}  # fmt: skip


def _activation(keys: ConfigKeys, traits: FamilyTraits) -> str:
    names = ("hidden_activation", "hidden_act", "activation_function", "activation", "dense_act_fn")
    return keys.word(names, ACTIVATIONS, traits.activation)


def _biases(keys: ConfigKeys, traits: FamilyTraits) -> frozenset[str]:
    """The projections with biases: those of the family, less or more what the file's switches say."""
    found = set(traits.bias)
    for key, parts, default in traits.switches:
        found = found | parts if keys.flag(key, default) else found - parts
    return frozenset(found)


def _windows(keys: ConfigKeys, traits: FamilyTraits, layers: int) -> tuple[int, ...]:
    """The window of each layer, empty where there is none."""
    kinds = _listed(keys, "layer_types", layers)
    built = ("full_attention", *WINDOWED)
    if other := [kind for kind in kinds if kind not in built]:
        keys.problems.append(f"layer_types: {short(other[0])} is no layer that is built here; these are: {', '.join(built)}")
    if traits.window == "never" or (traits.window == "asked" and not keys.flag("use_sliding_window", False)):
        return ()
    size = keys.whole(WINDOW, MOST["tokens"], default=0)
    if not size:
        return ()
    if kinds:
        found = tuple([size if kind in WINDOWED else 0 for kind in kinds])
    elif traits.window == "asked":
        first = keys.whole("max_window_layers", MOST["layers"], least=0, default=0)
        found = tuple([size if layer >= first else 0 for layer in range(layers)])
    else:
        every = _pattern(keys, traits) if traits.window == "alternate" else 0
        found = tuple([0 if every and (layer + 1) % every == 0 else size for layer in range(layers)])
    return found if any(found) else ()


def _pattern(keys: ConfigKeys, traits: FamilyTraits) -> int:
    """Of so many layers the last one has no window: a number, or letters as in LLLG, of which the last is for that layer."""
    names = ("sliding_window_pattern", "_sliding_window_pattern")
    stated = keys.words.get(keys.named(*names))
    if isinstance(stated, str) and re.fullmatch("L+G", stated):
        return len(stated)
    return keys.whole(names, MOST["layers"], default=traits.every)


def _unturned(keys: ConfigKeys, traits: FamilyTraits, layers: int) -> tuple[int, ...]:
    """The layers without rotary positions, of families that have some."""
    if not traits.unturned_every:
        return ()
    turned = _listed(keys, "no_rope_layers", layers)  # 1: with them
    every = keys.whole("no_rope_layer_interval", MOST["layers"], default=traits.unturned_every)
    return tuple([layer for layer in range(layers) if (not turned[layer] if turned else (layer + 1) % every == 0)])


def _listed(keys: ConfigKeys, name: str, layers: int) -> Sequence[Any]:
    """A list with something for each layer, empty where the file has none."""
    listed = keys.words.get(name)
    if not listed:
        return ()
    if not isinstance(listed, list) or len(listed) != layers:
        keys.problems.append(f"{name}: must be a list with an entry for each of {layers} layers, is {short(listed)}")
        return ()
    return listed


def _kv_heads_of(keys: ConfigKeys, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Heads of keys and values of each layer, where a file lists them."""
    name = "num_key_value_heads_per_layer"
    found = tuple([keys.checked(f"{name}[{i}]", value, 1, MOST["heads"])
                   for i, value in enumerate(_listed(keys, name, sizes["layers"]))])  # fmt: skip
    for i, number in enumerate(found):
        keys.divides(f"{name}[{i}]", number, "num_attention_heads", sizes["heads"])
    return found


def _latent(keys: ConfigKeys) -> LatentKeys:
    """The ranks of DeepSeek's attention."""
    most = MOST["width"]
    return LatentKeys(
        query_rank=keys.whole("q_lora_rank", most, default=0), rank=keys.whole("kv_lora_rank", most),
        plain=keys.whole("qk_nope_head_dim", most), turned=keys.whole("qk_rope_head_dim", most),
        value=keys.whole("v_head_dim", most),
    )  # fmt: skip


def _experts(keys: ConfigKeys, traits: FamilyTraits) -> ExpertLayers:
    """The experts of a family's layers, under the names that families have for their numbers."""
    most = MOST["experts"]
    hidden = keys.whole(traits.experts, 1 << 24)
    own = keys.named("shared_expert_intermediate_size", "shared_intermediate_size")
    shared = keys.whole(
        own, 1 << 24, least=0, default=hidden * keys.whole("n_shared_experts", most, least=0, default=traits.shared_experts)
    )
    dense = keys.words.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        keys.problems.append(f"mlp_only_layers: must be a list of layers, is {short(dense)}")
        dense = []
    experts = ExpertLayers(
        experts=keys.whole(("n_routed_experts", "num_local_experts", "num_experts"), most),
        top=keys.whole(("num_experts_per_tok", "experts_per_token"), most), hidden=hidden, shared=shared,
        gate=shared > 0 and own == "shared_expert_intermediate_size" and own in keys.words,
        first=keys.whole("first_k_dense_replace", MOST["layers"], least=0, default=0),
        step=keys.whole(("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"), MOST["layers"], default=1),
        dense=tuple([keys.checked(f"mlp_only_layers[{i}]", layer, 0, MOST["layers"]) for i, layer in enumerate(dense)]),
        bias=traits.router_bias, biased=traits.expert_bias,
    )  # fmt: skip
    if experts.top > experts.experts:
        keys.problems.append(f"num_experts_per_tok: {experts.top} of only {experts.experts} experts")
    return experts


def _image(keys: ConfigKeys, family: str, traits: FamilyTraits) -> TransformerModel:
    """Encoders of images."""
    sizes = _sizes(keys, traits)
    size, patch = keys.whole("image_size", 1 << 16, default=224), keys.whole("patch_size", 1 << 16, default=16)
    keys.divides("patch_size", patch, "image_size", size)
    labels, headless = keys.words.get("id2label"), keys.words.get("architectures") == ["ViTModel"]
    classes = len(labels) if isinstance(labels, dict) and labels else keys.whole("num_labels", 1 << 24, default=IMAGENET)
    named = isinstance(labels, dict) or "num_labels" in keys.words or headless
    image = PatchInput(size=size, patch=min(patch, size), channels=keys.whole("num_channels", 1 << 12, default=3),
                       classes=0 if headless else classes, pooler=headless)  # fmt: skip
    return TransformerModel(
        model_type=family, style=traits.style, **sizes, context=image.tokens + 1, positions=image.tokens + 1, norm=traits.norm,
        rotary=False, gated=False, activation=_activation(keys, traits), packed=True, bias=_biases(keys, traits), image=image,
        notes=() if named else (f"{IMAGENET} classes: the file names none",),
    )  # fmt: skip


def _speech(keys: ConfigKeys, family: str, traits: FamilyTraits) -> TransformerModel:
    """Whisper: an encoder of spectrograms and a decoder of text."""
    width = keys.whole("d_model", MOST["width"])
    heads = keys.whole("decoder_attention_heads", MOST["heads"])
    keys.divides("decoder_attention_heads", heads, "d_model", width)
    positions = keys.whole("max_target_positions", MOST["tokens"], default=traits.context)
    audio = AudioInput(
        bins=keys.whole("num_mel_bins", 1 << 16, default=80),
        frames=keys.whole("max_source_positions", MOST["tokens"], default=1500),
        layers=keys.whole("encoder_layers", MOST["layers"]), heads=keys.whole("encoder_attention_heads", MOST["heads"]),
        hidden=keys.whole("encoder_ffn_dim", 1 << 24),
    )  # fmt: skip
    keys.divides("encoder_attention_heads", audio.heads, "d_model", width)
    return TransformerModel(
        model_type=family, style=traits.style, layers=keys.whole("decoder_layers", MOST["layers"]), width=width, heads=heads,
        kv_heads=heads, head_size=max(1, width // heads), hidden=keys.whole("decoder_ffn_dim", 1 << 24),
        vocabulary=keys.whole("vocab_size", MOST["vocabulary"]), context=positions, positions=positions, norm=traits.norm,
        rotary=False, gated=False, activation=_activation(keys, traits), bias=traits.bias, tied=True, audio=audio,
    )  # fmt: skip


_STYLES = {"encoder": _text, "decoder": _text, "image": _image, "speech": _speech}
