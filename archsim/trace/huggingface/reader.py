"""Reading a `config.json`: every number is checked, and every problem names its key."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, nearest
from archsim.base.files import read_text
from archsim.base.limits import LIMITS
from archsim.trace.dims import short
from archsim.trace.huggingface.families import FAMILIES, FamilyTraits
from archsim.trace.huggingface.model import AudioInput, ExpertLayers, LatentKeys, PatchInput, TransformerModel
from archsim.trace.jsonlines import strict_json

ACTIVATIONS = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "swish")
INNER = ("text_config", "llm_config")  # where a model of several parts keeps its language model
MOST = {"layers": LIMITS["config"].entries, "width": 1 << 20, "heads": 1 << 16, "vocabulary": 1 << 24, "tokens": 1 << 24,
        "experts": 1 << 16}  # fmt: skip
WIDTH = ("hidden_size", "n_embd", "dim", "d_model", "n_embed")  # what files call a number, the usual name first
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
IMAGENET = 1000  # classes, where a file names none


def load_model(path: str | Path) -> TransformerModel:
    """The model of a `config.json`. Raises MissingFile, or InputError with every problem."""
    return model_of_text(read_text(Path(path), LIMITS["config"].size), str(path))


def model_of_text(text: str, path: str) -> TransformerModel:
    """The model in the text of a `config.json`; errors call it `path`."""
    return model_of(_parsed(text, path), path)


def config_words(path: str | Path) -> Mapping[str, Any]:
    """The keys of a `config.json` that describes a model, without what wraps them."""
    words = _parsed(read_text(Path(path), LIMITS["config"].size), str(path))
    found: Mapping[str, Any] = words["config"] if "model_type" not in words else words
    return found


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
    notes = []
    inner = next((key for key in INNER if isinstance(words.get(key), dict)), None)
    if inner is not None and words.get("model_type") not in FAMILIES:
        notes.append(f"{words.get('model_type')}: only its {inner}, the language model, is built")
        words = {"model_type": "", **words[inner]}
    family = words.get("model_type")
    if not isinstance(family, str) or not family:
        raise InputError(path, f"model_type: is missing; it names the family, one of {', '.join(FAMILIES)}")
    if family not in FAMILIES:
        near = nearest(family, FAMILIES) or list(FAMILIES)
        raise InputError(path, f"model_type: {short(family)} is no family that is built here; nearest: {', '.join(near)}")
    keys = ConfigKeys(words)
    if FAMILIES[family].note:
        notes.append(f"{family}: {FAMILIES[family].note}")
    model = _STYLES[FAMILIES[family].style](keys, family, FAMILIES[family], tuple(notes))
    if keys.problems or model is None:
        raise InputError(path, list(dict.fromkeys(keys.problems)))
    return _named(model, wrapper, words, path)


def _named(model: TransformerModel, wrapper: Mapping[str, Any], words: Mapping[str, Any], path: str) -> TransformerModel:
    from dataclasses import replace

    named = wrapper.get("id") or words.get("_name_or_path") or Path(path).parent.name or model.model_type
    source = wrapper.get("source") or f"config.json of {named}"
    return replace(model, name=str(named)[:100], source=str(source)[:500])


class ConfigKeys:
    """The keys of a file, read with their ranges; what is wrong is collected, and a number stands in for it."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.words = words
        self.problems: list[str] = []

    def whole(self, names: str | Sequence[str], most: int, *, least: int = 1, default: int | None = None) -> int:
        """A whole number under the first of these names that the file has; without a default it is required."""
        names = (names,) if isinstance(names, str) else tuple(names)
        found = next((name for name in names if self.words.get(name) is not None), None)
        if found is None:
            if default is None:
                self.problems.append(f"{names[0]}: is missing" + (f" (or {', '.join(names[1:])})" if names[1:] else ""))
            return least if default is None else default
        return self.checked(found, self.words[found], least, most)

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
        """Say so where a number does not divide another."""
        if number > 0 and of % number:
            self.problems.append(f"{part}: {number} does not divide {whole} {of}")


def _text(keys: ConfigKeys, family: str, traits: FamilyTraits, notes: tuple[str, ...]) -> TransformerModel | None:
    """Encoders and decoders of text."""
    sizes = _sizes(keys, family, traits)
    usual = traits.context + traits.offset * (traits.style == "encoder")
    context = keys.whole(("max_position_embeddings", "n_positions", "n_ctx", "seq_length"), MOST["tokens"],
                         least=1 + traits.offset, default=usual)  # fmt: skip
    positions = 0
    if traits.learned:  # OPT counts the rows that no token uses on top, RoBERTa among its positions
        positions = context + (traits.offset if family == "opt" else 0)
        context -= traits.offset if family != "opt" else 0
    vocabulary = keys.whole("vocab_size", MOST["vocabulary"])
    projected = keys.whole("word_embed_proj_dim", MOST["width"], default=sizes["width"])
    experts = _EXPERTS[traits.experts](keys) if traits.experts else None
    latent = _latent(keys) if traits.latent else None
    if latent is not None:
        sizes |= {"kv_heads": sizes["heads"], "head_size": latent.plain + latent.turned}
    order, final = _order(keys, family, traits)
    dropout = keys.share(("hidden_dropout_prob", "resid_pdrop", "dropout"), traits.dropout) if traits.dropout else 0.0
    return TransformerModel(
        model_type=family, style=traits.style, **sizes, vocabulary=vocabulary, context=context, positions=positions,
        segments=keys.whole("type_vocab_size", 1 << 16, least=0, default=traits.segments) if traits.segments else 0,
        pooler=traits.pooler, projected=0 if projected == sizes["width"] else projected, embedding_norm=traits.embedding_norm,
        embedding_scaled=traits.embedding_scaled, norm=traits.norm, final_norm=final, order=order, rotary=traits.rotary,
        gated=traits.gated, activation=_activation(keys, traits), packed=traits.packed, bias=_biases(keys, traits),
        head_norms=traits.head_norms, tied=keys.flag("tie_word_embeddings", traits.tied), windows=_windows(keys, traits, sizes),
        kv_heads_of=_kv_heads_of(keys, sizes), experts=experts, latent=latent, dropout=dropout,
        embedding_dropout=keys.share(("embd_pdrop", "hidden_dropout_prob"), traits.dropout)
        if traits.embedding_dropout or traits.style == "encoder" else 0.0, notes=notes,
    )  # fmt: skip


def _sizes(keys: ConfigKeys, family: str, traits: FamilyTraits) -> dict[str, Any]:
    """Layers, width, heads and the width inside the feed-forward part."""
    layers = keys.whole(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), MOST["layers"])
    width, heads = keys.whole(WIDTH, MOST["width"]), keys.whole(HEADS, MOST["heads"])
    size = keys.whole("head_dim", MOST["width"], default=0, least=1) if family != "falcon" else 0
    if not size:
        keys.divides(keys.named(*HEADS), heads, keys.named(*WIDTH), width)
        size = max(1, width // heads)
    default = heads
    if family == "falcon" and not keys.flag("new_decoder_architecture", False):
        kv_heads = 1 if keys.flag("multi_query", True) else heads
    else:
        kv_heads = keys.whole(("num_key_value_heads", "num_kv_heads"), MOST["heads"], default=default)
    if not isinstance(keys.words.get("num_key_value_heads_per_layer"), list):
        keys.divides(keys.named("num_key_value_heads", "num_kv_heads"), kv_heads, keys.named(*HEADS), heads)
    inner = ("intermediate_size", "ffn_dim", "n_inner", "hidden_dim", "ffn_hidden_size", "d_ff", "ff_intermediate_size")
    required = traits.gated
    hidden = keys.whole(inner, 1 << 24, default=None if required else 4 * width)
    return {"layers": layers, "width": width, "heads": heads, "kv_heads": kv_heads, "head_size": size, "hidden": hidden}


def _order(keys: ConfigKeys, family: str, traits: FamilyTraits) -> tuple[str, bool]:
    """Where norms stand, and whether one follows the last layer."""
    if family == "falcon":
        if keys.flag("new_decoder_architecture", False):
            return "parallel2", True
        return ("parallel" if keys.flag("parallel_attn", True) else "pre"), True
    if family == "gpt_neox":
        return ("parallel2" if keys.flag("use_parallel_residual", True) else "pre"), True
    if family == "opt" and not keys.flag("do_layer_norm_before", True):
        return "post", False
    return traits.order, traits.order != "post"


def _activation(keys: ConfigKeys, traits: FamilyTraits) -> str:
    names = ("hidden_activation", "hidden_act", "activation_function", "activation", "dense_act_fn")
    return keys.word(names, ACTIVATIONS, traits.activation)


def _biases(keys: ConfigKeys, traits: FamilyTraits) -> frozenset[str]:
    """The projections with biases: those of the family, less or more what the file's switches say."""
    found = set(traits.bias)
    for key, parts, default in traits.switches:
        found = found | parts if keys.flag(key, default) else found - parts
    return frozenset(found)


def _windows(keys: ConfigKeys, traits: FamilyTraits, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The window of each layer, empty where there is none."""
    layers = sizes["layers"]
    if traits.window == "never" or keys.words.get("sliding_window") is None:
        return ()
    size = keys.whole("sliding_window", MOST["tokens"])
    kinds = keys.words.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        found = tuple([size if kind == "sliding_attention" else 0 for kind in kinds])
        return found if any(found) else ()
    if traits.window == "asked":
        if not keys.flag("use_sliding_window", False):
            return ()
        first = keys.whole("max_window_layers", MOST["layers"], least=0, default=0)
        return tuple([size if layer >= first else 0 for layer in range(layers)])
    every = keys.whole("sliding_window_pattern", MOST["layers"], default=2) if traits.window == "alternate" else 0
    return tuple([0 if every and (layer + 1) % every == 0 else size for layer in range(layers)])


def _kv_heads_of(keys: ConfigKeys, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Heads of keys and values of each layer, where a file lists them."""
    name = "num_key_value_heads_per_layer"
    listed = keys.words.get(name)
    if listed is None:
        return ()
    if not isinstance(listed, list) or len(listed) != sizes["layers"]:
        keys.problems.append(f"{name}: must be a list with a number for each of {sizes['layers']} layers, is {short(listed)}")
        return ()
    found = tuple([keys.checked(f"{name}[{i}]", value, 1, MOST["heads"]) for i, value in enumerate(listed)])
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


def _mixtral(keys: ConfigKeys) -> ExpertLayers:
    return _top(keys, ExpertLayers(
        experts=keys.whole("num_local_experts", MOST["experts"]), top=keys.whole("num_experts_per_tok", MOST["experts"]),
        hidden=keys.whole("intermediate_size", 1 << 24),
    ))  # fmt: skip


def _qwen(keys: ConfigKeys) -> ExpertLayers:
    shared = keys.whole("shared_expert_intermediate_size", 1 << 24, least=0, default=0)
    if keys.words.get("mlp_only_layers"):
        keys.problems.append("mlp_only_layers: layers without experts, one by one, are not built")
    return _top(keys, ExpertLayers(
        experts=keys.whole("num_experts", MOST["experts"]), top=keys.whole("num_experts_per_tok", MOST["experts"]),
        hidden=keys.whole("moe_intermediate_size", 1 << 24), shared=shared, gate=shared > 0,
        step=keys.whole("decoder_sparse_step", MOST["layers"], default=1),
    ))  # fmt: skip


def _deepseek(keys: ConfigKeys) -> ExpertLayers:
    hidden = keys.whole("moe_intermediate_size", 1 << 24)
    return _top(keys, ExpertLayers(
        experts=keys.whole("n_routed_experts", MOST["experts"]), top=keys.whole("num_experts_per_tok", MOST["experts"]),
        hidden=hidden, shared=hidden * keys.whole("n_shared_experts", MOST["experts"], least=0, default=0),
        first=keys.whole("first_k_dense_replace", MOST["layers"], least=0, default=0),
        step=keys.whole("moe_layer_freq", MOST["layers"], default=1), bias=keys.words.get("topk_method") == "noaux_tc",
    ))  # fmt: skip


def _top(keys: ConfigKeys, experts: ExpertLayers) -> ExpertLayers:
    if experts.top > experts.experts:
        keys.problems.append(f"num_experts_per_tok: {experts.top} of only {experts.experts} experts")
    return experts


def _image(keys: ConfigKeys, family: str, traits: FamilyTraits, notes: tuple[str, ...]) -> TransformerModel | None:
    """Encoders of images."""
    sizes = _sizes(keys, family, traits)
    size, patch = keys.whole("image_size", 1 << 16, default=224), keys.whole("patch_size", 1 << 16, default=16)
    keys.divides("patch_size", patch, "image_size", size)
    labels, headless = keys.words.get("id2label"), keys.words.get("architectures") == ["ViTModel"]
    classes = len(labels) if isinstance(labels, dict) and labels else keys.whole("num_labels", 1 << 24, default=IMAGENET)
    if not isinstance(labels, dict) and "num_labels" not in keys.words and not headless:
        notes = (*notes, f"{IMAGENET} classes: the file names none")
    image = PatchInput(size=size, patch=min(patch, size), channels=keys.whole("num_channels", 1 << 12, default=3),
                       classes=0 if headless else classes, pooler=headless)  # fmt: skip
    return TransformerModel(
        model_type=family, style=traits.style, **sizes, context=image.tokens + 1, positions=image.tokens + 1, norm=traits.norm,
        rotary=False, gated=False, activation=_activation(keys, traits), packed=True, bias=_biases(keys, traits), image=image,
        notes=notes,
    )  # fmt: skip


def _speech(keys: ConfigKeys, family: str, traits: FamilyTraits, notes: tuple[str, ...]) -> TransformerModel | None:
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
        rotary=False, gated=False, activation=_activation(keys, traits), bias=traits.bias, tied=True, audio=audio, notes=notes,
    )  # fmt: skip


_EXPERTS = {"mixtral": _mixtral, "qwen": _qwen, "deepseek": _deepseek}
_STYLES = {"encoder": _text, "decoder": _text, "image": _image, "speech": _speech}
